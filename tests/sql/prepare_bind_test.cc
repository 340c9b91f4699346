#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

/// PREPARE finds the types of parameters, and EXECUTE binds with arguments of these types.
namespace nam::sql {
namespace {

TEST(PrepareBindTest, Prepare) {
  const auto prepared = BindAs<PrepareStatement>(
      "prepare p as select id from r where k = $1 and v like $2 and day > $3 limit $4");
  EXPECT_EQ(prepared.name, "p");
  EXPECT_EQ(prepared.text, "select id from r where k = $1 and v like $2 and day > $3 limit $4");
  ASSERT_EQ(prepared.types.size(), 4u);
  EXPECT_EQ(prepared.types[0].kind, TypeKind::kInteger);
  EXPECT_EQ(prepared.types[1].kind, TypeKind::kString);
  EXPECT_EQ(prepared.types[2].kind, TypeKind::kDate);
  EXPECT_EQ(prepared.types[3].kind, TypeKind::kInteger);
  const auto insert = BindAs<PrepareStatement>(
      "prepare q (bigint) as insert into r (id, n, d, at) values ($2, $1, $3, $4), ($1, 1, $3 + 1, null)");
  ASSERT_EQ(insert.types.size(), 4u);
  EXPECT_EQ(insert.types[1].kind, TypeKind::kInteger);
  EXPECT_EQ(insert.types[2].kind, TypeKind::kDecimal);
  EXPECT_EQ(insert.types[3].kind, TypeKind::kTimestamp);
  EXPECT_EQ(BindAs<PrepareStatement>("prepare p as select $1").types.at(0).kind, TypeKind::kString);
  EXPECT_EQ(BindAs<PrepareStatement>("prepare p as select $1::date").types.at(0).kind, TypeKind::kDate);
  EXPECT_EQ(BindError("prepare p as select $2 + 1").sqlstate, "42P18");
  EXPECT_EQ(BindError("select $1").sqlstate, "42P02");
  EXPECT_EQ(BindError("prepare p as select nix from r").sqlstate, "42703");
  EXPECT_EQ(BindAs<DeallocateStatement>("deallocate all").name, "");
  EXPECT_EQ(BindAs<DeallocateStatement>("deallocate prepare p").name, "p");
}

TEST(PrepareBindTest, AParameterHasTheTypeOfItsFirstContext) {
  const auto prepared = BindAs<PrepareStatement>("prepare p as select 1 from r where day = $1 and at > $1");
  ASSERT_EQ(prepared.types.size(), 1u);
  EXPECT_EQ(prepared.types[0].kind, TypeKind::kDate);
  // A listed type stays, whatever the parameter is compared with.
  EXPECT_EQ(
      BindAs<PrepareStatement>("prepare p (smallint) as insert into r (id, n) values ($1, $1)").types.size(),
      1u);
}

/// The first use of a parameter tells its type, and text does where PostgreSQL takes it for one.
TEST(PrepareBindTest, AParameterIsOfOneType) {
  const auto type = [](const std::string& query) {
    return BindAs<PrepareStatement>("prepare p as " + query).types.at(0).kind;
  };
  EXPECT_EQ(type("select 1 from r where v || $1 = 'x'"), TypeKind::kString);
  EXPECT_EQ(type("select 1 from r where day = $1 and v || $1 = 'x'"), TypeKind::kDate);
  EXPECT_EQ(type("select 1 from r where day = $1 and at = $1"), TypeKind::kDate);
  EXPECT_EQ(type("select 1 from r where $1 between 'a' and v"), TypeKind::kString);
  EXPECT_EQ(type("select 1 from r where day between $1 and $1"), TypeKind::kDate);
  EXPECT_EQ(type("select n + $1 from r where day = $2"), TypeKind::kInteger);
  EXPECT_EQ(type("select $1 union select 1"), TypeKind::kInteger);
  EXPECT_EQ(type("select variance($1)"), TypeKind::kDouble);
  EXPECT_EQ(type("update r set v = $1 where day = $1"), TypeKind::kDate);
  const auto error = [](const std::string& query) { return BindError("prepare p as " + query).sqlstate; };
  const std::pair<const char*, const char*> kErrors[] = {
      {"select 1 from r where day = $1 and v = $1", "42883"},
      {"select 1 from r where $1 = 'x' and day = $1", "42883"},
      {"select 1 from r where v like $1 and day = $1", "42883"},
      {"select 1 from r where $1 in ('a', 'b') and day = $1", "42883"},
      {"select v || $1 from r where day = $1", "42883"},
      {"select upper($1) from r where day = $1", "42883"},
      {"select nullif($1, 'x') from r where n = $1", "42883"},
      {"select coalesce($1, v) from r where day = $1", "42883"},
      {"select 1 from r where day = $1 and coalesce(v, $1) = 'a'", "42804"},
      {"select case $1 when n then 1 end from r", "42883"},
      {"select case $1 when 1 then 1 end", "42883"},
      {"select 1 from r where $1 between day and v", "42883"},
      {"select 1 from r where $1 between $2 and day", "42883"},
      {"select $1, n + $1 from r", "42P08"},
      {"select $1 from r where n = $1", "42P08"},
      {"select 1 from r where (n, day) = ($1, $1)", "42P08"},
      {"insert into r (id, day) values ($1, $1)", "42P08"},
      {"insert into r (v, id) values ($1, $1)", "42P08"},
      {"insert into r (id, v) select $1, $1", "42P08"},
      {"update r set day = $1 where v = $1", "42804"},
      {"select sum($1)", "42725"},
      {"select 1 from r where v = $1 limit $1", "42804"},
  };
  for (const auto& [query, sqlstate] : kErrors) EXPECT_EQ(error(query), sqlstate) << query;
}

TEST(PrepareBindTest, ExecuteBindsWithTypedValues) {
  FakeTables tables;
  const auto prepared =
      BindAs<PrepareStatement>("prepare p as update r set n = $1 where id = $2 and day > $3");
  const auto bound = [&](const std::string& execute) {
    return BindPrepared(prepared, BindAs<ExecuteStatement>(execute), tables, {});
  };
  const auto update = bound("execute p (7, 1.6, '2026-01-02')");
  ASSERT_TRUE(update.ok()) << update.status();
  const auto& statement = std::get<UpdateStatement>(*update);
  EXPECT_EQ(Show(statement.table, {statement.assignments[0].value.value()}), "7");
  EXPECT_EQ(Show(statement.table, statement.conjuncts), "r.id = 2, r.day > date '2026-01-02'");
  const auto state = [&](const std::string& execute) {
    const auto result = bound(execute);
    return result.ok() ? "" : SqlErrorOf(result.status())->sqlstate;
  };
  EXPECT_EQ(state("execute p (7, null, null)"), "");
  EXPECT_EQ(state("execute p (7, 1)"), "42601");
  EXPECT_EQ(state("execute p"), "42601");
  EXPECT_EQ(state("execute p (7, true, '2026-01-02')"), "42804");
  EXPECT_EQ(state("execute p (7, 'x', '2026-01-02')"), "22P02");
  EXPECT_EQ(BindError("execute p ((select 1))").sqlstate, "0A000");
}

TEST(PrepareBindTest, ArgumentsAreOfTheirParametersTypes) {
  FakeTables tables;
  const auto bound = [&](const std::string& prepare, const std::string& execute) {
    return BindPrepared(BindAs<PrepareStatement>(prepare), BindAs<ExecuteStatement>(execute), tables, {});
  };
  const auto condition = [&](const std::string& prepare, const std::string& execute) {
    const auto remove = bound(prepare, execute);
    if (!remove.ok()) return SqlErrorOf(remove.status())->sqlstate;
    const auto& statement = std::get<DeleteStatement>(*remove);
    return Show(statement.table, statement.conjuncts);
  };
  // An integer becomes a decimal: 7 / 2 is not cut off.
  const std::string halves = "prepare p (numeric) as delete from r where id = $1 / 2 * 10";
  EXPECT_EQ(condition(halves, "execute p (7)"), "r.id = 35.0000000000000000");
  EXPECT_EQ(condition(halves, "execute p ('7')"), "r.id = 35.0000000000000000");
  EXPECT_EQ(condition(halves, "execute p (7.5)"), "r.id = 37.5000000000000000");
  EXPECT_EQ(condition(halves, "execute p (7.5::float8)"), "r.id = 37.5000000000000000");
  EXPECT_EQ(condition("prepare p (int) as delete from r where id = $1 / 2 * 10", "execute p (7)"),
            "r.id = 30");
  // Integers have their types' widths.
  for (const auto& [type, most, beyond] : {std::tuple("smallint", "32767", "32768"),
                                           {"int", "2147483647", "2147483648"},
                                           {"bigint", "9223372036854775807", "9223372036854775808"}}) {
    const std::string prepare = absl::StrCat("prepare p (", type, ") as delete from r where id = $1");
    EXPECT_EQ(condition(prepare, absl::StrCat("execute p (", most, ")")), absl::StrCat("r.id = ", most));
    EXPECT_EQ(condition(prepare, absl::StrCat("execute p ('", most, "')")), absl::StrCat("r.id = ", most));
    EXPECT_EQ(condition(prepare, absl::StrCat("execute p (", beyond, ")")), "22003");
    EXPECT_EQ(condition(prepare, absl::StrCat("execute p ('", beyond, "')")), "22003");
    EXPECT_EQ(condition(prepare, absl::StrCat("execute p (", beyond, ".4)")), "22003");
  }
  // Strings are of the parameter's type, whose length does not cut.
  const auto type = [&](const std::string& listed, const std::string& argument) {
    const auto remove = bound(absl::StrCat("prepare p (", listed, ") as delete from r where v = $1"),
                              absl::StrCat("execute p (", argument, ")"));
    EXPECT_TRUE(remove.ok()) << remove.status();
    return std::get<DeleteStatement>(*remove).conjuncts[0].children[1].literal;
  };
  EXPECT_EQ(type("varchar(2)", "'abc  '").type, Type::String(Type::kAnyLength));
  EXPECT_EQ(type("varchar(2)", "'abc  '").text, "abc  ");
  EXPECT_EQ(type("varchar", "'ab '::text").type, Type::String(Type::kAnyLength));
  EXPECT_EQ(type("varchar(2)", "12345").text, "12345");
  EXPECT_EQ(type("text", "'ab '::varchar(4)").type, Type::String());
  EXPECT_EQ(type("char(4)", "'ab  '::varchar(4)").type, plan::CharType(0));
  EXPECT_EQ(type("char(4)", "'ab  '::varchar(4)").text, "ab");
  EXPECT_EQ(type("char(4)", "'ab'::char(3)").type, plan::CharType(3));
}

}  // namespace
}  // namespace nam::sql
