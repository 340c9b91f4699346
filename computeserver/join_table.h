#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "computeserver/batch.h"

namespace nam::computeserver {

/// The build side of a join, filled by all threads of a server while its blocks arrive, then read only.
///
///     heads[position of key] → row + 1 ─ next[row] → row + 1 ─ … → 0
///
/// A dense key has a position of its own (direct addressing; partition by partition if the table is
/// partitioned by it, so that a probing thread stays within one eighth of the array). Other keys hash to
/// a position and are compared. Rows are numbered by where they lie in the table's needed partitions, and
/// the columns that later steps want are copied, still encoded, to the same numbers.
class JoinTable {
 public:
  struct Options {
    uint64_t rows = 0;    // upper bound
    int64_t key_min = 0;  // of the keys, if key_known
    int64_t key_max = 0;
    bool key_known = false;
    uint32_t parts = 1;  // the table's fan-out by the key, if by modulo and a power of two
    std::vector<uint8_t> payload_widths;
  };
  static constexpr uint64_t kMaxRows = UINT32_MAX - 1;
  explicit JoinTable(const Options& options);

  /// Makes `key` lead to `row`. Any thread, during the build.
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
  /// Whether some position leads to more than one row.
  bool chained() const { return chained_.load(std::memory_order_relaxed); }
  bool InDomain(int64_t key) const { return !direct_ || (key >= key_min_ && key <= key_max_); }
  /// The first row + 1 at the key's position, 0 if none. The key must be in the domain.
  uint32_t Head(int64_t key) const { return heads_[PositionOf(key)]; }
  uint32_t Next(uint32_t row) const { return next_[row]; }
  bool KeyIs(uint32_t row, int64_t key) const { return direct_ || keys_[row] == key; }
  uint64_t bytes() const;

 private:
  uint64_t PositionOf(int64_t key) const {
    if (direct_) {
      const uint64_t k = static_cast<uint64_t>(key) - static_cast<uint64_t>(origin_);
      return (k & part_mask_) * part_size_ + (k >> part_shift_);
    }
    return (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ull) >> hash_shift_;
  }

  bool direct_ = false;
  int64_t key_min_ = 0, key_max_ = -1;
  int64_t origin_ = 0;      // direct: a multiple of the parts, at most key_min
  uint64_t part_mask_ = 0;  // parts - 1
  uint64_t part_size_ = 0;
  uint32_t part_shift_ = 0;
  uint32_t hash_shift_ = 63;
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> next_;
  std::vector<int64_t> keys_;  // hashed only
  std::vector<std::vector<std::byte>> payload_;
  std::atomic<bool> chained_ = false;
};

}  // namespace nam::computeserver
