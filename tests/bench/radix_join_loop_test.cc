// The hand-written radix join gives a multimap's answers; otherwise it would be no yardstick. Its input has
// the specified properties.
#include "bench/radix_join_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "bench/join_input.h"

namespace nam::bench {
namespace {

using Tuples = std::vector<JoinTuple>;

JoinAnswer ReferenceJoin(const Tuples& r, const Tuples& s) {
  std::unordered_multimap<uint32_t, uint32_t> payloads;
  for (const JoinTuple& tuple : r) payloads.emplace(tuple.key, tuple.payload);
  JoinAnswer answer;
  for (const JoinTuple& tuple : s) {
    const auto [first, end] = payloads.equal_range(tuple.key);
    for (auto match = first; match != end; ++match)
      answer += {.matches = 1, .checksum = uint64_t{match->second} + tuple.payload};
  }
  return answer;
}

/// At most `keys` different keys, times `factor`.
Tuples RandomTuples(RandomStream& random, size_t size, uint64_t keys, uint32_t factor = 1) {
  Tuples tuples(size);
  for (JoinTuple& tuple : tuples) {
    tuple.key = static_cast<uint32_t>(random.Below(keys)) * factor;
    tuple.payload = static_cast<uint32_t>(random.Next());
  }
  return tuples;
}

void ExpectReference(const Tuples& r, const Tuples& s, const RadixJoinOptions& options,
                     const std::string& what) {
  RadixJoinLoop loop(r, s, options);
  const JoinAnswer expected = ReferenceJoin(r, s);
  for (int run = 0; run < 2; ++run) {  // the second one finds the first one's tuples in its memory
    const JoinAnswer answer = loop.Run();
    ASSERT_EQ(answer.matches, expected.matches)
        << what << ": " << r.size() << " and " << s.size() << " tuples, " << options.threads << " threads, "
        << options.radix_bits << " bits, " << options.passes << " passes, run " << run;
    ASSERT_EQ(answer.checksum, expected.checksum) << what;
  }
}

void ExpectReferenceByAllWays(const Tuples& r, const Tuples& s, const std::string& what) {
  for (const int threads : {1, 2, 3}) {
    ExpectReference(r, s, {.threads = threads}, what);
    ExpectReference(r, s, {.threads = threads, .passes = 2}, what);
    for (const int bits : {2, 5, 11}) {
      ExpectReference(r, s, {.threads = threads, .radix_bits = bits, .passes = 1}, what);
      ExpectReference(r, s, {.threads = threads, .radix_bits = bits, .passes = 2}, what);
    }
  }
}

TEST(RadixJoinLoop, SmallSizes) {
  RandomStream random(1);
  for (const size_t r_tuples : {0, 1, 7, 8, 9, 63, 1000}) {
    for (const size_t s_tuples : {0, 1, 8, 15, 1001}) {
      const Tuples r = RandomTuples(random, r_tuples, 500), s = RandomTuples(random, s_tuples, 500);
      ExpectReferenceByAllWays(r, s, "small");
    }
  }
}

TEST(RadixJoinLoop, NoMatch) {
  Tuples r(100), s(100);
  for (uint32_t i = 0; i < 100; ++i) {
    r[i] = {i, i};
    s[i] = {i + 100, i};
  }
  EXPECT_EQ(ReferenceJoin(r, s).matches, 0u);
  ExpectReferenceByAllWays(r, s, "no match");
}

TEST(RadixJoinLoop, TheLargestKeys) {
  RandomStream random(2);
  Tuples r = RandomTuples(random, 300, 200), s = RandomTuples(random, 300, 200);
  for (Tuples* tuples : {&r, &s}) {
    for (JoinTuple& tuple : *tuples) tuple = {UINT32_MAX - tuple.key, UINT32_MAX};
  }
  ExpectReferenceByAllWays(r, s, "large");
}

TEST(RadixJoinLoop, OnePartitionHoldsEverything) {
  RandomStream random(3);
  // The 11 lowest bits of all keys are zero.
  ExpectReferenceByAllWays(RandomTuples(random, 3000, 1000, 1 << 11),
                           RandomTuples(random, 5000, 1000, 1 << 11), "one partition");
  // All lists of one bucket.
  ExpectReferenceByAllWays(RandomTuples(random, 300, 16, 1 << 28), RandomTuples(random, 300, 16, 1 << 28),
                           "one bucket");
}

/// Large enough for several pieces of a partition in each phase.
TEST(RadixJoinLoop, APopularKeyIsSplitAmongThreads) {
  RandomStream random(4);
  const Tuples r = RandomTuples(random, 40'000, 1'000'000);
  Tuples s = RandomTuples(random, 400'001, 1'000'000);
  for (size_t i = 0; i < s.size(); i += 2) s[i].key = r[5].key;
  for (const int threads : {1, 2, 3, 7}) {
    ExpectReference(r, s, {.threads = threads, .radix_bits = 5, .passes = 1}, "popular");
    ExpectReference(r, s, {.threads = threads, .radix_bits = 7, .passes = 2}, "popular");
    ExpectReference(s, r, {.threads = threads, .radix_bits = 7, .passes = 2}, "popular in R");
  }
}

TEST(RadixJoinLoop, RandomRelations) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed);
    const auto size = [&] { return static_cast<size_t>(random.OneIn(8) ? 0 : random.Magnitude(1, 100'000)); };
    const size_t r_tuples = size(), s_tuples = size();
    // Few keys mean many matches: no more than some millions.
    const uint64_t keys = std::max<uint64_t>(r_tuples * s_tuples / 1'000'000, 1) +
                          static_cast<uint64_t>(random.Magnitude(1, 1 << 20));
    const uint32_t factor = uint32_t{1} << random.Below(8);
    const Tuples r = RandomTuples(random, r_tuples, keys, factor);
    const Tuples s = RandomTuples(random, s_tuples, keys, factor);
    RadixJoinOptions options;
    options.threads = static_cast<int>(random.Between(1, 4));
    options.passes = static_cast<int>(random.UpTo(2));
    if (random.OneIn(2)) options.radix_bits = static_cast<int>(random.Between(2, 14));
    ASSERT_NO_FATAL_FAILURE(ExpectReference(r, s, options, "seed " + std::to_string(seed)));
  }
}

/// By pass: {shift, bits}.
std::vector<std::vector<int>> Passes(uint64_t r_tuples, const RadixJoinOptions& options) {
  std::vector<std::vector<int>> passes;
  for (const Radix& radix : RadixJoinLoop::ChoosePasses(r_tuples, options))
    passes.push_back({radix.shift, radix.bits});
  return passes;
}

TEST(RadixJoinLoop, FanOutFollowsTheBuildSide) {
  using P = std::vector<std::vector<int>>;
  EXPECT_EQ(Passes(0, {}), (P{{0, 1}}));
  EXPECT_EQ(Passes(0, {.passes = 2}), (P{{0, 1}, {1, 1}}));
  EXPECT_EQ(Passes(1 << 24, {}), (P{{0, 10}}));
  EXPECT_EQ(Passes((1 << 24) + 1, {}), (P{{0, 11}}));
  EXPECT_EQ(Passes(1 << 27, {}), (P{{0, 13}}));
  EXPECT_EQ(Passes(1 << 28, {}), (P{{0, 7}, {7, 7}}));
  EXPECT_EQ(Passes(kJoinTuplesMax, {.passes = 1}), (P{{0, 14}}));
  EXPECT_EQ(Passes(kJoinTuplesMax, {}), (P{{0, 9}, {9, 8}}));
  EXPECT_EQ(Passes(1 << 20, {.radix_bits = 9, .passes = 2}), (P{{0, 5}, {5, 4}}));
}

TEST(RadixJoinLoop, JoinsTheWorkload) {
  for (const double zipf : {0.0, 1.0}) {
    const JoinInput input =
        MakeJoinInput({.r_tuples = 100'000, .s_tuples = 300'000, .zipf = zipf, .selectivity = 0.9});
    for (const int threads : {1, 2, 3}) {
      RadixJoinLoop loop(input.r.tuples(), input.s.tuples(), {.threads = threads});
      EXPECT_EQ(loop.Run(), ExpectedAnswer(input)) << threads << " threads, zipf " << zipf;
    }
  }
}

}  // namespace
}  // namespace nam::bench
