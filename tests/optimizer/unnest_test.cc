#include "optimizer/unnest.h"

#include <gtest/gtest.h>

#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

namespace nam::optimizer {
namespace {

std::string Unnested(const std::string& text) {
  sql::FakeTables tables;
  auto query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return "";
  EXPECT_EQ(Unnest(*query), absl::OkStatus());
  EXPECT_EQ(CheckTree(*query, true), absl::OkStatus());
  return "\n" + ToString(*query->root);
}

TEST(UnnestTest, ExistsBecomesASemiJoin) {
  EXPECT_EQ(
      Unnested("select id from t where exists (select * from u where u.t_id = t.id and u.price < t.price)"),
      R"(
Project #4.0 = #0.0
  Join semi on #1.1 = #0.0, #1.2 < #0.2
    Scan t as #0: 0 1 2 3 4 5 6 7
    Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, NotExistsBecomesAnAntiJoin) {
  EXPECT_EQ(Unnested("select id from t where not exists (select 1 from u where u.t_id = t.n)"), R"(
Project #4.0 = #0.0
  Join anti on #1.1 = #0.1
    Scan t as #0: 0 1 2 3 4 5 6 7
    Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, NotInMindsNulls) {
  EXPECT_EQ(Unnested("select id from t where n not in (select t_id from u where u.day = t.day)"), R"(
Project #4.0 = #0.0
  Join null-aware anti on #1.5 = #0.4 compared #0.1 = #2.0
    Scan t as #0: 0 1 2 3 4 5 6 7
    Project #2.0 = #1.1, #1.5 = #1.5
      Scan u as #1: 0 1 2 3 4 5
)");
  EXPECT_EQ(Unnested("select id from t where id not in (select t_id from u)"), R"(
Project #4.0 = #0.0
  Join anti on #0.0 = #2.0
    Scan t as #0: 0 1 2 3 4 5 6 7
    Project #2.0 = #1.1
      Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, MarksThatAreAskedTwiceStay) {
  EXPECT_EQ(Unnested("select id, exists (select 1 from u where u.t_id = t.id) from t"), R"(
Project #4.0 = #0.0, #4.1 = #3.0
  Join mark #3.0 on #1.1 = #0.0
    Scan t as #0: 0 1 2 3 4 5 6 7
    Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, WhatIsSaidOfOneSideIsSaidBeforeALeftJoin) {
  EXPECT_EQ(Unnested("select t.id from t left join u on u.t_id = t.n where t.id in (select t_id from u)"), R"(
Project #5.0 = #0.0
  Join left on #1.1 = #0.1
    Join semi on #0.0 = #3.0
      Scan t as #0: 0 1 2 3 4 5 6 7
      Project #3.0 = #2.1
        Scan u as #2: 0 1 2 3 4 5
    Scan u as #1: 0 1 2 3 4 5
)");
  EXPECT_EQ(Unnested("select t.id from t left join u on u.t_id = t.n where exists (select 1 from u v where "
                     "v.t_id = u.id)"),
            R"(
Project #5.0 = #0.0
  Join semi on #2.1 = #1.0
    Join left on #1.1 = #0.1
      Scan t as #0: 0 1 2 3 4 5 6 7
      Scan u as #1: 0 1 2 3 4 5
    Scan u as #2: 0 1 2 3 4 5
)");
}

/// The subquery is evaluated for fewer rows, where it is not evaluated for the value itself.
TEST(UnnestTest, WhatIsSaidOfOneSideIsSaidBeforeAScalarSubquery) {
  const auto first = [](const std::string& text) {
    const std::string tree = Unnested(text);
    const size_t semi = tree.find("Join semi"), single = tree.find("Join single");
    EXPECT_TRUE(semi != std::string::npos && single != std::string::npos) << tree;
    return semi > single ? "semi" : "single";
  };
  const std::string of_rows = "select id from t where price > (select max(price) from u) and ";
  EXPECT_STREQ(first(of_rows + "exists (select 1 from u v where v.t_id = t.id)"), "semi");
  EXPECT_STREQ(first("select id from t where (select max(id) from u) in (select v.t_id from u v)"), "single");
  EXPECT_STREQ(first("select id from t where (select max(id) from u) in (select v.t_id from u v where v.id = "
                     "t.id)"),
               "single");
  // The value may keep it from failing.
  EXPECT_STREQ(first(of_rows + "exists (select 1 from u v where v.t_id = 100 / t.id)"), "single");
}

TEST(UnnestTest, ScalarAggregatesAreGrouped) {
  EXPECT_EQ(Unnested("select id from t where price < (select 2 * avg(u.price) from u where u.t_id = t.id)"),
            R"(
Project #5.0 = #0.0
  Filter #0.2 < #4.0
    Project #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #6.0 = #6.0, #6.1 = #6.1, #2.0 = #2.0, #4.0 = 2 * #2.0
      Project #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #6.0 = #6.0, #6.1 = #6.1, #2.0 = #6.1
        Join left on #6.0 = #0.0
          Scan t as #0: 0 1 2 3 4 5 6 7
          Aggregate #6.0 = #1.1, #6.1 = avg(#1.2)
            Scan u as #1: 0 1 2 3 4 5
)");
  EXPECT_EQ(Unnested("select id, (select count(*) from u where u.t_id = t.n) from t"), R"(
Project #5.0 = #0.0, #5.1 = #4.0
  Project #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #6.0 = #6.0, #6.1 = #6.1, #2.0 = #2.0, #4.0 = #2.0
    Project #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #6.0 = #6.0, #6.1 = #6.1, #2.0 = CASE WHEN #6.1 IS NULL THEN 0 ELSE #6.1 END
      Join left on #6.0 = #0.1
        Scan t as #0: 0 1 2 3 4 5 6 7
        Aggregate #6.0 = #1.1, #6.1 = count(*)
          Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, OtherCorrelationsAreComputedForTheDomain) {
  EXPECT_EQ(Unnested("select id, (select count(*) from u where u.t_id < t.n) from t"), R"(
Project #5.0 = #0.0, #5.1 = #4.0
  With cte 0 outer
    Scan t as #0: 0 1 2 3 4 5 6 7
    With cte 1 domain
      Distinct
        CteScan cte 0: #10.0 = 1
      Join single on #0.1 = #9.0 OR #0.1 IS NULL AND #9.0 IS NULL
        CteScan cte 0: #0.0 = 0 #0.1 = 1 #0.2 = 2 #0.3 = 3 #0.4 = 4 #0.5 = 5 #0.6 = 6 #0.7 = 7
        Project #4.0 = #2.0, #9.0 = #9.0
          Project #2.0 = CASE WHEN #8.0 IS NULL THEN 0 ELSE #8.0 END, #9.0 = #9.0
            Join left on #9.0 = #7.0 OR #9.0 IS NULL AND #7.0 IS NULL
              CteScan cte 1: #9.0 = 0
              Aggregate #7.0 = #6.0, #8.0 = count(*)
                Filter #1.1 < #6.0
                  Join inner
                    CteScan cte 1: #6.0 = 0
                    Scan u as #1: 0 1 2 3 4 5
)");
  EXPECT_EQ(
      Unnested("select t.id, q.price from t, lateral (select u.price from u where u.t_id = t.id order by "
               "u.price desc limit 2) q"),
      R"(
Project #4.0 = #0.0, #4.1 = #3.0
  With cte 0 outer
    Scan t as #0: 0 1 2 3 4 5 6 7
    With cte 1 domain
      Distinct
        CteScan cte 0: #7.0 = 0
      Join inner on #0.0 = #5.0
        CteScan cte 0: #0.0 = 0 #0.1 = 1 #0.2 = 2 #0.3 = 3 #0.4 = 4 #0.5 = 5 #0.6 = 6 #0.7 = 7
        Project #3.0 = #2.0, #5.0 = #5.0
          Filter #6.0 <= 2
            Window partition by #5.0 order by #2.0 desc: #6.0 = row_number()
              Project #2.0 = #1.2, #5.0 = #5.0
                Filter #1.1 = #5.0
                  Join inner
                    CteScan cte 1: #5.0 = 0
                    Scan u as #1: 0 1 2 3 4 5
)");
}

TEST(UnnestTest, ExpressionsNeedNoJoin) {
  EXPECT_EQ(Unnested("select (select t.n + 1) from t"), R"(
Project #2.0 = #1.0
  Project #0.0 = #0.0, #0.1 = #0.1, #0.2 = #0.2, #0.3 = #0.3, #0.4 = #0.4, #0.5 = #0.5, #0.6 = #0.6, #0.7 = #0.7, #1.0 = #0.1 + 1
    Scan t as #0: 0 1 2 3 4 5 6 7
)");
}

TEST(UnnestTest, SeveralEmptyGroupingSetsAreRefused) {
  sql::FakeTables tables;
  auto query = sql::BindLogical(
      "select id, (select max(q.c) from (select count(*) as c from u where u.t_id < t.id group by grouping "
      "sets ((), "
      "())) q) from t",
      tables);
  ASSERT_TRUE(query.ok()) << query.status();
  const auto error = SqlErrorOf(Unnest(*query));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, sqlstate::kNotSupported);
}

}  // namespace
}  // namespace nam::optimizer
