#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "csv/field_form.h"
#include "partitioner/column_batch.h"
#include "partitioner/row_bytes.h"
#include "partitioner/table_schema.h"
#include "session/copied_rows.h"

namespace nam::session {

/// Puts rows of a COPY into batches of a columnar table's columns. Parses common forms of numbers, dates,
/// times and texts itself, at a few nanoseconds a field; CopiedRows::ValueOf handles the rest, and every
/// error. Belongs to one thread.
class CopiedColumns {
 public:
  /// Borrows both. With `whole`, rows that are too long for a query to have all of their columns are refused.
  /// `kept`: the columns that batches get; of others values are checked alone. Empty: all.
  CopiedColumns(const sql::CopyStatement& statement, CopiedRows& rows, bool whole,
                const std::vector<bool>& kept = {});

  /// Adds a row; the batch refers to its texts. An error tells the place, and leaves the batch unchanged.
  absl::Status Add(const std::vector<csv::Field>& fields, partitioner::ColumnBatch& batch);

 private:
  enum class Fast : uint8_t { kInteger, kDecimal, kDate, kTimestamp, kBool, kDouble, kText, kNone };
  struct Column {
    size_t field = 0;  // in the statement; kNoField: its values are `absent`
    Value absent;      // the column's default
    Fast fast = Fast::kNone;
    csv::FieldForm read = csv::FieldForm::kNone;  // of a queried file's fields; kNone: as they are
    bool formatted = false;                       // not all are as PostgreSQL writes them
    partitioner::Form form = partitioner::Form::kNumber;
    int64_t least = 0, most = 0;  // numbers
    int scale = 0;                // decimals
    uint32_t characters = 0;      // of text, at most; 0: any
    bool kept = true;
  };
  static constexpr size_t kNoField = SIZE_MAX;

  /// Reads a field of a queried file in its column's form. 22P02 if it has another form.
  absl::Status ReadForm(const Column& column, csv::Field& field);
  static bool ReadFast(const Column& column, std::string_view text, int64_t& number);
  absl::Status AddField(size_t c, csv::Field field, partitioner::ColumnBatch& batch);
  void TakeBack(partitioner::ColumnBatch& batch) const;

  const sql::CopyStatement& statement_;
  CopiedRows& rows_;
  const std::optional<partitioner::RowBytes> row_bytes_;
  std::vector<Column> columns_;  // the table's
  std::string canonical_;        // of ReadForm
};

}  // namespace nam::session
