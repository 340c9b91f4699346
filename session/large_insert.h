#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "session/loading_access.h"
#include "session/record_access.h"
#include "session/record_changes.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Gives the rows of an INSERT, in the open transaction.
using RowSource = std::function<absl::StatusOr<RecordChanges::NextRow>()>;

/// An INSERT of many rows. It begins as any other. Once the transaction grows large, and if the table is
/// empty, its rows and those that follow become a load (LoadingAccess), in portions, so that the client's
/// memory does not grow any more:
///
///     the open transaction            the load
///     row, row, row … large? ─ yes ─▶ all that the transaction has written
///                     │               portion: Begin, rows, Commit ─▶ portion …
///                     └─ no more      they are the table's when the transaction commits
///
/// Borrows all; belongs to the session's thread.
class LargeInsert {
 public:
  LargeInsert(LoadingAccess& access, RecordChanges& changes, const std::atomic<bool>& cancelled,
              const sql::InsertStatement& statement)
      : access_(access), changes_(changes), cancelled_(cancelled), statement_(statement) {}

  /// Whether it may become a load: nothing but the table depends on its rows.
  static bool MayLoad(const sql::InsertStatement& statement);
  /// Whether so many rows of one statement are better a load.
  static bool IsLarge(const RecordAccess& access, uint64_t rows);

  /// Called once, in an open transaction. After an error the transaction may be open.
  absl::StatusOr<ResultSet> Run(const RowSource& source);

 private:
  using Row = std::vector<Value>;

  /// Of `next` while `more` is true.
  RecordChanges::NextRow While(const RecordChanges::NextRow& next, const std::function<bool()>& more);
  absl::Status LoadRest(const RecordChanges::NextRow& next, RecordAccess& access);

  LoadingAccess& access_;
  RecordChanges& changes_;
  const std::atomic<bool>& cancelled_;
  const sql::InsertStatement& statement_;
  uint64_t rows_ = 0;
  bool ended_ = false;
};

}  // namespace nam::session
