#include "optimizer/assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

namespace nam::optimizer {
namespace {

uint64_t Largest(const std::vector<uint64_t>& costs, const std::vector<int>& part_of, int parts) {
  std::vector<uint64_t> sums(static_cast<size_t>(parts));
  for (size_t i = 0; i < costs.size(); ++i) sums[static_cast<size_t>(part_of[i])] += costs[i];
  return *std::max_element(sums.begin(), sums.end());
}

uint64_t Optimum(const std::vector<uint64_t>& costs, int parts) {
  std::vector<int> part_of(costs.size());
  uint64_t best = UINT64_MAX;
  while (true) {
    best = std::min(best, Largest(costs, part_of, parts));
    size_t i = 0;
    while (i < part_of.size() && ++part_of[i] == parts) part_of[i++] = 0;
    if (i == part_of.size()) return best;
  }
}

TEST(LargestDifferencing, IsCloseToTheOptimumOnSmallCases) {
  EXPECT_TRUE(rc::check("within 4/3 of the optimum", [] {
    const auto costs =
        *rc::gen::resize(8, rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 100)));
    const int parts = *rc::gen::inRange(1, 4);
    const std::vector<int> part_of = LargestDifferencing(costs, parts);
    RC_ASSERT(part_of.size() == costs.size());
    for (int p : part_of) RC_ASSERT(p >= 0 && p < parts);
    if (!costs.empty()) RC_ASSERT(Largest(costs, part_of, parts) * 3 <= Optimum(costs, parts) * 4);
  }));
}

TEST(LargestDifferencing, IsEvenUnderSkew) {
  std::vector<uint64_t> costs;
  for (int i = 1; i <= 512; ++i) costs.push_back(1'000'000 / static_cast<uint64_t>(i));  // Zipf
  const uint64_t total = std::accumulate(costs.begin(), costs.end(), uint64_t{0});
  for (int parts : {2, 3, 4}) {
    const uint64_t fair = std::max(total / static_cast<uint64_t>(parts), costs[0]);
    EXPECT_LE(Largest(costs, LargestDifferencing(costs, parts), parts), fair + fair / 20) << parts;
  }
}

/// f is split by x and y into 4 × 4; a and b by their keys into 4.
struct Star {
  Star() {
    f = Table("f", {"x", "y"}, {{"x", 4}, {"y", 4}}, 16);
    a = Table("a", {"k"}, {{"k", 4}}, 4);
    b = Table("b", {"k"}, {{"k", 2}}, 2);
    plan.tables.resize(3);
    for (auto& table : plan.tables) table.columns = {0};
    plan.joins = {Join(1, 0), Join(2, 1)};
    tables = {f, a, b};
  }
  static std::shared_ptr<proto::Table> Table(const std::string& name, const std::vector<std::string>& columns,
                                             const std::vector<std::pair<std::string, uint32_t>>& keys,
                                             int partitions) {
    auto table = std::make_shared<proto::Table>();
    table->set_name(name);
    for (const std::string& column : columns) {
      table->add_columns()->set_name(column);
      table->mutable_columns()->rbegin()->mutable_encoding()->set_width(4);
    }
    for (const auto& [column, parts] : keys) {
      auto* key = table->add_partitioning();
      key->set_column(column);
      key->set_parts(parts);
    }
    for (int p = 0; p < partitions; ++p) table->add_partitions()->set_rows(100);
    return table;
  }
  static Plan::Join Join(int table, int probe_column) {
    Plan::Join join;
    join.table = table;
    join.probe_key.op = join.build_key.op = sql::Op::kColumn;
    join.probe_key.type = join.build_key.type = Type::Integer();
    join.probe_key.column = {0, probe_column};
    join.build_key.column = {table, 0};
    return join;
  }
  Plan plan;
  std::shared_ptr<proto::Table> f, a, b;
  TableRefs tables;
};

TEST(Assignment, MatchesPartitionsWithTheSameFunctionOnly) {
  Star star;
  EXPECT_EQ(MatchingKey(star.plan, star.plan.joins[0], star.tables), std::optional<int>(0));
  EXPECT_EQ(MatchingKey(star.plan, star.plan.joins[1], star.tables), std::nullopt) << "2 parts against 4";
  EXPECT_EQ(PartOf(*star.f, 7, 0), 1u);
  EXPECT_EQ(PartOf(*star.f, 7, 1), 3u);
  EXPECT_EQ(NeededPartitions(star.plan, star.plan.joins[0], star.tables, {4, 5, 7}),
            std::vector<uint32_t>{1});
  EXPECT_EQ(NeededPartitions(star.plan, star.plan.joins[1], star.tables, {4}), (std::vector<uint32_t>{0, 1}));
}

TEST(Assignment, CoversEveryPartitionOnceAndCountsReplication) {
  Star star;
  star.f->mutable_partitions(0)->set_rows(0);
  for (int servers : {1, 2, 3, 4, 7, 20}) {
    const Assignment assignment = Assign(star.plan, star.tables, servers);
    std::vector<int> seen(16);
    for (const auto& share : assignment.servers) {
      for (uint32_t p : share.partitions) ++seen[p];
      EXPECT_EQ(share.driving_bytes, share.rows * 4);
      if (!share.partitions.empty()) {
        EXPECT_GE(share.build_bytes, 200u * 4 + 100u * 4);
      }
    }
    EXPECT_EQ(seen[0], 0) << "nothing to stream there";
    EXPECT_EQ(std::count(seen.begin() + 1, seen.end(), 1), 15) << servers;
  }
}

TEST(Assignment, RunsSpareReplicationWhenPartitionsAreEqual) {
  Star star;
  const Assignment assignment = Assign(star.plan, star.tables, 2);
  for (const auto& share : assignment.servers) EXPECT_EQ(share.build_bytes, (2 * 100 + 200) * 4u);
}

}  // namespace
}  // namespace nam::optimizer
