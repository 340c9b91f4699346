#include "computeserver/attempt_run.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "execution/methods.h"
#include "execution/partition/open_scratch.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

/// The server's memory, that is. More of it would not make room in memory servers, whatever was refused
/// before.
bool LacksMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !IsProcessLimit(status) &&
         !status.GetPayload(execution::kScratchFull).has_value() &&
         !status.GetPayload(execution::kTableMemoryFull).has_value();
}

}  // namespace

absl::StatusOr<proto::AttemptReply> OrCrowded(absl::StatusOr<proto::AttemptReply> reply,
                                              const execution::MemoryGrant& memory, bool whole,
                                              uint64_t build_bytes, uint64_t result_bytes_max) {
  if (!LacksMemory(reply.status())) return reply;
  const bool of_builds = reply.status().GetPayload(execution::kBuildSidesTooLarge).has_value();
  // The budget was cut to what the server has, so the grant was not asked for more.
  const bool beyond_server = !of_builds && result_bytes_max > memory.bytes_most();
  if (!memory.refused() && !beyond_server) return reply;
  if (whole || !memory.refused()) {
    absl::Status error = UserError(
        sqlstate::kOutOfMemory,
        absl::StrFormat("the query needs more than the %d MiB that a compute server has for all queries",
                        memory.bytes_most() >> 20),
        -1, "raise --memory of the compute servers, or add a LIMIT or a filter");
    if (of_builds || build_bytes > memory.bytes_most() / 2)
      error.SetPayload(execution::kBuildSidesTooLarge, absl::Cord());
    return error;
  }
  proto::AttemptReply crowded;
  crowded.set_crowded(true);
  return crowded;
}

AttemptRun::~AttemptRun() {
  if ((!ended_ || cancel_) && !leaves_window_) server_.results.Release(id_, client_);
  cancel_ = true;
}

absl::StatusOr<proto::AttemptReply> AttemptRun::Advance(const catalog::IncomingCall& call) {
  absl::StatusOr<proto::AttemptReply> reply = Go(call);
  const execution::MemoryGrant& memory = *stage_->inputs().memory;
  if (!handed_over_) {
    return OrCrowded(std::move(reply), memory, whole_, stage_->build_budget().used(),
                     stage_->inputs().settings.result_bytes_max());
  }
  if (!LacksMemory(reply.status()) || !memory.refused()) return reply;
  return UserError(sqlstate::kOutOfMemory,
                   "other queries have the compute server's memory, and rows of this one have been delivered",
                   -1, "run the query again");
}

absl::StatusOr<proto::AttemptReply> AttemptRun::Go(const catalog::IncomingCall& call) {
  if (!std::exchange(started_, true)) attempt_.Start();
  const bool window = attempt_.Await([&] {
    if (call.Cancelled()) cancel_ = true;
  });
  if (!window) {
    const absl::Status status = attempt_.status();
    if (absl::IsUnavailable(status)) {
      server_.channels.Clear();
      server_.claim_channels.Clear();
    }
    NAM_RETURN_IF_ERROR(status);
  }
  return window ? Window() : End();
}

absl::StatusOr<proto::AttemptReply> AttemptRun::Window() {
  proto::AttemptReply reply;
  std::vector<std::span<const std::byte>> pages;
  const std::vector<uint32_t> taken = attempt_.StoreWindow(id_, pages);
  const absl::Status kept = Keep(pages, reply);
  attempt_.GiveBack(taken);
  NAM_RETURN_IF_ERROR(kept);
  reply.set_more(true);
  handed_over_ = true;
  return reply;
}

absl::StatusOr<proto::AttemptReply> AttemptRun::End() {
  proto::AttemptReply reply;
  std::vector<std::span<const std::byte>> pages;
  NAM_RETURN_IF_ERROR(attempt_.Store(id_, pages));
  if (pages.empty()) {
    server_.results.Release(id_, client_);  // the last window
  } else {
    NAM_RETURN_IF_ERROR(Keep(pages, reply));
  }
  attempt_.Report(reply);
  reply.set_leaving(server_.leaving);
  ended_ = true;
  return reply;
}

absl::Status AttemptRun::Keep(std::span<const std::span<const std::byte>> pages, proto::AttemptReply& reply) {
  NAM_ASSIGN_OR_RETURN(const ResultStore::Place place, server_.results.Put(id_, client_, pages));
  uint64_t bytes = 0;
  for (const std::span<const std::byte> page : pages) bytes += page.size();
  reply.set_rkey(place.rkey.value);
  reply.set_offset(place.offset);
  reply.set_bytes(bytes);
  return absl::OkStatus();
}

}  // namespace nam::computeserver
