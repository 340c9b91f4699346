#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "memserver/extent_allocator.h"

namespace nam::memserver {

/// `1.5 GiB`
std::string ReadableBytes(uint64_t bytes);

struct MemoryPoolOptions {
  uint64_t memory_bytes = 0;  // size of the address space; its first 4 KiB are never handed out
  uint64_t region_bytes = 0;
  uint64_t scratch_bytes = 0;  // reserved for scratch memory, and its limit
  bool huge_pages = true;
  bool populate = false;  // touch pages when a region is made
};

/// The registered memory of one memory server: regions in the slots of the address space, and the holders of
/// their extents. A region is made when its first extent is handed out, and lives as long as the pool: peers'
/// copies of the region list may lack regions but never hold stale ones.
///
/// Extents are zero when handed out, except scratch memory. Scratch memory has a share of its own: it cannot
/// take the rest, and the rest cannot take it. The pool does not interpret the bytes. Thread-safe.
///
/// Each region has one key, so a key does not protect freed memory from a former user's late requests. Memory
/// is handed out again only when each member that opened it has closed it or is fenced:
///
///     free ── Allocate ─▶ held ── Release ─▶ leaving ── Close, or Fenced, of the last member ─▶ free
///                          │                    (at once, if no member has it open)
///                          └─ Open: one more member
///
/// A member may give up on Allocate or Open, and close the memory, before the call arrives here. So the
/// member numbers these calls (`opening`), and RefuseOpenings refuses the numbers that it no longer waits
/// for.
///
/// ReleaseAttempt frees an attempt's scratch memory the same way. Readers without a member are not waited
/// for: the memory they READ may belong to another allocation by then, which its allocation id shows.
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
  /// Allocates all or nothing, in addition to what the allocation has, and opens it for `member`. Scratch
  /// memory belongs to `attempt`; 0: to none. RESOURCE_EXHAUSTED says what is free. FAILED_PRECONDITION: the
  /// allocation or the attempt is over. CANCELLED: the opening is over.
  absl::StatusOr<std::vector<Extent>> Allocate(AllocationId allocation, uint64_t bytes, MemberId member,
                                               Pieces pieces = Pieces::kAny, Use use = Use::kData,
                                               uint64_t attempt = 0, uint64_t opening = 0);
  /// Gives the allocation exactly these extents, with arbitrary contents and open for no member, as if it had
  /// been sealed. ALREADY_EXISTS: they are not free. OUT_OF_RANGE: they exceed the address space, or cross
  /// region boundaries.
  absl::Status Adopt(AllocationId allocation, const std::vector<Extent>& extents);
  /// The allocation's extents by offset, without scratch memory. Allocate adds none from now on. NOT_FOUND:
  /// it holds nothing, or is over.
  absl::StatusOr<std::vector<Extent>> Seal(AllocationId allocation);
  /// True if the allocation is held and not over.
  bool Lives(AllocationId allocation) const;
  /// True if some memory is leaving and the bytes fit once it is free.
  bool WillHave(uint64_t bytes, Use use) const;
  /// All extents of the allocation, now open for the member. NOT_FOUND: it holds nothing. CANCELLED: the
  /// opening is over.
  absl::StatusOr<std::vector<Extent>> Open(AllocationId allocation, MemberId member, uint64_t opening = 0);
  /// The member's openings with lower numbers are over: Allocate and Open refuse them from now on, until the
  /// member is fenced.
  void RefuseOpenings(MemberId member, uint64_t openings_from);
  /// The member has no request in flight, and will have none, in what it opened of the allocation for
  /// `attempt`.
  void Close(AllocationId allocation, uint64_t attempt, MemberId member);
  /// The member's connections have ended for good: it has closed everything.
  void Fenced(MemberId member);
  /// Members that have something open, or had.
  std::vector<MemberId> Openers() const;

  /// Ends the allocation.
  struct Released {
    uint64_t freed_bytes = 0;
    uint64_t leaving_bytes = 0;  // still to be freed
  };
  Released Release(AllocationId allocation);
  /// Ends the attempt's scratch memory; the allocation continues.
  Released ReleaseAttempt(AllocationId allocation, uint64_t attempt);

  /// The bytes at [offset, offset + bytes) if they lie in one region, else nullptr. Readable as long as the
  /// pool lives, whatever becomes of the extents there.
  const std::byte* Find(uint64_t offset, uint64_t bytes) const;
  /// Like Find, for an adopted extent that no member knows of yet.
  std::byte* FindToFill(uint64_t offset, uint64_t bytes);
  std::vector<Region> Regions() const;
  /// Includes allocations that are leaving.
  std::vector<AllocationId> Held() const;
  /// Bytes held or leaving.
  uint64_t used_bytes() const;
  /// The part of used_bytes that is leaving.
  uint64_t leaving_bytes() const;
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  /// The capacity minus the scratch share.
  uint64_t table_bytes() const { return capacity_bytes_ - std::min(options_.scratch_bytes, capacity_bytes_); }
  /// The part of used_bytes that is scratch memory.
  uint64_t scratch_used_bytes() const;
  /// The highest scratch_used_bytes so far.
  uint64_t scratch_highest_bytes() const;
  /// The limit of scratch_used_bytes.
  uint64_t scratch_bytes() const { return std::min(options_.scratch_bytes, capacity_bytes_); }

 private:
  struct Slot {
    std::unique_ptr<fabric::MemoryRegion> region;
    uint64_t handed_out_bytes = 0;  // from here to the end, the region is untouched
  };

  struct HeldExtent {
    Extent extent;
    Use use = Use::kData;
    uint64_t attempt = 0;  // of scratch memory
    bool over = false;     // the attempt is over
  };
  struct Holding {
    std::vector<HeldExtent> extents;
    std::set<std::pair<uint64_t, MemberId>> open;  // by attempt: members that may have requests in flight
    bool over = false;
    bool sealed = false;
    std::deque<uint64_t> over_attempts;  // the most recent ones; they get no more

    bool IsOpen(uint64_t attempt) const;
  };
  using Holdings = std::map<AllocationId, Holding>;

  MemoryPool(fabric::Fabric& fabric, const MemoryPoolOptions& options);
  absl::StatusOr<std::vector<Extent>> Reserve(AllocationId allocation, uint64_t bytes, Pieces pieces,
                                              Use use);
  /// The rest of the share; bytes from Reserve are not in it.
  uint64_t LeftBytes(Use use) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(const Extent& extent, Use use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  fabric::MemoryRegion* RegionOf(uint64_t offset, uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Back(const std::vector<Extent>& extents) ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mutex_);
  /// Zeroes the extents; for scratch memory, only notes that they are not zero any more.
  void Zero(const std::vector<Extent>& extents, Use use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mutex_);
  /// Frees the allocation's extents that are over and not open; forgets it if nothing is left.
  Released FreeWhatIsOver(Holdings::iterator holding) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t LeavingBytes(Use use) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpening(MemberId member, uint64_t opening) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  fabric::Fabric& fabric_;
  const MemoryPoolOptions options_;
  const uint64_t capacity_bytes_;

  // Making regions and zeroing take long: growth_mutex_ lets one Allocate do so at a time, while mutex_ is
  // held only briefly, so that renewals and listings never wait.
  Mutex growth_mutex_;
  mutable Mutex mutex_;  // acquired after growth_mutex_
  ExtentAllocator allocator_ ABSL_GUARDED_BY(mutex_);
  uint64_t scratch_used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t scratch_highest_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // By address; a slot's region changes once, under both mutexes.
  std::vector<Slot> slots_;
  Holdings held_ ABSL_GUARDED_BY(mutex_);
  // Lower ones are over; of members that are not fenced.
  std::map<MemberId, uint64_t> openings_from_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::memserver
