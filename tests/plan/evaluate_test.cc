#include <gtest/gtest.h>

#include "plan/expression_tree.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/date.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

/// A row of t; columns that the test does not set are NULL.
using Row = std::vector<Value>;

Row MakeRow() {
  return {Value::Integer(7),
          Value::Integer(3),
          Value::Decimal(1050, 2),
          Value::Null(Type::Decimal(4)),
          Value::Date(DaysFromCivil({1994, 3, 15})),
          Value::String("abc"),
          Value::Bool(true),
          Value::Integer(0)};
}

absl::StatusOr<Value> EvaluateSql(const std::string& expression, const Row& row = MakeRow()) {
  const sql::FlatQuery query = sql::BindQuery("select " + expression + " from t");
  if (query.select.size() != 1) return absl::InternalError("did not bind");
  return Evaluate(query.select[0].expr,
                  [&](const Expr& e) { return row.at(static_cast<size_t>(e.column.column)); });
}

std::string ResultText(const std::string& expression) {
  const absl::StatusOr<Value> value = EvaluateSql(expression);
  return value.ok() ? value->ToString() : std::string(value.status().message());
}

TEST(EvaluateTest, Arithmetic) {
  EXPECT_EQ(ResultText("id * 3 + n"), "24");
  EXPECT_EQ(ResultText("- id / 2"), "-3");
  EXPECT_EQ(ResultText("- id % n"), "-1");
  EXPECT_EQ(ResultText("id % - n"), "1");
  EXPECT_EQ(ResultText("price * 1.1"), "11.550");
  EXPECT_EQ(ResultText("price + 1"), "11.50");
  EXPECT_EQ(ResultText("price - 20.125"), "-9.625");
  EXPECT_EQ(ResultText("price / n"), "3.5000000000000000");
  EXPECT_EQ(ResultText("- price / 7"), "-1.5000000000000000");
  EXPECT_EQ(ResultText("2.0 / (n * 1)"), "0.66666666666666666667");
  EXPECT_EQ(ResultText("-2.0 / (n * 1)"), "-0.66666666666666666667");
  EXPECT_EQ(ResultText("rate + 1"), "NULL");
  EXPECT_EQ(ResultText("day + n"), "1994-03-18");
  EXPECT_EQ(ResultText("day - date '1994-01-01'"), "73");
}

TEST(EvaluateTest, Errors) {
  const auto code = [](const std::string& expression) {
    const absl::Status status = EvaluateSql(expression).status();
    const auto error = SqlErrorOf(status);
    EXPECT_TRUE(error.has_value()) << expression << status;
    return std::pair(status.code(), error.has_value() ? error->sqlstate : "");
  };
  const auto overflow = std::pair(absl::StatusCode::kOutOfRange, std::string("22003"));
  const auto division = std::pair(absl::StatusCode::kInvalidArgument, std::string("22012"));
  EXPECT_EQ(code("id / (n - 3)"), division);
  EXPECT_EQ(code("id % (n - 3)"), division);
  EXPECT_EQ(code("price / (n - 3)"), division);
  EXPECT_EQ(code("99999999999999999999999999999999999999 + id"), overflow);
  EXPECT_EQ(code("-99999999999999999999999999999999999999 - id"), overflow);
  EXPECT_EQ(code("9999999999999999999 * id * 99999999999999999999"), overflow);
  EXPECT_EQ(code("999999999999999999999999999999999999 / (price / 100)"), overflow);
  EXPECT_EQ(code("cast(10000000000000000000.0 * n as integer)"), overflow);
  EXPECT_EQ(code("cast(n * 10923 as smallint)"), overflow);
  EXPECT_EQ(code("cast(n * -10923 as smallint)"), overflow);
  EXPECT_EQ(code("cast(n * 1000000000 as int)"), overflow);
  EXPECT_EQ(code("cast(price * 1000000000 as int)"), overflow);
  EXPECT_EQ(code("cast((n + 100000)::text as smallint)"), overflow);
  EXPECT_EQ(code("cast(id * 9000000000000000000 as bigint)"), overflow);
  EXPECT_EQ(code("day + id * 10000000"), std::pair(absl::StatusCode::kOutOfRange, std::string("22008")));
  EXPECT_EQ(code("name::integer"), std::pair(absl::StatusCode::kInvalidArgument, std::string("22P02")));
  EXPECT_EQ(code("name::date"), std::pair(absl::StatusCode::kInvalidArgument, std::string("22007")));
  // Evaluates the operator of the WHERE.
  const auto error = SqlErrorOf(EvaluateSql("id / (n - 3)").status());
  EXPECT_EQ(error->position, 10);
}

TEST(EvaluateTest, WhatIsNotReachedDoesNotFail) {
  EXPECT_EQ(ResultText("case when n = 3 then 1 else 1 / (n - 3) end"), "1");
  EXPECT_EQ(ResultText("case when n = 4 then 1 / 0 else 2 end"), "2");
  EXPECT_EQ(ResultText("n = 4 and 1 / (n - 3) = 1"), "f");
  EXPECT_EQ(ResultText("n = 3 or 1 / 0 = 1"), "t");
  EXPECT_EQ(ResultText("coalesce(n, 1 / 0)"), "3");
  EXPECT_EQ(ResultText("id / nullif(n, 3)"), "NULL");
}

TEST(EvaluateTest, ThreeValuedLogic) {
  // By NULL of a boolean kind: rate is NULL.
  const std::string t = "(n = 3)", f = "(n = 4)", u = "(rate = 1)";
  const auto table = [&](const std::string& op) {
    std::string results;
    for (const std::string& a : {t, f, u}) {
      for (const std::string& b : {t, f, u}) results += ResultText(a + op + b)[0];
    }
    return results;
  };
  EXPECT_EQ(table(" and "), "tfNfffNfN");
  EXPECT_EQ(table(" or "), "ttttfNtNN");
  EXPECT_EQ(ResultText("not " + t), "f");
  EXPECT_EQ(ResultText("not " + f), "t");
  EXPECT_EQ(ResultText("not " + u), "NULL");
  EXPECT_EQ(ResultText("rate is null"), "t");
  EXPECT_EQ(ResultText("n is not null"), "t");
  EXPECT_EQ(ResultText("n in (1, 3)"), "t");
  EXPECT_EQ(ResultText("n in (1, 2)"), "f");
  EXPECT_EQ(ResultText("n not in (1, 2)"), "t");
  EXPECT_EQ(ResultText("rate in (1, 2)"), "NULL");
  EXPECT_EQ(ResultText("n in (1, 2, null)"), "NULL");
  EXPECT_EQ(ResultText("n in (3, null)"), "t");
  EXPECT_EQ(ResultText("n in (1, rate)"), "NULL");
  EXPECT_EQ(ResultText("rate between 1 and 2"), "NULL");
  EXPECT_EQ(ResultText("n between 4 and rate"), "f");
  EXPECT_EQ(ResultText("case when rate = 1 then 'yes' else 'no' end"), "no");
  EXPECT_EQ(ResultText("name like null"), "NULL");
}

TEST(EvaluateTest, InOfALiteralNullIsUnknownUnlessFound) {
  const auto in = [](int64_t n) {
    const auto literal = [](Value value) {
      Expr expr;
      expr.type = value.type;
      expr.literal = std::move(value);
      return expr;
    };
    Expr expr;
    expr.op = Op::kIn;
    expr.type = Type::Bool();
    expr.children = {literal(Value::Integer(n)), literal(Value::Null(Type::Integer())),
                     literal(Value::Integer(3))};
    return Evaluate(expr, [](const Expr&) { return Value(); });
  };
  ASSERT_TRUE(in(3).ok());
  EXPECT_FALSE(in(3)->null);
  EXPECT_EQ(in(3)->number, 1);
  EXPECT_TRUE(in(4)->null);
}

TEST(EvaluateTest, Timestamps) {
  EXPECT_EQ(ResultText("timestamp '2026-01-02 03:04:05.678'"), "2026-01-02 03:04:05.678");
  EXPECT_EQ(ResultText("timestamp '2026-01-02'"), "2026-01-02 00:00:00");
  EXPECT_EQ(ResultText("timestamp '2026-01-02T03:04'"), "2026-01-02 03:04:00");
  EXPECT_EQ(ResultText("timestamp '1969-12-31 23:59:59.9999994'"), "1969-12-31 23:59:59.999999");
  EXPECT_EQ(ResultText("timestamp '1969-12-31 23:59:59.9999995'"), "1970-01-01 00:00:00");
  EXPECT_EQ(ResultText("timestamp '0001-01-01 00:00:00.1'"), "0001-01-01 00:00:00.1");
  EXPECT_EQ(ResultText("'2026-01-02 03:04:05'::timestamp::text"), "2026-01-02 03:04:05");
  EXPECT_EQ(ResultText("timestamp '1969-12-31 00:00:00'::date"), "1969-12-31");
  EXPECT_EQ(ResultText("timestamp '1969-12-31 23:59:59'::date"), "1969-12-31");
  EXPECT_EQ(ResultText("day::timestamp"), "1994-03-15 00:00:00");
  EXPECT_EQ(ResultText("extract(day from timestamp '2026-01-02 23:00')"), "2");
  EXPECT_EQ(ResultText("timestamp '1994-03-15 00:00:00' = day"), "t");
  EXPECT_EQ(ResultText("day < timestamp '1994-03-15 00:00:00.000001'"), "t");
  EXPECT_EQ(ResultText("timestamp '1994-03-15' between '1994-03-14 12:00' and '1994-03-15'"), "t");
  for (const char* bad :
       {"", "2026-01-02 3", "2026-01-02 03:04:05.1x", "2026-01-02 03:04:05.1234567x", "2026-01-02x03:04"}) {
    EXPECT_EQ(sql::BindError("select timestamp '" + std::string(bad) + "' from t").sqlstate, "22007") << bad;
  }
  // The text has a timestamp's form but no such time exists; half a microsecond before year 10000 is rounded
  // into it.
  for (const char* none :
       {"2026-01-02 03:04:61", "2026-01-02 24:01", "2026-01-02 03:60", "2026-02-30 3:04",
        "2026-02-30 03:04:05", "2026-13-01", "0000-01-01 00:00", "9999-12-31 23:59:59.9999995"}) {
    EXPECT_EQ(sql::BindError("select timestamp '" + std::string(none) + "' from t").sqlstate, "22008")
        << none;
  }
  EXPECT_EQ(ResultText("timestamp ' 2026-01-02 3:04 '"), "2026-01-02 03:04:00");
  EXPECT_EQ(ResultText("timestamp '2026-01-02 03:04:05.'"), "2026-01-02 03:04:05");
  EXPECT_EQ(ResultText("timestamp '2026-01-02 24:00'"), "2026-01-03 00:00:00");
  EXPECT_EQ(ResultText("timestamp '2026-01-02 03:04:60'"), "2026-01-02 03:05:00");
  EXPECT_EQ(ResultText("timestamp '9999-12-31 23:59:59.9999994'"), "9999-12-31 23:59:59.999999");
  for (const char* none : {"2024-02-30", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-01-00",
                           "0000-01-01", "2024-2-30", "20240230", "2024/02/30"})
    EXPECT_EQ(sql::BindError("select date '" + std::string(none) + "' from t").sqlstate, "22008") << none;
  for (const char* bad : {"2024-2", "2024-02-3x", "202402300", "2024/02-28"})
    EXPECT_EQ(sql::BindError("select date '" + std::string(bad) + "' from t").sqlstate, "22007") << bad;
}

TEST(EvaluateTest, CastsAndDates) {
  EXPECT_EQ(ResultText("cast(price as integer)"), "11");  // 10.50, away from zero
  EXPECT_EQ(ResultText("cast(- price as integer)"), "-11");
  EXPECT_EQ(ResultText("cast(price as decimal(38, 4))"), "10.5000");
  EXPECT_EQ(ResultText("price::text"), "10.50");
  EXPECT_EQ(ResultText("day::text"), "1994-03-15");
  EXPECT_EQ(ResultText("ok::text"), "true");
  EXPECT_EQ(ResultText("(n = 4)::varchar"), "false");
  EXPECT_EQ(ResultText("cast(n * 10900 as smallint)"), "32700");
  EXPECT_EQ(ResultText("cast(price * 100 as smallint)"), "1050");
  EXPECT_EQ(ResultText("cast(id::text as integer) + 1"), "8");
  EXPECT_EQ(ResultText("cast(price::text as decimal(38, 1))"), "10.5");
  EXPECT_EQ(ResultText("extract(year from day)"), "1994");
  EXPECT_EQ(ResultText("extract(month from day)"), "3");
  EXPECT_EQ(ResultText("extract(day from day)"), "15");
  EXPECT_EQ(ResultText("price > 10 and name < 'b' and day > '1994-01-01'"), "t");
}

TEST(EvaluateTest, TextAsPostgresReadsIt) {
  for (const char* yes : {"t", "TRUE", "tr", "y", "Yes", "on", "ON", "1", " t ", "\tyes\n"})
    EXPECT_EQ(ResultText("'" + std::string(yes) + "'::boolean"), "t") << yes;
  for (const char* no : {"f", "False", "n", "NO", "of", "off", "0", " fa "})
    EXPECT_EQ(ResultText("'" + std::string(no) + "'::boolean"), "f") << no;
  for (const char* bad : {"", " ", "o", "truee", "yesno", "10", "t f"})
    EXPECT_EQ(sql::BindError("select '" + std::string(bad) + "'::boolean from t").sqlstate, "22P02") << bad;
  EXPECT_EQ(ResultText("' 12 '::integer"), "12");
  EXPECT_EQ(ResultText("'1e3'::numeric"), "1000");
  EXPECT_EQ(ResultText("' -1.5E-2\n'::numeric"), "-0.015");
  EXPECT_EQ(ResultText("'12e+1'::decimal(9, 2)"), "120.00");
  EXPECT_EQ(ResultText("price > '1.04e1'"), "t");
  for (const char* bad : {"1e", "1e+", "e3", "1e3x", "1e 3", "1 2", ""})
    EXPECT_EQ(sql::BindError("select '" + std::string(bad) + "'::numeric from t").sqlstate, "22P02") << bad;
  EXPECT_EQ(sql::BindError("select '1e3'::integer from t").sqlstate, "22P02");
  EXPECT_EQ(sql::BindError("select '1e38'::numeric from t").sqlstate, "22003");
}

TEST(EvaluateTest, Like) {
  EXPECT_TRUE(MatchesLike("", ""));
  EXPECT_TRUE(MatchesLike("", "%%"));
  EXPECT_FALSE(MatchesLike("", "_"));
  EXPECT_TRUE(MatchesLike("abc", "a%c"));
  EXPECT_TRUE(MatchesLike("abcabc", "%bc"));
  EXPECT_FALSE(MatchesLike("abcab", "%bc"));
  EXPECT_TRUE(MatchesLike("a%c", "a\\%c"));
  EXPECT_FALSE(MatchesLike("abc", "a\\%c"));
  EXPECT_TRUE(MatchesLike("a\\", "a\\\\"));
  EXPECT_TRUE(MatchesLike("mississippi", "m%iss%pp_"));
  EXPECT_FALSE(MatchesLike("mississippi", "m%iss%pp"));
  EXPECT_TRUE(MatchesLike("é", "_"));
  EXPECT_FALSE(MatchesLike("é", "__"));
  EXPECT_TRUE(MatchesLike("日本", "__"));
  EXPECT_FALSE(MatchesLike("日本", "_"));
  EXPECT_TRUE(MatchesLike("日本語", "_本%"));
  EXPECT_TRUE(MatchesLike("a😀b", "a_b"));
  EXPECT_TRUE(MatchesLike("日本", "%_"));
  EXPECT_FALSE(MatchesLike("é", "%__"));
  EXPECT_FALSE(MatchesLike("é", "_%_"));
  EXPECT_TRUE(MatchesLike("é_", "é\\_"));
  EXPECT_TRUE(MatchesLike("\xc3", "_"));  // truncated: from data that is not checked
  // The time is linear in text times pattern, not exponential.
  EXPECT_FALSE(MatchesLike(std::string(5000, 'a'), "%a%a%a%a%a%a%a%a%a%a%b"));
}

TEST(EvaluateTest, ColumnsOf) {
  const sql::FlatQuery query = sql::BindQuery("select n + id * n - id from t");
  EXPECT_EQ(ColumnsOf(query.select.at(0).expr), (std::vector<ColumnRef>{{0, 1}, {0, 0}}));
}

TEST(ExpressionTreeTest, NoJoinIsOverIntervals) {
  const auto equal = [](Type type) {
    Expr a = MakeNode(Op::kColumn, type, -1, {}), b = a;
    a.column = {0, 1};
    b.column = {1, 1};
    return MakeNode(Op::kEqual, Type::Bool(), -1, {a, b});
  };
  EXPECT_TRUE(EquatesTables(equal(Type::Integer())));
  EXPECT_FALSE(EquatesTables(equal(Type::Interval())));
}

}  // namespace
}  // namespace nam::plan
