#include "fabric/shm/region_registry.h"

#include <sys/random.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/process_barriers.h"
#include "base/status_macros.h"
#include "fabric/shm/initiators.h"

namespace nam::fabric::shm {

absl::StatusOr<std::unique_ptr<RegionRegistry>> RegionRegistry::Create() {
  NAM_ASSIGN_OR_RETURN(SharedMemory table, CreateShared("nam-region-table", sizeof(RegionTable),
                                                        PeerAccess::kReadOnly, /*huge_pages=*/false));
  // Keys start at a random value per process, so that keys of a server's former life fail.
  uint32_t random = 0;
  NAM_CHECK(getrandom(&random, sizeof(random), 0) == sizeof(random), "no randomness");
  return std::unique_ptr<RegionRegistry>(
      new RegionRegistry(std::move(table), 1 + random % (kGenerationMax / 2)));
}

RegionRegistry::RegionRegistry(SharedMemory table_memory, uint32_t first_generation)
    : table_memory_(std::move(table_memory)), first_generation_(first_generation), local_(kRegionsMax) {
  table().runs_barriers.store(RunBarriers(), std::memory_order_relaxed);
}

absl::StatusOr<uint32_t> RegionRegistry::Add(const SharedMemory& memory, size_t bytes, Access access) {
  const MutexLock lock(mutex_);
  uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.top();
    free_slots_.pop();
  } else if (registered_.size() < kRegionsMax) {
    slot = static_cast<uint32_t>(registered_.size());
    registered_.push_back({.generation = first_generation_});
  } else {
    return absl::ResourceExhaustedError(
        absl::StrFormat("a process has at most %d regions; allocate fewer, larger ones", kRegionsMax));
  }
  Registered& region = registered_[slot];
  region.descriptor = memory.descriptor.get();
  region.access = access;
  const uint32_t key = MakeKey(region.generation, slot);
  local_[slot].data.store(memory.mapping.data(), std::memory_order_relaxed);
  local_[slot].bytes.store(bytes, std::memory_order_relaxed);
  local_[slot].key.store(key, std::memory_order_release);
  table().rkeys[slot].store(key, std::memory_order_release);
  return key;
}

void RegionRegistry::Remove(uint32_t key) {
  const MutexLock lock(mutex_);
  const uint32_t slot = SlotOf(key);
  Registered& region = registered_[slot];
  NAM_CHECK(MakeKey(region.generation, slot) == key && region.descriptor >= 0, "removed twice");
  table().rkeys[slot].store(0, std::memory_order_seq_cst);
  table().deregistrations.fetch_add(1, std::memory_order_release);
  local_[slot].key.store(0, std::memory_order_release);
  region.descriptor = -1;
  // A slot whose generations are used up stays empty: keys are never reused.
  if (++region.generation <= kGenerationMax) free_slots_.push(slot);
}

absl::StatusOr<RegionGrant> RegionRegistry::Grant(uint32_t rkey, Access rights) {
  const MutexLock lock(mutex_);
  const uint32_t slot = SlotOf(rkey);
  if (slot >= registered_.size() || registered_[slot].descriptor < 0 ||
      MakeKey(registered_[slot].generation, slot) != rkey || registered_[slot].access == Access::kNone) {
    return absl::PermissionDeniedError("no region with this key");
  }
  const Registered& region = registered_[slot];
  RegionGrant grant{.bytes = local_[slot].bytes.load(std::memory_order_relaxed),
                    .access = region.access & rights};
  NAM_ASSIGN_OR_RETURN(grant.descriptor, DescriptorForPeer(region.descriptor, PeerAccessFor(grant.access)));
  return grant;
}

}  // namespace nam::fabric::shm
