#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/table_schema.h"

namespace nam::partitioner {

/// A run of rows to be loaded, by columns in the table's order. Numbers are as in Value: integers, unscaled
/// decimals, days since 1970-01-01. Filled and owned by one thread.
class ColumnBatch {
 public:
  class Column {
   public:
    std::vector<int64_t> numbers;           // form kNumber (partitioner/table_schema.h)
    std::vector<__int128> wide;             // kWide
    std::vector<std::string_view> strings;  // kText; see Keep
    std::vector<uint8_t> nulls;             // 1 where NULL; empty if none is

    /// Appends a value of the form; its text must outlive the batch's rows.
    void Push(Form form, __int128 number, std::string_view text) {
      PushValue(form, number, text);
      if (!nulls.empty()) nulls.push_back(0);
    }
    /// Appends NULL as row `row`, the next one.
    void PushNull(Form form, size_t row) {
      nulls.resize(row);
      nulls.push_back(1);
      PushValue(form, 0, {});
    }
    /// Keeps the first `rows` rows.
    void Resize(size_t rows) {
      if (numbers.size() > rows) numbers.resize(rows);
      if (wide.size() > rows) wide.resize(rows);
      if (strings.size() > rows) strings.resize(rows);
      if (nulls.size() > rows) nulls.resize(rows);
    }

   private:
    void PushValue(Form form, __int128 number, std::string_view text) {
      switch (form) {
        case Form::kNumber:
          return numbers.push_back(static_cast<int64_t>(number));
        case Form::kWide:
          return wide.push_back(number);
        case Form::kText:
          return strings.push_back(text);
      }
    }
  };

  explicit ColumnBatch(size_t columns) : columns_(columns) {}
  Column& column(size_t i) { return columns_[i]; }
  const Column& column(size_t i) const { return columns_[i]; }
  size_t column_count() const { return columns_.size(); }
  size_t rows() const { return rows_; }
  void set_rows(size_t rows) { rows_ = rows; }
  /// Where the rows stand among those of other batches, which come in any order: behind those of all lower
  /// places, and of the same place that came before.
  uint64_t place() const { return place_; }
  void set_place(uint64_t place) { place_ = place; }

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
  uint64_t place_ = 0;
};

}  // namespace nam::partitioner
