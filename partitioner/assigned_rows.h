#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "partitioner/column_batch.h"
#include "partitioner/row_bytes.h"
#include "partitioner/table_schema.h"
#include "proto/catalog.pb.h"
#include "types/value_column.h"

namespace nam::partitioner {

/// The source of a table's column.
struct GivenColumn {
  int slot = -1;  // of the query's row; -1: none
  Value absent;   // without a slot: the column's default
};

/// Converts rows of a query, whose values have the columns' kinds and scales, to rows of a columnar table.
/// Values and errors are those of Assign (partitioner/assigned_value.h): the error is that of the first row
/// that has one, in its first such column. Columns that need no conversion are copied. 54000 for a row that
/// is too long (partitioner/row_bytes.h). Immutable; any number of threads.
class AssignedRows {
 public:
  /// `given`: by column of the table, which outlives this.
  AssignedRows(const proto::Table& table, const std::vector<GivenColumn>& given);

  /// Adds rows to the batch, which copies their texts. Row i is at positions[i] of each column, or at i if
  /// positions is nullptr. After an error the batch is unusable.
  absl::Status Add(std::span<const ValueColumn> columns, const uint32_t* positions, size_t rows,
                   ColumnBatch& batch) const;
  /// Adds one row.
  absl::Status Add(const std::vector<Value>& row, ColumnBatch& batch) const;

 private:
  using Widest = std::numeric_limits<__int128>;

  struct Target {
    int slot = -1;
    absl::StatusOr<Value> absent;  // as it is assigned
    Form form = Form::kNumber;
    Type type;
    bool nullable = false;
    __int128 least = Widest::min(), most = Widest::max();  // of numbers
  };
  struct Rows;
  /// Returns how many rows the column took: all of them, or those before the first that it cannot store.
  size_t AddColumn(const Target& target, const Rows& rows, ColumnBatch& batch) const;
  static size_t AddNumbers(const Target& target, const Rows& rows, ColumnBatch::Column& out);
  size_t AddTexts(const Target& target, const Rows& rows, ColumnBatch& batch) const;
  /// For values of another kind, which must all be NULL.
  static size_t AddNone(const Target& target, const Rows& rows, ColumnBatch::Column& out);
  static size_t AddNulls(const Target& target, const Rows& rows, size_t before, ColumnBatch::Column& out);
  absl::Status Repeat(const Target& target, size_t rows, ColumnBatch& batch) const;
  size_t NumberOf(const Target& target) const { return static_cast<size_t>(&target - targets_.data()); }

  const proto::Table& table_;
  const RowBytes row_bytes_;
  std::vector<Target> targets_;  // by column of the table
};

}  // namespace nam::partitioner
