#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "execution/join/text_keys.h"
#include "execution/rows/row_layout.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// One key of the tuples that probe, aligned with the positions of their chunk. One of the three is set, as
/// RowKeys::form says.
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
///     other text                   its bytes, less blanks at the end where these do not count
///
/// Immutable.
class RowKeys {
 public:
  struct Key {
    /// Of a field that holds codes of a dictionary; nullptr for all others.
    const TextKeys* texts = nullptr;
    bool ignores_blanks = false;
  };
  enum class Form : uint8_t { kNumber, kText };

  /// Field i of the layout is keys[i]. The layout outlives this.
  RowKeys(const RowLayout& layout, std::vector<Key> keys);

  size_t size() const { return keys_.size(); }
  Form form(size_t key) const;
  const Key& key(size_t i) const { return keys_[i]; }

  /// The rows [first, first + count) of a page: hashes[i] over all keys, and nulls[i] = 1 if one is NULL,
  /// when the hash has no meaning; else 0. Whether any is NULL.
  bool HashRows(const std::byte* page, uint32_t first, uint32_t count, uint64_t* hashes,
                uint8_t* nulls) const;
  /// As HashRows: the numbers of the only key. What does not fit 64 bits counts as not there: nulls[i] = 2.
  bool NumbersOf(const std::byte* page, uint32_t first, uint32_t count, int64_t* numbers,
                 uint8_t* nulls) const;
  /// hashes[i] of the tuple at positions[i], none of whose keys is NULL: equal to that of rows whose keys
  /// are.
  void HashTuples(const ProbeKey* keys, const uint32_t* positions, uint32_t count, uint64_t* hashes) const;
  /// Of the pairs of a tuple at positions[i] and rows[i] those whose keys are equal go to kept_positions and
  /// kept_rows, in order; their number. None of the tuples' keys is NULL, nor are those of the rows.
  uint32_t Equal(const RowTable& table, const ProbeKey* keys, const uint32_t* positions, const uint32_t* rows,
                 uint32_t count, uint32_t* kept_positions, uint32_t* kept_rows) const;

 private:
  bool MarkNulls(const std::byte* page, uint32_t first, uint32_t count, uint8_t* nulls) const;
  const RowLayout& layout_;
  const std::vector<Key> keys_;
};

}  // namespace nam::execution
