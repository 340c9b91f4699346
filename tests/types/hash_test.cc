#include "types/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"

namespace nam {
namespace {

/// Partitions in scratch memory depend on these numbers, and servers must agree on them.
TEST(Hash, NeverChanges) {
  EXPECT_EQ(HashNumber(int64_t{0}), 0xfa303abc2b1d7630ULL);
  EXPECT_EQ(HashNumber(int64_t{1}), 0x8fd90e7337ab042dULL);
  EXPECT_EQ(HashNumber(int64_t{-1}), 0x457fadeec3572404ULL);
  EXPECT_EQ(HashNumber(int64_t{19'970'101}), 0xb1263466e72863f0ULL);
  EXPECT_EQ(HashNumber(std::numeric_limits<int64_t>::min()), 0xcef4d0730124950cULL);
  EXPECT_EQ(HashNumber(__int128{1} << 64), 0x5e8a5a26a16213d1ULL);
  EXPECT_EQ(HashNumber(-(__int128{1} << 100)), 0xdfb97277db03b4f7ULL);
  EXPECT_EQ(HashText(""), 0x2d06800538d394c2ULL);
  EXPECT_EQ(HashText("MFGR#12"), 0x8cab757af97c53d7ULL);
  EXPECT_EQ(HashText("the quick brown fox jumps over the lazy dog"), 0xe4541a9cacf545aaULL);
  EXPECT_EQ(HashText(std::string(300, 'x')), 0xa5d1b4607dc83554ULL);
  EXPECT_EQ(CombineHashes(HashNumber(int64_t{1}), HashNumber(int64_t{2})), 0xe6b0af75aae32f4aULL);
  EXPECT_EQ(CombineHashes(kHashOfNothing, kHashOfNull), 0xacfe59e18f146e55ULL);
  EXPECT_EQ(kHashOfNull, 0x9e3779b97f4a7c15ULL);
}

TEST(Hash, IsEqualForEqualNumbersOfAnyWidth) {
  RandomStream random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto n = static_cast<int64_t>(random.Next() >> random.Below(64));
    ASSERT_EQ(HashNumber(n), HashNumber(static_cast<__int128>(n))) << n;
    ASSERT_EQ(HashNumber(-n), HashNumber(-static_cast<__int128>(n))) << n;
  }
  for (const int64_t n : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(HashNumber(n), HashNumber(static_cast<__int128>(n)));
  }
  // A number beyond 64 bits is not confused with a smaller one: 2^63 has the bits of -2^63.
  EXPECT_NE(HashNumber(__int128{1} << 63), HashNumber(std::numeric_limits<int64_t>::min()));
  EXPECT_NE(HashNumber(__int128{1} << 64), HashNumber(int64_t{0}));
}

TEST(Hash, OfSeveralValuesDependsOnTheirOrder) {
  const uint64_t a = HashNumber(int64_t{1}), b = HashNumber(int64_t{2});
  EXPECT_NE(CombineHashes(a, b), CombineHashes(b, a));
  EXPECT_NE(CombineHashes(a, kHashOfNull), CombineHashes(kHashOfNull, a));
}

TEST(Hash, PartsTakeDifferentBits) {
  const uint64_t hash = 0xab'1234'5678'9abcde;
  EXPECT_EQ(ExchangePart(hash, 256), 0xabU);
  EXPECT_EQ(ExchangePart(hash, 16), 0xaU);
  EXPECT_EQ(ExchangePart(hash, 1), 0U);
  EXPECT_EQ(ExchangePart(UINT64_MAX, 6), 5U);
  EXPECT_EQ(RadixPart(hash, 0, 16), 0x1234U);
  EXPECT_EQ(RadixPart(hash, 0, 8), 0x12U);
  EXPECT_EQ(RadixPart(hash, 8, 8), 0x34U);
  EXPECT_EQ(RadixPart(hash, 12, 4), 0x4U);
}

/// Checks that balls in equal bins look randomly thrown: chi squared at most six standard deviations above
/// the mean.
void ExpectEven(const std::vector<uint32_t>& bins, double balls, const std::string& what) {
  const double expected = balls / static_cast<double>(bins.size());
  double chi = 0;
  for (const uint32_t n : bins) chi += (n - expected) * (n - expected) / expected;
  const auto freedom = static_cast<double>(bins.size() - 1);
  EXPECT_LT(chi, freedom + 6 * std::sqrt(2 * freedom)) << what;
}

/// Typical keys of tables, through the exchange, one radix partition of a server's share, and a hash table.
TEST(Hash, DividesOrdinaryKeysEvenly) {
  struct Keys {
    std::string name;
    std::function<uint64_t(int64_t)> hash;
  };
  std::vector<Keys> all;
  for (const int shift : {0, 1, 3, 8, 16, 24, 32, 40}) {
    all.push_back({"i << " + std::to_string(shift), [=](int64_t i) { return HashNumber(i << shift); }});
    all.push_back({"pairs (i, 1) << " + std::to_string(shift),
                   [=](int64_t i) { return CombineHashes(HashNumber(i << shift), HashNumber(int64_t{1})); }});
  }
  all.push_back({"negative", [](int64_t i) { return HashNumber(-i); }});
  all.push_back({"thousands", [](int64_t i) { return HashNumber(i * 1000); }});
  all.push_back({"wide", [](int64_t i) { return HashNumber(static_cast<__int128>(i) << 70); }});
  all.push_back({"pairs", [](int64_t i) { return CombineHashes(HashNumber(i >> 9), HashNumber(i & 511)); }});
  all.push_back({"with NULL", [](int64_t i) { return CombineHashes(HashNumber(i), kHashOfNull); }});
  all.push_back({"text", [](int64_t i) { return HashText("Customer#" + std::to_string(i)); }});
  constexpr int64_t kKeys = 1 << 18;
  for (const Keys& keys : all) {
    std::vector<uint32_t> exchange(256), six(6), radix(256), table(4096), sub(1 << 10);
    double in_first = 0;
    for (int64_t i = 0; i < kKeys; ++i) {
      const uint64_t hash = keys.hash(i);
      ++exchange[ExchangePart(hash, 256)];
      ++six[ExchangePart(hash, 6)];
      ++table[hash & 4095];
      if (ExchangePart(hash, 6) != 2) continue;  // the share of one server of six
      ++radix[RadixPart(hash, 0, 8)];
      if (RadixPart(hash, 0, 4) != 5) continue;
      ++sub[hash & 1023];
      ++in_first;
    }
    ExpectEven(exchange, kKeys, keys.name + ", exchange");
    ExpectEven(six, kKeys, keys.name + ", six servers");
    ExpectEven(table, kKeys, keys.name + ", table");
    ExpectEven(radix, six[2], keys.name + ", radix partitions");
    ExpectEven(sub, in_first, keys.name + ", table of a partition");
  }
}

}  // namespace
}  // namespace nam
