#include "partitioner/placement.h"

#include <algorithm>
#include <mutex>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "catalog/server_ids.h"
#include "fabric/fabric.h"

namespace nam::partitioner {
namespace {

constexpr uint64_t kAlignBytes = 64;
uint64_t Aligned(uint64_t bytes) {
  return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

}  // namespace

// All servers at once: each should have its own disk.
absl::Status SealAll(catalog::Attachment& attachment, const std::vector<LoadedMemory>& memory,
                     const std::atomic<bool>* cancel) {
  std::map<MemoryServerId, std::vector<LoadedMemory>> by_member;
  for (const LoadedMemory& one : memory) by_member[one.member].push_back(one);
  std::mutex mutex;
  absl::Status first_error;
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (const auto& [member, of_member] : by_member) {
      threads.push_back(attachment.fabric().StartThread("nam-seal", [&, loads = &of_member] {
        const Interruption interruption(cancel);
        for (const LoadedMemory& load : *loads) {
          const absl::Status sealed = Interruption::requested()
                                          ? absl::CancelledError("cancelled")
                                          : attachment.Seal(load.member, load.allocation, load.bytes);
          if (sealed.ok()) continue;
          const std::lock_guard lock(mutex);
          first_error.Update(sealed);
          break;
        }
      }));
    }
  }
  return first_error;
}

// Leaving memory counts as free: it will be when it is requested.
absl::StatusOr<uint64_t> Placement::LeastFree(bool settle) {
  uint64_t least_free = UINT64_MAX;
  for (const Server& server : servers_) {
    NAM_ASSIGN_OR_RETURN(const proto::ListRegionsReply usage, attachment_.MemoryUsage(server.member, settle));
    const uint64_t used = usage.used_bytes() - std::min(usage.used_bytes(), usage.leaving_bytes());
    least_free = std::min(least_free, usage.memory_bytes() - std::min(usage.memory_bytes(), used));
  }
  return least_free;
}

absl::Status Placement::Prepare(uint64_t bytes) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> members, attachment_.Members(proto::ROLE_MEMORY));
  servers_.clear();
  for (const proto::Member& member : members)
    servers_.push_back({catalog::MemberServerId(member), catalog::StorageServerId(member)});
  if (servers_.empty()) return absl::UnavailableError("the cluster has no living memory server");
  const uint64_t share = bytes / servers_.size();
  NAM_ASSIGN_OR_RETURN(uint64_t least_free, LeastFree(/*settle=*/false));
  // Servers may not have heard of dropped tables yet.
  if (share > least_free) {
    NAM_ASSIGN_OR_RETURN(least_free, LeastFree(/*settle=*/true));
  }
  if (share > least_free) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the memory servers are too small: the load needs about %.1f MiB on each of %d, and "
                        "one has %.1f MiB free "
                        "(start them with more --memory, or start more of them)",
                        static_cast<double>(share) / (1 << 20), servers_.size(),
                        static_cast<double>(least_free) / (1 << 20)));
  }
  return absl::OkStatus();
}

absl::Status Placement::ReserveOn(MemoryServerId server, const std::vector<uint32_t>& piece_bytes) {
  std::deque<uint64_t>& offsets = offsets_[server];
  // A piece does not straddle extents, so the end of each may stay unused: requests more for the rest.
  for (size_t placed = 0; placed < piece_bytes.size();) {
    uint64_t needed = 0;
    for (size_t i = placed; i < piece_bytes.size(); ++i) needed += Aligned(piece_bytes[i]);
    NAM_ASSIGN_OR_RETURN(const std::vector<catalog::GrantedExtent> extents,
                         attachment_.Allocate(server, allocation_, needed));
    const size_t before = placed;
    for (const catalog::GrantedExtent& extent : extents) {
      grant_ = extent.grant;
      uint64_t at = extent.offset;
      const uint64_t end = extent.offset + extent.bytes;
      while (placed < piece_bytes.size() && at + piece_bytes[placed] <= end) {
        offsets.push_back(at);
        at += Aligned(piece_bytes[placed++]);
      }
    }
    if (placed == before) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "memory server %d has no extent of %d bytes in one piece", server.value(), piece_bytes[placed]));
    }
  }
  return absl::OkStatus();
}

absl::Status Placement::Reserve(std::span<const uint32_t> piece_bytes) {
  NAM_CHECK(!servers_.empty(), "Prepare comes first");
  std::vector<std::vector<uint32_t>> of_server(servers_.size());
  for (size_t i = 0; i < piece_bytes.size(); ++i)
    of_server[(turn_ + i) % servers_.size()].push_back(piece_bytes[i]);
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (!of_server[s].empty()) NAM_RETURN_IF_ERROR(ReserveOn(servers_[s].member, of_server[s]));
  }
  return absl::OkStatus();
}

storage::RemotePtr<void> Placement::Next(uint32_t bytes) {
  const Server& server = servers_[turn_++ % servers_.size()];
  std::deque<uint64_t>& offsets = offsets_[server.member];
  NAM_CHECK(!offsets.empty(), "more pieces than were reserved");
  const uint64_t offset = offsets.front();
  offsets.pop_front();
  used_bytes_[server.storage] += bytes;
  return {server.storage, offset};
}

storage::RemotePtr<void> Placement::ToWrite(storage::RemotePtr<void> piece) const {
  const auto found = std::find_if(servers_.begin(), servers_.end(),
                                  [&](const Server& server) { return server.storage == piece.server(); });
  NAM_CHECK(found != servers_.end(), "no piece of this load");
  return {found->member, piece.offset()};
}

std::map<MemoryServerId, uint64_t> Placement::written_bytes() const {
  std::map<MemoryServerId, uint64_t> written;
  for (const Server& server : servers_) {
    const auto used = used_bytes_.find(server.storage);
    if (used != used_bytes_.end()) written[server.member] = used->second;
  }
  return written;
}

void Placement::ReleaseAll() {
  for (const Server& server : servers_) (void)attachment_.Release(server.member, allocation_);
}

}  // namespace nam::partitioner
