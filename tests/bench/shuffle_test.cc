#include <gtest/gtest.h>

#include <algorithm>
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
  static std::unique_ptr<ShuffleBench> Run(const ShuffleBench::Options& options, int memory_servers = 2) {
    uint32_t most = 0;
    for (const uint32_t servers : options.servers) most = std::max(most, servers);
    fabric::sim::WorldOptions world_options;
    world_options.nic = *fabric::sim::NicModel::Named("fdr");
    fabric::sim::World world(world_options);
    auto cluster = simulation::Cluster::Start(world, {.memory_servers = memory_servers,
                                                      .compute_servers = static_cast<int>(most),
                                                      .threads = static_cast<int>(options.threads),
                                                      .region_bytes = kRegionBytes});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    auto client = (*cluster)->NewClient("client");
    EXPECT_TRUE(client.ok()) << client.status();
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    ShuffleBench::Cluster on{.attachment = &(*client)->attachment(),
                             .session = &(*client)->session(),
                             .world = &world,
                             .nic = world_options.nic};
    for (uint32_t i = 0; i < most; ++i) {
      const std::string host = (*cluster)->HostOf(simulation::Cluster::Role::kCompute, static_cast<int>(i));
      on.cards.push_back({host, CardRole::kClients});
      fabrics.push_back(*world.OpenFabric(host, {.secret = "simulated"}));
      on.fabrics.push_back(fabrics.back().get());
    }
    auto bench = std::make_unique<ShuffleBench>(on, options);
    bench::Run run("shuffle");
    absl::Status status = bench->Load(run);
    if (status.ok()) status = bench->Measure(run);
    EXPECT_TRUE(status.ok()) << status;
    return bench;
  }
  static void ExpectEqual(const ShuffleBench& bench, size_t measured) {
    ASSERT_EQ(bench.cases().size(), measured);
    for (const ShuffleBench::Case& each : bench.cases()) {
      ASSERT_EQ(each.figures.contenders.size(), 3u);
      for (const ContenderTimes& plan : each.figures.contenders) {
        EXPECT_TRUE(plan.equal) << each.tables << " tables on " << each.servers << ", " << plan.name;
        EXPECT_GT(plan.median_ms(), 0);
      }
    }
  }
};

TEST_F(ShuffleTest, AnswersAreThoseOfPipelinedPlansOnAnyNumberOfServers) {
  const auto bench = Run({.tables = {2, 3, 4},
                          .servers = {1, 2, 3, 5},
                          .threads = 2,
                          .scale_factor = 0.01,
                          .messages = {.legs = 3}});
  ExpectEqual(*bench, 3 * 4);
  // One server sends nothing; of five, each keeps a fifth of what it shuffles.
  EXPECT_EQ(bench->Find(4, 1)->moved.at(kShuffle).sent_bytes, 0u);
  const double rows = static_cast<double>(bench->lineorder_rows());
  const ShuffleBench::Moved& five = bench->Find(2, 5)->moved.at(kShuffle);
  EXPECT_GT(static_cast<double>(five.sent_bytes), rows * 0.8 * 6);
  EXPECT_EQ(five.work.sunk_rows, bench->lineorder_rows());
  EXPECT_EQ(bench->Find(4, 5)->moved.at(kShuffle).work.probed_rows, 3 * bench->lineorder_rows());
  EXPECT_GT(bench->Find(4, 5)->moved.at(kShuffle).sent_bytes, 2 * five.sent_bytes);
}

TEST_F(ShuffleTest, SmallBatchesAndLittleCreditHoldNobodyUpForEver) {
  const auto bench = Run({.tables = {4},
                          .servers = {4},
                          .threads = 3,
                          .scale_factor = 0.01,
                          .messages = {.legs = 3, .batch_bytes = 1024, .credits = 2}});
  ExpectEqual(*bench, 1);
}

TEST_F(ShuffleTest, WholeTuplesTravelWithEveryLeg) {
  ShuffleBench::Options options{
      .tables = {2, 4}, .servers = {3}, .threads = 2, .scale_factor = 0.01, .messages = {.legs = 3}};
  const auto narrow = Run(options);
  options.whole_tuples = true;
  const auto whole = Run(options);
  ExpectEqual(*whole, 2);
  const auto sent = [](const ShuffleBench& bench, uint32_t tables) {
    return static_cast<double>(bench.Find(tables, 3)->moved.at(kShuffle).sent_bytes);
  };
  EXPECT_GT(sent(*whole, 2), 3 * sent(*narrow, 2));
  EXPECT_GT(sent(*whole, 4), 2.8 * sent(*whole, 2));
  EXPECT_GT(whole->Find(2, 3)->moved.at(kPipelined).network_bytes,
            2 * narrow->Find(2, 3)->moved.at(kPipelined).network_bytes);
}

TEST_F(ShuffleTest, VirtualTimeIsTheSameEveryTime) {
  const ShuffleBench::Options options{
      .tables = {4}, .servers = {4}, .threads = 2, .scale_factor = 0.01, .messages = {.legs = 3}};
  const auto first = Run(options), second = Run(options);
  ExpectEqual(*first, 1);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first->cases()[0].figures.contenders[i].times_ms,
              second->cases()[0].figures.contenders[i].times_ms);
  }
}

TEST_F(ShuffleTest, WhatThereIsToDoIsChargedTheSame) {
  const auto bench =
      Run({.tables = {4}, .servers = {2}, .threads = 1, .scale_factor = 0.01, .messages = {.legs = 3}});
  ExpectEqual(*bench, 1);
  // Writing each join's output and reading it again is extra work.
  EXPECT_GT(*bench->Find(4, 2)->figures.Ratio(kMaterialized, kShuffle), 1);
}

}  // namespace
}  // namespace nam::bench
