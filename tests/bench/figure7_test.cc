#include "bench/figure7.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nam::bench {
namespace {

using plan::JoinAlgorithm;

bool ReductionPays(const Figure7Network& network, double selectivity) {
  return Figure7Cost(JoinAlgorithm::kGhjBloom, network, selectivity) <
         Figure7Cost(JoinAlgorithm::kGhj, network, selectivity);
}

/// Section 5.1.3: over Ethernet almost always; over IPoIB below 0.7, which the filter's errors make 0.8.
TEST(Figure7, WhereASemiJoinReductionPays) {
  for (int s = 0; s <= 80; ++s) EXPECT_TRUE(ReductionPays(kIpOverEthernet, s / 100.0)) << s;
  EXPECT_FALSE(ReductionPays(kIpOverEthernet, 1));
  for (int s = 0; s < 70; ++s) EXPECT_TRUE(ReductionPays(kIpOverInfiniBand, s / 100.0)) << s;
  for (int s = 81; s <= 100; ++s) EXPECT_FALSE(ReductionPays(kIpOverInfiniBand, s / 100.0)) << s;
  const Json summary = Figure7Summary();
  EXPECT_GT(summary["reduction_pays_below_ipoeth"].get<double>(), 0.8);
  EXPECT_GE(summary["reduction_pays_below_ipoib"].get<double>(), 0.69);
  EXPECT_LE(summary["reduction_pays_below_ipoib"].get<double>(), 0.8);
}

TEST(Figure7, JoinsByRdmaAreCheaperAndRrjIsTheCheapest) {
  const double memory_s = 2 * kFigure7Rows * kFigure7RowBytes * kFigure7MemoryByteS;
  for (int s = 0; s <= 10; ++s) {
    const double selectivity = s / 10.0;
    const double rrj = Figure7Cost(JoinAlgorithm::kRrj, kRdma, selectivity);
    EXPECT_DOUBLE_EQ(rrj, 2 * memory_s) << "two passes over memory; the network is in the background";
    EXPECT_LT(rrj, Figure7Cost(JoinAlgorithm::kRdmaGhj, kRdma, selectivity));
    for (const Figure7Network& network : {kIpOverEthernet, kIpOverInfiniBand}) {
      EXPECT_LT(Figure7Cost(JoinAlgorithm::kRdmaGhj, kRdma, selectivity),
                Figure7Cost(JoinAlgorithm::kGhj, network, selectivity));
      // A reduction is cheaper than RRJ only at very low selectivities.
      if (selectivity > 0.2) {
        EXPECT_LT(rrj, Figure7Cost(JoinAlgorithm::kGhjBloom, network, selectivity)) << selectivity;
      }
    }
  }
  const Json summary = Figure7Summary();
  EXPECT_DOUBLE_EQ(summary["rrj_over_ghj"].get<double>(), 2.5);
  EXPECT_DOUBLE_EQ(summary["rrj_over_rdma_ghj"].get<double>(), 1.5);
}

TEST(Figure7, HasAPointOfEveryCurveForEverySelectivity) {
  const Json rows = Figure7Rows();
  EXPECT_EQ(rows.size(), 6u * 21);
  for (const Json& row : rows) EXPECT_GT(row["ms"].get<double>(), 0) << row;
}

}  // namespace
}  // namespace nam::bench
