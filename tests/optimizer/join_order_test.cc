#include <gtest/gtest.h>

#include <map>
#include <string>

#include "optimizer/plan_query.h"
#include "plan/flow.h"
#include "sql/logical_binder.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

/// Tables of integers with made-up statistics.
class IntegerTables final : public sql::TableSource {
 public:
  struct Column {
    std::string name;
    uint64_t distinct = 1;
    int64_t min = 0, max = 0;
    uint64_t nulls = 0;
    bool unique = false;
  };
  void Add(const std::string& name, uint64_t rows, const std::vector<Column>& columns, int partitions = 64) {
    auto table = std::make_shared<proto::Table>();
    table->set_name(name);
    table->set_rows(rows);
    for (const Column& spec : columns) {
      proto::Column& column = *table->add_columns();
      column.set_name(spec.name);
      *column.mutable_type() = ToProto(Type::Integer());
      column.set_nullable(spec.nulls > 0);
      column.set_nulls(spec.nulls);
      column.set_distinct(spec.distinct);
      column.set_unique(spec.unique);
      column.set_min(spec.min);
      column.set_max(spec.max);
      column.mutable_encoding()->set_width(4);
    }
    for (int p = 0; p < partitions; ++p)
      table->add_partitions()->set_rows(rows / static_cast<uint64_t>(partitions));
    tables_[name] = std::move(table);
  }
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    const auto found = tables_.find(name);
    if (found == tables_.end()) return absl::NotFoundError("no such table");
    return found->second;
  }
  std::vector<std::string> Names() override { return {}; }

 private:
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_;
};

/// A plan of one stage of servers, which streams a table through probes.
struct PlannedStar {
  plan::PhysicalPlan plan;
  TableRefs tables;

  const plan::Pipeline& claimed() const { return plan.pipelines[plan.stages[0].claimed]; }
  const plan::ProbeStep& Probe(size_t j) const { return std::get<plan::ProbeStep>(claimed().steps.at(j)); }
  const plan::BuildSink& Build(size_t j) const {
    return std::get<plan::BuildSink>(plan.pipelines[Probe(j).build].sink);
  }
  double RowsAfter(size_t j) const { return claimed().estimates.at(j + 1).rows; }
  /// The streamed table, followed by the build sides.
  std::string Order() const {
    std::string text = NameOf(claimed());
    for (const plan::StepNode& step : claimed().steps) {
      if (const auto* probe = std::get_if<plan::ProbeStep>(&step); probe != nullptr)
        text += " " + NameOf(plan.pipelines[probe->build]);
    }
    return text;
  }
  double Selectivity() const { return claimed().estimates[0].selectivity; }

 private:
  const std::string& NameOf(const plan::Pipeline& pipeline) const {
    return tables[plan::ScanOf(pipeline)->table]->name();
  }
};

PlannedStar PlanStar(IntegerTables& statistics, const std::string& text, const ClusterShape& cluster = {}) {
  auto tree = sql::BindLogical(text, statistics);
  EXPECT_TRUE(tree.ok()) << tree.status();
  auto lowered = PlanQuery(*std::move(tree), {.cluster = cluster});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(lowered->lowered.stages.size(), 1u);
  return {.plan = std::move(lowered->lowered.plan), .tables = std::move(lowered->lowered.tables)};
}

IntegerTables StarTables() {
  IntegerTables statistics;
  statistics.Add("f", 1'000'000, {{"a", 100, 0, 99}, {"b", 1000, 0, 999}, {"c", 10, 0, 9}});
  statistics.Add("a", 100, {{"ak", 100, 0, 99}, {"ax", 4, 1, 4}});
  statistics.Add("b", 1000, {{"bk", 1000, 0, 999}, {"bx", 50, 1, 50}});
  statistics.Add("c", 10, {{"ck", 10, 0, 9}, {"cx", 2, 0, 1}});
  return statistics;
}

TEST(Selectivity, RangesOfOneColumnAreIntersected) {
  IntegerTables statistics;
  statistics.Add("t", 1000, {{"x", 100, 1, 100}, {"y", 10, 0, 9, /*nulls=*/500}});
  const auto share = [&](const std::string& where) {
    return PlanStar(statistics, "select count(*) from t where " + where).Selectivity();
  };
  EXPECT_NEAR(share("x between 26 and 35"), 0.1, 1e-9);
  EXPECT_NEAR(share("x >= 26 and 35 >= x and x > 10"), 0.1, 1e-9);
  EXPECT_NEAR(share("x < 26"), 0.25, 1e-9);
  EXPECT_NEAR(share("x > 100"), 0.001, 1e-9) << "never nothing";
  EXPECT_NEAR(share("x = 7"), 0.01, 1e-9);
  EXPECT_NEAR(share("not x = 7"), 0.99, 1e-9);
  EXPECT_NEAR(share("x in (1, 2, 3)"), 0.03, 1e-9);
  EXPECT_NEAR(share("x = 1 or x = 2"), 1 - 0.99 * 0.99, 1e-9);
  EXPECT_NEAR(share("y = 1"), 0.05, 1e-9) << "NULLs are equal to nothing";
  EXPECT_NEAR(share("y < 5"), 0.25, 1e-9);
  EXPECT_NEAR(share("y is null"), 0.5, 1e-9);
  EXPECT_NEAR(share("x < 51 and y = 1"), 0.025, 1e-9);
}

TEST(JoinOrder, WhatDropsMostIsProbedFirst) {
  IntegerTables statistics = StarTables();
  const std::string joins = "select count(*) from f, a, b, c where a = ak and b = bk and c = ck";
  EXPECT_EQ(PlanStar(statistics, joins + " and ax = 1 and bx = 1").Order(), "f b a c");
  EXPECT_EQ(PlanStar(statistics, joins + " and ax = 1 and cx = 1").Order(), "f a c b");
  EXPECT_EQ(PlanStar(statistics, joins).Order(), "f a b c") << "equal: as in FROM";
  EXPECT_EQ(
      PlanStar(statistics, "select count(*) from c, b, f, a where a = ak and b = bk and c = ck").Order(),
      "f c b a");
}

TEST(JoinOrder, LooksBehindAJoinThatDropsNothing) {
  // Probing d, which doubles rows, opens the way to e, which leaves one in a thousand. One step at a time, a
  // (one half) would come first.
  IntegerTables statistics;
  statistics.Add("f", 1'000'000, {{"d_id", 1000, 0, 999}, {"a_id", 100, 0, 99}});
  statistics.Add("a", 100, {{"ak", 100, 0, 99}, {"ax", 2, 0, 1}});
  statistics.Add("d", 2000, {{"dk", 1000, 0, 999}, {"e_id", 1000, 0, 999}});
  statistics.Add("e", 1000, {{"ek", 1000, 0, 999}, {"ex", 10'000, 0, 9999}});
  EXPECT_EQ(PlanStar(statistics,
                     "select count(*) from f, a, d, e where a_id = ak and d_id = dk and e_id = ek and ax = 1")
                .Order(),
            "f a d e");
  EXPECT_EQ(PlanStar(statistics,
                     "select count(*) from f, a, d, e where a_id = ak and d_id = dk and e_id = ek and ax < 2 "
                     "and ex = 5")
                .Order(),
            "f d e a");
}

TEST(JoinOrder, EqualitiesOfTwoTablesAreKeysTogether) {
  IntegerTables statistics;
  statistics.Add("line", 6'000'000, {{"lp", 200'000, 0, 199'999}, {"ls", 10'000, 0, 9'999}});
  statistics.Add("offer", 800'000, {{"op", 200'000, 0, 199'999}, {"os", 10'000, 0, 9'999}});
  const PlannedStar star =
      PlanStar(statistics, "select count(*) from offer, line where op = lp and ls = os and op + ls > 3");
  ASSERT_EQ(star.Order(), "line offer");
  EXPECT_EQ(star.Probe(0).keys.size(), 2u);
  EXPECT_EQ(star.Build(0).keys.size(), 2u);
  EXPECT_EQ(star.Probe(0).residuals.size(), 1u);
  EXPECT_NEAR(star.RowsAfter(0), 6'000'000, 1) << "no more pairs of values than rows";
}

TEST(JoinOrder, AUniqueKeyIsEnough) {
  IntegerTables statistics;
  statistics.Add("line", 1'000'000, {{"ln", 25, 0, 24}, {"ls", 10'000, 0, 9'999}});
  statistics.Add("supplier", 10'000, {{"sn", 25, 0, 24}, {"sk", 10'000, 0, 9'999, 0, /*unique=*/true}});
  const PlannedStar star =
      PlanStar(statistics, "select count(*) from line, supplier where ln = sn and ls = sk");
  ASSERT_EQ(star.Build(0).keys.size(), 1u);
  EXPECT_TRUE(star.Build(0).unique);
  EXPECT_EQ(star.Probe(0).residuals.size(), 1u) << "the other equality";
}

TEST(JoinOrder, ALargerTableIsBuiltIfLittleOfItIsLeft) {
  IntegerTables statistics;
  statistics.Add("large", 1'200'000, {{"lk", 1'000'000, 0, 999'999}, {"lx", 1000, 0, 999}});
  statistics.Add("other", 1'000'000, {{"ok", 1'000'000, 0, 999'999}});
  const std::string join = "select count(*) from large, other where lk = ok";
  EXPECT_EQ(PlanStar(statistics, join).Order(), "large other");
  EXPECT_EQ(PlanStar(statistics, join + " and lx = 1").Order(), "other large");
}

TEST(JoinOrder, PartitionsThatLeaveWorkersIdleCost) {
  IntegerTables statistics;
  statistics.Add("large", 1'200'000, {{"lk", 1'000'000, 0, 999'999}}, /*partitions=*/2);
  statistics.Add("other", 1'000'000, {{"ok", 1'000'000, 0, 999'999}});
  const std::string join = "select count(*) from large, other where lk = ok";
  EXPECT_EQ(PlanStar(statistics, join, {.servers = 2, .threads = 1}).Order(), "large other");
  EXPECT_EQ(PlanStar(statistics, join, {.servers = 4, .threads = 4}).Order(), "other large");
}

TEST(JoinOrder, ManyTablesAreOrderedStepByStep) {
  IntegerTables statistics;
  std::vector<IntegerTables::Column> keys;
  std::string from = "f", where = "1 = 1", expected = "f";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    keys.push_back({"k" + n, 100, 0, 99});
    statistics.Add("d" + n, 100, {{"k" + n + "_", 100, 0, 99}, {"x" + n, 2, 0, 1}});
    from += ", d" + n;
    where += " and k" + n + " = k" + n + "_";
  }
  statistics.Add("f", 1'000'000, keys);
  EXPECT_EQ(PlanStar(statistics, "select count(*) from " + from + " where " + where + " and x7 = 1").Order(),
            "f d7 d0 d1 d2 d3 d4 d5 d6 d8 d9 d10 d11");
}

}  // namespace
}  // namespace nam::optimizer
