#include "tpcw/latency_histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace nam::tpcw {
namespace {

TEST(LatencyHistogram, BucketsAreNarrowAndInOrder) {
  EXPECT_TRUE(rc::check("buckets", [] {
    const auto ns = *rc::gen::positive<int64_t>() >> *rc::gen::inRange(0, 62);
    const size_t bucket = LatencyHistogram::BucketOf(ns);
    RC_ASSERT(bucket < LatencyHistogram::kBuckets);
    RC_ASSERT(LatencyHistogram::BucketOf(ns + 1) - bucket <= 1u);
    RC_ASSERT(std::abs(LatencyHistogram::NsOf(bucket) - static_cast<double>(ns)) <=
              static_cast<double>(ns) / 16);
  }));
  EXPECT_EQ(LatencyHistogram::BucketOf(-5), 0u);
  EXPECT_LT(LatencyHistogram::BucketOf(std::numeric_limits<int64_t>::max()), LatencyHistogram::kBuckets);
}

TEST(LatencyHistogram, Percentiles) {
  LatencyHistogram histogram;
  LatencyHistogram::Counts counts = {};
  EXPECT_EQ(LatencyHistogram::PercentileNs(counts, 0.5), 0);
  for (int i = 1; i <= 1'000; ++i) histogram.Add(i * 1'000);
  histogram.AddTo(counts);
  EXPECT_NEAR(LatencyHistogram::PercentileNs(counts, 0.5), 500'000, 500'000 / 16.0);
  EXPECT_NEAR(LatencyHistogram::PercentileNs(counts, 0.99), 990'000, 990'000 / 16.0);
  EXPECT_NEAR(LatencyHistogram::PercentileNs(counts, 1), 1'000'000, 1'000'000 / 16.0);
}

}  // namespace
}  // namespace nam::tpcw
