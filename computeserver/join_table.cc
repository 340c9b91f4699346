#include "computeserver/join_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace nam::computeserver {

JoinTable::JoinTable(const Options& options) : key_min_(options.key_min), key_max_(options.key_max) {
  NAM_CHECK(options.rows <= kMaxRows && std::has_single_bit(options.parts));
  const uint64_t rows = std::max<uint64_t>(options.rows, 1);
  const uint64_t spread = static_cast<uint64_t>(options.key_max) - static_cast<uint64_t>(options.key_min);
  direct_ = options.key_known && options.key_max >= options.key_min &&
            spread < std::max<uint64_t>(rows * 8, 1 << 17) && options.key_min > INT64_MIN / 2;
  if (direct_) {
    part_mask_ = options.parts - 1;
    part_shift_ = static_cast<uint32_t>(std::countr_zero(options.parts));
    // Rounded down, also for negative keys, so that (key - origin) mod parts is the key's partition.
    origin_ = key_min_ & ~static_cast<int64_t>(part_mask_);
    const uint64_t domain = static_cast<uint64_t>(key_max_) - static_cast<uint64_t>(origin_) + 1;
    part_size_ = (domain + part_mask_) >> part_shift_;
    heads_.resize(part_size_ * options.parts);
  } else {
    const uint64_t positions = std::bit_ceil(std::max<uint64_t>(rows + rows / 2, 2));
    hash_shift_ = 64 - static_cast<uint32_t>(std::countr_zero(positions));
    heads_.resize(positions);
    keys_.resize(rows);
  }
  next_.resize(rows);
  for (uint8_t width : options.payload_widths) payload_.emplace_back(rows * width);
}

uint64_t JoinTable::bytes() const {
  uint64_t bytes = heads_.size() * 4 + next_.size() * 4 + keys_.size() * 8;
  for (const auto& column : payload_) bytes += column.size();
  return bytes;
}

}  // namespace nam::computeserver
