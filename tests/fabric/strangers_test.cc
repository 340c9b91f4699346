#include "fabric/strangers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <set>
#include <vector>

namespace nam::fabric {
namespace {

constexpr size_t kPlaces = 256;

TEST(StrangersTest, ACrowdLosesItsOwnPlaces) {
  std::vector<uint64_t> sources(kPlaces, 1);
  for (size_t i = 0; i < kPlaces / 2; ++i) sources[2 * i] = 1'000 + i;
  std::set<size_t> leavers;
  for (uint64_t random = 0; random < 10 * kPlaces; ++random) leavers.insert(ChooseLeaver(sources, random));
  for (const size_t leaver : leavers) EXPECT_EQ(sources[leaver], 1u);
  EXPECT_EQ(leavers.size(), kPlaces / 4) << "each of its older half";
}

TEST(StrangersTest, TheYoungerHalfIsSafeAndChanceDecidesAmongTheOlder) {
  std::vector<uint64_t> apart;
  for (size_t i = 0; i < kPlaces; ++i) apart.push_back(i);
  for (const std::vector<uint64_t>& sources : {apart, std::vector<uint64_t>(kPlaces, 1)}) {
    std::set<size_t> leavers;
    for (uint64_t random = 0; random < 10 * kPlaces; ++random) leavers.insert(ChooseLeaver(sources, random));
    EXPECT_EQ(leavers.size(), kPlaces / 2);
    EXPECT_EQ(*leavers.rbegin(), kPlaces / 2 - 1);
  }
  EXPECT_EQ(ChooseLeaver(std::vector<uint64_t>{7}, 12'345), 0u);
}

TEST(StrangersTest, MostDescriptorsAreLeftForOthers) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 200;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(StrangersMax(), 25u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LE(StrangersMax(), kPlaces);
}

}  // namespace
}  // namespace nam::fabric
