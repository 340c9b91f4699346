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
#include "execution/local_stage.h"
#include "optimizer/lower_tree.h"
#include "proto/catalog.pb.h"
#include "session/session.h"
#include "sql/bound_query.h"
#include "sql/record_access.h"

namespace nam::session {

/// SQLSTATE of a COMMIT that may have taken effect or not: transaction_resolution_unknown.
inline constexpr char kOutcomeUnknown[] = "08007";

/// What SQL needs of the transaction engine: one transaction at a time, which sees its own writes. Rows are
/// as partitioner/record_row.h lays them out. ABORTED: in conflict with another transaction, ALREADY_EXISTS:
/// the key is taken; any error ends the transaction as Abort does. Only UNAVAILABLE of Commit leaves open
/// whether it took effect.
class RecordAccess {
 public:
  /// Gets a row, which is valid until it returns; false to get no more.
  using OnRow = std::function<absl::StatusOr<bool>(std::span<const std::byte> row)>;
  virtual ~RecordAccess() = default;

  virtual absl::Status Begin() = 0;
  virtual absl::Status Commit() = 0;
  /// Also after an error that has ended the transaction.
  virtual void Abort() = 0;
  /// Between transactions: this process has become another member, and what the former one had is lost.
  virtual void BeginAnew() {}

  /// The rows with these keys; keys that are not there are passed over.
  virtual absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                              const OnRow& on_row) = 0;
  /// All rows, in no order.
  virtual absl::Status Scan(const proto::Table& table, const OnRow& on_row) = 0;
  /// The rows of a range of the ordered index RecordStorage.parts[index], in its order. It is complete for
  /// snapshot().
  virtual absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                                 const OnRow& on_row) = 0;
  /// What the transaction has written to the table so far: each key once, with the row as it is now, or
  /// nothing if it is deleted.
  using OnWrite = std::function<void(std::string_view key, std::string_view row)>;
  virtual absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) = 0;
  /// Of the transaction under way.
  virtual uint64_t snapshot() const = 0;
  /// As txn::Session::MayWrite: a statement that finds more rows than that need not find them all.
  virtual absl::Status MayWrite(size_t rows) const = 0;

  /// Never from within a Lookup or Scan. Insert: of a key that is not there, or that this transaction has
  /// deleted. Update, Delete: of a row that this transaction has got by Lookup or Scan.
  virtual absl::Status Insert(const proto::Table& table, std::string_view row) = 0;
  virtual absl::Status Update(const proto::Table& table, std::string_view row) = 0;
  virtual absl::Status Delete(const proto::Table& table, std::string_view key) = 0;

  /// Outside of a transaction. ALREADY_EXISTS: there is a table of this name. The table is as CREATE TABLE
  /// describes it; memory, parts and version are for the engine to fill in.
  virtual absl::Status CreateTable(const proto::Table& table) = 0;
  /// Fills it with the rows that are there, while others write. The index has no extents yet. ALREADY_EXISTS:
  /// its name is taken, FAILED_PRECONDITION: it is unique and two rows have the same key, or it cannot be
  /// made at present.
  virtual absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) = 0;
  /// NOT_FOUND: there is no such index.
  virtual absl::Status DropIndex(const std::string& name) = 0;
};

/// Runs a session's statements on record tables, each a transaction of its own unless BEGIN opened one:
///
///       │ BEGIN that fails                                  ▲
///       ├───────────────────────────────────────────────────┤
///       │ BEGIN               a statement fails             │
///     idle ───────────▶ open ───────────────────────────▶ failed ─┐ 25P02: everything but
///      ▲                 │ COMMIT, ROLLBACK                 │   ◀─┘ COMMIT, ROLLBACK
///      └─────────────────┴──────────────────────────────────┘        (COMMIT rolls back, too)
///
/// BEGIN while open, and COMMIT or ROLLBACK while idle, change nothing and warn. A BEGIN that fails, for
/// whatever reason, leads to `failed`: the statements behind it were meant to be one transaction, and must
/// not be committed one by one.
///
/// Errors carry a SqlError; 40001 asks to run the transaction again. Of the session's thread.
class RecordStatements {
 public:
  /// Borrows all; `cancelled` ends the statement that runs.
  RecordStatements(RecordAccess& access, Clock& clock, const std::atomic<bool>& cancelled)
      : access_(access), clock_(clock), cancelled_(cancelled) {}
  ~RecordStatements();
  RecordStatements(const RecordStatements&) = delete;
  RecordStatements& operator=(const RecordStatements&) = delete;

  absl::StatusOr<ResultSet> Run(const sql::InsertStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::UpdateStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::DeleteStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::TransactionStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::CreateTableStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::CreateIndexStatement& statement);
  absl::StatusOr<ResultSet> Run(const sql::DropIndexStatement& statement);
  /// Of one record table; its rows go to the receiver. 53200 if the result takes more memory.
  absl::StatusOr<ResultSet> Select(const sql::BoundQuery& query, uint64_t result_bytes_max,
                                   RowReceiver& receiver);
  /// How the rows of a statement's record tables are found, a line each and one for each condition that is
  /// left.
  absl::StatusOr<std::vector<std::string>> Explain(const sql::ExplainStatement& statement) const;

  /// In a transaction: gives a stage the rows of a table that its scan wants.
  absl::Status Feed(const optimizer::TransactionScan& scan, const proto::Table& table,
                    execution::LocalStage& stage);

  /// Runs it in the transaction that is open, or in one of its own.
  absl::StatusOr<ResultSet> InTransaction(const std::function<absl::StatusOr<ResultSet>()>& body);
  /// The table that a condition is on, if that is one.
  static std::optional<size_t> OnlyTableOf(const sql::BoundQuery& query, const plan::Expr& conjunct);

  /// Before any other statement: 25P02 if the transaction has failed, 25001 if one is open and the statement
  /// takes effect outside of it (CREATE TABLE, …), which `what` names; empty if it has no effect.
  absl::Status MayRun(std::string_view what) const;
  /// After any statement's error, of one that does not parse as well: the transaction that is open fails, or
  /// the one that the statement should have begun. Returns the error to report: 25P02 instead of what a
  /// statement met that was not to be run at all.
  absl::Status Fail(const std::string& statement, absl::Status error);
  /// The open transaction was lost: nothing of it will be committed.
  void Fail();
  bool in_transaction() const { return state_ != State::kIdle; }

 private:
  enum class State : uint8_t { kIdle, kOpen, kFailed };
  using Rows =
      std::function<absl::StatusOr<bool>(std::span<const std::byte> bytes, std::vector<Value> values)>;

  /// The rows that meet the conditions.
  absl::Status Find(const proto::Table& table, const partitioner::RecordLayout& layout,
                    const std::vector<plan::Expr>& conjuncts, const Rows& on_row);
  /// The rows that the path leads to; its filter is the caller's.
  absl::Status Follow(const proto::Table& table, const partitioner::RecordLayout& layout,
                      const sql::AccessPath& path, const RecordAccess::OnRow& on_row);
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index);
  absl::StatusOr<ResultSet> Insert(const sql::InsertStatement& statement);
  absl::StatusOr<ResultSet> Update(const sql::UpdateStatement& statement);
  absl::StatusOr<ResultSet> Delete(const sql::DeleteStatement& statement);
  absl::StatusOr<ResultSet> Query(const sql::BoundQuery& query, uint64_t result_bytes_max,
                                  RowReceiver& receiver);

  RecordAccess& access_;
  Clock& clock_;
  const std::atomic<bool>& cancelled_;
  State state_ = State::kIdle;
};

}  // namespace nam::session
