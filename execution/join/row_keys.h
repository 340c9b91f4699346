#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "execution/join/text_keys.h"
#include "execution/rows/row_layout.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// One key of the probing tuples, aligned with the positions of their chunk. RowKeys::form tells which of the
/// three is set.
struct ProbeKey {
  const int64_t* narrow = nullptr;
  const __int128* wide = nullptr;
  const std::string_view* text = nullptr;
};

/// The keys of a join's build side in rows at rest: the first fields of a row, of any number and type. Two
/// keys are equal if their values are, whatever their widths.
///
///     numbers, dates, booleans …   base + field; hashed and compared as numbers
///     text of one dictionary       the canonical entry of its TextKeys; hashed and compared as a number
///     other text                   its bytes, without blanks at the end where these are ignored
///
/// Immutable.
class RowKeys {
 public:
  struct Key {
    /// For a field that holds codes of a dictionary; nullptr for all others.
    const TextKeys* texts = nullptr;
    bool ignores_blanks = false;
  };
  enum class Form : uint8_t { kNumber, kText };

  /// Field i of the layout is keys[i]. The layout outlives this.
  RowKeys(const RowLayout& layout, std::vector<Key> keys);

  size_t size() const { return keys_.size(); }
  Form form(size_t key) const;
  const Key& key(size_t i) const { return keys_[i]; }

  /// Hashes the rows [first, first + count) of a page: hashes[i] over all keys. nulls[i] = 1 if one is NULL,
  /// and then the hash has no meaning; else 0. Returns whether any is NULL.
  bool HashRows(const std::byte* page, uint32_t first, uint32_t count, uint64_t* hashes,
                uint8_t* nulls) const;
  /// As HashRows, but returns the numbers of the only key. Numbers beyond 64 bits count as absent: nulls[i] =
  /// 2.
  bool NumbersOf(const std::byte* page, uint32_t first, uint32_t count, int64_t* numbers,
                 uint8_t* nulls) const;
  /// hashes[i] of the tuple at positions[i], none of whose keys is NULL: equal to that of rows with equal
  /// keys.
  void HashTuples(const ProbeKey* keys, const uint32_t* positions, uint32_t count, uint64_t* hashes) const;
  /// Selects the pairs of a tuple at positions[i] and rows[i] with equal keys, in order, to kept_positions
  /// and kept_rows; returns their number. Neither side has NULL keys.
  uint32_t Equal(const RowTable& table, const ProbeKey* keys, const uint32_t* positions, const uint32_t* rows,
                 uint32_t count, uint32_t* kept_positions, uint32_t* kept_rows) const;

 private:
  bool MarkNulls(const std::byte* page, uint32_t first, uint32_t count, uint8_t* nulls) const;
  const RowLayout& layout_;
  const std::vector<Key> keys_;
};

}  // namespace nam::execution
