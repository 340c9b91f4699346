#include "txn/column_numbers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "base/interruption.h"
#include "tests/txn/space_cluster.h"

namespace nam::txn {
namespace {

class ColumnNumbersTest : public ::testing::Test {
 protected:
  ColumnNumbersTest()
      : cluster_({.kind = fabric::Kind::kSim}), fabric_(cluster_.client(), MortalFabric::kNever) {
    EXPECT_TRUE(cluster_.Grow(0).ok());
  }
  ColumnNumbers::Table Table() {
    return {.allocation = AllocationId(7), .extent_bytes = cluster_.extent_bytes(), .open = [this] {
              ++opened_;
              return absl::StatusOr<std::shared_ptr<ExtentSource>>(
                  std::shared_ptr<ExtentSource>(std::shared_ptr<void>(), &cluster_));
            }};
  }

  SpaceCluster cluster_;
  MortalFabric fabric_;
  int opened_ = 0;
};

/// The sessions of a process share one connection to the words' memory server, and get each number once.
TEST_F(ColumnNumbersTest, SessionsOfAProcessShareThem) {
  constexpr int kThreads = 5, kOfEach = 100;
  ColumnNumbers numbers(fabric_, cluster_);
  std::set<uint64_t> first, second;
  RunThreads(cluster_, kThreads, [&](int) {
    for (int i = 0; i < kOfEach; ++i) {
      const auto number = numbers.Next(Table(), 0), other = numbers.Next(Table(), 1);
      ASSERT_TRUE(number.ok()) << number.status();
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_TRUE(first.insert(*number).second) << *number;
      EXPECT_TRUE(second.insert(*other).second) << *other;
    }
  });
  EXPECT_EQ(*first.rbegin(), kThreads * kOfEach - 1u) << "there are no gaps while the process lives";
  EXPECT_EQ(fabric_.open_connections(), 1);
  EXPECT_EQ(opened_, 1);
}

/// Another process begins after the numbers that this one has taken. A broken connection loses the numbers
/// that were requested.
TEST_F(ColumnNumbersTest, ABrokenConnectionIsReplaced) {
  ColumnNumbers numbers(fabric_, cluster_), others(cluster_.client(), cluster_);
  EXPECT_EQ(*numbers.Next(Table(), 0), 0u);
  EXPECT_EQ(*others.Next(Table(), 0), ColumnNumbers::kTakenAtOnce);
  fabric_.BreakAfter(0);
  EXPECT_FALSE(numbers.Next(Table(), 1).ok());
  EXPECT_EQ(*numbers.Next(Table(), 0), 1u);
  EXPECT_EQ(*numbers.Next(Table(), 1), 0u);
  EXPECT_EQ(fabric_.open_connections(), 1);
}

/// A session can be cancelled while it waits for another one that takes numbers.
TEST_F(ColumnNumbersTest, CancelEndsTheWait) {
  ColumnNumbers numbers(fabric_, cluster_);
  const std::unique_ptr<fabric::Event> asked = fabric_.CreateEvent(), answered = fabric_.CreateEvent();
  ColumnNumbers::Table slow = Table();
  slow.open = [&] {
    asked->Set();
    answered->Wait(Deadline::Never());
    return Table().open();
  };
  {
    const auto taker = fabric_.StartThread("taker", [&] { EXPECT_EQ(*numbers.Next(slow, 0), 0u); });
    asked->Wait(Deadline::Never());
    const std::atomic<bool> cancelled = true;
    const Interruption interruption(&cancelled);
    EXPECT_TRUE(absl::IsCancelled(numbers.Next(Table(), 0).status()));
    answered->Set();
  }
  EXPECT_EQ(*numbers.Next(Table(), 0), 1u);
}

}  // namespace
}  // namespace nam::txn
