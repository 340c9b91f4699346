// The hand-written loop gives SQLite's answers; otherwise it would be no yardstick.
#include "bench/ssb_loop.h"

#include <gtest/gtest.h>

#include <string>

#include "fabric/fabric.h"
#include "ssb/generator.h"
#include "ssb/queries.h"
#include "workload/benchmark_data.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

class SsbLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fabric = fabric::Open({.kind = fabric::Kind::kShm, .secret = "unused"});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    fabric_ = std::move(fabric).value();
  }

  void Compare(const DataSource& source) {
    const std::atomic<bool> cancelled = false;
    ProgressLine progress;
    const auto oracle =
        LoadOracle(*fabric_, SsbBenchmark(), source, SsbBenchmark().queries({}), progress, cancelled);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    const ssb::Generator generator({.scale_factor = source.scale_factor, .seed = source.seed});
    const auto loop = SsbLoop::Load(*fabric_, generator, {.threads = source.threads});
    ASSERT_TRUE(loop.ok()) << loop.status();
    int queries = 0;
    for (const ssb::Query& query : ssb::Queries()) {
      if (!SsbLoop::Has(query.id)) continue;
      const auto expected = (*oracle)->Run(std::string(query.sql));
      ASSERT_TRUE(expected.ok()) << expected.status();
      for (const int threads : {1, 2, 7}) {
        EXPECT_TRUE(SameRows((*loop)->Run(query.id, threads).rows, *expected))
            << query.id << " with " << threads << " threads, seed " << source.seed;
      }
      ++queries;
    }
    EXPECT_EQ(queries, 4);
  }

  std::unique_ptr<fabric::Fabric> fabric_;
};

TEST_F(SsbLoopTest, AnswersAsSqliteDoes) {
  Compare({.scale_factor = 0.01, .seed = 1});
}

TEST_F(SsbLoopTest, AnswersAsSqliteDoesOnOtherData) {
  Compare({.scale_factor = 0.003, .seed = 42});
}

TEST_F(SsbLoopTest, AlmostNoRows) {
  Compare({.scale_factor = 1e-6, .seed = 1});
}

}  // namespace
}  // namespace nam::bench
