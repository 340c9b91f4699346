#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "fabric/fabric.h"
#include "optimizer/plan_query.h"
#include "session/locked_rows.h"
#include "session/query_result.h"
#include "session/record_rows.h"
#include "session/record_statements.h"
#include "session/result_collector.h"
#include "tests/session/fake_record_access.h"
#include "types/sql_error.h"

namespace nam::session {

/// Runs all scans in the session.
class SessionScans final : public optimizer::RecordTables {
 public:
  explicit SessionScans(const RecordAccess& access) : access_(access) {}
  uint64_t snapshot() const override { return access_.snapshot(); }
  bool servers_read() const override { return false; }
  absl::StatusOr<std::shared_ptr<const proto::Table>> Prepare(const std::shared_ptr<const proto::Table>&,
                                                              const std::vector<plan::Expr>&) override {
    return absl::UnimplementedError("there is no compute server");
  }

 private:
  const RecordAccess& access_;
};

/// A session over record tables alone.
class RecordSessionTest : public ::testing::Test, public sql::TableSource {
 protected:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    if (!access_.tables.contains(name)) return absl::NotFoundError("no such table");
    return std::make_shared<proto::Table>(access_.tables[name]);
  }
  std::vector<std::string> Names() override { return {}; }

  absl::StatusOr<ResultSet> Execute(const std::string& text) {
    const auto bound = sql::Bind(text, *this, {now_us_, zone_});
    auto result = bound.ok() ? Execute(*bound) : bound.status();
    if (!result.ok()) result = statements_.Fail(text, result.status());
    return result;
  }

  absl::StatusOr<ResultSet> Execute(const sql::Statement& bound) {
    if (const auto* s = std::get_if<sql::TreeStatement>(&bound)) {
      return statements_.InTransaction([&]() -> absl::StatusOr<ResultSet> {
        if (s->locks.empty()) return RunTree(std::move(*s->tree));
        ResultCollector shown;
        LockedRows rows(s->locks, shown);
        NAM_ASSIGN_OR_RETURN(ResultSet result, RunTree(std::move(*s->tree), rows));
        if (statements_.in_transaction()) NAM_RETURN_IF_ERROR(rows.Lock(access_));
        rows.Show(result);
        result.rows = shown.Take();
        return result;
      });
    }
    if (const auto* s = std::get_if<sql::InsertStatement>(&bound)) return statements_.Run(*s, run_query_);
    if (const auto* s = std::get_if<sql::UpdateStatement>(&bound)) return statements_.Run(*s, run_query_);
    if (const auto* s = std::get_if<sql::DeleteStatement>(&bound)) return statements_.Run(*s, run_query_);
    if (const auto* s = std::get_if<sql::CreateTableStatement>(&bound)) return statements_.Run(*s);
    if (const auto* s = std::get_if<sql::DropTableStatement>(&bound)) {
      NAM_RETURN_IF_ERROR(access_.DropTable(s->table, /*cascade=*/false));
      return ResultSet{.command = "DROP TABLE"};
    }
    if (const auto* s = std::get_if<sql::CreateIndexStatement>(&bound)) return statements_.Run(*s);
    if (const auto* s = std::get_if<sql::DropIndexStatement>(&bound)) return statements_.Run(*s);
    if (const auto* s = std::get_if<sql::ExplainStatement>(&bound)) {
      if (const auto* update = std::get_if<sql::UpdateStatement>(&s->statement))
        return Lines(PathOf(statements_.Explain(*update)));
      if (const auto* deletion = std::get_if<sql::DeleteStatement>(&s->statement))
        return Lines(PathOf(statements_.Explain(*deletion)));
      return statements_.InTransaction([&]() -> absl::StatusOr<ResultSet> {
        SessionScans scans(access_);
        const auto& query = std::get<sql::TreeStatement>(s->statement);
        const auto tree = optimizer::PlanQuery(std::move(*query.tree), {.records = &scans});
        if (!tree.ok()) return tree.status();
        return Lines(Paths(*tree));
      });
    }
    return statements_.Run(std::get<sql::TransactionStatement>(bound));
  }

  /// A tree over record tables alone runs in the session.
  absl::StatusOr<ResultSet> RunTree(plan::logical::Query query) {
    ResultCollector rows;
    absl::StatusOr<ResultSet> result = RunTree(std::move(query), rows);
    if (result.ok()) result->rows = rows.Take();
    return result;
  }

  absl::StatusOr<ResultSet> RunTree(plan::logical::Query query, RowReceiver& rows) {
    std::vector<ResultSet::Column> columns;
    for (const plan::logical::Column& column : query.root->columns)
      columns.push_back({column.name, column.type});
    SessionScans scans(access_);
    const auto tree = optimizer::PlanQuery(std::move(query), {.records = &scans});
    if (!tree.ok()) return tree.status();
    QueryResult result(columns, rows);
    const auto stage = result.PrepareStage(tree->lowered.plan, tree->lowered.tables, result_bytes_max_,
                                           *fabric_, cancelled_);
    if (!stage.ok()) return stage.status();
    // The inputs of pipelines come in their order.
    for (uint32_t p = 0; p < tree->lowered.plan.pipelines.size(); ++p) {
      for (const optimizer::TransactionScan& scan : tree->transaction_scans) {
        if (scan.pipeline != p) continue;
        const absl::Status fed =
            FeedRecords(statements_.access(), cancelled_, scan, *tree->lowered.tables[scan.table], **stage);
        if (!fed.ok()) return fed;
      }
    }
    if (absl::Status status = (*stage)->Run(); !status.ok()) return status;
    return result.Finish();
  }

  /// How rows are found, and the conditions that are left.
  static std::vector<std::string> Paths(const optimizer::LoweredTree& tree) {
    std::vector<std::string> lines;
    for (const optimizer::TransactionScan& scan : tree.transaction_scans) {
      const proto::Table& table = *tree.lowered.tables[scan.table];
      lines.push_back(absl::StrCat("Read ", table.name(), " ", sql::Describe(table, scan.path)));
      for (const plan::Expr* filter : scan.path.filter) {
        lines.push_back(absl::StrCat("  if ", plan::ToString(*filter, [&](const plan::Expr& e) {
                                       return absl::StrCat(table.name(), ".",
                                                           table.columns(e.column.column).name());
                                     })));
      }
    }
    return lines;
  }

  static absl::StatusOr<std::vector<std::string>> PathOf(const absl::StatusOr<ExplainedChange>& change) {
    if (!change.ok()) return change.status();
    std::vector<std::string> lines = {absl::StrCat(change->kind, " ", change->table, " ", change->how)};
    for (const std::string& condition : change->conditions) lines.push_back("  if " + condition);
    return lines;
  }

  static absl::StatusOr<ResultSet> Lines(absl::StatusOr<std::vector<std::string>> lines) {
    if (!lines.ok()) return lines.status();
    ResultSet result;
    for (std::string& line : *lines) result.rows.push_back({Value::String(std::move(line))});
    result.command = "EXPLAIN";
    return result;
  }

  /// The command and the rows, or the SQLSTATE.
  std::string Run(const std::string& text) {
    const auto result = Execute(text);
    if (!result.ok()) {
      const auto error = SqlErrorOf(result.status());
      return error.has_value() ? error->sqlstate : result.status().ToString();
    }
    std::vector<std::string> rows = {result->command};
    for (const ResultSet::Warning& warning : result->warnings) {
      if (warning.sqlstate != sqlstate::kSuccess) rows[0] += " warns " + warning.sqlstate;
    }
    for (const std::vector<Value>& row : result->rows) {
      rows.push_back(absl::StrJoin(
          row, ",", [](std::string* out, const Value& value) { absl::StrAppend(out, value.ToString()); }));
    }
    return absl::StrJoin(rows, " | ");
  }

  FakeRecordAccess access_;
  uint64_t result_bytes_max_ = 1 << 30;
  int64_t now_us_ = 1'790'000'000'000'000;  // 2026-09-21 14:13:20
  std::string zone_ = kUtc;
  const std::unique_ptr<fabric::Fabric> fabric_ =
      fabric::Open({.kind = fabric::Kind::kShm, .secret = "s"}).value();
  std::atomic<bool> cancelled_ = false;
  RecordStatements statements_{access_, RealClock(), cancelled_};
  const RunQuery run_query_ = [this](plan::logical::Query query) { return RunTree(std::move(query)); };
};

}  // namespace nam::session
