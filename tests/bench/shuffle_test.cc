#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/shuffle_bench.h"
#include "simulation/cluster.h"

namespace nam::bench {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{1} << 20;

/// SSB at a hundredth in a simulated cluster.
class ShuffleTest : public ::testing::Test {
 protected:
  static ShuffleFigures Run(int servers, const ShuffleOptions& options) {
    fabric::sim::WorldOptions world_options;
    world_options.nic = *fabric::sim::NicModel::Named("fdr");
    fabric::sim::World world(world_options);
    auto cluster = simulation::Cluster::Start(world, {.memory_servers = 2,
                                                      .compute_servers = servers,
                                                      .threads = static_cast<int>(options.threads),
                                                      .region_bytes = kRegionBytes});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    auto client = (*cluster)->NewClient("client");
    EXPECT_TRUE(client.ok()) << client.status();
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    ShuffleEnvironment on{.attachment = &(*client)->attachment(),
                          .session = &(*client)->session(),
                          .world = &world,
                          .nic = world_options.nic};
    for (int i = 0; i < servers; ++i) {
      const std::string host = (*cluster)->HostOf(simulation::Cluster::Role::kCompute, i);
      on.cards.push_back({host, CardRole::kClients});
      fabrics.push_back(*world.OpenFabric(host, {.secret = "simulated"}));
      on.fabrics.push_back(fabrics.back().get());
    }
    bench::Run run("shuffle");
    auto figures = MeasureShuffle(on, options, run);
    EXPECT_TRUE(figures.ok()) << figures.status();
    return *std::move(figures);
  }
  static const ShuffleMoved& Shuffled(const ShuffleFigures& bench, size_t index) {
    return bench.cases[index].moved.at(kShuffle);
  }
  static void ExpectEqual(const ShuffleFigures& bench, size_t measured) {
    ASSERT_EQ(bench.cases.size(), measured);
    for (const ShuffleCase& each : bench.cases) {
      ASSERT_EQ(each.figures.contenders.size(), 3u);
      for (const ContenderTimes& plan : each.figures.contenders) {
        EXPECT_TRUE(plan.equal) << each.tables << " tables, " << plan.name;
        EXPECT_GT(plan.median_ms(), 0);
      }
    }
  }
};

TEST_F(ShuffleTest, AnswersAreThoseOfPipelinedPlansOnAnyNumberOfServers) {
  const ShuffleOptions options{
      .tables = {2, 3, 4}, .threads = 2, .scale_factor = 0.01, .messages = {.legs = 3}};
  const auto alone = Run(1, options);
  ExpectEqual(alone, 3);
  EXPECT_EQ(Shuffled(alone, 2).sent_bytes, 0u);
  for (const int servers : {2, 3}) ExpectEqual(Run(servers, options), 3);
  // Each of five servers keeps a fifth of what it shuffles.
  const auto bench = Run(5, options);
  ExpectEqual(bench, 3);
  const double rows = static_cast<double>(bench.lineorder_rows);
  const ShuffleMoved& two = Shuffled(bench, 0);
  const ShuffleMoved& four = Shuffled(bench, 2);
  EXPECT_GT(static_cast<double>(two.sent_bytes), rows * 0.8 * 6);
  EXPECT_EQ(two.work.sunk_rows, bench.lineorder_rows);
  EXPECT_EQ(four.work.probed_rows, 3 * bench.lineorder_rows);
  EXPECT_GT(four.sent_bytes, 2 * two.sent_bytes);
}

TEST_F(ShuffleTest, SmallBatchesAndLittleCreditHoldNobodyUpForEver) {
  const auto bench = Run(4, {.tables = {4},
                             .threads = 3,
                             .scale_factor = 0.01,
                             .messages = {.legs = 3, .batch_bytes = 1024, .credits = 2}});
  ExpectEqual(bench, 1);
}

TEST_F(ShuffleTest, WholeTuplesTravelWithEveryLeg) {
  ShuffleOptions options{.tables = {2, 4}, .threads = 2, .scale_factor = 0.01, .messages = {.legs = 3}};
  const auto narrow = Run(3, options);
  options.whole_tuples = true;
  const auto whole = Run(3, options);
  ExpectEqual(whole, 2);
  const auto sent = [](const ShuffleFigures& bench, size_t index) {
    return static_cast<double>(Shuffled(bench, index).sent_bytes);
  };
  EXPECT_GT(sent(whole, 0), 3 * sent(narrow, 0));
  EXPECT_GT(sent(whole, 1), 2.8 * sent(whole, 0));
  EXPECT_GT(whole.cases[0].moved.at(kPipelined).network_bytes,
            2 * narrow.cases[0].moved.at(kPipelined).network_bytes);
}

TEST_F(ShuffleTest, VirtualTimeIsTheSameEveryTime) {
  const ShuffleOptions options{.tables = {4}, .threads = 2, .scale_factor = 0.01, .messages = {.legs = 3}};
  const auto first = Run(4, options), second = Run(4, options);
  ExpectEqual(first, 1);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first.cases[0].figures.contenders[i].times_ms, second.cases[0].figures.contenders[i].times_ms);
  }
}

TEST_F(ShuffleTest, WhatThereIsToDoIsChargedTheSame) {
  const auto bench = Run(2, {.tables = {4}, .threads = 1, .scale_factor = 0.01, .messages = {.legs = 3}});
  ExpectEqual(bench, 1);
  // Writing each join's output and reading it again is extra work.
  EXPECT_GT(*bench.cases[0].figures.Ratio(kMaterialized, kShuffle), 1);
}

}  // namespace
}  // namespace nam::bench
