#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/join/mapped_array.h"
#include "execution/memory_budget.h"

namespace nam::execution {

/// The build side of a join by one dense number: each key in [key_min, key_max] has a position of its own.
/// All threads of a server fill it; then it is read only.
///
///     unique:   bit (position of key) of `present` is set if the key's row is there; the row's number is the
///               position, and its payload lies there, still encoded
///     chained:  heads[position of key] → row + 1 ─ next[row] → row + 1 ─ … → 0; rows are those of a RowTable
///
/// A table that is split by its key, by modulo, has a share of the positions for each part that is here:
///
///     k = key - origin        position = part_base[k mod 2^part_shift] + (k >> part_shift)
///
/// so that a probing thread stays within one part. Parts that are not here share an empty one: their keys are
/// found absent without a test. Part p begins at p · part_size if all parts are here.
class DirectTable {
 public:
  struct Options {
    uint64_t rows = 0;                // upper bound, over the parts that are here
    int64_t key_min = 0;              // of all keys, also of parts elsewhere
    int64_t key_max = -1;             // below key_min: unknown
    bool unique = false;              // as the loader says
    uint32_t parts = 1;               // the table's fan-out by the key, if by modulo and a power of two
    std::vector<uint32_t> here = {};  // the parts that are here, ascending; empty: all
    std::vector<uint8_t> payload_widths = {};  // unique: code bytes of each column
  };
  static constexpr uint32_t kMostPositions = UINT32_MAX - 1;

  /// Whether the positions are few enough for the rows, both of the parts that are here.
  static bool Fits(const Options& options);
  /// The bytes of a table with these options that fit, without the `next` of chained ones.
  static uint64_t BytesNeeded(const Options& options);
  /// RESOURCE_EXHAUSTED if the budget does not allow it. The options fit.
  static absl::StatusOr<std::unique_ptr<DirectTable>> Make(const Options& options, MemoryBudget& budget);

  bool InDomain(int64_t key) const { return key >= key_min_ && key <= key_max_; }
  /// For a key in the domain: whether its rows belong here.
  bool IsHere(int64_t key) const { return part_base_[PartOf(key)] != absent_base_; }
  /// For a key in the domain.
  uint32_t PositionOf(int64_t key) const {
    const uint64_t k = static_cast<uint64_t>(key) - static_cast<uint64_t>(origin_);
    return part_base_[k & part_mask_] + static_cast<uint32_t>(k >> part_shift_);
  }

  /// Unique: enters the row of `key`, which is here. Any thread, during the build; false for a duplicate.
  bool InsertUnique(int64_t key) {
    const uint32_t position = PositionOf(key);
    const uint32_t bit = uint32_t{1} << position % 32;
    return (std::atomic_ref(present_[position / 32]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  /// Unique: column i of the payload.
  std::byte* payload(size_t i) const { return payload_[i].data(); }
  size_t payload_columns() const { return payload_.size(); }

  /// Chained: makes room for rows with numbers below `row_numbers`. Once, before the first Insert.
  absl::Status SetRows(uint64_t row_numbers, MemoryBudget& budget);
  /// Chained: makes `key`, which is here, lead to `row`. Any thread, during the build; each row once.
  void Insert(int64_t key, uint32_t row) {
    const uint32_t before =
        std::atomic_ref<uint32_t>(heads_[PositionOf(key)]).exchange(row + 1, std::memory_order_relaxed);
    if (before == 0) return;
    next_[row] = before;
    if (!chained_.load(std::memory_order_relaxed)) chained_.store(true, std::memory_order_relaxed);
  }
  /// The place that Insert will write, to prefetch it.
  const uint32_t* head_of(int64_t key) const { return &heads_[PositionOf(key)]; }

  /// Notes that a thread has inserted `rows` keys within [low, high].
  void Inserted(int64_t low, int64_t high, uint64_t rows);

  // After the build:
  bool unique() const { return unique_; }
  /// Whether a key has more than one row.
  bool chained() const { return chained_.load(std::memory_order_relaxed); }
  uint64_t rows() const { return rows_; }  // upper bound: includes rows that filters drop
  uint64_t inserted_rows() const { return inserted_rows_.load(std::memory_order_relaxed); }
  /// The least and greatest inserted key; least > greatest if there is none.
  int64_t least_key() const { return least_key_.load(std::memory_order_relaxed); }
  int64_t greatest_key() const { return greatest_key_.load(std::memory_order_relaxed); }
  int64_t key_min() const { return key_min_; }
  int64_t key_max() const { return key_max_; }
  int64_t origin() const { return origin_; }
  uint32_t part_shift() const { return part_shift_; }
  uint64_t part_size() const { return part_size_; }
  bool all_here() const { return absent_base_ == kNoPosition; }
  /// Unique: the bits by position, and those of one part, which begin with a word of their own.
  const uint32_t* present() const { return present_.data(); }
  const uint32_t* present_of(uint32_t part) const { return present_.data() + part_base_[part] / 32; }

  /// The first row + 1 of `key`, which is in the domain; 0: none.
  uint32_t Head(int64_t key) const {
    const uint32_t position = PositionOf(key);
    return unique_ ? (present_[position / 32] >> position % 32 & 1) * (position + 1) : heads_[position];
  }
  /// Chained: the next row + 1 with the same key; 0: none.
  uint32_t Next(uint32_t row) const { return next_[row]; }

 private:
  static constexpr uint32_t kNoPosition = UINT32_MAX;
  struct Shape;
  DirectTable(const Options& options, const Shape& shape);
  uint64_t PartOf(int64_t key) const {
    return (static_cast<uint64_t>(key) - static_cast<uint64_t>(origin_)) & part_mask_;
  }

  const bool unique_;
  const uint64_t rows_;
  const int64_t key_min_, key_max_;
  const int64_t origin_;  // a multiple of the parts, at most key_min
  const uint64_t part_size_;
  const uint64_t part_mask_;  // parts - 1
  const uint32_t part_shift_;
  uint32_t absent_base_ = kNoPosition;  // the shared base of parts elsewhere
  std::vector<uint32_t> part_base_;
  MappedArray<uint32_t> present_;     // unique
  std::vector<MappedBytes> payload_;  // unique
  MappedArray<uint32_t> heads_;       // chained
  MappedArray<uint32_t> next_;        // chained
  std::atomic<bool> chained_ = false;
  std::atomic<uint64_t> inserted_rows_ = 0;
  std::atomic<int64_t> least_key_ = INT64_MAX;
  std::atomic<int64_t> greatest_key_ = INT64_MIN;
};

}  // namespace nam::execution
