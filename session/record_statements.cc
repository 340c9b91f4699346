#include "session/record_statements.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "session/catalog_changes.h"
#include "session/foreign_keys.h"
#include "session/session_lost.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using partitioner::RecordLayout;
using plan::Expr;

ResultSet Warn(ResultSet result, const char* state, std::string message) {
  result.warnings.push_back({std::move(message), state});
  return result;
}

/// The error's text after the name of its AbortReason.
std::string WithoutReason(const absl::Status& status) {
  absl::string_view message = status.message();
  if (const auto reason = txn::AbortReasonOf(status); reason.has_value())
    absl::ConsumePrefix(&message, absl::StrCat(std::string(txn::AbortReasonName(*reason)), ": "));
  return std::string(message);
}

/// Translates the engine's errors to SQL's. `failed` names what a conflict has ended.
absl::Status EngineErrorInSql(const absl::Status& status, const char* failed = "the statement failed") {
  if (SqlErrorOf(status).has_value()) return status;
  if (txn::AbortReasonOf(status) == txn::AbortReason::kLockTimeout) {
    return ToStatus(
        {.message = "canceling statement due to lock timeout",
         .hint = absl::StrCat("nothing of it has happened; run it again: ", WithoutReason(status)),
         .sqlstate = sqlstate::kLockNotAvailable});
  }
  if (txn::AbortReasonOf(status) == txn::AbortReason::kConnectionLost) {
    LogWarning(absl::StrCat(failed, ": ", std::string(status.message())));
    return ToStatus({.message = absl::StrCat(failed, ": a connection to a memory server was lost"),
                     .hint = "nothing of it has happened; run it again",
                     .sqlstate = sqlstate::kSerializationFailure});
  }
  if (absl::IsAborted(status)) {
    return ToStatus({.message = absl::StrCat(failed, ": ", std::string(status.message())),
                     .hint = "nothing of it has happened; run it again",
                     .sqlstate = sqlstate::kSerializationFailure});
  }
  if (absl::IsAlreadyExists(status)) {
    return ToStatus({.message = absl::StrCat("duplicate key: ", WithoutReason(status)),
                     .hint = "keys of primary keys and unique indexes occur only once",
                     .sqlstate = sqlstate::kUniqueViolation});
  }
  if (txn::AbortReasonOf(status) == txn::AbortReason::kForeignKey) {
    return ToStatus({.message = WithoutReason(status),
                     .hint = "another transaction has inserted a row that references it; nothing of this one "
                             "has happened",
                     .sqlstate = sqlstate::kForeignKeyViolation});
  }
  if (txn::IsNoClientFree(status)) {
    return ToStatus({.message = std::string(status.message()),
                     .hint = "nothing of it has happened; run it again, end transactions that are idle, or "
                             "spread sessions over more processes",
                     .sqlstate = sqlstate::kTooManyConnections});
  }
  if (txn::IsTooLarge(status)) {
    return ToStatus(
        {.message = std::string(status.message()),
         .hint =
             "nothing of it has happened; to load many rows, make the table WITH (storage = columnar), or "
             "COPY … WITH (BATCH n), which commits every n rows; otherwise make several transactions of "
             "it, each over fewer rows, or set nam.transaction_mib_max higher",
         .sqlstate = sqlstate::kLimitExceeded});
  }
  return WithSqlState(status);
}

/// Creators of an index that die one after the other.
constexpr int kIndexTriesMax = 3;
constexpr char kNotCommitted[] = "the transaction cannot be committed";
constexpr char kFailedInside[] = "the transaction has failed";

/// Translates an error of Commit to SQL's.
absl::Status CommitInSql(const absl::Status& status) {
  if (!absl::IsUnavailable(status) || SqlErrorOf(status).has_value())
    return EngineErrorInSql(status, kNotCommitted);
  return ToStatus({.message = absl::StrCat("whether the transaction was committed is unknown: ",
                                           std::string(status.message())),
                   .hint = "check whether its changes are there before you run it again",
                   .sqlstate = sqlstate::kOutcomeUnknown});
}

absl::Status OnlyInTransactions(const char* statement) {
  return ToStatus({.message = absl::StrCat(statement, " can only be used in transaction blocks"),
                   .hint = "BEGIN first",
                   .sqlstate = sqlstate::kNoActiveTransaction});
}

/// Whether a retry of the same transaction may succeed.
bool IsConflict(const absl::Status& error) {
  const std::optional<SqlError> sql_error = SqlErrorOf(error);
  if (!sql_error.has_value()) return absl::IsAborted(error);
  return sql_error->sqlstate == sqlstate::kSerializationFailure ||
         sql_error->sqlstate == sqlstate::kLockNotAvailable;
}

absl::Status NameTaken(const std::string& name, int position, std::string hint) {
  return ToStatus({.message = absl::StrCat("relation \"", name, "\" already exists"),
                   .position = position,
                   .hint = std::move(hint),
                   .sqlstate = sqlstate::kDuplicateTable});
}

/// Includes its alias, if that differs.
std::string NameAndAlias(const sql::BoundTable& bound) {
  const std::string& name = bound.table->name();
  return bound.alias.empty() || bound.alias == name ? name : absl::StrCat(name, " ", bound.alias);
}

}  // namespace

RecordStatements::~RecordStatements() {
  if (state_ == State::kOpen || state_ == State::kFailed) access_.Abort();
}

absl::Status RecordStatements::MayRun(std::string_view what) const {
  if (state_ == State::kFailed || state_ == State::kOver) {
    return ToStatus({.message = "the transaction has failed; commands are ignored until it ends",
                     .hint = state_ == State::kFailed
                                 ? "ROLLBACK TO SAVEPOINT goes on from a savepoint; ROLLBACK ends it"
                                 : "end it with ROLLBACK",
                     .sqlstate = sqlstate::kFailedTransaction});
  }
  if (state_ == State::kOpen && !what.empty()) {
    return ToStatus({.message = absl::StrCat(std::string(what), " cannot run inside a transaction"),
                     .hint = "COMMIT or ROLLBACK first",
                     .sqlstate = sqlstate::kActiveTransaction});
  }
  return absl::OkStatus();
}

void RecordStatements::GiveUp(bool conflict) {
  access_.Abort();
  state_ = State::kOver;
  conflict_ = conflict;
}

void RecordStatements::Lose() {
  if (state_ == State::kOpen || state_ == State::kFailed) GiveUp(/*conflict=*/false);
}

absl::Status RecordStatements::Fail(const std::string& statement, absl::Status error) {
  if (state_ == State::kFailed || state_ == State::kOver) {
    return sql::Parses(statement) && !sql::RollsBackToSavepoint(statement) ? MayRun("") : error;
  }
  if (state_ == State::kIdle) {
    if (sql::BeginsTransaction(statement)) state_ = State::kOver;
    conflict_ = false;
    return error;
  }
  state_ = State::kFailed;
  if (savepoints_.empty() || !access_.RollBackTo(savepoints_.back().mark).ok()) GiveUp(IsConflict(error));
  return error;
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::TransactionStatement& statement) {
  using Kind = sql::TransactionStatement::Kind;
  switch (statement.kind) {
    case Kind::kBegin:
      return Begin();
    case Kind::kCommit:
    case Kind::kRollback:
      return EndTransaction(statement.kind == Kind::kCommit);
    case Kind::kSavepoint:
      return AddSavepoint(statement.savepoint);
    case Kind::kRollbackTo:
      return RollBackTo(statement.savepoint);
    case Kind::kRelease:
      return Release(statement.savepoint);
  }
  return absl::InternalError("a statement of transactions that is none");
}

absl::StatusOr<ResultSet> RecordStatements::Begin() {
  NAM_RETURN_IF_ERROR(MayRun(""));
  if (state_ == State::kOpen) {
    return Warn(CommandResult("BEGIN"), sqlstate::kActiveTransaction,
                "there is already a transaction in progress");
  }
  const Interruption interruption(&cancelled_);
  if (const absl::Status begun = access_.Begin(); !begun.ok()) return EngineErrorInSql(begun);
  state_ = State::kOpen;
  return CommandResult("BEGIN");
}

absl::StatusOr<ResultSet> RecordStatements::EndTransaction(bool commit) {
  if (state_ == State::kIdle) {
    return Warn(CommandResult(commit ? "COMMIT" : "ROLLBACK"), sqlstate::kNoActiveTransaction,
                "there is no transaction in progress");
  }
  const State was = std::exchange(state_, State::kIdle);
  savepoints_.clear();
  if (was == State::kOpen && commit) {
    const Interruption interruption(&cancelled_);
    if (const absl::Status committed = access_.Commit(); !committed.ok()) return CommitInSql(committed);
    return CommandResult("COMMIT");
  }
  if (was != State::kOver) access_.Abort();
  return CommandResult("ROLLBACK");
}

absl::StatusOr<ResultSet> RecordStatements::AddSavepoint(const std::string& name) {
  NAM_RETURN_IF_ERROR(MayRun(""));
  if (state_ == State::kIdle) return OnlyInTransactions("SAVEPOINT");
  if (savepoints_.size() == kSavepointsMax) {
    return ToStatus({.message = absl::StrCat("a transaction has at most ", kSavepointsMax, " savepoints"),
                     .hint = "RELEASE those that are not needed any more",
                     .sqlstate = sqlstate::kLimitExceeded});
  }
  savepoints_.push_back({name, access_.Mark()});
  return CommandResult("SAVEPOINT");
}

absl::StatusOr<ResultSet> RecordStatements::RollBackTo(const std::string& name) {
  if (state_ == State::kIdle) return OnlyInTransactions("ROLLBACK TO SAVEPOINT");
  NAM_ASSIGN_OR_RETURN(const size_t savepoints, SavepointsUpTo(name));
  if (state_ != State::kOver) {
    const absl::Status back = access_.RollBackTo(savepoints_[savepoints - 1].mark);
    if (!back.ok()) GiveUp(absl::IsAborted(back));
  }
  if (state_ == State::kOver) {
    return ToStatus({.message = absl::StrCat("cannot roll back to savepoint ", Quote(name),
                                             ": the error has ended the whole transaction"),
                     .hint = "nothing of it has happened; ROLLBACK, and run all of it again",
                     .sqlstate = conflict_ ? sqlstate::kSerializationFailure : sqlstate::kFailedTransaction});
  }
  savepoints_.resize(savepoints);
  state_ = State::kOpen;
  return CommandResult("ROLLBACK");
}

absl::StatusOr<ResultSet> RecordStatements::Release(const std::string& name) {
  NAM_RETURN_IF_ERROR(MayRun(""));
  if (state_ == State::kIdle) return OnlyInTransactions("RELEASE SAVEPOINT");
  NAM_ASSIGN_OR_RETURN(const size_t savepoints, SavepointsUpTo(name));
  savepoints_.resize(savepoints - 1);
  return CommandResult("RELEASE");
}

absl::StatusOr<size_t> RecordStatements::SavepointsUpTo(const std::string& name) const {
  for (size_t savepoints = savepoints_.size(); savepoints > 0; --savepoints) {
    if (savepoints_[savepoints - 1].name == name) return savepoints;
  }
  return ToStatus({.message = absl::StrCat("savepoint ", Quote(name), " does not exist"),
                   .sqlstate = sqlstate::kNoSuchSavepoint});
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CreateTableStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("CREATE TABLE"));
  const absl::Status created = access_.CreateTable(statement.table, statement.indexes);
  if (absl::IsAlreadyExists(created)) {
    if (statement.if_not_exists) return AlreadyThere("CREATE TABLE", statement.table.name());
    return NameTaken(statement.table.name(), statement.position, "DROP TABLE first, or write IF NOT EXISTS");
  }
  if (!created.ok()) return EngineErrorInSql(created);
  return CreatedTable(statement, "CREATE TABLE");
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CreateIndexStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("CREATE INDEX"));
  const Interruption interruption(&cancelled_);
  proto::RecordPart index = statement.index;
  absl::Status created = CreateIndex(*statement.table, index);
  // PostgreSQL's default names: t_x_idx, t_x_idx1, …
  for (int n = 1; !statement.named && absl::IsAlreadyExists(created); ++n) {
    if (cancelled_) return absl::CancelledError("cancelled");
    index.set_name(absl::StrCat(statement.index.name(), n));
    created = CreateIndex(*statement.table, index);
  }
  for (int tries = 1; statement.if_not_exists && absl::IsAlreadyExists(created) && tries <= kIndexTriesMax;
       ++tries) {
    const absl::Status there = access_.AwaitIndex(index.name());
    if (there.ok()) return AlreadyThere("CREATE INDEX", index.name());
    if (!absl::IsNotFound(there)) return EngineErrorInSql(there);
    created = access_.CreateIndex(*statement.table, index);
  }
  if (absl::IsAlreadyExists(created)) {
    return NameTaken(index.name(), statement.position, "give it another name");
  }
  if (absl::IsFailedPrecondition(created)) {
    const bool unique = index.unique();
    return ToStatus({.message = absl::StrCat("could not create ", unique ? "unique " : "", "index \"",
                                             index.name(), "\": ", std::string(created.message())),
                     .position = statement.position,
                     .hint = unique ? "change one of the rows, or leave out UNIQUE" : "try again later",
                     .sqlstate = unique ? sqlstate::kUniqueViolation : sqlstate::kWrongState});
  }
  if (!created.ok()) return EngineErrorInSql(created);
  return CommandResult("CREATE INDEX");
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::VacuumStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("VACUUM"));
  const Interruption interruption(&cancelled_);
  const absl::StatusOr<txn::VacuumCounts> gone = access_.Vacuum(*statement.table);
  if (!gone.ok()) return EngineErrorInSql(gone.status());
  ResultSet result = CommandResult("VACUUM");
  AddNotice(absl::StrCat("table ", Quote(statement.table->name()), ": ", gone->versions,
                         " old versions of rows and ", gone->entries, " dead index entries were removed"),
            result);
  return result;
}

/// ALREADY_EXISTS without asking the cluster if the table itself has such an index, and not one that is still
/// being filled or dropped.
absl::Status RecordStatements::CreateIndex(const proto::Table& table, const proto::RecordPart& index) {
  const auto& parts = table.record().parts();
  const bool taken = std::any_of(parts.begin(), parts.end(), [&](const proto::RecordPart& part) {
    return part.name() == index.name() && part.usable_from() != 0 && !part.leaving();
  });
  return taken ? absl::AlreadyExistsError(index.name()) : access_.CreateIndex(table, index);
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::DropIndexStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("DROP INDEX"));
  absl::Status dropped = absl::NotFoundError("");
  for (size_t i = 0; i < statement.names.size() && absl::IsNotFound(dropped); ++i)
    dropped = access_.DropIndex(statement.names[i]);
  const std::string missing =
      absl::StrCat("index ", Quote(statement.names.empty() ? "" : statement.names.back()), " does not exist");
  if (absl::IsNotFound(dropped) && !statement.if_exists) {
    return ToStatus({.message = missing,
                     .position = statement.position,
                     .hint = "EXPLAIN shows the index that a query uses",
                     .sqlstate = sqlstate::kUndefinedObject});
  }
  if (absl::IsFailedPrecondition(dropped)) {
    return ToStatus({.message = std::string(dropped.message()),
                     .position = statement.position,
                     .hint = "drop the constraint's table instead",
                     .sqlstate = sqlstate::kDependentObjects});
  }
  if (!dropped.ok() && !absl::IsNotFound(dropped)) return EngineErrorInSql(dropped);
  ResultSet result = CommandResult("DROP INDEX");
  if (!dropped.ok()) AddNotice(absl::StrCat(missing, ", skipping"), result);
  return result;
}

absl::StatusOr<ResultSet> RecordStatements::InTransaction(
    const std::function<absl::StatusOr<ResultSet>()>& body) {
  NAM_RETURN_IF_ERROR(MayRun(""));
  const bool own = state_ == State::kIdle;
  const Interruption interruption(&cancelled_);
  if (own) {
    if (const absl::Status begun = access_.Begin(); !begun.ok()) return EngineErrorInSql(begun);
  }
  absl::StatusOr<ResultSet> result = body();
  if (result.ok()) {
    if (const absl::Status ended = access_.EndStatement(); !ended.ok()) result = ended;
  }
  if (!result.ok()) {
    if (own) access_.Abort();  // otherwise Fail does
    return EngineErrorInSql(result.status(), own ? "the statement failed" : kFailedInside);
  }
  if (own) {
    if (const absl::Status committed = access_.Commit(); !committed.ok()) return CommitInSql(committed);
  }
  return result;
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::InsertStatement& statement,
                                                const RunQuery& run_query) {
  access_.OfStatement(statement.table.table);
  if (statement.source == nullptr) return InTransaction([&] { return changes_.Insert(statement); });
  return InsertStream(statement, [&] { return RecordChanges::RowsOf(statement, run_query); });
}

// What is loaded cannot be rolled back to a savepoint.
absl::StatusOr<ResultSet> RecordStatements::InsertStream(const sql::InsertStatement& statement,
                                                         const RowSource& source) {
  const bool may_load = LargeInsert::MayLoad(statement) && (savepoints_.empty() || access_.loads());
  access_.OfStatement(statement.table.table);
  return InTransaction([&]() -> absl::StatusOr<ResultSet> {
    if (may_load) return LargeInsert(access_, changes_, cancelled_, statement).Run(source);
    NAM_ASSIGN_OR_RETURN(const RecordChanges::NextRow next, source());
    return changes_.Insert(statement, next);
  });
}
absl::StatusOr<ResultSet> RecordStatements::Run(const sql::UpdateStatement& statement,
                                                const RunQuery& run_query) {
  access_.OfStatement(statement.table.table);
  return InTransaction([&] { return changes_.Update(statement, run_query); });
}
absl::StatusOr<ResultSet> RecordStatements::Run(const sql::DeleteStatement& statement,
                                                const RunQuery& run_query) {
  access_.OfStatement(statement.table.table);
  return InTransaction([&] { return changes_.Delete(statement, run_query); });
}
absl::StatusOr<ResultSet> RecordStatements::Run(const sql::TruncateStatement& statement) {
  access_.OfStatement(statement.table.table);
  const bool own = state_ == State::kIdle;
  return InTransaction([&]() -> absl::StatusOr<ResultSet> {
    NAM_ASSIGN_OR_RETURN(const bool emptied, EmptyByLoad(statement.table, own));
    if (!emptied)
      NAM_RETURN_IF_ERROR(changes_.Delete(sql::DeleteStatement{.table = statement.table}, nullptr).status());
    return CommandResult("TRUNCATE TABLE");
  });
}

/// False: the rows must be deleted one by one. By itself a TRUNCATE takes all rows that are there when it
/// commits; in a transaction those that it has seen.
absl::StatusOr<bool> RecordStatements::EmptyByLoad(const sql::BoundTable& bound, bool own) {
  const proto::Table& table = *bound.table;
  const bool may_load = !HasReferences(bound) && (savepoints_.empty() || access_.loads());
  if (!may_load || access_.IsWritten(table)) return false;
  RowsDigest rows;
  if (access_.LoadOf(table) == nullptr) {
    bool large = false;  // the scan itself takes memory of the transaction
    NAM_RETURN_IF_ERROR(access_.Scan(table, [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
      if (cancelled_) return absl::CancelledError("cancelled");
      rows.Add(row.first(table.record().row_bytes()));
      large = large || LargeInsert::IsLarge(access_, rows.rows);
      return !own || !large;
    }));
    if (!access_.loads() && !large) {
      access_.NoteEmptied(rows);
      return false;
    }
  }
  const absl::Status emptied = access_.Empty(table, own ? std::nullopt : std::optional<RowsDigest>(rows));
  if (absl::IsFailedPrecondition(emptied)) return false;
  NAM_RETURN_IF_ERROR(emptied);
  return true;
}
absl::StatusOr<ExplainedChange> RecordStatements::ExplainFound(const char* kind, const sql::BoundTable& bound,
                                                               const std::vector<Expr>& conjuncts,
                                                               const sql::ChangeSource& source) const {
  NAM_RETURN_IF_ERROR(MayRun(""));
  const proto::Table& table = *bound.table;
  ExplainedChange out{.kind = kind, .table = NameAndAlias(bound), .how = "by the query below"};
  if (source != nullptr) return out;
  const sql::AccessPath path =
      RecordChanges::PathOf(table, conjuncts, in_transaction() ? access_.snapshot() : ~uint64_t{0});
  out.how = sql::Describe(table, path);
  for (const Expr* filter : path.filter) {
    out.conditions.push_back(plan::ToString(*filter, [&](const Expr& e) {
      return absl::StrCat(bound.alias, ".", table.columns(e.column.column).name());
    }));
  }
  return out;
}

absl::StatusOr<ExplainedChange> RecordStatements::Explain(const sql::InsertStatement& statement) const {
  NAM_RETURN_IF_ERROR(MayRun(""));
  ExplainedChange out{.kind = "Insert into", .table = NameAndAlias(statement.table)};
  out.how = statement.source != nullptr ? "from the query below"
                                        : absl::StrCat(statement.rows.size(), " of VALUES");
  if (statement.conflict.has_value())
    absl::StrAppend(&out.how, ", on conflict do ", statement.conflict->update ? "update" : "nothing");
  return out;
}
absl::StatusOr<ExplainedChange> RecordStatements::Explain(const sql::UpdateStatement& statement) const {
  return ExplainFound("Update", statement.table, statement.conjuncts, statement.source);
}
absl::StatusOr<ExplainedChange> RecordStatements::Explain(const sql::DeleteStatement& statement) const {
  return ExplainFound("Delete", statement.table, statement.conjuncts, statement.source);
}

}  // namespace nam::session
