#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "simulation/run.h"
#include "tests/base/seeds.h"

namespace nam::simulation {
namespace {

/// Further seeds: ./run test sim.
constexpr uint64_t kRunSeeds = 50;
constexpr uint64_t kRunSeedsOfACase = 10;
/// One of this many seeds runs twice.
constexpr uint64_t kTwiceEvery = 20;

const QueryAnswers& AnswersOfAllWorkloads() {
  static const QueryAnswers* const answers = [] {
    auto made = MakeAnswers(Workloads::kAll, 0.002);
    EXPECT_TRUE(made.ok()) << made.status();
    return new QueryAnswers(*std::move(made));
  }();
  return *answers;
}

RunResult RunSeed(uint64_t seed, const FaultKinds& faults, const char* generation = "fdr",
                  Workloads workload = Workloads::kAll,
                  const QueryAnswers& answers = AnswersOfAllWorkloads()) {
  RunOptions options;
  options.seed = seed;
  options.workload = workload;
  options.faults = faults;
  auto nic = fabric::sim::NicModel::Named(generation);
  EXPECT_TRUE(nic.ok()) << nic.status();
  options.nic = *nic;
  RunResult result = Run(options, answers);
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << "seed " << seed << " " << failure << "\nagain: " << ReplayCommand(options);
  }
  return result;
}

class ClusterTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ClusterTest, EveryAnswerIsRightOrACleanError) {
  for (uint64_t seed = GetParam() * kRunSeedsOfACase + 1; seed <= (GetParam() + 1) * kRunSeedsOfACase;
       ++seed) {
    const RunResult result = RunSeed(seed, FaultKinds());
    EXPECT_GT(result.right + result.loads, 0) << "seed " << seed;
    if (seed % kTwiceEvery == 0) {
      EXPECT_EQ(RunSeed(seed, FaultKinds()).trace_hash, result.trace_hash) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterTest,
                         ::testing::Range(uint64_t{0},
                                          FromEnvironment("NAM_SIM_SEEDS", kRunSeeds) / kRunSeedsOfACase));

TEST(ClusterWithoutFaultsTest, EveryStatementSucceeds) {
  for (const Workloads workload : {Workloads::kSsb, Workloads::kTpch}) {
    for (const char* generation : {"fdr", "ndr"}) {
      const RunResult result = RunSeed(1, *FaultKinds::Parse("none"), generation, workload);
      EXPECT_EQ(result.loads, 1);
      EXPECT_TRUE(result.faults.empty());
      for (const auto& [code, times] : result.errors) EXPECT_EQ(code, "CANCELLED") << times;
    }
  }
}

/// All 22 queries, on data that are large enough for each to have rows.
TEST(ClusterTpchTest, QueriesAreRightUnderFaults) {
  const auto answers = MakeAnswers(Workloads::kTpch, 0.01);
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const RunResult result = RunSeed(seed, FaultKinds(), "fdr", Workloads::kTpch, *answers);
    EXPECT_GE(result.right, 22) << "seed " << seed;
  }
}

TEST(ClusterWithoutFaultsTest, EveryTransactionCommitsOrConflicts) {
  for (const Workloads workload : {Workloads::kCheckout, Workloads::kBank, Workloads::kShop}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const RunResult result = RunSeed(seed, *FaultKinds::Parse("none"), "fdr", workload);
      EXPECT_EQ(result.loads, 1);
      EXPECT_GE(result.right, 10);
      EXPECT_EQ(result.right + result.aborts, result.statements);
      EXPECT_TRUE(result.errors.empty()) << result.errors.begin()->first;
    }
  }
}

/// Every kind of fault by itself, so that none hides behind another.
TEST(ClusterOneKindTest, EveryKindOfFaultIsMet) {
  for (const char* kind : {"pauses", "asymmetric", "slow", "catalog", "clients", "deaths", "partitions"}) {
    int met = 0;
    for (uint64_t seed = 1; seed <= 20 && met < 2; ++seed) {
      const RunResult result = RunSeed(seed, *FaultKinds::Parse(kind), "fdr", Workloads::kBank);
      for (const auto& [what, times] : result.faults) met += times;
    }
    EXPECT_GE(met, 2) << kind;
  }
}

/// Indexes, foreign keys, locks and large transactions, while processes of all kinds stand still for a while,
/// and then under all kinds of faults.
TEST(ClusterShopTest, EverySnapshotHoldsThoughProcessesPause) {
  int right = 0, pauses = 0;
  const uint64_t seeds = FromEnvironment("NAM_SIM_SHOPS", 12);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const RunResult result = RunSeed(seed, *FaultKinds::Parse("pauses"), "fdr", Workloads::kShop);
    right += result.right;
    for (const auto& [what, times] : result.faults) pauses += times;
  }
  EXPECT_GT(right, 200);
  EXPECT_GT(pauses, 10);
}

TEST(ClusterShopTest, EverySnapshotHoldsUnderAllFaults) {
  int right = 0;
  const uint64_t seeds = FromEnvironment("NAM_SIM_SHOPS", 8);
  for (uint64_t seed = 1; seed <= seeds; ++seed)
    right += RunSeed(seed, FaultKinds(), "fdr", Workloads::kShop).right;
  EXPECT_GT(right, 50);
}

TEST(ClusterDeterminismTest, OtherSeedsHaveOtherHistories) {
  EXPECT_NE(RunSeed(1, FaultKinds()).trace_hash, RunSeed(2, FaultKinds()).trace_hash);
}

}  // namespace
}  // namespace nam::simulation
