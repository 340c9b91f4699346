#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "plan/check.h"
#include "plan/expression_tree.h"
#include "plan/table_schema.h"
#include "tests/plan/star_plan.h"
#include "types/wire.h"

namespace nam::plan {
namespace {

using testing::ProbeIn;
using testing::Random;
using testing::Refused;
using testing::ScanIn;
using testing::Star;

proto::Table Table(const char* name, uint64_t allocation, const char* column, uint32_t parts) {
  proto::Table table;
  table.set_name(name);
  table.set_allocation(allocation);
  proto::PartitionKey& key = *table.add_partitioning();
  key.set_column(column);
  key.set_parts(parts);
  for (uint32_t p = 0; p < parts; ++p) table.add_partitions();
  return table;
}

void AddColumn(proto::Table& table, const char* name, const Slot& slot) {
  proto::Column& column = *table.add_columns();
  column.set_name(name);
  *column.mutable_type() = nam::ToProto(slot.type);
  column.set_nullable(slot.nullable);
  column.set_min(static_cast<int64_t>(slot.bounds.low));
  column.set_max(static_cast<int64_t>(slot.bounds.high));
}

TableMetadata TablesOf(const PhysicalPlan& plan) {
  proto::Table d = Table("d", 3, "k", 4), f = Table("f", 4, "fk", 4);
  const char* names[][2] = {{"k", "a"}, {"fk", "m"}};
  proto::Table* tables[] = {&d, &f};
  for (size_t t = 0; t < 2; ++t) {
    const Schema& slots = ScanOf(plan.pipelines[t])->slots;
    for (size_t c = 0; c < slots.size(); ++c) AddColumn(*tables[t], names[t][c], slots[c]);
  }
  return {std::make_shared<proto::Table>(d), std::make_shared<proto::Table>(f)};
}

TEST(CheckTables, TablesAreAsThePlanSays) {
  PhysicalPlan plan = Star();
  const TableMetadata tables = TablesOf(plan);
  ASSERT_TRUE(CheckTables(plan, tables).ok()) << CheckTables(plan, tables);
  plan.tables[1].allocation = 5;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckTables(plan, tables)));
  plan = Star();
  ScanIn(plan, 1).columns = {0, 2};
  ASSERT_TRUE(Check(plan).ok());
  EXPECT_FALSE(CheckTables(plan, tables).ok()) << "a column that is not there";
  plan = Star();
  ScanIn(plan, 1).slots[1].bounds.high = 400;
  plan.pipelines[1].schemas[0][1].bounds.high = plan.pipelines[1].schemas[1][0].bounds.high = 400;
  ASSERT_TRUE(Check(plan).ok()) << Check(plan);
  EXPECT_FALSE(CheckTables(plan, tables).ok()) << "bounds that the table does not keep";
}

TEST(CheckTables, PartitionsMatchByTheKeyThatIsStated) {
  PhysicalPlan plan = Star();
  ScanIn(plan, 0).co_partitioned_key = 0;
  ASSERT_TRUE(Check(plan).ok()) << Check(plan);
  EXPECT_TRUE(CheckTables(plan, TablesOf(plan)).ok());
  const auto refused = [&](const std::function<void(proto::Table&)>& change) {
    TableMetadata tables = TablesOf(plan);
    auto changed = std::make_shared<proto::Table>(*tables[0]);
    change(*changed);
    tables[0] = changed;
    return !CheckTables(plan, tables).ok();
  };
  EXPECT_TRUE(refused([](proto::Table& d) { d.mutable_partitioning(0)->set_parts(8); }));
  EXPECT_TRUE(refused([](proto::Table& d) { d.mutable_partitioning(0)->set_function(proto::XXH3); }));
  EXPECT_TRUE(refused([](proto::Table& d) { d.mutable_partitioning(0)->set_column("a"); }));
  EXPECT_TRUE(refused([](proto::Table& d) { *d.add_partitioning() = d.partitioning(0); }));
  ScanIn(plan, 0).co_partitioned_key = 1;
  EXPECT_FALSE(CheckTables(plan, TablesOf(plan)).ok()) << "another key than that";
}

TEST(CheckTables, PartitionMatchesAreOfTheClaimedTablesRows) {
  const auto refused = [](const std::function<void(PhysicalPlan&)>& change) {
    return Refused([&](PhysicalPlan& p) {
      ScanIn(p, 0).co_partitioned_key = 0;
      change(p);
    });
  };
  EXPECT_FALSE(refused([](PhysicalPlan&) {}));
  EXPECT_TRUE(refused([](PhysicalPlan& p) { ScanIn(p, 0).co_partitioned_key = -2; }));
  EXPECT_TRUE(refused([](PhysicalPlan& p) {
    Expr& key = ProbeIn(p).keys[0];
    key = Random::Node(Op::kNegate, key.type, {key});
  })) << "a key that is computed";
  EXPECT_TRUE(refused([](PhysicalPlan& p) {
    ProbeIn(p).kind = JoinKind::kNullAwareAnti;
    p.pipelines[1].schemas[1].pop_back();
    p.pipelines[1].sink = ResultSink{};
  })) << "NOT IN asks what the whole build side has";
  EXPECT_TRUE(refused([](PhysicalPlan& p) { p.stages[0].claimed = 0; }));
}

}  // namespace
}  // namespace nam::plan
