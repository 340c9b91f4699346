#include "execution/aggregate/group_sums.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

constexpr __int128 kMost = std::numeric_limits<__int128>::max(),
                   kLeast = std::numeric_limits<__int128>::min();

class GroupSumsTest : public ::testing::Test {
 protected:
  GroupSumsTest() { EXPECT_TRUE(sums_.Grow(2).ok()); }
  bool wide() const { return sums_.narrow() == nullptr; }

  MemoryBudget budget_{1 << 20};
  GroupSums sums_{budget_};
};

TEST_F(GroupSumsTest, WidensAtTheEdgeOf64Bits) {
  ASSERT_TRUE(sums_.AddOne(0, INT64_MAX - 1).ok());
  ASSERT_TRUE(sums_.AddOne(1, 1).ok());
  EXPECT_FALSE(wide());
  EXPECT_EQ(sums_.narrow()[0], INT64_MAX - 1);
  ASSERT_TRUE(sums_.AddOne(0, 2).ok());
  EXPECT_TRUE(wide());
  EXPECT_TRUE(sums_.of(0) == __int128{INT64_MAX} + 1);
  EXPECT_TRUE(sums_.of(1) == 1);
}

TEST_F(GroupSumsTest, NegativeNumbersTakeRoomToo) {
  ASSERT_TRUE(sums_.AddOne(0, -INT64_MAX).ok());
  EXPECT_FALSE(wide());
  ASSERT_TRUE(sums_.AddOne(0, -2).ok());
  EXPECT_TRUE(wide());
  EXPECT_TRUE(sums_.of(0) == -__int128{INT64_MAX} - 2);
  ASSERT_TRUE(sums_.AddOne(1, INT64_MIN).ok());
  EXPECT_TRUE(sums_.of(1) == INT64_MIN);
}

/// Many numbers take as much room as that number of the largest ones.
TEST_F(GroupSumsTest, ManyNumbersTakeTheRoomOfTheMostEach) {
  const auto bytes_of = [&](uint64_t count, uint64_t most) {
    size_t bytes = 0;
    EXPECT_TRUE(sums_.Add(count, most, [&](auto* sums) { bytes = sizeof(*sums); }).ok());
    return bytes;
  };
  EXPECT_EQ(bytes_of(4, uint64_t{1} << 60), sizeof(int64_t));
  EXPECT_EQ(bytes_of(0, UINT64_MAX), sizeof(int64_t));
  EXPECT_EQ(bytes_of(3, uint64_t{1} << 60), sizeof(int64_t));
  EXPECT_EQ(bytes_of(2, uint64_t{1} << 60), sizeof(__int128));
  EXPECT_EQ(bytes_of(1, 1), sizeof(__int128)) << "from then on";
}

TEST_F(GroupSumsTest, SumsBeyond128BitsAreRefused) {
  const auto state = [](const absl::Status& status) {
    const std::optional<SqlError> error = SqlErrorOf(status);
    return error.has_value() ? error->sqlstate : std::string(status.message());
  };
  ASSERT_TRUE(sums_.AddOne(0, kMost).ok());
  ASSERT_TRUE(sums_.AddOne(1, kLeast).ok());
  EXPECT_TRUE(sums_.of(0) == kMost);
  EXPECT_TRUE(sums_.of(1) == kLeast);
  EXPECT_EQ(state(sums_.AddOne(0, 1)), sqlstate::kNumberOutOfRange);
  EXPECT_EQ(state(sums_.AddOne(1, -1)), sqlstate::kNumberOutOfRange);
}

TEST_F(GroupSumsTest, ResetLeavesZeros) {
  ASSERT_TRUE(sums_.AddOne(0, -INT64_MAX).ok());
  sums_.Reset(2);
  ASSERT_TRUE(sums_.AddOne(0, INT64_MAX).ok());
  EXPECT_FALSE(wide()) << "there is room again";
  EXPECT_TRUE(sums_.of(0) == INT64_MAX);
  ASSERT_TRUE(sums_.AddOne(1, INT64_MAX).ok());
  EXPECT_TRUE(wide());
  sums_.Reset(2);
  EXPECT_TRUE(sums_.of(0) == 0 && sums_.of(1) == 0);
}

TEST_F(GroupSumsTest, WideningNeedsMemory) {
  ASSERT_TRUE(sums_.AddOne(0, 5).ok());
  const uint64_t left = budget_.bytes() - budget_.used();
  ASSERT_TRUE(budget_.Reserve(left));
  EXPECT_TRUE(absl::IsResourceExhausted(sums_.AddOne(0, kMost - 5)));
  budget_.Release(left);
  EXPECT_TRUE(sums_.of(0) == 5);
}

/// Numbers of any size, in any order, add up as 128-bit numbers do, while groups are added.
TEST(GroupSums, AreThoseOf128Bits) {
  for (const uint64_t seed : TestSeeds(100)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    MemoryBudget budget(1 << 20);
    GroupSums sums(budget);
    std::vector<__int128> model;
    const auto bits = static_cast<uint32_t>(1 + random.Below(63));
    const auto number = [&] {
      const auto magnitude = static_cast<int64_t>(random.Below(uint64_t{1} << bits));
      return random.OneIn(2) ? magnitude : -magnitude;
    };
    for (int step = 0; step < 200; ++step) {
      if (model.empty() || random.OneIn(20)) model.resize(model.size() + 1 + random.Below(90));
      ASSERT_TRUE(sums.Grow(static_cast<uint32_t>(model.size())).ok());
      if (random.OneIn(2)) {
        const auto group = static_cast<uint32_t>(random.Below(model.size()));
        const __int128 one = random.OneIn(50) ? __int128{number()} << 40 : number();
        ASSERT_TRUE(sums.AddOne(group, one).ok());
        model[group] += one;
        continue;
      }
      std::array<std::pair<size_t, int64_t>, 7> added;
      for (auto& [group, one] : added) {
        group = random.Below(model.size());
        model[group] += one = number();
      }
      const auto add = [&](auto* at) {
        for (const auto& [group, one] : added) at[group] += one;
      };
      ASSERT_TRUE(sums.Add(added.size(), uint64_t{1} << bits, add).ok());
    }
    for (uint32_t group = 0; group < model.size(); ++group) ASSERT_TRUE(sums.of(group) == model[group]);
  }
}

}  // namespace
}  // namespace nam::execution
