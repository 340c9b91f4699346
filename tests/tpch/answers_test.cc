// The 22 queries on a whole cluster in this process, against SQLite on the same rows.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/in_process_cluster.h"
#include "workload/benchmark_data.h"
#include "workload/benchmark_queries.h"

namespace nam {
namespace {

const DataSource kSource{.scale_factor = 0.01};
const std::atomic<bool> kNever = false;

/// SQLite with the same rows; shared by all tests, whose queries it runs.
SqliteOracle& OracleFor(catalog::Attachment& attachment, const std::vector<BenchmarkQuery>& queries) {
  static std::unique_ptr<SqliteOracle> oracle;
  if (oracle == nullptr) {
    ProgressLine progress;
    auto made = LoadOracle(attachment.fabric(), TpchBenchmark(), kSource, queries, progress, kNever);
    EXPECT_TRUE(made.ok()) << made.status();
    oracle = *std::move(made);
  }
  return *oracle;
}

class LoadedTpch {
 public:
  explicit LoadedTpch(const testing::InProcessCluster::Options& options) : cluster_(options) {
    const auto loaded = LoadBenchmark(cluster_.attachment(), TpchBenchmark(), kSource,
                                      {.block_bytes = 16 << 10}, progress_, kNever);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->size(), 8u);
  }

  session::Session& session() { return cluster_.session(); }

  void Check(const QueryParameters& parameters, const std::vector<std::string>& names = {}) {
    const auto all = TpchBenchmark().queries(parameters);
    const auto queries = SelectQueries(TpchBenchmark(), names, parameters);
    ASSERT_TRUE(queries.ok()) << queries.status();
    auto outcomes = RunQueries(cluster_.session(), *queries, 1, progress_, [] { return false; });
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_EQ(CheckQueries(OracleFor(cluster_.attachment(), all), TpchBenchmark(), progress_, *outcomes),
              absl::OkStatus());
    for (const QueryOutcome& outcome : *outcomes) EXPECT_EQ(outcome.correct, true) << outcome.sql;
  }

 private:
  ProgressLine progress_;
  testing::InProcessCluster cluster_;
};

TEST(TpchAnswersTest, OfRandomParameters) {
  LoadedTpch tpch({.memory_servers = 2, .compute_servers = 2});
  for (const uint64_t seed : {1, 2, 3}) tpch.Check({.scale_factor = 0.01, .seed = seed});
}

using Shape = std::tuple<fabric::Kind, int>;  // and compute servers

class TpchClusterTest : public ::testing::TestWithParam<Shape> {};

TEST_P(TpchClusterTest, OfValidationValues) {
  const auto [fabric, compute_servers] = GetParam();
  LoadedTpch tpch({.fabric = fabric, .memory_servers = 2, .compute_servers = compute_servers});
  tpch.Check({.scale_factor = 0.01});
}

INSTANTIATE_TEST_SUITE_P(Clusters, TpchClusterTest,
                         ::testing::Combine(::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                                            ::testing::Values(1, 2, 3)),
                         [](const ::testing::TestParamInfo<Shape>& shape) {
                           return std::string(fabric::KindName(std::get<0>(shape.param))) +
                                  std::to_string(std::get<1>(shape.param));
                         });

/// Joins, groups and semi joins of large sides, by every algorithm.
TEST(TpchJoinsTest, EachAlgorithmHasTheSameRows) {
  LoadedTpch tpch({.memory_servers = 2, .compute_servers = 2, .always_by_parts = true});
  for (const char* join : {"pipelined", "rrj", "rdma_ghj", "ghj", "ghj_bloom", "auto"}) {
    for (const char* aggregate : {"dist", "rdma"}) {
      SCOPED_TRACE(std::string(join) + ", " + aggregate);
      ASSERT_TRUE(tpch.session().Execute(std::string("set nam.join = ") + join).ok());
      ASSERT_TRUE(tpch.session().Execute(std::string("set nam.aggregate = ") + aggregate).ok());
      tpch.Check({.scale_factor = 0.01}, {"Q9", "Q13", "Q18", "Q21"});
    }
  }
}

}  // namespace
}  // namespace nam
