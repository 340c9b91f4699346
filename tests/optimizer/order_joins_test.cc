#include "optimizer/order_joins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/optimizer/staged_plans.h"
#include "tests/optimizer/unique_tables.h"

namespace nam::optimizer {
namespace {

/// The plan's text without the numbers of relations, which follow FROM.
std::string PlanOf(const std::string& text) {
  Tables tables;
  plan::logical::Query query = Bound(text, tables);
  OrderJoins(query);
  EXPECT_EQ(CheckTree(query, true), absl::OkStatus()) << ToString(*query.root);
  const absl::StatusOr<LoweredTree> lowered = LowerTree(query, {});
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? TextOf(*lowered) : "";
}

TEST(OrderJoinsTest, AnyOrderOfFromGivesTheSamePlan) {
  std::vector<std::string> from = {
      "lineorder", "part", "supplier",
      "(select lo_custkey as k, max(lo_revenue) as most from lineorder group by 1) x"};
  std::sort(from.begin(), from.end());
  std::string first;
  do {
    const std::string text = PlanOf(absl::StrCat(
        "select p_brand1, count(*) from ", absl::StrJoin(from, ", "),
        " where lo_partkey = p_partkey and lo_suppkey = s_suppkey and lo_custkey = k and lo_revenue = most "
        "and s_region = 'ASIA' group by 1"));
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << absl::StrJoin(from, ", ");
  } while (std::next_permutation(from.begin(), from.end()));
  EXPECT_NE(first.find("probe"), std::string::npos) << first;
}

TEST(OrderJoinsTest, ServersJoinTheTablesOfAStarAroundSomethingElse) {
  Tables tables;
  plan::logical::Query query = Bound(
      "select count(*) from lineorder, (values (1), (2)) as v(k), part where lo_partkey = p_partkey and "
      "lo_tax = k",
      tables);
  OrderJoins(query);
  const absl::StatusOr<LoweredTree> lowered = LowerTree(query, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ASSERT_EQ(lowered->lowered.stages.size(), 1u) << TextOf(*lowered);
  EXPECT_EQ(StageTablesOf(lowered->lowered.plan, lowered->lowered.tables, 0).builds.size(), 1u)
      << TextOf(*lowered);
}

const std::vector<std::string> kQueries = {
    "select t.id, g.s, v.n from t, (select t_id, sum(price) as s from u group by t_id) g, t v "
    "where g.t_id = t.id and v.id = t.n",
    "select * from (select t_id, count(*) as c from u group by t_id) g, t, u where g.t_id = u.id and t.id = "
    "u.t_id",
    "select t.id, v.k from (values (1, 2), (3, 4), (0, 5)) as v(k, w), t, u where t.id = v.k and u.t_id < "
    "v.w",
    "select * from (values (1), (2)) as v(k), (values (2), (3)) as w(k), t, u where u.t_id = t.id and v.k <> "
    "w.k",
    // A set operation knows columns by their places.
    "select t.id, g.c from (select t_id, count(*) as c from u group by t_id) g, t, u where g.t_id = t.id and "
    "u.id = t.n union all select id, t_id from u",
    "with w as (select * from (values (1, 7), (2, 8)) as v(k, x), t, u where t.id = v.k and u.t_id = t.id) "
    "select a.x, b.n from w a, w b where a.k = b.k",
    // What may fail stays behind what guards it.
    "select t.id from (values (0), (2)) as v(k), t, u where t.id = u.t_id and v.k <> 0 and t.n / v.k = 1",
    "select t.id, u.id, v.k from t left join u on u.t_id = t.id, (values (1), (2)) as v(k), u w where v.k = "
    "t.n "
    "and w.id = t.id",
};

TEST(OrderJoinsTest, TheRowsStay) {
  EXPECT_GT(ExpectSameRows(kQueries, OrderJoins), 200u);
}

TEST(OrderJoinsTest, TheResultsColumnsStayInTheirPlaces) {
  plan::logical::Query query = BoundToUniqueTables(kQueries[0]);
  while (query.root->As<plan::logical::Join>() == nullptr) query.root = std::move(query.root->inputs[0]);
  const std::vector<plan::logical::Column> before = query.root->columns;
  const std::string tree = ToString(*query.root);
  OrderJoins(query);
  EXPECT_NE(ToString(*query.root), tree);
  ASSERT_EQ(query.root->columns.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(query.root->columns[i].ref, before[i].ref) << i;
}

TEST(OrderJoinsTest, JoinsOfTablesAloneStayAsTheyAre) {
  for (const std::string text :
       {"select count(*) from t, u, t v where t.id = u.t_id and v.id = u.id",
        "select count(*) from t, (values (1)) as v(k) where t.id = v.k",
        "select count(*) from (values (0), (2)) as v(k), t, u where t.id = u.t_id and t.n / v.k = 1"}) {
    plan::logical::Query query = BoundToUniqueTables(text);
    const std::string before = ToString(*query.root);
    OrderJoins(query);
    EXPECT_EQ(ToString(*query.root), before) << text;
  }
}

}  // namespace
}  // namespace nam::optimizer
