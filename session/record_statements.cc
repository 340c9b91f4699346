#include "session/record_statements.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "optimizer/lower.h"
#include "optimizer/plan.h"
#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "session/query_result.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using partitioner::RecordLayout;
using plan::Expr;

ResultSet Command(std::string command) {
  ResultSet result;
  result.command = std::move(command);
  return result;
}

ResultSet Warn(ResultSet result, const char* state, std::string message) {
  result.warnings.push_back({std::move(message), state});
  return result;
}

/// The engine's errors as SQL's. `failed` says what a conflict has ended.
absl::Status InSql(const absl::Status& status, const char* failed = "the statement failed") {
  if (SqlErrorOf(status).has_value()) return status;
  if (absl::IsAborted(status)) {
    return ToStatus({.message = absl::StrCat(failed, ": ", std::string(status.message())),
                     .hint = "nothing of it has happened; run it again",
                     .sqlstate = sqlstate::kSerializationFailure});
  }
  if (absl::IsAlreadyExists(status)) {
    return ToStatus({.message = absl::StrCat("duplicate key: ", std::string(status.message())),
                     .hint = "a primary key, and a key of a unique index, is there once",
                     .sqlstate = "23505"});
  }
  if (txn::IsTooLarge(status)) {
    return ToStatus(
        {.message = std::string(status.message()),
         .hint = "nothing of it has happened; make several transactions of it, each over fewer rows",
         .sqlstate = sqlstate::kLimitExceeded});
  }
  return WithSqlState(status);
}

constexpr char kNotCommitted[] = "the transaction cannot be committed";
constexpr char kFailedInside[] = "the transaction has failed";

/// Of Commit.
absl::Status CommitInSql(const absl::Status& status) {
  if (!absl::IsUnavailable(status) || SqlErrorOf(status).has_value()) return InSql(status, kNotCommitted);
  return ToStatus({.message = absl::StrCat("whether the transaction was committed is unknown: ",
                                           std::string(status.message())),
                   .hint = "look whether its changes are there before you run it again",
                   .sqlstate = kOutcomeUnknown});
}

absl::Status NameTaken(const std::string& name, int position, std::string hint) {
  return ToStatus({.message = absl::StrCat("relation \"", name, "\" already exists"),
                   .position = position,
                   .hint = std::move(hint),
                   .sqlstate = "42P07"});
}

/// Rows of a table on their way into a query's stage, many at a time: a transaction shows them one by one.
class RowBatch {
 public:
  static constexpr uint64_t kBytesMax = 4 << 20;
  /// `rows_wanted`: more than that need not be found before the stage has seen them.
  RowBatch(execution::LocalStage& stage, uint32_t pipeline, uint32_t row_bytes, uint64_t rows_wanted)
      : stage_(stage),
        pipeline_(pipeline),
        row_bytes_(row_bytes),
        rows_max_(std::clamp<uint64_t>(std::min<uint64_t>(rows_wanted, kBytesMax / row_bytes), 1,
                                       execution::kChunkRows)) {}

  /// False: the query wants no more.
  absl::StatusOr<bool> Add(std::span<const std::byte> row) {
    bytes_.insert(bytes_.end(), row.begin(), row.begin() + row_bytes_);
    return bytes_.size() < rows_max_ * row_bytes_ ? true : Flush();
  }
  absl::StatusOr<bool> Flush() {
    rows_.clear();
    for (size_t at = 0; at < bytes_.size(); at += row_bytes_) rows_.push_back(bytes_.data() + at);
    absl::StatusOr<bool> more = stage_.AddRecords(pipeline_, rows_);
    bytes_.clear();
    return more;
  }

 private:
  execution::LocalStage& stage_;
  const uint32_t pipeline_;
  const uint32_t row_bytes_;
  const uint64_t rows_max_;
  std::vector<std::byte> bytes_;
  std::vector<const std::byte*> rows_;
};

std::vector<Expr> ConjunctsOn(const sql::BoundQuery& query, size_t table) {
  std::vector<Expr> conjuncts;
  for (const Expr& conjunct : query.conjuncts) {
    if (RecordStatements::OnlyTableOf(query, conjunct) == table) conjuncts.push_back(conjunct);
  }
  return conjuncts;
}

/// How a query finds its rows: in its order, if then the first of them are all that it needs.
sql::AccessPath PathOf(const sql::BoundQuery& query, const std::vector<Expr>& conjuncts,
                       const optimizer::Plan& plan, const RecordLayout& layout, uint64_t snapshot) {
  sql::AccessWishes wishes{.snapshot = snapshot};
  if (!plan.aggregated && plan.row_limit >= 0) {
    for (const plan::OrderKey& key : query.order_by) {
      // The order of an index: ascending, NULLs last.
      if (key.expr.op != plan::Op::kColumn || key.descending || key.nulls_first) {
        wishes.order.clear();
        break;
      }
      wishes.order.push_back(static_cast<uint32_t>(key.expr.column.column));
    }
  }
  return sql::ChooseAccessPath(*query.tables[0].table, layout, conjuncts, wishes);
}

}  // namespace

RecordStatements::~RecordStatements() {
  if (state_ == State::kOpen) access_.Abort();
}

absl::Status RecordStatements::MayRun(std::string_view what) const {
  if (state_ == State::kFailed) {
    return ToStatus({.message = "the transaction has failed; commands are ignored until it ends",
                     .hint = "end it with ROLLBACK",
                     .sqlstate = "25P02"});
  }
  if (state_ == State::kOpen && !what.empty()) {
    return ToStatus({.message = absl::StrCat(std::string(what), " cannot run inside a transaction"),
                     .hint = "COMMIT or ROLLBACK first",
                     .sqlstate = "25001"});
  }
  return absl::OkStatus();
}

void RecordStatements::Fail() {
  if (state_ != State::kOpen) return;
  access_.Abort();
  state_ = State::kFailed;
}

absl::Status RecordStatements::Fail(const std::string& statement, absl::Status error) {
  if (state_ == State::kFailed) {
    return sql::Parses(statement) ? MayRun("") : error;
  }
  Fail();
  if (state_ == State::kIdle && sql::BeginsTransaction(statement)) state_ = State::kFailed;
  return error;
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::TransactionStatement& statement) {
  using Kind = sql::TransactionStatement::Kind;
  if (statement.kind == Kind::kBegin) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    if (state_ == State::kOpen) {
      return Warn(Command("BEGIN"), sqlstate::kActiveTransaction,
                  "there is already a transaction in progress");
    }
    if (const absl::Status begun = access_.Begin(); !begun.ok()) return InSql(begun);
    state_ = State::kOpen;
    return Command("BEGIN");
  }
  if (state_ == State::kIdle) {
    return Warn(Command(statement.kind == Kind::kCommit ? "COMMIT" : "ROLLBACK"),
                sqlstate::kNoActiveTransaction, "there is no transaction in progress");
  }
  const bool open = state_ == State::kOpen;
  state_ = State::kIdle;
  if (open && statement.kind == Kind::kCommit) {
    if (const absl::Status committed = access_.Commit(); !committed.ok()) return CommitInSql(committed);
    return Command("COMMIT");
  }
  if (open) access_.Abort();
  return Command("ROLLBACK");
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CreateTableStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("CREATE TABLE"));
  const absl::Status created = access_.CreateTable(statement.table, statement.indexes);
  if (absl::IsAlreadyExists(created)) {
    if (statement.if_not_exists) return Command("CREATE TABLE");
    return NameTaken(statement.table.name(), statement.position, "DROP TABLE first, or write IF NOT EXISTS");
  }
  if (!created.ok()) return InSql(created);
  return Command("CREATE TABLE");
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CreateIndexStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("CREATE INDEX"));
  proto::RecordPart index = statement.index;
  absl::Status created = CreateIndex(*statement.table, index);
  // As PostgreSQL names what has no name: t_x_idx, t_x_idx1, …
  for (int n = 1; !statement.named && absl::IsAlreadyExists(created); ++n) {
    if (cancelled_) return absl::CancelledError("cancelled");
    index.set_name(absl::StrCat(statement.index.name(), n));
    created = CreateIndex(*statement.table, index);
  }
  if (absl::IsAlreadyExists(created)) {
    if (statement.if_not_exists) return Command("CREATE INDEX");
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
  if (!created.ok()) return InSql(created);
  return Command("CREATE INDEX");
}

/// ALREADY_EXISTS without a look at the cluster if the table itself has such an index.
absl::Status RecordStatements::CreateIndex(const proto::Table& table, const proto::RecordPart& index) {
  const auto& parts = table.record().parts();
  const bool taken = std::any_of(parts.begin(), parts.end(),
                                 [&](const proto::RecordPart& part) { return part.name() == index.name(); });
  return taken ? absl::AlreadyExistsError(index.name()) : access_.CreateIndex(table, index);
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::DropIndexStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun("DROP INDEX"));
  const absl::Status dropped = access_.DropIndex(statement.index);
  if (absl::IsNotFound(dropped) && !statement.if_exists) {
    return ToStatus({.message = absl::StrCat("index \"", statement.index, "\" does not exist"),
                     .position = statement.position,
                     .hint = "EXPLAIN shows the index that a query uses",
                     .sqlstate = "42704"});
  }
  if (absl::IsFailedPrecondition(dropped)) {
    return ToStatus({.message = std::string(dropped.message()),
                     .position = statement.position,
                     .hint = "drop the table instead",
                     .sqlstate = "2BP01"});
  }
  if (!dropped.ok() && !absl::IsNotFound(dropped)) return InSql(dropped);
  return Command("DROP INDEX");
}

absl::StatusOr<ResultSet> RecordStatements::InTransaction(
    const std::function<absl::StatusOr<ResultSet>()>& body) {
  NAM_RETURN_IF_ERROR(MayRun(""));
  const bool own = state_ == State::kIdle;
  if (own) {
    if (const absl::Status begun = access_.Begin(); !begun.ok()) return InSql(begun);
  }
  absl::StatusOr<ResultSet> result = body();
  if (!result.ok()) {
    if (own) access_.Abort();  // otherwise Fail does
    return InSql(result.status(), own ? "the statement failed" : kFailedInside);
  }
  if (own) {
    if (const absl::Status committed = access_.Commit(); !committed.ok()) return CommitInSql(committed);
  }
  return result;
}

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::InsertStatement& statement) {
  return InTransaction([&] { return changes_.Insert(statement); });
}
absl::StatusOr<ResultSet> RecordStatements::Run(const sql::UpdateStatement& statement) {
  return InTransaction([&] { return changes_.Update(statement); });
}
absl::StatusOr<ResultSet> RecordStatements::Run(const sql::DeleteStatement& statement) {
  return InTransaction([&] { return changes_.Delete(statement); });
}
absl::StatusOr<ResultSet> RecordStatements::Select(const sql::BoundQuery& query, uint64_t result_bytes_max,
                                                   RowReceiver& receiver) {
  return InTransaction([&] { return Query(query, result_bytes_max, receiver); });
}

absl::StatusOr<ResultSet> RecordStatements::Query(const sql::BoundQuery& query, uint64_t result_bytes_max,
                                                  RowReceiver& receiver) {
  NAM_ASSIGN_OR_RETURN(const optimizer::Plan star, optimizer::MakePlan(query));
  const proto::Table& table = *query.tables[0].table;
  const RecordLayout layout(table);
  const sql::AccessPath path = PathOf(query, query.conjuncts, star, layout, access_.snapshot());
  NAM_ASSIGN_OR_RETURN(const plan::PhysicalPlan plan,
                       optimizer::LowerRecords(query, star, path.filter, path.ordered));
  QueryResult result(ColumnsOf(query), receiver);
  NAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<execution::LocalStage> stage,
      result.PrepareStage(plan, {query.tables[0].table}, result_bytes_max, clock_, cancelled_));
  const bool first_rows_do =
      !star.aggregated && star.row_limit >= 0 && (query.order_by.empty() || path.ordered);
  if (!first_rows_do || star.row_limit > 0) {
    RowBatch batch(*stage, 0, layout.row_bytes(),
                   first_rows_do ? static_cast<uint64_t>(star.row_limit) : execution::kChunkRows);
    NAM_RETURN_IF_ERROR(
        finder_.Follow(table, layout, path, [&](std::span<const std::byte> row) { return batch.Add(row); }));
    NAM_RETURN_IF_ERROR(batch.Flush().status());
  }
  NAM_RETURN_IF_ERROR(stage->Run());
  return result.Finish();
}

absl::Status RecordStatements::Feed(const optimizer::TransactionScan& scan, const proto::Table& table,
                                    execution::LocalStage& stage) {
  const RecordLayout layout(table);
  const sql::AccessPath path =
      sql::ChooseAccessPath(table, layout, scan.conditions, {.snapshot = access_.snapshot()});
  RowBatch batch(stage, scan.pipeline, layout.row_bytes(), execution::kChunkRows);
  NAM_RETURN_IF_ERROR(
      finder_.Follow(table, layout, path, [&](std::span<const std::byte> row) { return batch.Add(row); }));
  return batch.Flush().status();
}

std::optional<size_t> RecordStatements::OnlyTableOf(const sql::BoundQuery& query, const Expr& conjunct) {
  const std::vector<plan::ColumnRef> columns = plan::ColumnsOf(conjunct);
  if (columns.empty()) return query.tables.size() == 1 ? std::optional<size_t>(0) : std::nullopt;
  const int table = columns[0].table;
  for (const plan::ColumnRef column : columns) {
    if (column.table != table) return std::nullopt;
  }
  return static_cast<size_t>(table);
}

absl::StatusOr<std::vector<std::string>> RecordStatements::Explain(
    const sql::ExplainStatement& statement) const {
  NAM_RETURN_IF_ERROR(MayRun(""));
  const sql::BoundQuery& query = statement.query;
  const uint64_t snapshot = in_transaction() ? access_.snapshot() : ~uint64_t{0};
  std::vector<std::string> lines;
  for (size_t t = 0; t < query.tables.size(); ++t) {
    const sql::BoundTable& bound = query.tables[t];
    const proto::Table& table = *bound.table;
    if (!sql::IsRecordTable(table)) continue;
    const RecordLayout layout(table);
    const std::vector<Expr> conjuncts = ConjunctsOn(query, t);
    sql::AccessPath path = sql::ChooseAccessPath(table, layout, conjuncts, {.snapshot = snapshot});
    if (query.tables.size() == 1 && statement.change.empty()) {
      NAM_ASSIGN_OR_RETURN(const optimizer::Plan plan, optimizer::MakePlan(query));
      path = PathOf(query, conjuncts, plan, layout, snapshot);
    }
    const char* const verb = !statement.change.empty()  ? statement.change.c_str()
                             : query.tables.size() == 1 ? "Read"
                                                        : "Scan";
    lines.push_back(absl::StrCat(verb, " ", table.name(),
                                 bound.alias == table.name() ? "" : absl::StrCat(" ", bound.alias), " ",
                                 sql::Describe(table, path)));
    for (const Expr* filter : path.filter) {
      lines.push_back(absl::StrCat("  if ", plan::ToString(*filter, [&](const Expr& e) {
                                     return absl::StrCat(bound.alias, ".",
                                                         table.columns(e.column.column).name());
                                   })));
    }
  }
  return lines;
}

}  // namespace nam::session
