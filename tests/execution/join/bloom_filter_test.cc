#include "execution/join/bloom_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "types/hash.h"

namespace nam::execution {
namespace {

uint64_t HashOf(uint64_t key) {
  return HashNumber(static_cast<int64_t>(key));
}

BloomFilter Make(uint64_t bytes, MemoryBudget& budget) {
  absl::StatusOr<BloomFilter> filter = BloomFilter::Make(bytes, budget);
  EXPECT_TRUE(filter.ok()) << filter.status();
  return *std::move(filter);
}

TEST(BloomFilter, FindsItsKeysAndNoMoreOthersThanItWasMadeFor) {
  MemoryBudget budget(uint64_t{1} << 30);
  for (const double wanted : {0.1, 0.03, 0.01, 0.001}) {
    for (const uint64_t keys : {1'000u, 50'000u, 400'000u}) {
      SCOPED_TRACE(wanted);
      SCOPED_TRACE(keys);
      BloomFilter filter = Make(BloomFilter::BytesFor(keys, wanted), budget);
      for (uint64_t key = 0; key < keys; ++key) filter.Add(HashOf(3 * key));
      for (uint64_t key = 0; key < keys; ++key) ASSERT_TRUE(filter.MayHave(HashOf(3 * key)));
      constexpr uint64_t kOthers = 400'000;
      uint64_t found = 0;
      for (uint64_t key = 0; key < kOthers; ++key) found += filter.MayHave(HashOf(3 * key + 1));
      const double share = static_cast<double>(found) / kOthers;
      const double expected = BloomFilter::FalsePositives(filter.bytes().size(), keys);
      EXPECT_LE(expected, wanted);
      EXPECT_GT(expected, wanted * (keys > 10'000 ? 0.95 : 0.7)) << "of few keys words are rounded up";
      // Allows four standard deviations, and what the model ignores.
      EXPECT_LT(share, wanted * 1.1 + 4 * std::sqrt(wanted / kOthers));
      EXPECT_GT(share, wanted / 2 - 4 * std::sqrt(wanted / kOthers)) << "it is larger than it has to be";
    }
  }
}

/// Keys that a server has, and keys that are sent to it, have equal hashes in the exchange's bits.
TEST(BloomFilter, IsNoWorseForKeysOfOneServer) {
  MemoryBudget budget(uint64_t{1} << 30);
  constexpr uint32_t kServers = 16;
  constexpr uint64_t kKeys = 100'000;
  BloomFilter filter = Make(BloomFilter::BytesFor(kKeys, 0.01), budget);
  uint64_t added = 0, others = 0, found = 0;
  for (uint64_t key = 0; added < kKeys; ++key) {
    if (ExchangePart(HashOf(key), kServers) != 5) continue;
    filter.Add(HashOf(key));
    ++added;
  }
  for (uint64_t key = uint64_t{1} << 40; others < 200'000; ++key) {
    if (ExchangePart(HashOf(key), kServers) != 5) continue;
    ++others;
    found += filter.MayHave(HashOf(key));
  }
  EXPECT_LT(static_cast<double>(found) / static_cast<double>(others), 0.012);
}

TEST(BloomFilter, ThreadsAddAtOnceAndFiltersAreMerged) {
  MemoryBudget budget(uint64_t{16} << 20);
  constexpr uint64_t kKeys = 40'000;
  const uint64_t bytes = BloomFilter::BytesFor(kKeys, 0.01);
  BloomFilter whole = Make(bytes, budget), merged = Make(bytes, budget);
  {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&whole, t] {
        for (uint64_t key = t; key < kKeys; key += 4) whole.Add(HashOf(key));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (uint64_t part = 0; part < 3; ++part) {
    BloomFilter own = Make(bytes, budget);
    for (uint64_t key = part; key < kKeys; key += 3) own.Add(HashOf(key));
    // The filter travels in messages.
    const auto all = own.bytes();
    for (size_t at = 0; at < all.size(); at += 1000)
      ASSERT_TRUE(merged.Add(at, all.subspan(at, std::min<size_t>(1000, all.size() - at))).ok());
  }
  ASSERT_EQ(merged.bytes().size(), whole.bytes().size());
  EXPECT_EQ(std::memcmp(merged.bytes().data(), whole.bytes().data(), whole.bytes().size()), 0);
}

TEST(BloomFilter, RefusesPartsOfOtherFilters) {
  MemoryBudget budget(1 << 20);
  BloomFilter filter = Make(1'021, budget);
  EXPECT_EQ(filter.bytes().size(), 1'024u) << "whole words";
  const std::vector<std::byte> part(64);
  EXPECT_TRUE(filter.Add(1'024 - 64, part).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(filter.Add(1'024 - 56, part)));
  EXPECT_TRUE(absl::IsInvalidArgument(filter.Add(4, part)));
  EXPECT_TRUE(absl::IsInvalidArgument(filter.Add(UINT64_MAX - 7, part)));
  EXPECT_TRUE(absl::IsInvalidArgument(filter.Add(0, std::span(part).first(4))));
}

TEST(BloomFilter, TakesItsMemoryFromTheBudget) {
  MemoryBudget budget(10'000);
  EXPECT_TRUE(absl::IsResourceExhausted(BloomFilter::Make(20'000, budget).status()));
  {
    BloomFilter filter = Make(5'000, budget);
    EXPECT_EQ(budget.used(), 5'000u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(BloomFilter, WithoutKeysFindsNothing) {
  MemoryBudget budget(1 << 20);
  const BloomFilter filter = Make(BloomFilter::BytesFor(0, 0.01), budget);
  EXPECT_EQ(filter.bytes().size(), BloomFilter::kWordBytes);
  for (uint64_t key = 0; key < 100; ++key) EXPECT_FALSE(filter.MayHave(HashOf(key)));
}

}  // namespace
}  // namespace nam::execution
