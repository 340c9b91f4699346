#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "computeserver/batch.h"

namespace nam::computeserver {

/// The build side of a join, filled by all threads of a server while its blocks arrive, then read only.
///
///     chained:  heads[position of key] → row + 1 ─ next[row] → row + 1 ─ … → 0
///     unique:   bit (position of key) of `present` is set if the key's row passed the filters
///
/// A dense key has a position of its own (direct addressing; partition by partition if the table is
/// partitioned by it, so that a probing thread stays within one eighth of the array). Other keys hash to
/// a position and are compared. Rows are numbered by where they lie in the table's needed partitions, and
/// the columns that later steps want are copied, still encoded, to the same numbers.
///
/// A direct table whose keys are known to be unique needs no chains: a row's number is its key's position,
/// so a probe reads one bit, and columns lie in key order, where a partition's share stays in a near cache.
class JoinTable {
 public:
  struct Options {
    uint64_t rows = 0;    // upper bound
    int64_t key_min = 0;  // of the keys, if key_known
    int64_t key_max = 0;
    bool key_known = false;
    bool key_unique = false;
    uint32_t parts = 1;  // the table's fan-out by the key, if by modulo and a power of two
    std::vector<uint8_t> payload_widths;
  };
  static constexpr uint64_t kMaxRows = UINT32_MAX - 1;
  explicit JoinTable(const Options& options);
  /// What a table with these options takes, before it is made.
  static uint64_t BytesNeeded(const Options& options);

  /// Unique tables: the number that the row of `key` has.
  uint32_t RowOf(int64_t key) const { return static_cast<uint32_t>(PositionOf(key)); }
  /// Unique tables: the row of `key` passed. Any thread, during the build; false if it was there already.
  bool InsertUnique(int64_t key) {
    const uint64_t position = PositionOf(key);
    const uint32_t bit = uint32_t{1} << position % 32;
    return (std::atomic_ref(present_[position / 32]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  /// A thread has inserted keys within [low, high].
  void Inserted(int64_t low, int64_t high, uint64_t rows);

  /// Chained tables: makes `key` lead to `row`. Any thread, during the build.
  void Insert(int64_t key, uint32_t row) {
    if (!direct_) keys_[row] = key;
    const uint32_t before =
        std::atomic_ref<uint32_t>(heads_[PositionOf(key)]).exchange(row + 1, std::memory_order_relaxed);
    if (before == 0) return;
    next_[row] = before;
    if (!chained_.load(std::memory_order_relaxed)) chained_.store(true, std::memory_order_relaxed);
  }
  std::byte* payload(size_t i) { return payload_[i].data(); }

  // After the build:
  bool direct() const { return direct_; }
  bool unique() const { return unique_; }
  /// Whether a table with these options gives rows numbers by their keys' positions.
  static bool IsUnique(const Options& options) { return options.key_unique && IsDirect(options); }
  uint64_t rows() const { return rows_; }  // at most, with those that filters drop
  uint64_t inserted_rows() const { return inserted_rows_.load(std::memory_order_relaxed); }
  /// The least and greatest key inserted, as told by Inserted; least > greatest if there is none.
  int64_t least_key() const { return least_key_.load(std::memory_order_relaxed); }
  int64_t greatest_key() const { return greatest_key_.load(std::memory_order_relaxed); }
  /// Where a unique table's bits lie:
  ///     ((key - origin) & (2^shift - 1)) · part_size + ((key - origin) >> shift)
  /// for keys in [origin, origin + domain); a part begins with a word of its own.
  const uint32_t* present() const { return present_.data(); }
  int64_t origin() const { return origin_; }
  uint64_t domain() const { return static_cast<uint64_t>(key_max_) - static_cast<uint64_t>(origin_) + 1; }
  uint64_t part_size() const { return part_size_; }
  uint32_t part_shift() const { return part_shift_; }
  /// Whether some position leads to more than one row.
  bool chained() const { return chained_.load(std::memory_order_relaxed); }
  bool InDomain(int64_t key) const { return !direct_ || (key >= key_min_ && key <= key_max_); }
  /// The first row + 1 at the key's position, 0 if none. The key must be in the domain.
  uint32_t Head(int64_t key) const {
    const uint64_t position = PositionOf(key);
    if (unique_)
      return (present_[position / 32] >> position % 32 & 1) * (static_cast<uint32_t>(position) + 1);
    return heads_[position];
  }
  uint32_t Next(uint32_t row) const { return unique_ ? 0 : next_[row]; }
  bool KeyIs(uint32_t row, int64_t key) const { return direct_ || keys_[row] == key; }

 private:
  static bool IsDirect(const Options& options);
  uint64_t PositionOf(int64_t key) const {
    if (direct_) {
      const uint64_t k = static_cast<uint64_t>(key) - static_cast<uint64_t>(origin_);
      return (k & part_mask_) * part_size_ + (k >> part_shift_);
    }
    return (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ull) >> hash_shift_;
  }

  bool direct_ = false;
  bool unique_ = false;
  uint64_t rows_ = 0;
  int64_t key_min_ = 0, key_max_ = -1;
  int64_t origin_ = 0;      // direct: a multiple of the parts, at most key_min
  uint64_t part_mask_ = 0;  // parts - 1
  uint64_t part_size_ = 0;
  uint32_t part_shift_ = 0;
  uint32_t hash_shift_ = 63;
  std::vector<uint32_t> present_;  // unique only
  std::vector<uint32_t> heads_;    // the others
  std::vector<uint32_t> next_;
  std::vector<int64_t> keys_;  // hashed only
  std::vector<std::vector<std::byte>> payload_;
  std::atomic<bool> chained_ = false;
  std::atomic<uint64_t> inserted_rows_ = 0;
  std::atomic<int64_t> least_key_ = INT64_MAX;
  std::atomic<int64_t> greatest_key_ = INT64_MIN;
};

}  // namespace nam::computeserver
