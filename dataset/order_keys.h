#pragma once

#include <cstdint>

/// Key and price formulas of TPC-H, which SSB shares.
namespace nam::dataset {

/// Only the first 8 of every 32 keys are used. `number` counts from 1.
constexpr uint64_t SparseKey(uint64_t number) {
  return ((number >> 3) << 5) | (number & 7);
}
static_assert(SparseKey(7) == 7 && SparseKey(8) == 32);

/// A part's price in cents.
constexpr int64_t PartPrice(uint64_t part_key) {
  return static_cast<int64_t>(90'000 + part_key / 10 % 20'001 + 100 * (part_key % 1'000));
}

/// Every third customer never orders: returns a neighbour instead of one of those.
constexpr uint32_t OrderingCustomer(uint32_t key, uint32_t last_key) {
  if (key % 3 != 0) return key;
  return key < last_key ? key + 1 : key - 1;
}

}  // namespace nam::dataset
