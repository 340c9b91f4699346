#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/record_row.h"
#include "session/record_access.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Passes the rows of a SELECT with a locking clause on without the columns that the clause has added, and
/// keeps the keys in those.
class LockedRows final : public RowReceiver {
 public:
  LockedRows(const std::vector<sql::RowLock>& locks, RowReceiver& receiver);

  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override;
  absl::Status Add(const ResultBatch& rows) override;
  uint64_t bytes_held() const override { return bytes_ + receiver_.bytes_held(); }

  /// Locks the rows, once all have come, in the transaction that read them.
  absl::Status Lock(RecordAccess& access);
  /// Reduces the result to what the client sees.
  void Show(ResultSet& result) const { result.columns.resize(shown_); }

 private:
  struct Table {
    const sql::RowLock& lock;
    partitioner::RecordLayout layout;
    std::vector<uint32_t> key_columns;
    std::vector<std::string> keys;
  };
  const size_t shown_;
  std::vector<Table> tables_;
  RowReceiver& receiver_;
  uint64_t bytes_ = 0;
};

}  // namespace nam::session
