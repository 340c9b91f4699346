#pragma once

#include <atomic>
#include <cstdint>

namespace nam::txn {

/// The timestamps that a process's sessions share, if memory is not in place. In place, a look at the memory
/// itself is cheaper than sharing. Thread-safe.
class SharedTimestamps {
 public:
  /// A watermark that a session has seen: all timestamps up to it are done.
  uint64_t watermark() const { return watermark_.load(std::memory_order_acquire); }
  void SawWatermark(uint64_t watermark) {
    uint64_t known = watermark_.load(std::memory_order_relaxed);
    while (known < watermark && !watermark_.compare_exchange_weak(known, watermark)) continue;
  }

 private:
  std::atomic<uint64_t> watermark_{0};
};

}  // namespace nam::txn
