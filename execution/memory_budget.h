#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace nam::execution {

/// The bytes that one query may hold on one server; shared by its threads and operators. Taken before memory
/// is allocated and given back after it is freed, so that the sum is never above the bound.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : bytes_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  ~MemoryBudget() { NAM_CHECK(used_.load() == 0, "who took memory gives it back before the query ends"); }

  /// False, and nothing is taken, if the query then held more than it may.
  [[nodiscard]] bool Take(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    uint64_t most = most_.load(std::memory_order_relaxed);
    while (used + bytes > most &&
           !most_.compare_exchange_weak(most, used + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void Give(uint64_t bytes) {
    NAM_CHECK(used_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes,
              "more is given back than was taken");
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// The most that was held at one time.
  uint64_t most() const { return most_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> most_ = 0;
};

}  // namespace nam::execution
