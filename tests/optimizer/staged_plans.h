#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "optimizer/lower_tree.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "plan/codec.h"
#include "plan/print.h"
#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

/// Queries over tables of the benchmark's size as plans of stages.
namespace nam::optimizer {

inline constexpr uint64_t kMiB = 1 << 20;

/// The fake tables with the rows and distinct values of the benchmark at scale factor 1.
class Tables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto plain, fake_.Find(name));
    auto table = std::make_shared<proto::Table>(*plain);
    table->set_allocation(7);
    const std::map<std::string, uint64_t> rows = {{"lineorder", 6'001'215},
                                                  {"customer", 30'000},
                                                  {"supplier", 2'000},
                                                  {"part", 200'000},
                                                  {"date", 2'557}};
    const std::map<std::string, uint64_t> distinct = {{"lo_orderkey", 1'500'000}, {"lo_linenumber", 7},
                                                      {"lo_custkey", 20'000},     {"lo_partkey", 200'000},
                                                      {"lo_suppkey", 2'000},      {"lo_orderdate", 2406},
                                                      {"c_custkey", 30'000},      {"lo_revenue", 3'000'000}};
    const auto known = rows.find(name);
    table->set_rows(known == rows.end() ? 100 : known->second);
    for (proto::Column& column : *table->mutable_columns()) {
      const auto found = distinct.find(column.name());
      column.set_distinct(found == distinct.end() ? 7 : found->second);
      column.set_min(0);
      column.set_max(static_cast<int64_t>(table->rows()));
    }
    return table;
  }
  std::vector<std::string> Names() override { return fake_.Names(); }

 private:
  sql::FakeTables fake_;
};

inline plan::logical::Query Bound(const std::string& text, sql::TableSource& tables) {
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  EXPECT_EQ(Unnest(*query), absl::OkStatus()) << text;
  PushFilters(*query);
  return *std::move(query);
}

inline LoweredTree Lowered(const std::string& text, const StageFacts& facts = {}) {
  Tables tables;
  absl::StatusOr<LoweredTree> lowered =
      LowerTree(Bound(text, tables), {.aggregate = plan::AggregateAlgorithm::kAuto}, facts);
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

inline std::string TextOf(const LoweredTree& tree) {
  const auto name = [&](uint32_t table, uint32_t column) {
    return tree.lowered.tables[table]->columns(static_cast<int>(column)).name();
  };
  return absl::StrJoin(plan::Print(tree.lowered.plan, name), "\n") + "\n";
}

/// The facts that a server is told about the first `stages` stages.
inline std::string Beginning(const LoweredTree& tree, size_t stages) {
  std::string out;
  for (const plan::TableRef& table : tree.lowered.plan.tables) {
    if (stages == 0) break;
    absl::StrAppend(&out, table.name, " ");
  }
  for (const plan::Pipeline& pipeline : tree.lowered.plan.pipelines) {
    if (pipeline.stage >= stages) continue;
    plan::PhysicalPlan one;
    one.pipelines.push_back(pipeline);
    out += plan::ToProto(one).SerializeAsString();
  }
  return out;
}

inline const plan::AggregateSink* GroupsOf(const LoweredTree& tree, uint32_t stage) {
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  return std::get_if<plan::AggregateSink>(&plan.pipelines[plan.stages[stage].claimed].sink);
}

inline const plan::JoinSource* JoinOfStage(const LoweredTree& tree, uint32_t stage) {
  const plan::PhysicalPlan& plan = tree.lowered.plan;
  return std::get_if<plan::JoinSource>(&plan.pipelines[plan.stages[stage].claimed].source);
}

inline LoweredTree Joined(const std::string& text, uint64_t build_bytes_max, const StageFacts& facts = {},
                          plan::JoinAlgorithm join = plan::JoinAlgorithm::kAuto) {
  Tables tables;
  absl::StatusOr<LoweredTree> lowered = LowerTree(
      Bound(text, tables),
      {.aggregate = plan::AggregateAlgorithm::kAuto, .join = join, .build_bytes_max = build_bytes_max},
      facts);
  EXPECT_TRUE(lowered.ok()) << text << "\n" << lowered.status();
  return lowered.ok() ? *std::move(lowered) : LoweredTree();
}

}  // namespace nam::optimizer
