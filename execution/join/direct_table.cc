#include "execution/join/direct_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

constexpr uint64_t kPartAlignment = 64;  // positions in unique tables: a cache line has bits of one part
// The most positions a row, and the most for few rows. Beyond them hashing takes less memory.
constexpr uint64_t kPositionsPerRow = 8;
constexpr uint64_t kLeastPositions = 1 << 17;
// Beyond it the number of positions could wrap.
constexpr uint64_t kMostSpread = uint64_t{1} << 62;

}  // namespace

struct DirectTable::Shape {
  int64_t origin = 0;
  uint64_t part_size = 0;
  uint64_t parts_here = 0;
  uint64_t positions = 0;  // including those of the empty part

  static Shape Of(const Options& options) {
    NAM_CHECK(std::has_single_bit(options.parts) && options.here.size() <= options.parts);
    Shape shape;
    // Rounded down, also for negative keys, so that (key - origin) mod parts is the key's partition.
    const uint64_t mask = options.parts - 1;
    shape.origin = options.key_min & ~static_cast<int64_t>(mask);
    const uint64_t domain = static_cast<uint64_t>(options.key_max) - static_cast<uint64_t>(shape.origin) + 1;
    shape.part_size = (domain + mask) >> std::countr_zero(options.parts);
    if (options.unique) shape.part_size = (shape.part_size + kPartAlignment - 1) & ~(kPartAlignment - 1);
    shape.parts_here = options.here.empty() ? options.parts : options.here.size();
    shape.positions = shape.part_size * (shape.parts_here + (shape.parts_here < options.parts));
    return shape;
  }
};

bool DirectTable::Fits(const Options& options) {
  if (options.key_max < options.key_min || options.key_min <= INT64_MIN / 2) return false;
  const uint64_t spread = static_cast<uint64_t>(options.key_max) - static_cast<uint64_t>(options.key_min);
  if (spread >= kMostSpread) return false;
  const Shape shape = Shape::Of(options);
  // Alignment alone does not disqualify a table of many parts.
  const uint64_t keys_here = (spread / options.parts + 1) * shape.parts_here;
  return keys_here <= std::max(std::max<uint64_t>(options.rows, 1) * kPositionsPerRow, kLeastPositions) &&
         shape.positions <= kMostPositions;
}

uint64_t DirectTable::BytesNeeded(const Options& options) {
  NAM_CHECK(Fits(options));
  const Shape shape = Shape::Of(options);
  if (!options.unique) return shape.positions * sizeof(uint32_t);
  uint64_t payload_bytes = 0;
  for (uint8_t width : options.payload_widths) payload_bytes += width;
  return shape.positions / 8 + shape.part_size * shape.parts_here * payload_bytes;
}

DirectTable::DirectTable(const Options& options, const Shape& shape)
    : unique_(options.unique),
      rows_(options.rows),
      key_min_(options.key_min),
      key_max_(options.key_max),
      origin_(shape.origin),
      part_size_(shape.part_size),
      part_mask_(options.parts - 1),
      part_shift_(static_cast<uint32_t>(std::countr_zero(options.parts))) {
  if (shape.parts_here < options.parts) absent_base_ = static_cast<uint32_t>(shape.parts_here * part_size_);
  part_base_.assign(options.parts, absent_base_);
  for (uint32_t i = 0; i < shape.parts_here; ++i) {
    const uint32_t part = options.here.empty() ? i : options.here[i];
    NAM_CHECK(part < options.parts && part_base_[part] == absent_base_,
              "parts that are here are listed once");
    part_base_[part] = static_cast<uint32_t>(i * part_size_);
  }
}

absl::StatusOr<std::unique_ptr<DirectTable>> DirectTable::Make(const Options& options, MemoryBudget& budget) {
  NAM_CHECK(Fits(options));
  const Shape shape = Shape::Of(options);
  std::unique_ptr<DirectTable> table(new DirectTable(options, shape));
  if (!options.unique) {
    NAM_ASSIGN_OR_RETURN(table->heads_, MappedArray<uint32_t>::Make(shape.positions, budget));
    return table;
  }
  NAM_ASSIGN_OR_RETURN(table->present_, MappedArray<uint32_t>::Make(shape.positions / 32, budget));
  for (uint8_t width : options.payload_widths) {
    NAM_ASSIGN_OR_RETURN(table->payload_.emplace_back(),
                         MappedBytes::Make(shape.part_size * shape.parts_here * width, budget));
  }
  return table;
}

absl::Status DirectTable::SetRows(uint64_t row_numbers, MemoryBudget& budget) {
  NAM_CHECK(!unique_ && next_.size() == 0);
  NAM_ASSIGN_OR_RETURN(next_, MappedArray<uint32_t>::Make(row_numbers, budget));
  return absl::OkStatus();
}

void DirectTable::Inserted(int64_t low, int64_t high, uint64_t rows) {
  inserted_rows_.fetch_add(rows, std::memory_order_relaxed);
  int64_t least = least_key_.load(std::memory_order_relaxed);
  while (low < least && !least_key_.compare_exchange_weak(least, low, std::memory_order_relaxed)) {
  }
  int64_t greatest = greatest_key_.load(std::memory_order_relaxed);
  while (high > greatest && !greatest_key_.compare_exchange_weak(greatest, high, std::memory_order_relaxed)) {
  }
}

}  // namespace nam::execution
