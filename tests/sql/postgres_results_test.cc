#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/expression_tree.h"
#include "plan/slot_of.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

/// Expressions whose results are PostgreSQL's, written by tests/sql/postgres/make_results.py.
namespace nam::sql {
namespace {

using Results = std::vector<std::pair<std::string, std::string>>;

Results ReadResults(const std::string& name) {
  std::ifstream in("tests/sql/postgres/" + name);
  Results out;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.rfind('\t');
    if (tab != std::string::npos) out.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  return out;
}

std::string Failure(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error ? "!" + error->sqlstate : "not a user's error: " + status.ToString();
}

std::string ResultText(const absl::StatusOr<Value>& value) {
  if (!value.ok()) return Failure(value.status());
  return value->null ? "\\N" : value->ToString();
}

struct Outcome {
  std::string result;
  std::string text;  // of the expression, if it was bound
};

Outcome ResultOf(const std::string& expression, FakeTables& tables) {
  const absl::StatusOr<Statement> bound = Bind("select " + expression + " from t", tables);
  if (!bound.ok()) return {Failure(bound.status()), {}};
  const FlatQuery query = Flatten(*std::get<TreeStatement>(*bound).tree).value();
  const plan::Expr& e = query.select.at(0).expr;
  // Bound expressions pass the check of plans.
  const absl::StatusOr<plan::Slot> slot = plan::SlotOf(e, {});
  if (!slot.ok()) return {"unchecked: " + slot.status().ToString(), {}};
  return {ResultText(plan::Evaluate(e, plan::Resolver())), Show(query, e)};
}

/// Intended differences: docs/design/numbers-and-types.md gives the reasons.
std::map<std::string, std::string> Differences() {
  std::map<std::string, std::string> out;
  for (auto& [expression, result] : ReadResults("differences.txt")) out[expression] = result;
  return out;
}

TEST(PostgresResultsTest, AsPostgreSql) {
  FakeTables tables;
  const Results results = ReadResults("results.txt");
  std::map<std::string, std::string> differences = Differences();
  ASSERT_GT(results.size(), 500u);
  for (const auto& [expression, wanted] : results) {
    const auto difference = differences.find(expression);
    const bool differs = difference != differences.end();
    EXPECT_EQ(ResultOf(expression, tables).result, differs ? difference->second : wanted) << expression;
    if (!differs) continue;
    EXPECT_NE(difference->second, wanted) << expression << " is no difference";
    differences.erase(difference);
  }
  for (const auto& [expression, result] : differences) ADD_FAILURE() << "no expression: " << expression;
}

/// A constant as EXPLAIN prints it is bound to the same value.
TEST(PostgresResultsTest, TheTextOfAnExpressionMeansTheSame) {
  FakeTables tables;
  for (const auto& [expression, wanted] : ReadResults("results.txt")) {
    const Outcome first = ResultOf(expression, tables);
    if (first.text.empty()) continue;
    const Outcome again = ResultOf(first.text, tables);
    EXPECT_EQ(again.result, first.result) << expression << " is printed as " << first.text;
    EXPECT_EQ(again.text, first.text);
  }
}

}  // namespace
}  // namespace nam::sql
