#pragma once

#include <atomic>
#include <cstdint>

#include "execution/memory_budget.h"

namespace nam::execution {

/// A quarter of a stage's budget, for the memos of its expressions. The rest stays for operators, which fail
/// without memory, while an expression without a memo is evaluated row by row. Thread-safe; the budget
/// outlives it.
class MemoShare {
 public:
  explicit MemoShare(MemoryBudget& budget) : budget_(budget), bytes_(budget.bytes() / 4) {}
  MemoShare(const MemoShare&) = delete;
  MemoShare& operator=(const MemoShare&) = delete;

  /// False, and nothing is reserved, if less is left.
  [[nodiscard]] bool Reserve(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (budget_.Reserve(bytes)) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void Release(uint64_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    budget_.Release(bytes);
  }
  /// The whole budget: for anything but memos.
  MemoryBudget& budget() { return budget_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  MemoryBudget& budget_;
  const uint64_t bytes_;
  std::atomic<uint64_t> used_ = 0;
};

}  // namespace nam::execution
