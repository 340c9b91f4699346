#include "session/session.h"

#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "catalog/attachment.h"
#include "catalog/client.h"
#include "session/analyze.h"
#include "session/await_servers.h"
#include "session/catalog_changes.h"
#include "session/catalog_tables.h"
#include "session/columnar_tables.h"
#include "session/copy_to.h"
#include "session/delivery.h"
#include "session/explain.h"
#include "session/locked_rows.h"
#include "session/plan_cache.h"
#include "session/prepared_statements.h"
#include "session/queried_files.h"
#include "session/query_result.h"
#include "session/record_engine.h"
#include "session/record_reads.h"
#include "session/record_statements.h"
#include "session/result_collector.h"
#include "session/session_lost.h"
#include "session/settings.h"
#include "session/shown_settings.h"
#include "session/stage_output.h"
#include "session/stage_run.h"
#include "session/statement_kinds.h"
#include "session/statement_timer.h"
#include "session/tree_run.h"
#include "sql/bound_query.h"
#include "sql/logical_binder.h"
#include "storage/block_stream.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// Retries of a query that writers overtake: they may always be faster.
constexpr int kRunsAgain = 4;
/// A load ends within some round trips, unless its client stalls; a commit that it waits for may do so as
/// well.
constexpr int64_t kLoadEndPauseUs = 5'000;
constexpr int kLoadEndPauses = 1'000;
constexpr const char* kRetry = sqlstate::kSerializationFailure;  // drivers and pools retry it by themselves

SessionSettings DefaultSettings(const fabric::Fabric& fabric) {
  SessionSettings settings;
  settings.prefetch_window = storage::DefaultWindow(fabric.capabilities());
  return settings;
}

/// PostgreSQL's message.
absl::Status Cancelled(bool timed_out) {
  return UserError(
      sqlstate::kCancelled,
      timed_out ? "canceling statement due to statement timeout" : "canceling statement due to user request",
      -1);
}

/// The query's snapshot became too old while it ran, or while the session opened the tables. Outside of a
/// transaction it may take a later one.
bool Overtaken(const absl::StatusOr<ResultSet>& result) {
  if (result.ok()) return false;
  const std::optional<SqlError> error = SqlErrorOf(result.status());
  return error.has_value() && error->sqlstate == kRetry;
}

class SessionImpl final : public Session {
 public:
  SessionImpl(catalog::Attachment& attachment, std::unique_ptr<RecordAccess> records)
      : attachment_(attachment),
        tables_(attachment.catalog(), attachment.fabric()),
        member_(attachment.member()),
        settings_(DefaultSettings(attachment.fabric())),
        record_access_(std::move(records)) {
    tables_.AddFilesBy([this](const sql::CopyStatement& files) { return files_.Add(files); });
    if (record_access_ != nullptr) {
      records_.emplace(*record_access_, attachment.fabric().clock(), cancel_);
    }
  }
  absl::Status Open() {
    NAM_ASSIGN_OR_RETURN(stages_, StageRunner::Open(attachment_, tables_, settings_.now(), cancel_));
    return absl::OkStatus();
  }

  absl::StatusOr<ResultSet> Execute(const std::string& statement, RowReceiver& receiver) override {
    Clock& clock = attachment_.fabric().clock();
    const int64_t started_ns = clock.NowNs();
    if (!InTransaction())
      pin_.emplace(attachment_.versions_read().Enter(attachment_.catalog().KnownVersion()));
    Delivery delivery(receiver);
    receiver_ = &delivery;
    tables_.Use(settings_.now().names);
    StatementTimer timer(attachment_.fabric(), settings_.now().statement_timeout_ms, cancel_);
    if (record_access_ != nullptr) {
      record_access_->SetLockTimeout(settings_.now().lock_timeout_ms * 1'000);
      record_access_->SetTransactionBytesMax(settings_.now().transaction_bytes_max());
    }
    const bool was_open = InTransaction();
    absl::StatusOr<ResultSet> result =
        timer.refused().ok() ? ExecuteNow(statement, delivery) : timer.refused();
    files_.Clear();
    const bool timed_out = timer.Stop();
    // Not before: a cancellation between two statements is meant for the next.
    const bool cancelled = cancel_.exchange(false);
    if (!was_open && InTransaction()) settings_.BeginTransaction();
    if (!InTransaction()) tables_.LetGo(), pin_.reset();
    // A COMMIT of a failed transaction reports ROLLBACK.
    if (was_open && !InTransaction()) settings_.EndTransaction(result.ok() && result->command == "COMMIT");
    if (absl::IsCancelled(result.status()) && (cancelled || timed_out)) return Cancelled(timed_out);
    if (!result.ok()) return WithSqlState(result.status());
    result->elapsed_ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
    return result;
  }
  void Cancel() override { cancel_ = true; }
  void OnProgress(std::function<void(const QueryProgress&)> report) override {
    progress_ = report;
    stages_->OnProgress(std::move(report));
  }
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const std::string& schema,
                                                                   const std::string& name) override {
    tables_.Use(settings_.now().names);
    tables_.Begin();
    return ToTables<std::shared_ptr<const proto::Table>>(
        [&] { return sql::LookUpRelation(tables_, schema, name); });
  }
  std::map<std::string, std::string> Settings() const override {
    std::map<std::string, std::string> out;
    for (session::Settings::Shown& setting : settings_.ShowAll()) {
      if (absl::StartsWith(setting.name, "nam.")) out[setting.name] = std::move(setting.value);
    }
    return out;
  }

 private:
  absl::StatusOr<ResultSet> ExecuteNow(const std::string& statement, Delivery& delivery) {
    NAM_RETURN_IF_ERROR(Regain());
    const std::optional<absl::Status> lost = std::exchange(lost_, std::nullopt);
    const bool open = InTransaction();
    std::optional<sql::Statement> bound;
    std::optional<absl::StatusOr<ResultSet>> known = RunKnown(statement);
    absl::StatusOr<ResultSet> result = known.has_value() ? *std::move(known) : BindAndRun(statement, bound);
    for (int again = 0; again < kRunsAgain && runs_query_ && !awaits_load_ && Overtaken(result) && !open &&
                        !delivery.begun();
         ++again) {
      plans_.Clear();
      result = BindAndRun(statement, bound);
    }
    for (int again = 0; again < kLoadEndPauses && awaits_load_ && !open && !cancel_; ++again) {
      Clock& clock = attachment_.fabric().clock();
      clock.SleepUntil(clock.After(kLoadEndPauseUs));
      awaits_load_ = false;
      result = BindAndRun(statement, bound);
    }
    runs_query_ = awaits_load_ = false;
    if (result.ok()) {
      if (const absl::Status delivered = delivery.End(*result); !delivered.ok()) result = delivered;
    }
    if (!result.ok() && records_.has_value()) result = records_->Fail(statement, result.status());
    if (lost.has_value() && !(bound.has_value() && IsRollback(*bound))) return *lost;
    if (!result.ok()) return AfterFailure(result.status(), open || InTransaction());
    return result;
  }

  /// Runs the cached plan; nullopt if there is none, or the catalog has changed since.
  std::optional<absl::StatusOr<ResultSet>> RunKnown(const std::string& statement) {
    const PlanCache::Entry* const known = plans_.Find(statement, settings_.now());
    if (known == nullptr || InTransaction()) return std::nullopt;
    tables_.Begin();
    tables_.Know(known->tables, known->catalog_version);
    TreeRun query(RunOptions(), known->start);
    const absl::StatusOr<bool> holds = tables_.Confirm();
    if (!holds.ok()) return holds.status();
    if (!*holds) {
      plans_.Clear();
      return std::nullopt;
    }
    return [&]() -> absl::StatusOr<ResultSet> {
      if (cancel_) return absl::CancelledError("cancelled");
      NAM_RETURN_IF_ERROR(AwaitServers(attachment_, tables_, cancel_));
      NAM_RETURN_IF_ERROR(MayRun(""));
      const Interruption interruption(&cancel_);
      runs_query_ = true;
      NAM_ASSIGN_OR_RETURN(ResultSet result, query.Run(*receiver_));
      result.planned_before = true;
      return result;
    }();
  }

  /// `bound`: the statement, or nullopt.
  absl::StatusOr<ResultSet> BindAndRun(const std::string& statement, std::optional<sql::Statement>& bound) {
    bool depends_on_time = false;
    bound.reset();
    NAM_ASSIGN_OR_RETURN(bound, Bind(statement, depends_on_time));
    // Plans the version that it was bound to: another one may come while it waits for servers.
    if (!depends_on_time && files_.empty() && std::holds_alternative<sql::TreeStatement>(*bound) &&
        !tables_.of_statement().empty() && !InTransaction())
      to_keep_ = {&statement, tables_.version()};
    absl::StatusOr<ResultSet> result = RunWithServers(*bound);
    to_keep_ = {};
    return result;
  }

  absl::StatusOr<sql::Statement> Bind(const std::string& statement, bool& depends_on_time) {
    sql::StatementTime now = Now();
    now.depends = &depends_on_time;
    tables_.Begin();
    return ToTables<sql::Statement>([&] { return sql::Bind(statement, tables_, now); });
  }

  /// The result of `bind` with the current tables of the catalog. It may have looked up earlier ones.
  template <typename Bound>
  absl::StatusOr<Bound> ToTables(const std::function<absl::StatusOr<Bound>()>& bind) {
    absl::StatusOr<Bound> bound = bind();
    NAM_ASSIGN_OR_RETURN(const bool holds, tables_.Confirm());
    if (holds) return bound;
    tables_.Begin();
    // Known at the catalog's version, so most likely final.
    NAM_RETURN_IF_ERROR(tables_.Cluster().status());
    return bind();
  }

  /// now() is the same in all statements of a transaction: its beginning.
  sql::StatementTime Now() {
    const int64_t wall_us = WallTimeUs(attachment_.fabric().clock());
    if (!InTransaction()) began_us_ = wall_us;
    sql::StatementTime time(began_us_, settings_.now().time_zone);
    time.statement_us = wall_us;
    return time;
  }

  bool InTransaction() const { return records_.has_value() && records_->in_transaction(); }

  /// This client may have stalled for longer than its lease (a stopped process, a laptop's lid): then it goes
  /// on as another member. Open work is lost, and the next statement reports that.
  absl::Status Regain() {
    // By this client's clock the lease of a membership that was ended goes on.
    if (closed_ || absl::IsNotFound(attachment_.ConfirmLease())) {
      if (const absl::Status joined = attachment_.Rejoin(); !joined.ok()) return SessionNotReopened(joined);
      closed_ = false;
    }
    if (attachment_.member() == member_) return absl::OkStatus();
    return BeginAnew();
  }

  /// Drops all state of the former member.
  absl::Status BeginAnew() {
    NAM_RETURN_IF_ERROR(stages_->BeginAnew());
    plans_.Clear();
    member_ = attachment_.member();
    if (!records_.has_value()) return absl::OkStatus();
    const bool open = InTransaction();
    records_->Lose();
    record_access_->BeginAnew();
    if (!open) return absl::OkStatus();
    lost_ = TransactionLost();
    return absl::OkStatus();
  }

  /// A statement reports that it failed because the membership was lost meanwhile; the next one works.
  absl::Status AfterFailure(const absl::Status& error, bool in_transaction) {
    // Transactions may have noticed, and joined again, by themselves.
    const bool perhaps = attachment_.member() != member_ || MayComeOfLoss(error) ||
                         absl::IsNotFound(attachment_.ConfirmLease());
    if (!perhaps || (absl::IsCancelled(error) && cancel_)) return error;
    closed_ = false;
    if (attachment_.member() == member_) {
      const absl::Status membership = attachment_.AskMembership();
      if (!absl::IsNotFound(membership)) {
        const bool unknown = !membership.ok() && IsDamage(error) && !attachment_.ConfirmLease().ok();
        return unknown ? SessionMayBeLost(error) : error;
      }
      const absl::Status joined = attachment_.Rejoin();
      closed_ = catalog::IsClosedToClients(joined);
    }
    BeginAnew().IgnoreError();  // the next statement reports what is missing
    lost_.reset();
    return closed_ ? SessionClosed(error) : SessionLost(error, in_transaction);
  }

  /// 40001 while a load is about to give a table of the statement its rows: until then the table is still
  /// empty, though later snapshots see the rows. Nothing has happened yet.
  absl::Status CheckNoLoadEnds() {
    awaits_load_ = false;
    for (const std::shared_ptr<const proto::Table>& table : tables_.of_statement()) {
      if (table->record().closed_by() == 0) continue;
      awaits_load_ = true;
      return ToStatus({.message = absl::StrCat("table ", Quote(table->name()), " is being loaded"),
                       .hint = "nothing of it has happened; run it again",
                       .sqlstate = sqlstate::kSerializationFailure});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ResultSet> RunWithServers(const sql::Statement& statement) {
    NAM_CHECK(tables_.confirmed(), "a statement runs on tables that may be others by now");
    if (InTransaction()) tables_.Keep();
    if (cancel_) return absl::CancelledError("cancelled");
    NAM_RETURN_IF_ERROR(CheckNoLoadEnds());
    if (NeedsMemoryServers(statement)) NAM_RETURN_IF_ERROR(AwaitServers(attachment_, tables_, cancel_));
    return std::visit([this](const auto& s) { return Run(s); }, statement);
  }

  /// For a statement outside of the open transaction; `what` names it if it has an effect.
  absl::Status MayRun(std::string_view what) const {
    return records_.has_value() ? records_->MayRun(what) : absl::OkStatus();
  }

  static absl::Status NotSupported(std::string message, std::string hint) {
    return ToStatus(
        {.message = std::move(message), .hint = std::move(hint), .sqlstate = sqlstate::kNotSupported});
  }

  absl::StatusOr<ResultSet> Run(const sql::PrepareStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    NAM_RETURN_IF_ERROR(prepared_.Add(statement));
    return CommandResult("PREPARE");
  }
  absl::StatusOr<ResultSet> Run(const sql::DeallocateStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    NAM_RETURN_IF_ERROR(prepared_.Remove(statement.name));
    return CommandResult(statement.name.empty() ? "DEALLOCATE ALL" : "DEALLOCATE");
  }
  absl::StatusOr<ResultSet> Run(const sql::ExecuteStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    NAM_ASSIGN_OR_RETURN(const sql::PrepareStatement* prepared, prepared_.Find(statement));
    const absl::StatusOr<sql::Statement> bound =
        ToTables<sql::Statement>([&] { return sql::BindPrepared(*prepared, statement, tables_, Now()); });
    absl::StatusOr<ResultSet> result = bound.ok() ? RunWithServers(*bound) : bound.status();
    if (!result.ok()) return ErrorOfPrepared(result.status());
    return result;
  }

  /// A statement of record tables alone.
  template <typename RecordStatement>
  absl::StatusOr<ResultSet> Run(const RecordStatement& statement) {
    return RunOnRecords(statement);
  }
  template <typename RecordStatement>
  absl::StatusOr<ResultSet> RunOnRecords(const RecordStatement& statement) {
    if (!records_.has_value()) return NotSupported("this session runs no transactions", "");
    return records_->Run(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::UpdateStatement& statement) { return RunChange(statement); }
  absl::StatusOr<ResultSet> Run(const sql::DeleteStatement& statement) { return RunChange(statement); }
  /// `describe`, if there is one, gets the run of the change's query.
  using Describe = std::function<void(const TreeRun& run, const TreeRun::Ran& ran)>;
  template <typename Change>
  absl::StatusOr<ResultSet> RunChange(const Change& change, const Describe& describe = nullptr) {
    if (!records_.has_value()) return NotSupported("this session runs no transactions", "");
    return records_->Run(change,
                         [&](plan::logical::Query query) { return RunOfChange(std::move(query), describe); });
  }

  absl::StatusOr<ResultSet> Run(const sql::TransactionStatement& statement) {
    using Kind = sql::TransactionStatement::Kind;
    NAM_ASSIGN_OR_RETURN(ResultSet result, RunOnRecords(statement));
    if (statement.kind == Kind::kSavepoint) settings_.AddSavepoint();
    if (statement.kind == Kind::kRollbackTo) settings_.RollBackTo(records_->savepoints());
    if (statement.kind == Kind::kRelease) settings_.Release(records_->savepoints());
    return result;
  }

  absl::StatusOr<ResultSet> Run(const sql::CreateTableStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("CREATE TABLE"));
    if (!sql::IsRecordTable(statement.table)) return columnar_.Create(statement);
    return RunOnRecords(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::CreateTableAsStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("CREATE TABLE AS"));
    return columnar_.CreateAs(statement, RunnerOf(statement.source), progress_);
  }
  absl::StatusOr<ResultSet> Run(const sql::InsertStatement& statement) {
    if (!sql::IsRecordTable(*statement.table.table)) {
      NAM_RETURN_IF_ERROR(MayRun("INSERT into a columnar table"));
      return columnar_.Insert(statement, RunnerOf(statement.source));
    }
    return RunChange(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::TruncateStatement& statement) {
    if (!sql::IsRecordTable(*statement.table.table)) {
      NAM_RETURN_IF_ERROR(MayRun("TRUNCATE of a columnar table"));
      return columnar_.Truncate(statement);
    }
    return RunOnRecords(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::VacuumStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("VACUUM"));
    if (sql::IsRecordTable(*statement.table)) return RunOnRecords(statement);
    return columnar_.Vacuum(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::AnalyzeStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("ANALYZE"));
    runs_query_ = true;
    return Analyze(statement, attachment_.catalog(),
                   [this](const std::string& text) -> absl::StatusOr<ResultSet> {
                     NAM_ASSIGN_OR_RETURN(plan::logical::Query query, sql::BindLogical(text, tables_));
                     ResultCollector rows;
                     NAM_ASSIGN_OR_RETURN(ResultSet result,
                                          WithTree(query, [&](TreeRun& tree) { return tree.Run(rows); }));
                     result.rows = rows.Take();
                     return result;
                   });
  }
  /// For a query whose rows go to a columnar table.
  ColumnarTables::RunSource RunnerOf(const std::shared_ptr<plan::logical::Query>& source) {
    return [this, source](LoadedRows& rows) {
      return WithTree(*source, [&rows](TreeRun& query) { return query.RunInto(rows); });
    };
  }
  absl::StatusOr<ResultSet> Run(const sql::CopyStatement& bound) {
    sql::CopyStatement statement = bound;
    statement.input = [this] { return receiver_->Input(); };
    if (!sql::IsRecordTable(*statement.insert.table.table)) {
      NAM_RETURN_IF_ERROR(MayRun("COPY into a columnar table"));
      return columnar_.Copy(statement, progress_);
    }
    if (!records_.has_value()) return NotSupported("this session runs no transactions", "");
    return records_->Run(statement, progress_);
  }

  absl::StatusOr<ResultSet> Run(const sql::CopyToStatement& statement) {
    runs_query_ = true;
    const Interruption interruption(&cancel_);  // also of a pipe that has no reader yet
    return CopyTo(statement, *receiver_, [&](RowReceiver& rows) {
      return WithTree(*statement.source, [&rows](TreeRun& query) { return query.Run(rows); });
    });
  }

  absl::StatusOr<ResultSet> Run(const sql::TreeStatement& statement) {
    runs_query_ = true;
    if (!statement.locks.empty()) return RunAndLock(statement);
    return WithTree(*statement.tree, [this](TreeRun& query) { return query.Run(*receiver_); });
  }

  /// SELECT … FOR UPDATE. Locks last until the transaction ends: without BEGIN none keeps them.
  absl::StatusOr<ResultSet> RunAndLock(const sql::TreeStatement& statement) {
    LockedRows rows(statement.locks, *receiver_);
    return WithTree(*statement.tree, [&](TreeRun& query) -> absl::StatusOr<ResultSet> {
      NAM_ASSIGN_OR_RETURN(ResultSet result, query.Run(rows));
      if (InTransaction()) NAM_RETURN_IF_ERROR(rows.Lock(records_->access()));
      rows.Show(result);
      return result;
    });
  }

  /// In a transaction if it reads record tables.
  absl::StatusOr<ResultSet> WithTree(plan::logical::Query& query,
                                     const std::function<absl::StatusOr<ResultSet>(TreeRun&)>& body) {
    const bool reads_records = TreeRun::ReadsRecords(*query.root);
    if (reads_records && !records_.has_value()) return NotSupported("this session runs no transactions", "");
    const auto run = [&]() -> absl::StatusOr<ResultSet> {
      NAM_ASSIGN_OR_RETURN(const std::unique_ptr<TreeRun> made, Prepare(std::move(query)));
      if (to_keep_.text != nullptr && !reads_records) {
        plans_.Keep(*to_keep_.text, settings_.now(),
                    {made->start(), tables_.of_statement(), to_keep_.catalog_version});
      }
      return body(*made);
    };
    if (reads_records) return records_->InTransaction(run);
    NAM_RETURN_IF_ERROR(MayRun(""));
    const Interruption interruption(&cancel_);
    return run();
  }

  /// Runs the query of a change, in the open transaction.
  absl::StatusOr<ResultSet> RunOfChange(plan::logical::Query query, const Describe& describe) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<TreeRun> run, Prepare(std::move(query)));
    ResultCollector rows;
    Clock& clock = attachment_.fabric().clock();
    const int64_t started_ns = clock.NowNs();
    NAM_ASSIGN_OR_RETURN(ResultSet result, run->Run(rows));
    result.rows = rows.Take();
    const double ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
    if (describe) describe(*run, {result.rows.size(), ms});
    return result;
  }

  absl::StatusOr<std::unique_ptr<TreeRun>> Prepare(plan::logical::Query query) {
    return TreeRun::Make(RunOptions(), std::move(query));
  }

  TreeRun::Options RunOptions() {
    return {.attachment = attachment_,
            .stages = *stages_,
            .access = records_.has_value() ? &records_->access() : nullptr,
            .files = files_,
            .report = progress_,
            .settings = settings_.now(),
            .cancel = cancel_};
  }

  absl::StatusOr<ResultSet> Run(const sql::ExplainStatement& statement) {
    return std::visit([&](const auto& explained) { return Explain(statement, explained); },
                      statement.statement);
  }

  absl::StatusOr<ResultSet> Explain(const sql::ExplainStatement& how, const sql::TreeStatement& query) {
    return WithTree(*query.tree, [&](TreeRun& run) -> absl::StatusOr<ResultSet> {
      NAM_ASSIGN_OR_RETURN(std::vector<std::string> lines, run.Explain(how.analyze, how.json));
      return QueryPlan(std::move(lines));
    });
  }

  absl::StatusOr<ResultSet> Explain(const sql::ExplainStatement& how, const sql::ExecuteStatement& execute) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    NAM_ASSIGN_OR_RETURN(const sql::PrepareStatement* prepared, prepared_.Find(execute));
    absl::StatusOr<sql::ExplainStatement> bound = ToTables<sql::ExplainStatement>(
        [&] { return sql::BindExplained(how, *prepared, execute, tables_, Now()); });
    absl::StatusOr<ResultSet> result =
        bound.ok() ? RunWithServers(sql::Statement(*std::move(bound))) : bound.status();
    if (!result.ok()) return ErrorOfPrepared(result.status());
    return result;
  }

  /// A change of record tables. With ANALYZE it is made.
  template <typename Change>
  absl::StatusOr<ResultSet> Explain(const sql::ExplainStatement& how, const Change& change) {
    if (!records_.has_value()) return NotSupported("this session runs no transactions", "");
    if (!sql::IsRecordTable(*change.table.table))
      return NotSupported("EXPLAIN of INSERT into a columnar table is not supported", "explain its SELECT");
    NAM_ASSIGN_OR_RETURN(ExplainedChange explained, records_->Explain(change));
    std::vector<std::string> query;
    if (how.analyze) {
      Clock& clock = attachment_.fabric().clock();
      const int64_t started_ns = clock.NowNs();
      NAM_ASSIGN_OR_RETURN(const ResultSet changed,
                           RunChange(change, [&](const TreeRun& run, const TreeRun::Ran& ran) {
                             query = run.Describe(ran, how.json);
                           }));
      explained.command = changed.command;
      explained.ms = static_cast<double>(clock.NowNs() - started_ns) / 1e6;
    } else if (change.source != nullptr) {
      const auto planned = WithTree(*change.source, [&](TreeRun& run) -> absl::StatusOr<ResultSet> {
        NAM_ASSIGN_OR_RETURN(query, run.Explain(/*analyze=*/false, how.json));
        return ResultSet();
      });
      NAM_RETURN_IF_ERROR(planned.status());
    }
    if (!how.json) return QueryPlan(ExplainChange(explained, std::move(query)));
    return QueryPlan({ExplainChangeAsJson(explained, query.empty() ? "" : query[0])});
  }

  absl::StatusOr<ResultSet> Run(const sql::DropTableStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("DROP"));
    return changes_.Drop(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::CreateSchemaStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("CREATE SCHEMA"));
    return changes_.CreateSchema(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::CreateViewStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("CREATE VIEW"));
    runs_query_ = true;  // its tables may change meanwhile
    return changes_.CreateView(statement);
  }
  absl::StatusOr<ResultSet> Run(const sql::AlterTableStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun("ALTER TABLE"));
    runs_query_ = true;
    if (statement.source == nullptr) return changes_.Alter(statement);
    return columnar_.Rewrite(statement, RunnerOf(statement.source));
  }

  absl::StatusOr<ResultSet> Run(const sql::SetStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    NAM_RETURN_IF_ERROR(settings_.Set(statement));
    ResultSet result = CommandResult(statement.reset ? "RESET" : "SET");
    if (statement.local && !settings_.in_transaction()) {
      result.warnings.push_back(
          {"SET LOCAL can only be used in transaction blocks", sqlstate::kNoActiveTransaction});
    }
    return result;
  }

  absl::StatusOr<ResultSet> Run(const sql::ShowStatement& statement) {
    NAM_RETURN_IF_ERROR(MayRun(""));
    return session::Show(settings_, statement);
  }

  catalog::Attachment& attachment_;
  CatalogTables tables_;
  MemberId member_;                   // the owner of all this
  std::optional<absl::Status> lost_;  // with a transaction; not reported yet
  bool closed_ = false;  // the membership was ended, and no other is to be had while the cluster is stopped
  std::optional<catalog::VersionsRead::Pin> pin_;  // of the running statement, or of the transaction
  session::Settings settings_;
  int64_t began_us_ = 0;  // when the transaction or, outside of one, the last statement began
  std::atomic<bool> cancel_ = false;
  RowReceiver* receiver_ = nullptr;  // the running statement's
  bool runs_query_ = false;          // it is a query, perhaps a prepared one
  bool awaits_load_ = false;         // it was refused because a load of its table is about to end
  PlanCache plans_;
  struct {
    const std::string* text = nullptr;  // null: none
    uint64_t catalog_version = 0;
  } to_keep_;  // the running statement, if its plan is to be kept
  std::unique_ptr<StageRunner> stages_;
  PreparedStatements prepared_;
  std::unique_ptr<RecordAccess> record_access_;  // null: none
  std::optional<RecordStatements> records_;      // over it
  ColumnarTables columnar_{attachment_, settings_.now(), cancel_};
  QueriedFiles files_{columnar_, attachment_.fabric(), cancel_};  // the running statement's
  CatalogChanges changes_{attachment_, record_access_.get()};
  std::function<void(const QueryProgress&)> progress_;  // may be empty
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(catalog::Attachment& attachment,
                                                       std::unique_ptr<RecordAccess> records) {
  auto session = std::make_unique<SessionImpl>(attachment, std::move(records));
  NAM_RETURN_IF_ERROR(session->Open());
  return session;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(catalog::Attachment& attachment) {
  return Open(attachment, MakeRecordEngine(attachment));
}

}  // namespace nam::session
