#include "bench/join_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/random.h"

namespace nam::bench {
namespace {

JoinAnswer NaiveJoin(const JoinInput& input) {
  std::unordered_map<uint32_t, uint32_t> payloads;
  for (const JoinTuple& tuple : input.r) payloads.emplace(tuple.key, tuple.payload);
  JoinAnswer answer;
  for (const JoinTuple& tuple : input.s) {
    const auto match = payloads.find(tuple.key);
    if (match != payloads.end())
      answer += {.matches = 1, .checksum = uint64_t{match->second} + tuple.payload};
  }
  return answer;
}

bool Same(const std::vector<JoinTuple>& a, const std::vector<JoinTuple>& b) {
  return std::ranges::equal(a, b, [](const JoinTuple& left, const JoinTuple& right) {
    return left.key == right.key && left.payload == right.payload;
  });
}

TEST(JoinInput, KeysOfRAreAPermutation) {
  for (const uint64_t n : {0, 1, 2, 3, 64, 1000, 65'536, 65'537, 200'000}) {
    const JoinInput input = MakeJoinInput({.r_tuples = n, .threads = 2});
    std::vector<uint32_t> keys;
    size_t in_place = 0, rising = 0;
    for (const JoinTuple& tuple : input.r) {
      EXPECT_EQ(tuple.payload, RPayload(tuple.key));
      in_place += tuple.key == keys.size();
      rising += !keys.empty() && tuple.key > keys.back();
      keys.push_back(tuple.key);
    }
    if (n >= 1000) {
      EXPECT_LT(in_place, 20u);
      EXPECT_NEAR(static_cast<double>(rising) / static_cast<double>(n), 0.5, 0.06) << n;
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(keys[i], i) << n;
  }
}

TEST(JoinInput, SelectivityIsMet) {
  for (const double selectivity : {0.01, 0.5, 1.0}) {
    for (const double zipf : {0.0, 1.0}) {
      JoinInputOptions options{.r_tuples = 10'000, .s_tuples = 500'000, .zipf = zipf};
      options.selectivity = selectivity;
      const JoinInput input = MakeJoinInput(options);
      uint64_t in_r = 0;
      for (const JoinTuple& tuple : input.s) in_r += tuple.key < 10'000;
      // Five standard deviations.
      const double tolerance = 5 * std::sqrt(500'000 * selectivity * (1 - selectivity));
      EXPECT_NEAR(static_cast<double>(in_r), 500'000 * selectivity, tolerance);
      EXPECT_EQ(ExpectedAnswer(input), NaiveJoin(input));
    }
  }
}

TEST(JoinInput, WithoutRAllKeysAreAbsent) {
  const JoinInput input = MakeJoinInput({.s_tuples = 100, .zipf = 1});
  EXPECT_EQ(input.s.size(), 100u);
  EXPECT_EQ(ExpectedAnswer(input), JoinAnswer{});
}

TEST(JoinInput, ZipfFollowsItsLaw) {
  constexpr uint64_t kKeys = 1000;
  constexpr double kDraws = 1'000'000;
  for (const double zipf : {0.0, 0.25, 0.75, 0.999999, 1.0, 1.25}) {
    const JoinInput input =
        MakeJoinInput({.r_tuples = kKeys, .s_tuples = static_cast<uint64_t>(kDraws), .zipf = zipf});
    std::vector<int> counts(kKeys);
    for (const JoinTuple& tuple : input.s) ++counts.at(tuple.key);
    const std::vector<int> by_key = counts;
    std::sort(counts.rbegin(), counts.rend());
    double sum = 0;
    for (uint64_t rank = 1; rank <= kKeys; ++rank) sum += std::pow(rank, -zipf);
    // The sort puts the luckiest of ranks with similar shares first, so nearby ones are compared together.
    for (const size_t rank : {1, 2, 3, 10, 100, 500}) {
      if (zipf < 0.75 && rank < 10) continue;
      double drawn = 0, expected = 0;
      for (size_t i = rank; i <= rank + rank / 10; ++i) {
        drawn += counts[i - 1];
        expected += kDraws * std::pow(i, -zipf) / sum;
      }
      EXPECT_NEAR(drawn, expected, 5 * std::sqrt(expected) + (zipf < 0.75 ? 0.1 : 0.03) * expected)
          << "rank " << rank << ", zipf " << zipf;
    }
    if (zipf < 0.75) continue;
    // Popular keys do not lie beside each other.
    const auto hottest = std::max_element(by_key.begin(), by_key.end()) - by_key.begin();
    EXPECT_LT(by_key[static_cast<size_t>(hottest + 1) % kKeys], counts[10]);
  }
}

TEST(ZipfRanks, OfFewKeys) {
  for (const uint64_t n : {1, 2, 3}) {
    for (const double zipf : {0.0, 0.5, 1.0, 1.25}) {
      const ZipfRanks ranks(n, zipf);
      RandomStream random(7);
      std::vector<int> counts(n + 1);
      for (int i = 0; i < 100'000; ++i) ++counts.at(ranks.Draw(random));
      double sum = 0;
      for (uint64_t rank = 1; rank <= n; ++rank) sum += std::pow(rank, -zipf);
      EXPECT_EQ(counts[0], 0);
      for (uint64_t rank = 1; rank <= n; ++rank)
        EXPECT_NEAR(counts[rank], 1e5 * std::pow(rank, -zipf) / sum, 800);
    }
  }
}

TEST(ZipfRanks, NoGroupOfRanksIsPreferred) {
  constexpr int kRanks = 1000, kDraws = 1'000'000;
  for (const double zipf : {0.25, 0.5, 0.75, 0.98, 1.0, 1.25}) {
    const ZipfRanks ranks(kRanks, zipf);
    RandomStream random(3);
    std::vector<int> counts(kRanks + 1);
    for (int i = 0; i < kDraws; ++i) ++counts.at(ranks.Draw(random));
    double all = 0, below = 0;
    for (int rank = 1; rank <= kRanks; ++rank) all += std::pow(rank, -zipf);
    int drawn = 0;
    for (int rank = 1; rank <= kRanks; ++rank) {
      drawn += counts[static_cast<size_t>(rank)];
      below += std::pow(rank, -zipf) / all;
      // Five standard deviations, and one draw for the last rank.
      const double tolerance = 5 * std::sqrt(kDraws * below * std::max(0.0, 1 - below)) + 1;
      ASSERT_NEAR(drawn, kDraws * below, tolerance) << "up to rank " << rank << ", zipf " << zipf;
    }
  }
}

TEST(JoinInput, TheSeedDecidesAndThreadsDoNot) {
  JoinInputOptions options{.r_tuples = 300'001, .s_tuples = 400'003, .zipf = 0.9, .selectivity = 0.7};
  const JoinInput alone = MakeJoinInput(options);
  for (const int threads : {2, 3, 7}) {
    options.threads = threads;
    const JoinInput together = MakeJoinInput(options);
    EXPECT_TRUE(Same(alone.r, together.r)) << threads;
    EXPECT_TRUE(Same(alone.s, together.s)) << threads;
  }
  options.seed = 2;
  const JoinInput other = MakeJoinInput(options);
  EXPECT_FALSE(Same(alone.r, other.r));
  EXPECT_FALSE(Same(alone.s, other.s));
}

}  // namespace
}  // namespace nam::bench
