#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

namespace nam::sql {
namespace {

absl::StatusOr<plan::logical::Query> BindText(const std::string& text) {
  FakeTables tables;
  return BindLogical(text, tables);
}

/// The tree of a query that must bind.
std::string Tree(const std::string& text) {
  const auto query = BindText(text);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return "";
  EXPECT_EQ(CheckTree(*query, false), absl::OkStatus());
  return "\n" + ToString(*query->root);
}

SqlError ErrorOf(const std::string& text) {
  const auto query = BindText(text);
  EXPECT_FALSE(query.ok()) << text;
  if (query.ok()) return {};
  const std::optional<SqlError> error = SqlErrorOf(query.status());
  EXPECT_TRUE(error.has_value()) << text << "\n" << query.status();
  return error.value_or(SqlError());
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(LogicalBindTest, ScansFiltersAndProjects) {
  EXPECT_EQ(Tree("select n + 1 as x, name from t where n > 2 and ok"), R"(
Project #1.0 = #0.1 + 1, #1.1 = #0.5
  Filter #0.1 > 2, #0.6
    Scan t as #0: 0 1 2 3 4 5 6 7
)");
}

/// Names are those of PostgreSQL's FigureColname: a cast or a CASE keeps a subquery's name.
TEST(LogicalBindTest, SubqueriesNameTheirColumns) {
  const std::pair<const char*, const char*> kNames[] = {
      {"exists (select 1 from u)", "exists"},
      {"1 in (select id from u)", "?column?"},
      {"(select max(id) from u)", "max"},
      {"(select id as x from u limit 1)", "x"},
      {"cast((select max(id) from u) as text)", "max"},
      {"cast((select 1) as text)", "?column?"},
      {"case when true then 1 else (select max(id) from u) end", "max"},
      {"(select least(1, 2))", "least"},
      {"(values (1))", "column1"},
      {"(select 1 as a union all select 2 as b limit 1)", "a"},
      {"(select 1 as a intersect select 2 union select 3 limit 1)", "a"},
      {"cast(exists (select 1 from u) as text)", "exists"}};
  for (const auto& [expression, name] : kNames) {
    const auto query = BindText(absl::StrCat("select ", expression));
    ASSERT_TRUE(query.ok()) << expression << "\n" << query.status();
    EXPECT_EQ(query->root->columns.at(0).name, name) << expression;
  }
  const auto grouped = BindText("select case when true then 1 else grouping(n) end from t group by n");
  ASSERT_TRUE(grouped.ok()) << grouped.status();
  EXPECT_EQ(grouped->root->columns.at(0).name, "grouping");
  FakeTables tables;
  const auto now = Bind("select current_date, current_timestamp, localtimestamp", tables, 0);
  ASSERT_TRUE(now.ok()) << now.status();
  const auto& columns = std::get<TreeStatement>(*now).tree->root->columns;
  EXPECT_EQ(columns.at(0).name, "current_date");
  EXPECT_EQ(columns.at(1).name, "current_timestamp");
  EXPECT_EQ(columns.at(2).name, "localtimestamp");
}

TEST(LogicalBindTest, OuterJoinsKeepTheirConditions) {
  EXPECT_EQ(Tree("select t.id, u.id from t left join u on t.id = u.t_id and u.price > 1 where t.n = 1"), R"(
Project #2.0 = #0.0, #2.1 = #1.0
  Filter #0.1 = 1
    Join left on #0.0 = #1.1, #1.2 > 1
      Scan t as #0: 0 1 2 3 4 5 6 7
      Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(LogicalBindTest, UsingMergesColumnsOfFullJoins) {
  EXPECT_EQ(Tree("select id, t.id from t full join u using (id)"), R"(
Project #3.0 = #2.0, #3.1 = #0.0
  Project #2.0 = CASE WHEN #0.0 IS NOT NULL THEN #0.0 ELSE #1.0 END, #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #1.0 = #1.0, #1.1 = #1.1, #1.2 = #1.2, #1.3 = #1.3, #1.4 = #1.4, #1.5 = #1.5
    Join full on #0.0 = #1.0
      Scan t as #0: 0 1 2 3 4 5 6 7
      Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(LogicalBindTest, SubqueriesAreJoinsBelowTheirUser) {
  EXPECT_EQ(
      Tree("select id, (select max(u.price) from u where u.t_id = t.id) from t where exists (select 1 from u "
           "where u.id = t.n) and n not in (select t_id from u)"),
      R"(
Project #11.0 = #0.0, #11.1 = #4.0
  Join single dependent
    Filter #7.0, NOT #10.0
      Join mark #10.0 compared #0.1 = #9.0
        Join mark dependent #7.0
          Scan t as #0: 0 1 2 3 4 5 6 7
          Project #6.0 = 1
            Filter #5.0 = #0.1
              Scan u as #5: 0 1 2 3 4 5
        Project #9.0 = #8.1
          Scan u as #8: 0 1 2 3 4 5
    Project #4.0 = #2.0
      Aggregate #2.0 = max(#1.2)
        Filter #1.1 = #0.0
          Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(LogicalBindTest, SubqueriesAboveGroupsNameGroups) {
  EXPECT_EQ(
      Tree("select n, count(*), (select max(u.id) + sum(t.id) from u where u.t_id = t.n) from t group by n "
           "having min(price) > 1"),
      R"(
Project #7.0 = #6.0, #7.1 = #1.0, #7.2 = #5.0
  Join single dependent
    Filter #1.2 > 1
      Aggregate #6.0 = #0.1, #1.0 = count(*), #1.1 = sum(#0.0), #1.2 = min(#0.2)
        Scan t as #0: 0 1 2 3 4 5 6 7
    Project #5.0 = #3.0 + #1.1
      Aggregate #3.0 = max(#2.0)
        Filter #2.1 = #6.0
          Scan u as #2: 0 1 2 3 4 5
)");
}

TEST(LogicalBindTest, CommonTablesUsedOnceAreInlinedAndUsedTwiceAreShared) {
  EXPECT_EQ(Tree("with c as (select id, n from t) select id from c where n > 1"), R"(
Project #3.0 = #2.0
  Filter #2.1 > 1
    Project #2.0 = #1.0, #2.1 = #1.1
      Project #1.0 = #0.0, #1.1 = #0.1
        Scan t as #0: 0 1 2 3 4 5 6 7
)");
  EXPECT_EQ(Tree("with c as (select id, n from t) select a.id from c a, c b where a.n = b.id"), R"(
With cte 0 c
  Project #1.0 = #0.0, #1.1 = #0.1
    Scan t as #0: 0 1 2 3 4 5 6 7
  Project #4.0 = #2.0
    Filter #2.1 = #3.0
      Join inner
        CteScan cte 0: #2.0 = 0 #2.1 = 1
        CteScan cte 0: #3.0 = 0 #3.1 = 1
)");
}

TEST(LogicalBindTest, WindowsOfOneOrderShareAnOperator) {
  EXPECT_EQ(
      Tree("select rank() over w, sum(n) over (w rows 2 preceding), count(*) over () from t window w as "
           "(partition by ok order by day desc)"),
      R"(
Project #3.0 = #1.0, #3.1 = #1.1, #3.2 = #2.0
  Window: #2.0 = count(*) range unbounded preceding to current row
    Window partition by #0.6 order by #0.4 desc: #1.0 = rank(), #1.1 = sum(#0.1) rows 2 preceding to current row
      Scan t as #0: 0 1 2 3 4 5 6 7
)");
}

TEST(LogicalBindTest, SetOperationsConvertToCommonTypes) {
  EXPECT_EQ(
      Tree("select id, null from t union all select price, day from u union all select 1, null order by 1 "
           "limit 3"),
      R"(
Limit 3
  Sort #4.0
    Union all #4.0 #4.1
      Project #5.0 = CAST(#1.0 AS decimal(38,2)), #5.1 = NULL
        Project #1.0 = #0.0, #1.1 = NULL
          Scan t as #0: 0 1 2 3 4 5 6 7
      Project #3.0 = #2.2, #3.1 = #2.5
        Scan u as #2: 0 1 2 3 4 5
      Project #8.0 = CAST(#6.0 AS decimal(38,2)), #8.1 = NULL
        Project #6.0 = 1, #6.1 = NULL
          Values 1 rows
)");
}

TEST(LogicalBindTest, GroupingSetsAndHiddenOrderColumns) {
  EXPECT_EQ(Tree("select distinct on (ok) ok, n from t group by rollup (ok, n) order by ok, grouping(n), n"),
            R"(
Project #3.0 = #3.0, #3.1 = #3.1
  Sort #3.0, #3.2, #3.1
    Distinct on #3.0 order by #3.0, #3.2, #3.1
      Project #3.0 = #2.0, #3.1 = #2.1, #3.2 = #1.0
        Aggregate #2.0 = #0.6, #2.1 = #0.1, #1.0 = grouping(1) {0, 1} {0} {}
          Scan t as #0: 0 1 2 3 4 5 6 7
)");
}

TEST(LogicalBindTest, ColumnsThatFollowFromAGroupedPrimaryKeyAreGrouped) {
  EXPECT_EQ(
      Tree("select r.v, sum(pairs.v) from r join pairs on pairs.a = r.k group by r.id having max(r.n) > 1"),
      R"(
Project #4.0 = #3.1, #4.1 = #2.0
  Filter #2.1 > 1
    Aggregate #3.0 = #0.0, #3.1 = #0.7, #2.0 = sum(#1.0), #2.1 = max(#0.2)
      Join inner on #1.2 = #0.1
        Scan r as #0: 0 1 2 3 4 5 6 7 8
        Scan pairs as #1: 0 1 2
)");
  EXPECT_EQ(ErrorOf("select v from pairs group by a").sqlstate, "42803");
  EXPECT_EQ(ErrorOf("select v from pairs group by rollup (a, b)").sqlstate, "42803");
  EXPECT_EQ(ErrorOf("select r.v from r join pairs on pairs.a = r.k group by pairs.a").sqlstate, "42803");
}

TEST(LogicalBindTest, ErrorsPointAtTheirWords) {
  const struct {
    const char *text, *at, *sqlstate;
  } kErrors[] = {
      {"select id from t where id in (select nothing from u)", "nothing", "42703"},
      {"select t.id from t, (select u.id from u where u.t_id = t.n) q", "t.n", "42P01"},
      {"select t.id from t join u on x.id = 1", "x.id", "42P01"},
      {"select n, price from t group by n", "price", "42803"},
      {"select n from t where count(*) > 1", "count", "42803"},
      {"select n from t where rank() over () > 1", "rank", "42P20"},
      {"select id from t union select id, n from t", "id, n from", "42601"},
      {"select id from t union select name from t", "name", "42804"},
      {"select id from t order by 3", "3", "42P10"},
      {"select sum(sum(n)) from t", "sum(n)", "42803"},
      {"select * from t tablesample system (1)", "tablesample", "0A000"},
      {"with recursive c as (select 1) select * from c", "recursive", "0A000"},
      {"select id from t for update", "for", "0A000"},
      {"select upper(name) over () from t", "upper", "0A000"},
  };
  for (const auto& expected : kErrors) {
    const SqlError error = ErrorOf(expected.text);
    EXPECT_EQ(error.sqlstate, expected.sqlstate) << expected.text << "\n" << error.message;
    EXPECT_EQ(error.position, static_cast<int>(std::string(expected.text).find(expected.at)))
        << expected.text << "\n"
        << error.message;
  }
}

TEST(LogicalBindTest, AFrameBeginsBeforeItsEnd) {
  for (const char* frame :
       {"between current row and 1 preceding", "between 1 following and current row",
        "between 1 following and 1 preceding", "between unbounded following and current row",
        "between current row and unbounded preceding", "1 following"}) {
    const SqlError error = ErrorOf(absl::StrCat("select sum(n) over (order by id rows ", frame, ") from t"));
    EXPECT_EQ(error.sqlstate, "42P20") << frame << "\n" << error.message;
  }
}

/// PostgreSQL checks an offset's type first.
TEST(LogicalBindTest, AFramesOffsetIsANumberWithoutColumns) {
  const auto state = [](const std::string& offset) {
    return ErrorOf(absl::StrCat("select sum(n) over (order by id rows ", offset, " preceding) from t"))
        .sqlstate;
  };
  EXPECT_EQ(state("n"), "42P10");
  EXPECT_EQ(state("name"), "42804");
  EXPECT_EQ(state("nothing"), "42703");
  EXPECT_EQ(state("-1"), "22013");
  EXPECT_EQ(state("null"), "22004");
}

TEST(LogicalBindTest, AnErrorOfTheCatalogComesThrough) {
  FakeTables tables;
  tables.Fail(absl::UnavailableError("no catalog"));
  EXPECT_EQ(BindLogical("select id from t", tables).status().code(), absl::StatusCode::kUnavailable);
}

TEST(LogicalBindTest, ATableIsLookedUpOnceAStatement) {
  FakeTables tables;
  EXPECT_TRUE(
      BindLogical("select a.id from t a, t b where exists (select 1 from t c where c.id = a.id)", tables)
          .ok());
  EXPECT_EQ(tables.lookups(), 1);
}

TEST(LogicalBindTest, NestingHasBounds) {
  const auto in_from = [](int depth) {
    return Repeated("select * from (", depth) + "select id from t" + Repeated(") q", depth);
  };
  EXPECT_TRUE(BindText(in_from(50)).ok());
  EXPECT_EQ(ErrorOf(in_from(400)).sqlstate, sqlstate::kTooComplex);
  const auto in_where = [](int depth) {
    return Repeated("select 1 from t where exists (", depth) + "select 1 from u" + Repeated(")", depth);
  };
  EXPECT_TRUE(BindText(in_where(50)).ok());
  EXPECT_EQ(ErrorOf(in_where(400)).sqlstate, sqlstate::kTooComplex);
  const auto joins = [](int depth) {
    return "select 1 from " + Repeated("(", depth) + "t" + Repeated(" cross join (select 1 as x) q)", depth);
  };
  EXPECT_EQ(ErrorOf(joins(700)).sqlstate, sqlstate::kTooComplex);
  // Chains are no nesting.
  EXPECT_TRUE(BindText("select 1" + Repeated(" union all select 2", 2000)).ok());
  EXPECT_TRUE(BindText("select 1" + Repeated(" union all select 2 except select 3", 800)).ok());
}

}  // namespace
}  // namespace nam::sql
