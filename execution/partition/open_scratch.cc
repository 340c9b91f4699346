#include "execution/partition/open_scratch.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/process_limits.h"
#include "base/status_macros.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

/// A memory server with too many calls is asked again, about so many times: that is no lack of memory.
constexpr int kTriesMax = 400;
constexpr int64_t kAgainUs = 10'000;

absl::StatusOr<catalog::GrantedExtent> Ask(catalog::Attachment& attachment, MemoryServerId server,
                                           AllocationId allocation, uint64_t attempt, uint64_t bytes,
                                           const std::atomic<bool>& cancel) {
  const std::unique_ptr<fabric::Event> never = attachment.fabric().CreateEvent();
  absl::StatusOr<catalog::GrantedExtent> extent =
      attachment.AllocateScratch(server, allocation, attempt, bytes, cancel);
  for (int i = 0; i < kTriesMax; ++i) {
    if (!absl::IsResourceExhausted(extent.status()) || !catalog::Unanswered(extent.status())) return extent;
    if (cancel.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
    never->Wait(attachment.fabric().clock().After(kAgainUs));
    extent = attachment.AllocateScratch(server, allocation, attempt, bytes, cancel);
  }
  return absl::UnavailableError(extent.status().message());
}

}  // namespace

std::unique_ptr<storage::ScratchSpace> OpenScratch(catalog::Attachment& attachment, AllocationId allocation,
                                                   uint64_t attempt) {
  const auto find_servers = [&attachment]() -> absl::StatusOr<std::vector<MemoryServerId>> {
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> members, attachment.Members(proto::ROLE_MEMORY));
    std::vector<MemoryServerId> servers;
    for (const proto::Member& member : members) servers.emplace_back(static_cast<uint16_t>(member.id()));
    return servers;
  };
  const auto allocate = [&attachment, allocation, attempt](
                            MemoryServerId server, uint64_t bytes,
                            const std::atomic<bool>& cancel) -> absl::StatusOr<storage::ScratchSlab> {
    NAM_ASSIGN_OR_RETURN(const catalog::GrantedExtent extent,
                         Ask(attachment, server, allocation, attempt, bytes, cancel));
    if (extent.bytes < bytes) return absl::InternalError("a memory server gave less than was asked for");
    return storage::ScratchSlab{{server, extent.offset}, extent.bytes, extent.grant};
  };
  const auto close = [&attachment, allocation, attempt] { attachment.CloseScratch(allocation, attempt); };
  return std::make_unique<storage::ScratchSpace>(find_servers, static_cast<uint32_t>(attempt), allocate,
                                                 close);
}

absl::Status ScratchError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || IsProcessLimit(status) || SqlErrorOf(status).has_value())
    return status;
  absl::Status full =
      UserError(sqlstate::kOutOfMemory, "scratch memory is full", -1,
                "raise --scratch of the memory servers, add memory servers, or run fewer large queries at "
                "a time");
  full.SetPayload(kScratchFull, absl::Cord());
  return full;
}

}  // namespace nam::execution
