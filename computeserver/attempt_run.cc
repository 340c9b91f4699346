#include "computeserver/attempt_run.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace nam::computeserver {

AttemptRun::~AttemptRun() {
  if (!ended_ || cancel_) server_.results.Release(id_);
  cancel_ = true;
}

absl::StatusOr<proto::AttemptReply> AttemptRun::Advance(const catalog::IncomingCall& call) {
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
  return reply;
}

absl::StatusOr<proto::AttemptReply> AttemptRun::End() {
  proto::AttemptReply reply;
  std::vector<std::span<const std::byte>> pages;
  NAM_RETURN_IF_ERROR(attempt_.Store(id_, pages));
  if (pages.empty()) {
    server_.results.Release(id_);  // the last window
  } else {
    NAM_RETURN_IF_ERROR(Keep(pages, reply));
  }
  for (const proto::PipelineCounters& counters : attempt_.Counters()) *reply.add_pipelines() = counters;
  for (const std::vector<uint32_t>& claimed : attempt_.Claimed())
    reply.add_threads()->mutable_pieces()->Add(claimed.begin(), claimed.end());
  if (std::optional<proto::Directory> directory = attempt_.Directory())
    *reply.mutable_directory() = *std::move(directory);
  reply.set_claims(attempt_.Claims());
  reply.set_satisfied(attempt_.satisfied());
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
