#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "sql/bound_query.h"
#include "sql/declared_type.h"
#include "tests/sql/fake_tables.h"
#include "types/sql_type.h"

/// The columns of a table that is made of a query have the types that PostgreSQL 15 gives them.
namespace nam::sql {
namespace {

constexpr char kSourceTable[] =
    "create table typed (s smallint, i integer, b bigint primary key, d decimal(10,2), n decimal(38,0), "
    "r real, f double precision, t text, v varchar(5), c char(3), dt date, ts timestamp, tz timestamptz, "
    "tm time, iv interval, u uuid, by bytea, bo boolean, nn numeric)";

/// As format_type shows it.
std::string FormatType(const proto::Type& column) {
  const SqlType type = DeclaredType(column);
  std::string name = SqlTypeName(type);
  if (type.modifier < 0) return name;
  if (type.numeric()) return absl::StrCat(name, "(", type.digits(), ",", type.scale(), ")");
  return absl::StrCat(name, "(", type.modifier - 4, ")");
}

std::string ViewOf(const std::string& query, FakeTables& tables) {
  const absl::StatusOr<Statement> bound = Bind("create view v as " + query, tables, StatementTime(0));
  if (!bound.ok()) return bound.status().ToString();
  return FormatType(std::get<CreateViewStatement>(*bound).view.columns(0).type());
}

std::string CreatedOf(const std::string& query, FakeTables& tables) {
  const absl::StatusOr<Statement> bound = Bind("create table made as " + query, tables, StatementTime(0));
  if (!bound.ok()) return bound.status().ToString();
  return FormatType(std::get<CreateTableAsStatement>(*bound).create.table.columns(0).type());
}

TEST(CreateTableAsTest, ColumnsAreAsPostgreSqlDeclaresThem) {
  FakeTables tables;
  tables.AddRecordTable(kSourceTable);
  const std::pair<const char*, const char*> kTypes[] = {
      {"s", "smallint"},
      {"i", "integer"},
      {"b", "bigint"},
      {"d", "numeric(10,2)"},
      {"n", "numeric(38,0)"},
      {"nn", "numeric"},
      {"r", "real"},
      {"f", "double precision"},
      {"t", "text"},
      {"v", "character varying(5)"},
      {"case when b > 0 then 'ab'::char(2) else 'abc'::char(3) end", "text"},
      {"c", "character(3)"},
      {"dt", "date"},
      {"ts", "timestamp without time zone"},
      {"tz", "timestamp with time zone"},
      {"tm", "time without time zone"},
      {"iv", "interval"},
      {"u", "uuid"},
      {"by", "bytea"},
      {"bo", "boolean"},
      {"i + 1", "integer"},
      {"s + s", "smallint"},
      {"i * b", "bigint"},
      {"i / 2", "integer"},
      {"b % 7", "bigint"},
      {"d * 2", "numeric"},
      {"d + 0.5", "numeric"},
      {"-d", "numeric"},
      {"round(d, 1)", "numeric"},
      {"nn * 2", "numeric"},
      {"i::numeric(9,3)", "numeric(9,3)"},
      {"nn::decimal(6,1)", "numeric(6,1)"},
      {"d::numeric", "numeric"},
      {"d::int", "integer"},
      {"1", "integer"},
      {"3000000000", "bigint"},
      {"1.5", "numeric"},
      {"'x'", "text"},
      {"null", "text"},
      {"v || 'x'", "text"},
      {"coalesce(s, i)", "integer"},
      {"case when bo then d else 1.25 end", "numeric"},
      {"case when bo then v else v end", "character varying(5)"},
      {"extract(year from dt)", "numeric"},
      {"dt - dt", "integer"},
      {"ts - ts", "interval"},
      {"dt + iv", "timestamp without time zone"},
      {"i + r", "double precision"},
      {"upper(v)", "text"},
      {"length(t)", "integer"},
      {"abs(s)", "smallint"},
      {"i = 1", "boolean"},
      {"v::varchar(2)", "character varying(2)"},
      {"greatest(i, b)", "bigint"},
      {"count(*)", "bigint"},
      {"sum(s)", "bigint"},
      {"sum(i)", "bigint"},
      {"sum(b)", "numeric"},
      {"sum(d)", "numeric"},
      {"sum(nn)", "numeric"},
      {"sum(r)", "real"},
      {"avg(i)", "numeric"},
      {"avg(r)", "double precision"},
      {"min(s)", "smallint"},
      {"min(d)", "numeric"},
      {"max(v)", "text"},
      {"max(dt)", "date"},
      {"string_agg(t, ',')", "text"},
      {"bool_and(bo)", "boolean"},
      {"sum(iv)", "interval"},
      {"row_number() over ()", "bigint"},
      {"stddev(b)", "numeric"},
  };
  for (const auto& [expression, type] : kTypes) {
    const std::string query = absl::StrCat("select ", expression, " as x from typed");
    EXPECT_EQ(CreatedOf(query, tables), type) << expression;
    EXPECT_EQ(ViewOf(query, tables), type) << expression;
  }
  EXPECT_EQ(CreatedOf("select g from generate_series(1, 10) g", tables), "integer");
  EXPECT_EQ(CreatedOf("select g from generate_series(1, 3000000000) g", tables), "bigint");
  EXPECT_EQ(CreatedOf("values (1.0), (2.00)", tables), "numeric");
  EXPECT_EQ(CreatedOf("values (1::smallint), (2)", tables), "integer");
}

}  // namespace
}  // namespace nam::sql
