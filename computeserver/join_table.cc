#include "computeserver/join_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace nam::computeserver {
namespace {

constexpr uint64_t kPartAlignment = 64;  // bits

}  // namespace

bool JoinTable::IsDirect(const Options& options) {
  const uint64_t rows = std::max<uint64_t>(options.rows, 1);
  const uint64_t spread = static_cast<uint64_t>(options.key_max) - static_cast<uint64_t>(options.key_min);
  return options.key_known && options.key_max >= options.key_min &&
         spread < std::max<uint64_t>(rows * 8, 1 << 17) &&
         spread < kMaxRows - (kPartAlignment + 1) * options.parts && options.key_min > INT64_MIN / 2;
}

JoinTable::JoinTable(const Options& options)
    : rows_(options.rows), key_min_(options.key_min), key_max_(options.key_max) {
  NAM_CHECK(options.rows <= kMaxRows && std::has_single_bit(options.parts));
  const uint64_t rows = std::max<uint64_t>(options.rows, 1);
  direct_ = IsDirect(options);
  unique_ = IsUnique(options);
  uint64_t numbers = rows;
  if (direct_) {
    part_mask_ = options.parts - 1;
    part_shift_ = static_cast<uint32_t>(std::countr_zero(options.parts));
    // Rounded down, also for negative keys, so that (key - origin) mod parts is the key's partition.
    origin_ = key_min_ & ~static_cast<int64_t>(part_mask_);
    part_size_ = (domain() + part_mask_) >> part_shift_;
    if (unique_) {
      part_size_ = (part_size_ + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
      numbers = part_size_ * options.parts;
      present_.resize(numbers / 32);
    } else {
      heads_.resize(part_size_ * options.parts);
    }
  } else {
    const uint64_t positions = std::bit_ceil(std::max<uint64_t>(rows + rows / 2, 2));
    hash_shift_ = 64 - static_cast<uint32_t>(std::countr_zero(positions));
    heads_.resize(positions);
    keys_.resize(rows);
  }
  if (!unique_) next_.resize(rows);
  for (uint8_t width : options.payload_widths) payload_.emplace_back(numbers * width);
}

void JoinTable::Inserted(int64_t low, int64_t high, uint64_t rows) {
  inserted_rows_.fetch_add(rows, std::memory_order_relaxed);
  int64_t least = least_key_.load(std::memory_order_relaxed);
  while (low < least && !least_key_.compare_exchange_weak(least, low, std::memory_order_relaxed)) {
  }
  int64_t greatest = greatest_key_.load(std::memory_order_relaxed);
  while (high > greatest && !greatest_key_.compare_exchange_weak(greatest, high, std::memory_order_relaxed)) {
  }
}

uint64_t JoinTable::BytesNeeded(const Options& options) {
  const uint64_t rows = std::max<uint64_t>(options.rows, 1);
  uint64_t payload_bytes = 0;
  for (uint8_t width : options.payload_widths) payload_bytes += width;
  const uint64_t row_bytes = sizeof(uint32_t) + payload_bytes;
  if (IsDirect(options)) {
    const uint64_t spread = static_cast<uint64_t>(options.key_max) - static_cast<uint64_t>(options.key_min);
    if (IsUnique(options)) {
      const uint64_t numbers = spread + (kPartAlignment + 1) * uint64_t{options.parts};
      return numbers / 8 + numbers * payload_bytes;
    }
    return rows * row_bytes + (spread + options.parts) * sizeof(uint32_t);
  }
  return rows * (row_bytes + sizeof(int64_t)) + std::bit_ceil(rows + rows / 2) * sizeof(uint32_t);
}

}  // namespace nam::computeserver
