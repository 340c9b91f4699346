#include "tests/sql/logical_results.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sql/error_text.h"
#include "sql/logical_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::logical::testing::Rows;

std::string StateOf(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error.has_value() ? error->sqlstate : std::string(status.message());
}

class LogicalResultsTest : public ::testing::Test {
 protected:
  /// The tree's rows or its first error.
  absl::StatusOr<Rows> Answer(const plan::logical::Query& tree) {
    if (absl::Status status = CheckTree(tree, false); !status.ok()) return status;
    return plan::logical::testing::Run(tree, results_.contents);
  }

  void Compare(const LogicalResults::Query& query, const plan::logical::Query& tree,
               const absl::StatusOr<Rows>& rows) {
    if (!rows.ok()) {
      EXPECT_EQ(StateOf(rows.status()), query.error) << query.text << "\n" << ToString(*tree.root);
      return;
    }
    EXPECT_EQ(query.error, "") << query.text << "\n" << ToString(*tree.root);
    if (!query.error.empty()) return;
    const std::string difference = Difference(query, tree.root->columns, *rows);
    EXPECT_EQ(difference, "") << query.text << "\n" << ToString(*tree.root);
  }

  void Check(const LogicalResults::Query& query) {
    ResultTables tables(results_);
    const absl::StatusOr<plan::logical::Query> tree = BindLogical(query.text, tables);
    const std::string state = tree.ok() ? "" : StateOf(tree.status());
    if (query.mark == '!' || !tree.ok()) {
      refused_ += state == sqlstate::kNotSupported;
      if (may_refuse_ && state == sqlstate::kNotSupported) return;
      EXPECT_EQ(state, query.mark == '!' ? sqlstate::kNotSupported : query.error) << query.text << "\n"
                                                                                  << tree.status();
      return;
    }
    Compare(query, *tree, Answer(*tree));
  }

  void CheckAll(const std::string& path) {
    results_ = LogicalResults::Read(path);
    for (const LogicalResults::Query& query : results_.queries) Check(query);
    RecordProperty("queries", static_cast<int>(results_.queries.size()));
    RecordProperty("refused", static_cast<int>(refused_));
  }

  LogicalResults results_;
  bool may_refuse_ = false;
  size_t refused_ = 0;
};

TEST_F(LogicalResultsTest, QueriesReturnWhatPostgresReturns) {
  CheckAll("tests/sql/logical_results.txt");
  EXPECT_GT(results_.queries.size(), 400u);
}

/// `bazel test --test_env=NAM_LOGICAL_RESULTS=/a/file` runs another file.
TEST_F(LogicalResultsTest, RandomQueriesReturnWhatPostgresReturns) {
  const char* other = std::getenv("NAM_LOGICAL_RESULTS");
  may_refuse_ = true;
  CheckAll(other != nullptr ? other : "tests/sql/logical_random_results.txt");
  EXPECT_GT(results_.queries.size(), 200u);
  EXPECT_LT(refused_ * 40, results_.queries.size());
}

}  // namespace
}  // namespace nam::sql
