#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "storage/channel.h"
#include "storage/work_claims.h"

namespace nam::session {

/// A coordinator's words in a memory server, from which compute servers claim work: a small allocation that
/// lives as long as the session's lease. Words are used in turn. Waits end with CANCELLED soon after `cancel`
/// is set. One thread.
class WorkCounters {
 public:
  /// RESOURCE_EXHAUSTED: no memory server has room, or the session has no lease.
  static absl::StatusOr<std::unique_ptr<WorkCounters>> Open(catalog::Attachment& attachment,
                                                            const std::atomic<bool>& cancel);
  ~WorkCounters();

  /// The next `count` words, with their current values as bases. One READ, as Claimed.
  absl::StatusOr<std::vector<storage::WorkCounter>> Next(size_t count);
  /// An upper bound of the claimed items of each counter's list.
  absl::StatusOr<std::vector<uint64_t>> Claimed(std::span<const storage::WorkCounter> counters);
  /// False after an error: then open others.
  bool usable() const { return !channel_->broken(); }
  /// Skips telling its memory server of the end, which may be unreachable: the memory is freed a little later
  /// all the same.
  void Abandon() { abandoned_ = true; }

 private:
  static constexpr uint64_t kWordBytes = 64;  // a cache line each
  static constexpr uint64_t kBytes = 64 << 10;

  WorkCounters(catalog::Attachment& attachment, const std::atomic<bool>& cancel, AllocationId allocation)
      : attachment_(attachment), cancel_(cancel), allocation_(allocation) {}
  /// The values of words of the allocation.
  absl::StatusOr<std::vector<uint64_t>> Values(std::span<const storage::WorkCounter> counters);

  catalog::Attachment& attachment_;
  const std::atomic<bool>& cancel_;
  const AllocationId allocation_;
  MemoryServerId server_;
  uint64_t offset_ = 0;
  uint64_t next_ = 0;
  bool abandoned_ = false;
  std::unique_ptr<storage::Channel> channel_;
};

}  // namespace nam::session
