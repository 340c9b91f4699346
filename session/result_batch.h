#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/value_column.h"

namespace nam::session {

/// Some rows of a result: columns in the engine's form, or boxed values. Borrows all; valid until the
/// receiver returns.
class ResultBatch {
 public:
  using Column = ValueColumn;

  /// Row i is at positions[i] of each column; positions may be nullptr: at i.
  ResultBatch(std::span<const Column> columns, const uint32_t* positions, size_t rows)
      : columns_(columns), positions_(positions), rows_(rows), width_(columns.size()) {}
  explicit ResultBatch(std::span<const std::vector<Value>> boxed)
      : boxed_(boxed.data()), rows_(boxed.size()), width_(boxed.empty() ? 0 : boxed[0].size()) {}

  /// The same rows, with the first columns only.
  ResultBatch First(size_t columns) const {
    ResultBatch first = *this;
    first.width_ = columns;
    return first;
  }

  size_t rows() const { return rows_; }
  size_t columns() const { return width_; }
  const Type& type(size_t column, size_t row) const {
    return boxed_ == nullptr ? columns_[column].type : boxed_[row][column].type;
  }
  bool null(size_t column, size_t row) const {
    if (boxed_ != nullptr) return boxed_[row][column].null;
    return columns_[column].null(At(row));
  }
  /// The value is neither NULL nor text.
  __int128 number(size_t column, size_t row) const {
    if (boxed_ != nullptr) return boxed_[row][column].number;
    return columns_[column].number(At(row));
  }
  bool is_text(size_t column, size_t row) const { return type(column, row).kind == TypeKind::kString; }
  /// The value is a text, not NULL.
  std::string_view text(size_t column, size_t row) const {
    return boxed_ == nullptr ? columns_[column].text[At(row)] : std::string_view(boxed_[row][column].text);
  }

  Value Boxed(size_t column, size_t row) const {
    return boxed_ != nullptr ? boxed_[row][column] : columns_[column].Boxed(At(row));
  }
  /// The rows as they lie, one of both: values of `rows()` rows; or columns, and the positions.
  const std::vector<Value>* boxed() const { return boxed_; }
  std::span<const Column> vectors() const { return columns_; }
  const uint32_t* positions() const { return positions_; }
  /// Appends Value::ToString of a value that is not NULL.
  void AppendText(size_t column, size_t row, std::string& out) const;

 private:
  size_t At(size_t row) const { return positions_ == nullptr ? row : positions_[row]; }

  const std::span<const Column> columns_;
  const uint32_t* const positions_ = nullptr;
  const std::vector<Value>* const boxed_ = nullptr;  // or else the columns
  const size_t rows_;
  size_t width_;
};

}  // namespace nam::session
