#include "optimizer/join_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/plan_query.h"
#include "tests/optimizer/staged_plans.h"
#include "tests/optimizer/unique_tables.h"
#include "tests/plan/reference_run.h"

namespace nam::optimizer {
namespace {

std::string PlanOf(const std::string& text, const LoweringOptions& options = {}) {
  Tables tables;
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  const absl::StatusOr<LoweredTree> lowered = PlanQuery(*std::move(query), options);
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? TextOf(*lowered) : "";
}

/// The plan of every order of FROM; an error unless it is always the same.
std::string PlanOfAnyOrder(const std::string& select, std::vector<std::string> from,
                           const std::string& where) {
  std::sort(from.begin(), from.end());
  std::string first;
  do {
    const std::string text =
        PlanOf(absl::StrCat(select, " from ", absl::StrJoin(from, ", "), " where ", where));
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << absl::StrJoin(from, ", ");
  } while (std::next_permutation(from.begin(), from.end()) && !::testing::Test::HasFailure());
  return first;
}

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(JoinGraphTest, AnyOrderOfFromGivesTheSamePlan) {
  const std::string plan = PlanOfAnyOrder(
      "select p_brand1, count(*)",
      {"lineorder", "part", "supplier",
       "(select lo_custkey as k, max(lo_revenue) as most from lineorder group by 1) x"},
      "lo_partkey = p_partkey and lo_suppkey = s_suppkey and lo_custkey = k and lo_revenue = most "
      "and s_region = 'ASIA' group by 1");
  EXPECT_EQ(CountOf("claimed", plan), 2u) << plan;
  EXPECT_EQ(
      PlanOfAnyOrder("select count(*)",
                     {"lineorder", "(values (1), (2)) as v(k)", "part", "generate_series(1, 5) as g(n)",
                      "(select c_custkey, count(*) as c from customer left join date on d_datekey = "
                      "c_custkey group by 1) y"},
                     "lo_partkey = p_partkey and lo_tax = k and lo_discount = n and lo_custkey = c_custkey")
          .find("build rows"),
      std::string::npos);
}

TEST(JoinGraphTest, GroupsAreOfFewKeysWhereverTheTableOfTheKeysIs) {
  std::vector<std::string> from = {"(select t_id as k, count(*) as c from u group by t_id) g", "t", "u"};
  do {
    const std::string text = absl::StrCat("select count(*) from ", absl::StrJoin(from, ", "),
                                          " where t.n = 1 and t.id = u.t_id and g.k = u.t_id and g.c > 1");
    UniqueTables tables;
    absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
    ASSERT_TRUE(query.ok()) << query.status();
    const absl::StatusOr<LoweredTree> lowered = PlanQuery(*std::move(query));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(CountOf("scan t ", TextOf(*lowered)), 2u) << TextOf(*lowered);
  } while (std::next_permutation(from.begin(), from.end()));
}

TEST(JoinGraphTest, ServersBuildConstantsThemselves) {
  const std::string equal = PlanOf(
      "select p_brand1, lo_tax from lineorder, (values (1), (2), (2)) as v(k), part "
      "where lo_partkey = p_partkey and lo_tax = k");
  EXPECT_EQ(CountOf("stage 0", equal), 3u) << equal;
  EXPECT_EQ(CountOf("stage 1", equal), 1u) << equal;
  EXPECT_LT(equal.find("3 rows"), equal.find("claimed")) << equal;
  // A range is a loop over the constants.
  const std::string range = PlanOf(
      "select lo_tax, g from lineorder, generate_series(1, 9) as g where lo_discount between g and g + 1");
  EXPECT_EQ(CountOf("stage 1", range), 1u) << range;
  EXPECT_EQ(CountOf("in a loop", range), 1u) << range;
  for (const std::string text :
       {"select lo_tax from lineorder where lo_tax in (select k from (values (1), (2)) as v(k))",
        "select lo_tax, k from lineorder left join (values (1), (2)) as v(k) on lo_tax = k"}) {
    const std::string plan = PlanOf(text);
    EXPECT_EQ(CountOf("stage 1", plan), 1u) << plan;
  }
}

TEST(JoinGraphTest, ManyConstantsStayWithTheSession) {
  const std::string plan =
      PlanOf("select count(*) from supplier, generate_series(1, 1000000) as g where s_suppkey = g");
  EXPECT_EQ(CountOf("stage 0", plan), 1u) << plan;
}

TEST(JoinGraphTest, AFullJoinWithConstantsIsTheSessions) {
  const std::string plan =
      PlanOf("select lo_tax, k from lineorder full join (values (1), (2)) as v(k) on lo_tax = k");
  EXPECT_EQ(CountOf("stage 0", plan), 1u) << plan;
}

TEST(JoinGraphTest, WhatMayFailIsCheckedLast) {
  const std::string joins =
      "select count(*) from lineorder, part, supplier where lo_partkey = p_partkey and lo_suppkey = "
      "s_suppkey ";
  const std::string fails = PlanOf(joins + "and lo_tax / s_suppkey = 1");
  EXPECT_LT(fails.rfind("probe"), fails.find(" / ")) << fails;
  const std::string never = PlanOf(joins + "and lo_tax - s_suppkey = 1");
  EXPECT_GT(never.rfind("probe"), never.find(" - ")) << never;
}

TEST(JoinGraphTest, StatisticsReachThroughSelectLists) {
  const std::string plan = PlanOf(
      "select d from (select lo_discount + lo_tax as d, lo_quantity as q from lineorder limit 70000) x "
      "where q < 600121 and q + 1 < 5");
  EXPECT_NE(plan.find("~70000"), std::string::npos) << plan;
  EXPECT_NE(plan.find("~2333"), std::string::npos) << "a tenth, by the column's range, and a third: " << plan;
}

const std::vector<std::string> kQueries = {
    "select t.id, v.k from (values (1, 2), (3, 4), (0, 5)) as v(k, w), t, u where t.id = v.k and u.t_id < "
    "v.w",
    "select v.k, w.k, t.id from (values (1), (2)) as v(k), (values (2), (3)) as w(k), t, u where u.t_id = "
    "t.id "
    "and v.k <> w.k",
    "select a.id, b.id, v.k from t a, u b, (values (1), (2), (2)) as v(k) where a.n = v.k and b.t_id = v.k",
    "select t.id, g from t, u, generate_series(1, 3) as g where t.id = u.t_id and u.id between g and g + 1",
    "select t.id, k from t left join (values (1), (2)) as v(k) on t.id = k, u where u.id = t.id",
    "select t.id from t where t.n not in (select k from (values (1), (2)) as v(k))",
    // What may fail comes after what guards it.
    "select t.id from (values (0), (2)) as v(k), t, u where t.id = u.t_id and v.k <> 0 and t.n / v.k = 1",
    "select t.id from (values (0), (2)) as v(k), t, u where u.id = v.k and u.id <> 0 and t.n / v.k = 1 and "
    "t.id = u.t_id",
    "select t.id, u.id, v.k from t left join u on u.t_id = t.id, (values (1), (2)) as v(k), u w where v.k = "
    "t.n and w.id = t.id",
    "select t.id from t, u where t.id is not distinct from u.t_id and t.n is not distinct from u.id",
};

using plan::logical::testing::Rows;

/// Unique tables whose statistics have the bounds of their rows.
class BoundedTables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto found, tables_.Find(name));
    auto table = std::make_shared<proto::Table>(*found);
    for (proto::Column& column : *table->mutable_columns()) {
      column.set_min(0);
      column.set_max(1000);
    }
    return table;
  }
  std::vector<std::string> Names() override { return tables_.Names(); }

 private:
  UniqueTables tables_;
};

Rows RunPlan(const LoweredTree& tree, const plan::logical::testing::TableRows& contents) {
  plan::testing::TableRows tables;
  for (uint32_t t = 0; t < tree.lowered.tables.size(); ++t)
    tables[t] = contents.at(tree.lowered.tables[t]->name());
  const absl::StatusOr<std::vector<Rows>> ran = plan::testing::Run(tree.lowered.plan, tables);
  EXPECT_TRUE(ran.ok()) << ran.status() << "\n" << TextOf(tree);
  return ran.ok() ? ran->back() : Rows();
}

TEST(JoinGraphTest, PlansHaveTheRowsOfTheirQueries) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto less = plan::logical::testing::Before;
  size_t with_rows = 0;
  for (const std::string& text : kQueries) {
    BoundedTables tables;
    const plan::logical::Query query = Bound(text, tables);
    const absl::StatusOr<LoweredTree> lowered = LowerTree(query, {});
    ASSERT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
    for (int i = 0; i < 60; ++i) {
      const plan::logical::testing::TableRows contents = RowsOfUniqueTables(random);
      absl::StatusOr<Rows> wanted = plan::logical::testing::Run(query, contents);
      Rows rows = RunPlan(*lowered, contents);
      if (!wanted.ok()) continue;  // the tree has no guard before what may fail
      std::sort(rows.begin(), rows.end(), less);
      std::sort(wanted->begin(), wanted->end(), less);
      ASSERT_TRUE(std::equal(rows.begin(), rows.end(), wanted->begin(), wanted->end(),
                             [&](const auto& a, const auto& b) { return !less(a, b) && !less(b, a); }))
          << text << "\n"
          << TextOf(*lowered);
      if (!rows.empty()) ++with_rows;
    }
  }
  EXPECT_GT(with_rows, 200u);
}

}  // namespace
}  // namespace nam::optimizer
