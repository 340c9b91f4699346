#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

namespace nam::fabric::shm {

/// The peer's view of a region, sent on first use.
struct RegionGrant {
  UniqueFd descriptor;
  uint64_t bytes = 0;
  Access access = Access::kNone;
};

constexpr PeerAccess PeerAccessFor(Access access) {
  return Allows(access, Access::kWrite) || Allows(access, Access::kAtomic) ? PeerAccess::kReadWrite
                                                                           : PeerAccess::kReadOnly;
}

/// The regions of this process. Any thread; Contains() takes no lock.
class RegionRegistry {
 public:
  static absl::StatusOr<std::unique_ptr<RegionRegistry>> Create();

  /// Registers the first `bytes` and returns their key. The caller keeps the memory alive until Remove.
  /// RESOURCE_EXHAUSTED at kRegionsMax.
  absl::StatusOr<uint32_t> Add(const SharedMemory& memory, size_t bytes, Access access);
  void Remove(uint32_t key);

  /// True when `buffer` lies within the region that its lkey names.
  bool Contains(const LocalBuffer& buffer) const {
    const LocalSlot& slot = local_[SlotOf(buffer.lkey.value)];
    if (slot.key.load(std::memory_order_acquire) != buffer.lkey.value || buffer.lkey.value == 0) return false;
    const auto start = reinterpret_cast<uintptr_t>(slot.data.load(std::memory_order_relaxed));
    const auto at = reinterpret_cast<uintptr_t>(buffer.data);
    const size_t bytes = slot.bytes.load(std::memory_order_relaxed);
    return at >= start && at - start <= bytes && buffer.bytes <= bytes - (at - start);
  }

  /// Grants a region to a peer with at most `rights`. PERMISSION_DENIED if the region does not exist or is
  /// private.
  absl::StatusOr<RegionGrant> Grant(uint32_t rkey, Access rights);
  /// The table's descriptor for peers.
  absl::StatusOr<UniqueFd> TableForPeer() const {
    return DescriptorForPeer(table_memory_.descriptor.get(), PeerAccess::kReadOnly);
  }

 private:
  struct LocalSlot {
    std::atomic<uint32_t> key;
    std::atomic<std::byte*> data;
    std::atomic<size_t> bytes;
  };
  struct Registered {
    int descriptor = -1;  // owned by the MemoryRegion
    Access access = Access::kNone;
    uint32_t generation = 0;
  };

  explicit RegionRegistry(SharedMemory table_memory, uint32_t first_generation);
  RegionTable& table() { return *reinterpret_cast<RegionTable*>(table_memory_.mapping.data()); }

  const SharedMemory table_memory_;
  const uint32_t first_generation_;
  std::vector<LocalSlot> local_;

  Mutex mutex_;
  std::vector<Registered> registered_ ABSL_GUARDED_BY(mutex_);  // by slot
  // Low slots first: peers' caches are arrays indexed by slot.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::shm
