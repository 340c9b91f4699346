#pragma once

#include <cstdint>

namespace nam::dataset {

/// Lines per order, 1 … 7, from the random stream of the original generator (dbgen), so that row counts are
/// the published ones whatever the seed of all other data: 6,001,215 at scale factor 1, 59,986,052 at 10. A
/// Lehmer generator: x' = 16807 x mod 2^31 - 1, one step per order.
class LineCounts {
 public:
  /// The next Next() returns the count of this order, numbered from 0.
  explicit LineCounts(uint64_t first_order);

  uint32_t Next() {
    const uint64_t product = state_ * kMultiplier;
    state_ = (product & kModulus) + (product >> 31);
    if (state_ >= kModulus) state_ -= kModulus;
    return 1 + static_cast<uint32_t>(state_ * 7 / kModulus);
  }

 private:
  static constexpr uint64_t kMultiplier = 16807;
  static constexpr uint64_t kModulus = 2147483647;
  static constexpr uint64_t kSeed = 1434868289;
  uint64_t state_;
};

/// The lines of `orders` orders from `first_order` on. Takes about 2 ns per order.
uint64_t CountLines(uint64_t first_order, uint64_t orders);

}  // namespace nam::dataset
