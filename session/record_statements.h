#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/table.pb.h"
#include "session/large_insert.h"
#include "session/loading_access.h"
#include "session/record_access.h"
#include "session/record_changes.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// An explained change of rows, without the query that finds them.
struct ExplainedChange {
  std::string kind;                     // `Insert into`, `Update`, `Delete`
  std::string table;                    // with its alias
  std::string how;                      // how the rows are found, or their source
  std::vector<std::string> conditions;  // conditions that the access path does not ensure
  // With ANALYZE:
  std::optional<std::string> command;  // `UPDATE 3`
  double ms = 0;
};

/// Runs a session's statements on record tables, each a transaction of its own unless BEGIN opened one:
///
///         BEGIN             a statement fails
///     idle ───────▶ open ───────────────────────▶ failed ─┐ 25P02: everything but COMMIT,
///      ▲             │ ◀─────── ROLLBACK TO ───────┤    ◀─┘ ROLLBACK and ROLLBACK TO
///      └─────────────┴────── COMMIT, ROLLBACK ─────┘        (COMMIT rolls back, too)
///
/// BEGIN while open, and COMMIT or ROLLBACK while idle, only warn. A BEGIN that fails leads to `over`: the
/// statements after it were meant to be one transaction, and must not be committed one by one.
///
/// A statement that fails after a savepoint immediately undoes the writes since the innermost one. The
/// engine's transaction then waits for ROLLBACK TO. Without a savepoint it ends at once, and so it does if
/// the engine has ended it (a conflict, a lost connection): the transaction is `over`, which is `failed`
/// without a way back.
///
/// Errors carry a SqlError; 40001 asks to retry the transaction. Belongs to the session's thread.
class RecordStatements {
 public:
  /// Borrows all; `cancelled` ends the running statement.
  RecordStatements(RecordAccess& access, Clock& clock, const std::atomic<bool>& cancelled)
      : access_(access), clock_(clock), cancelled_(cancelled), changes_(access_, cancelled) {}
  ~RecordStatements();
  RecordStatements(const RecordStatements&) = delete;
  RecordStatements& operator=(const RecordStatements&) = delete;

  /// `run_query` runs the queries that a change's rows come from.
  absl::StatusOr<ResultSet> Run(const sql::InsertStatement& statement, const RunQuery& run_query);
  absl::StatusOr<ResultSet> Run(const sql::UpdateStatement& statement, const RunQuery& run_query);
  absl::StatusOr<ResultSet> Run(const sql::DeleteStatement& statement, const RunQuery& run_query);
  /// Copies into a record table: one transaction, or a part of the open one; with BATCH, a transaction for so
  /// many rows each. `report`, which may be empty, gets the progress.
  absl::StatusOr<ResultSet> Run(const sql::CopyStatement& statement,
                                const std::function<void(const QueryProgress&)>& report = {});
  /// Deletes all rows. Many of them go with the table's storage, as if a load without rows took their place.
  absl::StatusOr<ResultSet> Run(const sql::TruncateStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::TransactionStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::CreateTableStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::CreateIndexStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::DropIndexStatement& statement);
  /// A notice says what it has done.
  absl::StatusOr<ResultSet> Run(const sql::VacuumStatement& statement);
  /// The source of a change's rows; without a query: how they are found, and the remaining conditions.
  absl::StatusOr<ExplainedChange> Explain(const sql::InsertStatement& statement) const;
  absl::StatusOr<ExplainedChange> Explain(const sql::UpdateStatement& statement) const;
  absl::StatusOr<ExplainedChange> Explain(const sql::DeleteStatement& statement) const;

  /// Runs it in the open transaction, or in one of its own.
  absl::StatusOr<ResultSet> InTransaction(const std::function<absl::StatusOr<ResultSet>()>& body);

  /// Before any other statement: 25P02 if the transaction has failed, 25001 if one is open and the statement
  /// takes effect outside of it (CREATE TABLE, …). `what` names the statement; empty if it has no effect.
  absl::Status MayRun(std::string_view what) const;
  /// After any statement's error, even a syntax error: fails the open transaction, or the one that the
  /// statement should have begun. Returns the error to report: 25P02 instead of the error of a statement that
  /// was not allowed to run.
  absl::Status Fail(const std::string& statement, absl::Status error);
  /// The open transaction was lost: none of it will be committed.
  void Lose();
  /// For what else reads, or locks rows, in the transaction.
  RecordAccess& access() { return access_; }
  bool in_transaction() const { return state_ != State::kIdle; }
  /// The number of the transaction's savepoints.
  size_t savepoints() const { return savepoints_.size(); }

 private:
  enum class State : uint8_t { kIdle, kOpen, kFailed, kOver };
  struct Savepoint {
    std::string name;
    size_t mark = 0;  // RecordAccess::Mark
  };
  static constexpr size_t kSavepointsMax = 65'536;

  /// Inserts the rows of a query or of files. Many rows into an empty table are a load.
  absl::StatusOr<ResultSet> InsertStream(const sql::InsertStatement& statement, const RowSource& source);
  absl::StatusOr<bool> EmptyByLoad(const sql::BoundTable& bound, bool own);
  absl::StatusOr<ResultSet> Begin();
  absl::StatusOr<ResultSet> EndTransaction(bool commit);
  absl::StatusOr<ResultSet> AddSavepoint(const std::string& name);
  absl::StatusOr<ResultSet> RollBackTo(const std::string& name);
  absl::StatusOr<ResultSet> Release(const std::string& name);
  /// The number of savepoints up to the innermost one of this name; 3B001 if there is none.
  absl::StatusOr<size_t> SavepointsUpTo(const std::string& name) const;
  /// Aborts the engine's transaction, if it still runs.
  void GiveUp(bool conflict);
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index);
  absl::StatusOr<ExplainedChange> ExplainFound(const char* kind, const sql::BoundTable& table,
                                               const std::vector<plan::Expr>& conjuncts,
                                               const sql::ChangeSource& source) const;

  LoadingAccess access_;
  Clock& clock_;
  const std::atomic<bool>& cancelled_;
  RecordChanges changes_;
  State state_ = State::kIdle;
  std::vector<Savepoint> savepoints_;  // the innermost is last
  bool told_of_columnar_tables_ = false;
  bool conflict_ = false;  // ended the transaction: a retry may succeed
};

}  // namespace nam::session
