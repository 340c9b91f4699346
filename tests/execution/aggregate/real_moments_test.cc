#include "execution/aggregate/real_moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "execution/aggregate/moments.h"
#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using Function = plan::AggregateFunction;

constexpr Function kOfOne[] = {Function::kVarPop, Function::kVarSamp, Function::kStddevPop,
                               Function::kStddevSamp};
constexpr Function kOfTwo[] = {Function::kCovarPop,      Function::kCovarSamp, Function::kCorr,
                               Function::kRegrAvgX,      Function::kRegrAvgY,  Function::kRegrSxx,
                               Function::kRegrSyy,       Function::kRegrSxy,   Function::kRegrSlope,
                               Function::kRegrIntercept, Function::kRegrR2};

/// The moments after they have travelled as words.
RealMoments Sent(const RealMoments& moments, bool two) {
  int64_t words[RealMoments::kWordsOfTwo];
  const std::span<int64_t> state(words, two ? RealMoments::kWordsOfTwo : RealMoments::kWordsOfOne);
  moments.Write(state);
  return RealMoments::Read(state);
}

void ExpectNear(std::optional<double> actual, std::optional<double> exact) {
  ASSERT_EQ(actual.has_value(), exact.has_value());
  if (!exact.has_value()) return;
  EXPECT_NEAR(*actual, *exact, 1e-9 * std::max(1.0, std::abs(*exact)));
}

TEST(RealMomentsTest, TheyAreThoseOfExactSums) {
  for (const uint64_t seed : TestSeeds(200)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    // Numbers with two decimals, far from 0 or around it; b follows a now and then.
    const int64_t far = random.OneIn(2) ? 0 : 1'000'000'00;
    const bool alike = random.OneIn(4), line = random.OneIn(4);
    Moments exact_one, exact_two;
    std::vector<RealMoments> one(1 + random.Below(3)), two(one.size());
    for (uint64_t left = random.Below(random.OneIn(3) ? 3 : 2000); left > 0; --left) {
      const int64_t a = far + static_cast<int64_t>(alike ? 25 : random.Below(10'000));
      const int64_t b = line ? far / 2 + 3 * a : static_cast<int64_t>(random.Below(500));
      exact_one.Add(a, 0);
      exact_two.Add(a, b);
      const size_t part = random.Below(one.size());
      ASSERT_TRUE(one[part].Add(static_cast<double>(a) / 100, 0).ok());
      ASSERT_TRUE(two[part].Add(static_cast<double>(a) / 100, static_cast<double>(b) / 100).ok());
    }
    for (size_t part = 1; part < one.size(); ++part) {
      ASSERT_TRUE(one[0].Merge(Sent(one[part], false)).ok());
      ASSERT_TRUE(two[0].Merge(Sent(two[part], true)).ok());
    }
    EXPECT_EQ(one[0].count(), exact_one.count());
    for (const Function function : kOfOne) {
      SCOPED_TRACE(static_cast<int>(function));
      const auto wanted = exact_one.Result(function, 2).value();
      ASSERT_EQ(one[0].Result(function).has_value(), wanted.has_value());
      if (wanted.has_value()) ExpectNear(one[0].Result(function), NumericToDouble(UnpackNumeric(*wanted)));
    }
    for (const Function function : kOfTwo) {
      SCOPED_TRACE(static_cast<int>(function));
      ExpectNear(two[0].Result(function), exact_two.ResultOfPairs(function, 2, 2));
    }
  }
}

TEST(RealMomentsTest, TheFirstArgumentOfALineIsItsY) {
  RealMoments moments;
  Moments exact;
  for (const int x : {1, 2, 4}) {
    ASSERT_TRUE(moments.Add(3 * x + 5, x).ok());
    exact.Add(3 * x + 5, x);
  }
  EXPECT_DOUBLE_EQ(*moments.Result(Function::kRegrSlope), 3);
  EXPECT_DOUBLE_EQ(*moments.Result(Function::kRegrIntercept), 5);
  EXPECT_DOUBLE_EQ(*moments.Result(Function::kRegrR2), 1);
  EXPECT_EQ(*exact.ResultOfPairs(Function::kRegrSlope, 0, 0), 3);
  EXPECT_EQ(*exact.ResultOfPairs(Function::kRegrIntercept, 0, 0), 5);
  EXPECT_EQ(*exact.ResultOfPairs(Function::kRegrR2, 0, 0), 1);
  EXPECT_EQ(*exact.ResultOfPairs(Function::kCorr, 0, 0), 1) << "exactly";
}

TEST(RealMomentsTest, WhatDoesNotVaryHasNoSlope) {
  RealMoments level, upright;
  Moments exact_level, exact_upright;
  for (const int n : {1, 2, 4}) {
    ASSERT_TRUE(level.Add(7, n).ok());
    ASSERT_TRUE(upright.Add(n, 7).ok());
    exact_level.Add(7, n);
    exact_upright.Add(n, 7);
  }
  EXPECT_EQ(upright.Result(Function::kRegrSlope), std::nullopt);
  EXPECT_EQ(upright.Result(Function::kRegrR2), std::nullopt);
  EXPECT_EQ(upright.Result(Function::kCorr), std::nullopt);
  EXPECT_EQ(level.Result(Function::kRegrR2), 1.0);
  EXPECT_EQ(level.Result(Function::kCorr), std::nullopt);
  EXPECT_EQ(exact_upright.ResultOfPairs(Function::kRegrSlope, 0, 0), std::nullopt);
  EXPECT_EQ(exact_upright.ResultOfPairs(Function::kRegrR2, 0, 0), std::nullopt);
  EXPECT_EQ(exact_level.ResultOfPairs(Function::kRegrR2, 0, 0), 1.0);
  EXPECT_EQ(exact_level.ResultOfPairs(Function::kCorr, 0, 0), std::nullopt);
}

TEST(RealMomentsTest, InfinityHasNoVarianceAndOverflowIsAnError) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const bool first : {false, true}) {
    RealMoments moments;
    for (const double number : {first ? kInfinity : 1, first ? 1 : kInfinity})
      ASSERT_TRUE(moments.Add(number, 0).ok());
    EXPECT_TRUE(std::isnan(*moments.Result(Function::kVarPop)));
  }
  RealMoments large;
  ASSERT_TRUE(large.Add(1e300, 0).ok());
  EXPECT_EQ(SqlErrorOf(large.Add(-1e300, 0))->sqlstate, "22003");
  RealMoments a, b;
  ASSERT_TRUE(a.Add(1e300, 0).ok());
  ASSERT_TRUE(b.Add(-1e300, 0).ok());
  EXPECT_EQ(SqlErrorOf(a.Merge(b))->sqlstate, "22003");
}

}  // namespace
}  // namespace nam::execution
