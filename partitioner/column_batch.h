#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace nam::partitioner {

/// A run of rows on its way into a table, by columns in the table's order. Numbers are those of Value:
/// integers, unscaled decimals, days since 1970-01-01. Filled and owned by one thread.
class ColumnBatch {
 public:
  struct Column {
    std::vector<int64_t> numbers;           // of the form kNumber (partitioner/table_schema.h)
    std::vector<__int128> wide;             // kWide
    std::vector<std::string_view> strings;  // kText; see Keep
    std::vector<uint8_t> nulls;             // 1 where NULL; empty if there are none
  };

  explicit ColumnBatch(size_t columns) : columns_(columns) {}
  Column& column(size_t i) { return columns_[i]; }
  const Column& column(size_t i) const { return columns_[i]; }
  size_t column_count() const { return columns_.size(); }
  size_t rows() const { return rows_; }
  void set_rows(size_t rows) { rows_ = rows; }

  /// Copies text into memory that lives as long as the batch's rows. Static text needs no copy.
  std::string_view Keep(std::string_view text) {
    if (arena_.empty() || arena_.back().capacity() - arena_.back().size() < text.size()) {
      arena_.emplace_back().reserve(std::max<size_t>(kArenaBytes, text.size()));
    }
    std::string& chunk = arena_.back();
    const size_t at = chunk.size();
    chunk.append(text);
    return {chunk.data() + at, text.size()};
  }
  void Clear() {
    for (Column& c : columns_) {
      c.numbers.clear();
      c.wide.clear();
      c.strings.clear();
      c.nulls.clear();
    }
    arena_.clear();
    rows_ = 0;
  }

 private:
  static constexpr size_t kArenaBytes = 64 * 1024;
  std::vector<Column> columns_;
  std::deque<std::string> arena_;
  size_t rows_ = 0;
};

}  // namespace nam::partitioner
