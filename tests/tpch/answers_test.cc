// The 22 queries on a whole cluster in this process, against SQLite on the same rows.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/cluster/in_process_cluster.h"
#include "workload/benchmark_data.h"
#include "workload/benchmark_queries.h"

namespace nam {
namespace {

class TpchAnswersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = LoadBenchmark(cluster_.attachment(), TpchBenchmark(), source_,
                                      {.block_bytes = 16 << 10}, progress_, never_);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ(loaded->size(), 8u);
  }

  void Check(const QueryParameters& parameters) {
    const auto queries = TpchBenchmark().queries(parameters);
    const auto oracle =
        LoadOracle(cluster_.attachment().fabric(), TpchBenchmark(), source_, queries, progress_, never_);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    auto outcomes = RunQueries(cluster_.session(), queries, 1, progress_, [] { return false; });
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_EQ(CheckQueries(**oracle, TpchBenchmark(), progress_, *outcomes), absl::OkStatus());
    for (const QueryOutcome& outcome : *outcomes) EXPECT_EQ(outcome.correct, true) << outcome.sql;
  }

  const DataSource source_{.scale_factor = 0.01};
  const std::atomic<bool> never_ = false;
  ProgressLine progress_;
  testing::InProcessCluster cluster_{{.memory_servers = 2, .compute_servers = 2}};
};

TEST_F(TpchAnswersTest, OfValidationValues) {
  Check({.scale_factor = 0.01});
}

TEST_F(TpchAnswersTest, OfRandomParameters) {
  for (const uint64_t seed : {1, 2, 3}) Check({.scale_factor = 0.01, .seed = seed});
}

}  // namespace
}  // namespace nam
