#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"

namespace nam::fabric::verbs {

/// The registered regions of one fabric, by key. Thread-safe.
///
/// Look-ups take a lock. The data path caches results while epoch() stays the same, which it does until a
/// region is retired.
class Registry {
 public:
  struct Entry {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Access access = Access::kNone;
    uint32_t nic_lkey = 0;
    uint32_t nic_rkey = 0;
  };

  Registry();
  /// Returns a key that this process has never used. RESOURCE_EXHAUSTED after two thousand million keys.
  absl::StatusOr<uint32_t> Register(const Entry& entry);
  void Retire(uint32_t key);
  std::optional<Entry> Find(uint32_t key) const;
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  /// True if a recently retired region had this NIC rkey: peers may still hold it.
  bool RecentlyRetired(uint32_t nic_rkey) const;

 private:
  static constexpr size_t kRetiredMax = 1u << 16;

  static std::atomic<uint32_t> next_key_;  // shared by all fabrics of the process
  mutable Mutex mutex_;
  std::unordered_map<uint32_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint32_t> retired_ ABSL_GUARDED_BY(mutex_);  // NIC rkeys, oldest first
  std::unordered_multiset<uint32_t> retired_set_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> epoch_{1};
};

/// True if the buffer lies within the entry.
bool Contains(const Registry::Entry& entry, const LocalBuffer& buffer);

}  // namespace nam::fabric::verbs
