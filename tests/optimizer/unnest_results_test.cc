#include <gtest/gtest.h>

#include <cstdlib>

#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/sql/logical_results.h"
#include "types/sql_error.h"

namespace nam::optimizer {
namespace {

using plan::logical::testing::Rows;
using sql::LogicalResults;

std::string StateOf(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error.has_value() ? error->sqlstate : std::string(status.message());
}

size_t CountDependent(const plan::logical::Node& root) {
  const auto* join = root.As<plan::logical::Join>();
  size_t count = join != nullptr && join->dependent ? 1 : 0;
  for (const auto& input : root.inputs) count += CountDependent(*input);
  return count;
}

void Check(const std::string& path) {
  const LogicalResults results = LogicalResults::Read(path);
  size_t dependent = 0, ran = 0;
  for (const LogicalResults::Query& query : results.queries) {
    sql::ResultTables tables(results);
    absl::StatusOr<plan::logical::Query> tree = sql::BindLogical(query.text, tables);
    if (!tree.ok()) continue;  // tests/sql/logical_results_test.cc says why
    const std::string before = ToString(*tree->root);
    dependent += CountDependent(*tree->root);
    const absl::Status unnested = Unnest(*tree);
    const std::string trees = query.text + "\n" + before + "unnested\n" + ToString(*tree->root);
    if (!unnested.ok()) {
      EXPECT_EQ(StateOf(unnested), sqlstate::kNotSupported) << trees;
      continue;
    }
    EXPECT_EQ(CheckTree(*tree, true), absl::OkStatus()) << trees;
    const absl::StatusOr<Rows> rows = plan::logical::testing::Run(*tree, results.contents);
    ++ran;
    if (!rows.ok() || !query.error.empty()) {
      EXPECT_EQ(rows.ok() ? "" : StateOf(rows.status()), query.error) << trees;
      continue;
    }
    EXPECT_EQ(Difference(query, tree->root->columns, *rows), "") << trees;
  }
  ::testing::Test::RecordProperty("dependent joins", static_cast<int>(dependent));
  ::testing::Test::RecordProperty("queries", static_cast<int>(ran));
  EXPECT_GT(dependent, 50u);
}

TEST(UnnestResultsTest, QueriesReturnWhatPostgresReturns) {
  Check("tests/sql/logical_results.txt");
}

/// `bazel test --test_env=NAM_LOGICAL_RESULTS=/a/file` runs another file.
TEST(UnnestResultsTest, RandomQueriesReturnWhatPostgresReturns) {
  const char* other = std::getenv("NAM_LOGICAL_RESULTS");
  Check(other != nullptr ? other : "tests/sql/logical_random_results.txt");
}

}  // namespace
}  // namespace nam::optimizer
