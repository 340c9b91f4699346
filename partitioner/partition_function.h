#pragma once

#include <cstdint>
#include <string_view>

namespace nam::partitioner {

/// The partition functions (I-Store, section 3): one per join key, the same wherever the key occurs.
/// Integers use modulo, so that keys stay dense within a partition (key = part + parts · i).
constexpr uint32_t PartitionOfInteger(int64_t key, uint32_t parts) {
  const int64_t r = key % static_cast<int64_t>(parts);
  return static_cast<uint32_t>(r < 0 ? r + parts : r);
}
/// Decimals and dates use XXH3 over the eight bytes.
uint32_t PartitionOfNumber(int64_t key, uint32_t parts);
uint32_t PartitionOfString(std::string_view key, uint32_t parts);

}  // namespace nam::partitioner
