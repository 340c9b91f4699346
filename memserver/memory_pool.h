#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "memserver/extent_allocator.h"

namespace nam::memserver {

/// `1.5 GiB`
std::string ReadableBytes(uint64_t bytes);

struct MemoryPoolOptions {
  uint64_t memory_bytes = 0;  // of the address space; its first 4 KiB are never handed out
  uint64_t region_bytes = 0;
  uint64_t scratch_bytes = 0;  // the most for scratch memory, which nothing else takes
  bool huge_pages = true;
  bool populate = false;  // touch pages when a region is made
};

/// The registered memory of one memory server: regions in the slots of the address space, and who
/// holds which extents of them. A region is made when the first extent in it is handed out and then
/// kept until the pool ends: peers' copies of the region list only ever lack regions, never hold
/// stale ones. Extents are zero when handed out, but those of scratch memory, which has a share of its own:
/// neither it nor the rest takes what is the other's. What the bytes mean is not known here. Thread-safe.
///
/// Each region has one key, for everything, so no key keeps a former user's late requests off memory that was
/// freed. Memory is handed out again only when each member that had opened it has closed it, or is fenced:
///
///     free ── Allocate ─▶ held ── Release ─▶ leaving ── Close, or Fenced, of the last member ─▶ free
///                          │                    (at once, if nobody has it open)
///                          └─ Open: one more member
///
/// What an attempt has written to scratch memory goes the same way by ReleaseAttempt, alone. Readers without
/// a member are not waited for: what they READ may be another allocation's by then, and carries no allocation
/// id of theirs.
class MemoryPool {
 public:
  struct Region {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    fabric::RemoteKey rkey;
  };

  static absl::StatusOr<std::unique_ptr<MemoryPool>> Create(fabric::Fabric& fabric,
                                                            const MemoryPoolOptions& options);

  enum class Pieces : uint8_t { kAny, kOne };
  enum class Use : uint8_t { kData, kScratch };
  /// All or nothing, in addition to what the allocation has; `member` has it open. Scratch memory is
  /// `attempt`'s, 0: nobody's. RESOURCE_EXHAUSTED says what is free, FAILED_PRECONDITION that the allocation
  /// is over, or the attempt.
  absl::StatusOr<std::vector<Extent>> Allocate(AllocationId allocation, uint64_t bytes, MemberId member,
                                               Pieces pieces = Pieces::kAny, Use use = Use::kData,
                                               uint64_t attempt = 0);
  /// Gives the allocation exactly these extents, with any bytes, which nobody has open: it is as one that was
  /// sealed. ALREADY_EXISTS: they are not free. OUT_OF_RANGE: the address space ends before them, or is cut
  /// elsewhere.
  absl::Status Adopt(AllocationId allocation, const std::vector<Extent>& extents);
  /// The allocation's extents, in the order of their offsets, which get no more by Allocate. Scratch memory
  /// is not among them. NOT_FOUND: nothing is held for it, or it is over.
  absl::StatusOr<std::vector<Extent>> Seal(AllocationId allocation);
  /// Whether the allocation is held, and not over.
  bool Lives(AllocationId allocation) const;
  /// Whether it could be RESOURCE_EXHAUSTED only for memory that is leaving.
  bool WillHave(uint64_t bytes, Use use) const;
  /// All extents of the allocation, which the member has open from now on. NOT_FOUND: nothing is held for it.
  absl::StatusOr<std::vector<Extent>> Open(AllocationId allocation, MemberId member);
  /// The member has no request under way in what it has opened of the allocation for `attempt`, nor will
  /// have.
  void Close(AllocationId allocation, uint64_t attempt, MemberId member);
  /// The member's connections are ended for good: it has closed everything.
  void Fenced(MemberId member);
  /// Those that have something open.
  std::vector<MemberId> Openers() const;

  /// The allocation is over.
  struct Released {
    uint64_t freed_bytes = 0;
    uint64_t leaving_bytes = 0;  // now
  };
  Released Release(AllocationId allocation);
  /// Likewise of the attempt's scratch memory: it is over, and the allocation goes on.
  Released ReleaseAttempt(AllocationId allocation, uint64_t attempt);

  /// [offset, offset + bytes) of the address space if it lies in one region, else nullptr. Readable as long
  /// as the pool lives, whatever becomes of the extents there.
  const std::byte* Find(uint64_t offset, uint64_t bytes) const;
  /// The same, of an extent that was adopted and that nobody knows of yet.
  std::byte* FindToFill(uint64_t offset, uint64_t bytes);
  std::vector<Region> Regions() const;
  /// Also those that are leaving.
  std::vector<AllocationId> Held() const;
  /// Held and leaving.
  uint64_t used_bytes() const;
  /// Of used_bytes.
  uint64_t leaving_bytes() const;
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  /// Of it, what is not kept for scratch memory.
  uint64_t table_bytes() const { return capacity_bytes_ - std::min(options_.scratch_bytes, capacity_bytes_); }
  /// Of used_bytes.
  uint64_t scratch_used_bytes() const;
  /// The most that it has been so far.
  uint64_t scratch_highest_bytes() const;
  /// The most that it may be.
  uint64_t scratch_bytes() const { return std::min(options_.scratch_bytes, capacity_bytes_); }

 private:
  struct Slot {
    std::unique_ptr<fabric::MemoryRegion> region;
    uint64_t handed_out_bytes = 0;  // from here to its end the region is still as the fabric made it
  };

  struct HeldExtent {
    Extent extent;
    Use use = Use::kData;
    uint64_t attempt = 0;  // of scratch memory
    bool over = false;     // the attempt is
  };
  struct Holding {
    std::vector<HeldExtent> extents;
    std::set<std::pair<uint64_t, MemberId>> open;  // by attempt: who may have requests under way there
    bool over = false;
    bool sealed = false;
    std::deque<uint64_t> over_attempts;  // the last of them: they get no more

    bool IsOpen(uint64_t attempt) const;
  };
  using Holdings = std::map<AllocationId, Holding>;

  MemoryPool(fabric::Fabric& fabric, const MemoryPoolOptions& options);
  absl::StatusOr<std::vector<Extent>> Reserve(AllocationId allocation, uint64_t bytes, Pieces pieces,
                                              Use use);
  /// With mutex_: what is left of the share; nothing of what Reserve gave is handed out, or has come back.
  uint64_t LeftBytes(Use use) const;
  void Free(const Extent& extent, Use use);
  /// With mutex_.
  fabric::MemoryRegion* RegionOf(uint64_t offset, uint64_t bytes) const;
  absl::Status Back(const std::vector<Extent>& extents);
  /// Or, of scratch memory, notes that it is not zero any more.
  void Zero(const std::vector<Extent>& extents, Use use);
  /// With mutex_: frees what is over of the allocation and nobody has open. Forgets it, if nothing is left.
  Released FreeWhatIsOver(Holdings::iterator holding);
  uint64_t LeavingBytes(Use use) const;

  fabric::Fabric& fabric_;
  const MemoryPoolOptions options_;
  const uint64_t capacity_bytes_;

  // Making regions and zeroing takes long: growth_mutex_ lets one Allocate do so at a time, while
  // mutex_ is held for moments only, so that renewals and listings never wait for it.
  std::mutex growth_mutex_;
  mutable std::mutex mutex_;  // after it
  ExtentAllocator allocator_;
  uint64_t scratch_used_bytes_ = 0;
  uint64_t scratch_highest_bytes_ = 0;
  std::vector<Slot> slots_;  // by address; a slot's region changes once, under both mutexes
  Holdings held_;
};

}  // namespace nam::memserver
