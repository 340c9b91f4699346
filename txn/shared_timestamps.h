#pragma once

#include <atomic>
#include <cstdint>

namespace nam::txn {

/// What the sessions of a process share of timestamps, where memory is not in place: there a look at the
/// memory itself costs less than to meet here. Thread-safe.
class SharedTimestamps {
 public:
  /// A watermark that some session has seen: all timestamps up to it are done.
  uint64_t watermark() const { return watermark_.load(std::memory_order_acquire); }
  void SawWatermark(uint64_t watermark) {
    uint64_t known = watermark_.load(std::memory_order_relaxed);
    while (known < watermark && !watermark_.compare_exchange_weak(known, watermark)) continue;
  }

 private:
  std::atomic<uint64_t> watermark_{0};
};

}  // namespace nam::txn
