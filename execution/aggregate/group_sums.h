#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "execution/budget_array.h"

namespace nam::execution {

/// Sums of integers by group, of one thread. They have 64 bits until the total input could overflow those,
/// and 128 from then on, which fit 2^64 numbers of 64 bits.
class GroupSums {
 public:
  explicit GroupSums(MemoryBudget& budget) : narrow_(budget), wide_(budget) {}

  /// Gives every group below `groups` a sum.
  absl::Status Grow(uint32_t groups) { return is_wide_ ? wide_.Grow(groups) : narrow_.Grow(groups); }
  /// Zeroes the first `groups`. Keeps the memory.
  void Reset(uint32_t groups);

  /// Calls body(sums), an array by group of one of the two widths, for up to `count` additions of numbers of
  /// an absolute value up to `most`.
  template <typename Body>
  absl::Status Add(uint64_t count, uint64_t most, Body&& body) {
    if (absl::Status room = MakeRoom(static_cast<unsigned __int128>(count) * most); !room.ok()) return room;
    if (is_wide_) {
      body(wide_.data());
    } else {
      body(narrow_.data());
    }
    return absl::OkStatus();
  }
  /// OUT_OF_RANGE beyond 128 bits.
  absl::Status AddOne(uint32_t group, __int128 number);

  __int128 of(uint32_t group) const { return is_wide_ ? wide_[group] : narrow_[group]; }
  /// The sums, if they are narrow; else nullptr.
  const int64_t* narrow() const { return is_wide_ ? nullptr : narrow_.data(); }

 private:
  absl::Status MakeRoom(unsigned __int128 more);
  absl::Status Widen();

  // Only one of the two is in use.
  BudgetArray<int64_t> narrow_;
  BudgetArray<__int128> wide_;
  bool is_wide_ = false;
  uint64_t room_ = INT64_MAX;  // the total that may still come before a narrow sum could overflow
};

}  // namespace nam::execution
