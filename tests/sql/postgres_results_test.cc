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

constexpr char kTypedTable[] =
    "create table typed (s smallint, i integer, b bigint primary key, d decimal(10,2), n decimal(38,0), r "
    "real, "
    "f double precision, t text, v varchar(5), c char(3), dt date, ts timestamp, tz timestamptz, tm time, "
    "iv interval, u uuid, by bytea, bo boolean)";

std::string TypeOf(const std::string& expression, FakeTables& tables) {
  const absl::StatusOr<Statement> bound =
      Bind("select " + expression + " from typed limit 1", tables, StatementTime(0));
  if (!bound.ok()) return Failure(bound.status());
  return SqlTypeName(std::get<TreeStatement>(*bound).tree->root->columns.at(0).declared);
}

/// What the expressions are declared as, which chooses the operators over them.
TEST(PostgresResultsTest, TypesAsPostgreSqlDeclaresThem) {
  FakeTables tables;
  tables.AddRecordTable(kTypedTable);
  const Results types = ReadResults("types.txt");
  ASSERT_GT(types.size(), 2'000u);
  // PostgreSQL computes constants of a table's query when it needs them, NAM when it binds them.
  std::map<std::string, std::string> failures, differences;
  for (auto& [expression, result] : ReadResults("results.txt")) {
    if (result[0] == '!') failures[expression] = result;
  }
  for (auto& [expression, result] : ReadResults("differences.txt")) {
    if (result[0] == '!') failures[expression] = result;
  }
  for (auto& [expression, type] : ReadResults("type_differences.txt")) differences[expression] = type;
  for (const auto& [expression, wanted] : types) {
    const auto difference = differences.find(expression);
    const bool differs = difference != differences.end();
    const std::string type = TypeOf(expression, tables);
    if (const auto failure = failures.find(expression); failure != failures.end() && type == failure->second)
      continue;
    EXPECT_EQ(type, differs ? difference->second : wanted) << expression;
    if (!differs) continue;
    EXPECT_NE(difference->second, wanted) << expression << " is no difference";
    differences.erase(difference);
  }
  for (const auto& [expression, type] : differences) ADD_FAILURE() << "no expression: " << expression;
}

}  // namespace
}  // namespace nam::sql
