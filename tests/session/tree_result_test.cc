#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "fabric/fabric.h"
#include "optimizer/lower_tree.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "partitioner/record_row.h"
#include "session/query_result.h"
#include "session/result_collector.h"
#include "sql/logical_binder.h"
#include "tests/sql/logical_results.h"
#include "types/sql_error.h"

/// Queries over rows that the session itself has: its stage is their whole plan.
namespace nam::session {
namespace {

using sql::LogicalResults;

class TreeResultTest : public ::testing::Test, public sql::TableSource {
 protected:
  void Read(const std::string& file) {
    results_ = LogicalResults::Read("tests/sql/" + file);
    for (const auto& [name, table] : results_.tables) {
      auto of_records = std::make_shared<proto::Table>(*table);
      of_records->mutable_record();
      for (proto::Column& column : *of_records->mutable_columns()) {
        const auto kind = static_cast<TypeKind>(column.type().kind());
        if (kind == TypeKind::kInteger) column.mutable_type()->set_precision(8);
        if (kind == TypeKind::kDecimal) column.mutable_type()->set_precision(18);
      }
      tables_[name] = std::move(of_records);
    }
  }

  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    const auto found = tables_.find(name);
    if (found == tables_.end()) return absl::NotFoundError("no such table");
    return found->second;
  }
  std::vector<std::string> Names() override { return {}; }

  absl::StatusOr<std::vector<std::vector<Value>>> Run(const std::string& text,
                                                      std::vector<plan::logical::Column>& columns) {
    NAM_ASSIGN_OR_RETURN(plan::logical::Query query, sql::BindLogical(text, *this));
    // Nor does a session refuse it.
    NAM_RETURN_IF_ERROR(sql::Bind(text, *this).status());
    columns = query.root->columns;
    NAM_RETURN_IF_ERROR(optimizer::Unnest(query));
    optimizer::PushFilters(query);
    NAM_RETURN_IF_ERROR(plan::logical::CheckTree(query, true));
    NAM_ASSIGN_OR_RETURN(const optimizer::LoweredTree tree, optimizer::LowerTree(query));
    std::vector<ResultSet::Column> shown;
    for (const plan::logical::Column& column : columns) shown.push_back({column.name, column.type});
    ResultCollector rows;
    QueryResult result(std::move(shown), rows);
    NAM_ASSIGN_OR_RETURN(const auto stage, result.PrepareStage(tree.lowered.plan, tree.lowered.tables,
                                                               uint64_t{1} << 28, *fabric_, cancel_));
    for (const optimizer::TransactionScan& scan : tree.transaction_scans) {
      const proto::Table& table = *tree.lowered.tables[scan.table];
      const partitioner::RecordLayout layout(table);
      for (const auto& row : results_.contents.at(table.name())) {
        const std::string encoded = layout.Encode(row);
        const auto* const bytes = reinterpret_cast<const std::byte*>(encoded.data());
        NAM_RETURN_IF_ERROR(stage->AddRecords(scan.pipeline, {&bytes, 1}).status());
      }
    }
    NAM_RETURN_IF_ERROR(stage->Run());
    NAM_RETURN_IF_ERROR(result.Finish().status());
    return rows.Take();
  }

  /// Runs all queries of the file. Returns how many have rows.
  int Compare(const std::string& file);

  LogicalResults results_;
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_;
  const std::unique_ptr<fabric::Fabric> fabric_ =
      fabric::Open({.kind = fabric::Kind::kShm, .secret = "s"}).value();
  const std::atomic<bool> cancel_ = false;
};

int TreeResultTest::Compare(const std::string& file) {
  Read(file);
  int answered = 0;
  size_t refused = 0;  // of those that were generated at random
  for (const LogicalResults::Query& query : results_.queries) {
    SCOPED_TRACE(query.text);
    std::vector<plan::logical::Column> columns;
    const auto rows = Run(query.text, columns);
    if (!rows.ok()) {
      const auto error = SqlErrorOf(rows.status());
      const std::string state = error.has_value() ? error->sqlstate : rows.status().ToString();
      if (state == "0A000" && query.mark != '!') ++refused;
      if (state == "0A000") continue;
      EXPECT_EQ(state, query.error) << rows.status();
      continue;
    }
    ++answered;
    EXPECT_EQ(query.error, "");
    EXPECT_EQ(sql::Difference(query, columns, *rows), "");
  }
  EXPECT_LE(refused * 40, results_.queries.size());
  return answered;
}

TEST_F(TreeResultTest, ResultsAreThoseOfPostgreSql) {
  EXPECT_GT(Compare("logical_results.txt"), 300);
}

/// Runs queries that were generated at random.
TEST_F(TreeResultTest, RandomResultsAreThoseOfPostgreSql) {
  EXPECT_GT(Compare("logical_random_results.txt"), 100);
}

}  // namespace
}  // namespace nam::session
