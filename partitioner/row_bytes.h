#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "partitioner/column_batch.h"
#include "proto/table.pb.h"
#include "storage/row_bytes.h"

namespace nam::partitioner {

using storage::kRowBytesMax;

/// How many bytes rows of a table take in a page of a query at most, in which all columns lie side by side:
///
///     a number, date, uuid, …   16, whatever its range
///     a text or bytea           8, and its own
///
/// Refused before they are stored are a record table's rows of more than kRowBytesMax, and of columnar tables
/// texts of more than kTextBytesMax and rows of more than kLongRowBytesMax. Immutable; any thread.
class RowBytes {
 public:
  explicit RowBytes(const proto::Table& table);

  /// Of a row whose texts are as long as a record table's columns let them be.
  uint64_t most() const { return most_; }
  /// 54000 if one of `rows` rows of the batch, from `first` on, is too long.
  absl::Status Check(const ColumnBatch& batch, size_t first, size_t rows) const;

 private:
  absl::Status CheckLong(const ColumnBatch& batch, size_t row, uint64_t bytes) const;

  const std::string table_;
  const bool is_record_;
  std::vector<std::string> names_;  // of the texts
  std::vector<size_t> texts_;       // columns
  uint64_t without_texts_ = 0;
  uint64_t most_ = 0;
  uint64_t fine_bytes_;  // rows of so many need no closer look
};

}  // namespace nam::partitioner
