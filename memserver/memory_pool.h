#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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
  fabric::AllocateOptions region;
};

/// The registered memory of one memory server: regions in the slots of the address space, and who
/// holds which extents of them. A region is made when the first extent in it is handed out and then
/// kept until the pool ends: peers' copies of the region list only ever lack regions, never hold
/// stale ones. Extents are zero when handed out. What the bytes mean is not known here. Thread-safe.
class MemoryPool {
 public:
  struct Region {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    fabric::RemoteKey rkey;
  };

  static absl::StatusOr<std::unique_ptr<MemoryPool>> Create(fabric::Fabric& fabric,
                                                            const MemoryPoolOptions& options);

  /// All or nothing, in addition to what the allocation has. RESOURCE_EXHAUSTED says what is free.
  absl::StatusOr<std::vector<Extent>> Allocate(AllocationId allocation, uint64_t bytes);
  /// Bytes freed; 0 for an allocation that holds nothing.
  uint64_t Release(AllocationId allocation);

  std::vector<Region> Regions() const;
  std::vector<AllocationId> Held() const;
  uint64_t used_bytes() const;
  uint64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  struct Slot {
    std::unique_ptr<fabric::MemoryRegion> region;
    uint64_t handed_out_bytes = 0;  // from here to its end the region is still as the fabric made it
  };

  MemoryPool(fabric::Fabric& fabric, const MemoryPoolOptions& options);
  absl::StatusOr<std::vector<Extent>> Reserve(AllocationId allocation, uint64_t bytes);
  absl::Status Back(const std::vector<Extent>& extents);
  void Zero(const std::vector<Extent>& extents);

  fabric::Fabric& fabric_;
  const MemoryPoolOptions options_;
  const uint64_t capacity_bytes_;

  // Making regions and zeroing takes long: growth_mutex_ lets one Allocate do so at a time, while
  // mutex_ is held for moments only, so that renewals and listings never wait for it.
  std::mutex growth_mutex_;
  mutable std::mutex mutex_;
  ExtentAllocator allocator_;
  std::vector<Slot> slots_;  // by address; a slot's region changes once, under both mutexes
  std::map<AllocationId, std::vector<Extent>> held_;
};

}  // namespace nam::memserver
