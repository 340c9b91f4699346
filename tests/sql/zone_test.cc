#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "plan/expression.h"
#include "sql/bound_query.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

/// Sessions whose time zone is not UTC.
namespace nam::sql {
namespace {

absl::StatusOr<Statement> BindIn(const std::string& zone, const std::string& text) {
  FakeTables tables;
  constexpr int64_t kNowUs = 1'588'895'999'000'000;  // 2020-05-07 23:59:59 UTC
  return Bind(text, tables, StatementTime(kNowUs, zone));
}

std::string ResultIn(const std::string& zone, const std::string& expression) {
  const absl::StatusOr<Statement> bound = BindIn(zone, "select " + expression + " from t");
  if (!bound.ok()) {
    const auto error = SqlErrorOf(bound.status());
    return error ? "!" + error->sqlstate : bound.status().ToString();
  }
  const FlatQuery query = Flatten(*std::get<TreeStatement>(*bound).tree).value();
  const absl::StatusOr<Value> value = plan::Evaluate(query.select.at(0).expr, plan::Resolver());
  return value.ok() ? value->ToString() : value.status().ToString();
}

/// zones.txt: a zone, an expression of zones.sql, and what `select (expression)::text` of PostgreSQL 15 says
/// in a session of the zone.
TEST(ZoneTest, AsPostgreSql) {
  std::ifstream in("tests/sql/postgres/zones.txt");
  size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    const size_t first = line.find('\t'), last = line.rfind('\t');
    const std::string zone = line.substr(0, first), expression = line.substr(first + 1, last - first - 1);
    EXPECT_EQ(ResultIn(zone, "(" + expression + ")::text"), line.substr(last + 1))
        << zone << ": " << expression;
  }
  EXPECT_GE(lines, 150u);
}

TEST(ZoneTest, ClocksOfTheSession) {
  EXPECT_EQ(ResultIn("Europe/Berlin", "now()::text"), "2020-05-08 01:59:59+02");
  EXPECT_EQ(ResultIn("Europe/Berlin", "current_timestamp::text"), "2020-05-08 01:59:59+02");
  EXPECT_EQ(ResultIn("Europe/Berlin", "localtimestamp"), "2020-05-08 01:59:59");
  EXPECT_EQ(ResultIn("Europe/Berlin", "localtime"), "01:59:59");
  EXPECT_EQ(ResultIn("Europe/Berlin", "current_date"), "2020-05-08");
  EXPECT_EQ(ResultIn("Europe/Berlin", "date 'today'"), "2020-05-08");
  EXPECT_EQ(ResultIn("Europe/Berlin", "timestamptz 'now'::text"), "2020-05-08 01:59:59+02");
  EXPECT_EQ(ResultIn("Europe/Berlin", "timestamptz 'tomorrow 10:00'::text"), "2020-05-09 10:00:00+02");
  EXPECT_EQ(ResultIn("UTC", "time '10:11 PM'"), "22:11:00");
  EXPECT_EQ(ResultIn("UTC", "time '10:11x m'"), "!22007");
  EXPECT_EQ(ResultIn("UTC", "timestamptz 'Jan 5 2024 10:00 PM Asia/Tokyo'"), "2024-01-05 13:00:00+00");
  EXPECT_EQ(ResultIn("UTC", "current_date"), "2020-05-07");
  EXPECT_EQ(ResultIn("UTC", "now()"), "2020-05-07 23:59:59+00");
  EXPECT_EQ(ResultIn("UTC", "current_time"), "!0A000");
}

/// The result of a query has texts, as its reader does not know the zone.
TEST(ZoneTest, ResultsAreInTheZone) {
  const auto root_type = [](const std::string& zone, const std::string& text) {
    const absl::StatusOr<Statement> bound = BindIn(zone, text);
    if (!bound.ok()) return bound.status().ToString();
    return TypeName(std::get<TreeStatement>(*bound).tree->root->columns.at(0).type);
  };
  EXPECT_EQ(root_type("UTC", "select now()"), "timestamp with time zone");
  EXPECT_EQ(root_type("Europe/Berlin", "select now()"), "varchar");
  EXPECT_EQ(root_type("Europe/Berlin", "select now() union select current_date order by 1"), "varchar");
  EXPECT_EQ(root_type("Europe/Berlin", "select localtimestamp"), "timestamp");
}

/// Series move in UTC: elsewhere only by hours.
TEST(ZoneTest, Series) {
  const auto state = [](const std::string& zone, const std::string& step) {
    const auto bound = BindIn(zone, "select * from generate_series(now(), now(), interval '" + step + "')");
    const auto error = SqlErrorOf(bound.status());
    return error ? error->sqlstate : bound.status().ToString();
  };
  EXPECT_EQ(state("UTC", "1 month"), "OK");
  EXPECT_EQ(state("Europe/Berlin", "1 hour"), "OK");
  EXPECT_EQ(state("Europe/Berlin", "1 day"), "0A000");
}

}  // namespace
}  // namespace nam::sql
