#include "session/compaction_requests.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "execution/methods.h"
#include "partitioner/appended_table.h"
#include "partitioner/compaction_rule.h"
#include "storage/checksum.h"

namespace nam::session {
namespace {

/// The pause between two requests of a session: a merge of small groups takes milliseconds.
constexpr int64_t kPauseNs = 50'000'000;
constexpr int64_t kCallTimeoutUs = 1'000'000;
constexpr size_t kServersAskedMax = 2;
constexpr int64_t kRoomPatienceUs = 30'000'000;
constexpr int64_t kRoomPauseUs = 10'000;

}  // namespace

void CompactionRequests::After(const proto::Table& table) {
  const int64_t now_ns = attachment_.fabric().clock().NowNs();
  if (asking_ || now_ns < next_ns_ || partitioner::GroupsToMerge(table).empty()) return;
  next_ns_ = now_ns + kPauseNs;
  thread_.reset();  // has ended, except its last instructions
  asking_ = true;
  auto started = attachment_.fabric().TryStartThread("nam-ask-compact", [this, name = table.name()] {
    Ask(name);
    asking_ = false;
  });
  if (started.ok()) {
    thread_ = *std::move(started);
  } else {
    asking_ = false;
  }
}

absl::Status CompactionRequests::AwaitRoom(const proto::Table& table, const absl::Status& full,
                                           const std::atomic<bool>& cancelled) {
  thread_.reset();
  if (!Ask(table.name())) return full;
  Clock& clock = attachment_.fabric().clock();
  const Deadline deadline = clock.After(kRoomPatienceUs);
  while (!clock.Passed(deadline)) {
    if (cancelled) return absl::CancelledError("cancelled");
    NAM_ASSIGN_OR_RETURN(const auto now, attachment_.catalog().GetTable(table.name()));
    if (catalog::GroupCount(*now) < catalog::GroupCount(table)) return absl::OkStatus();
    clock.SleepUntil(clock.After(kRoomPauseUs));
  }
  return full;
}

bool CompactionRequests::Ask(const std::string& table) {
  absl::StatusOr<std::vector<proto::Member>> members = attachment_.Members(proto::ROLE_COMPUTE);
  if (!members.ok()) return false;
  proto::CompactTableRequest request;
  request.set_table(table);
  const uint64_t first = storage::Checksum(std::as_bytes(std::span(table)));
  for (size_t i = 0; i < std::min(kServersAskedMax, members->size()); ++i) {
    const proto::Member& member = (*members)[(first + i) % members->size()];
    std::unique_ptr<catalog::Peer>& peer = peers_[member.id()];
    if (peer == nullptr) {
      peer = attachment_.OpenPeer(
          absl::StrFormat("compute server %d (%s)", member.id(), member.control_address()),
          member.control_address());
    }
    if (peer->Call(execution::kCompactTable, request, kCallTimeoutUs).ok()) return true;
  }
  return false;
}

}  // namespace nam::session
