#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "partitioner/column_batch.h"
#include "partitioner/loader.h"
#include "proto/table.pb.h"
#include "session/session.h"

namespace nam::session {

/// Loads a query's rows into a columnar table. Conversions and errors are as in an INSERT (sql/assignment.h).
/// One thread.
class LoadedRows final : public RowReceiver {
 public:
  /// `columns`: the table's columns for the query's; the others get their defaults. Borrows the table and the
  /// loader.
  LoadedRows(const proto::Table& table, std::vector<int> columns, partitioner::TableLoader& loader);

  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override;
  absl::Status Add(const ResultBatch& rows) override;
  /// Adds one row, with a value for each of the columns.
  absl::Status Add(const std::vector<Value>& row);
  /// Passes the last rows to the loader.
  absl::Status End();
  uint64_t rows() const { return rows_; }

 private:
  static constexpr size_t kBatchRows = 16 << 10;

  struct Target {
    int source = -1;  // the query's column; -1: the default
    Value absent;     // that default
    partitioner::Form form = partitioner::Form::kNumber;
    Type type;
    __int128 least = 0, most = 0;  // for integers and decimals
  };
  /// Whether the value fits without conversion, so that the loader takes it as it is.
  static bool FitsAsItIs(const Target& target, const ResultBatch& rows, size_t row);
  absl::Status AddValue(size_t column, const ResultBatch& rows, size_t row);
  absl::Status Flush();

  const proto::Table& table_;
  partitioner::TableLoader& loader_;
  std::vector<Target> targets_;  // the table's columns
  partitioner::ColumnBatch batch_;
  uint64_t rows_ = 0;
};

}  // namespace nam::session
