#include "computeserver/open_exchanges.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fabric/sim/world.h"

namespace nam::computeserver {
namespace {

class NoCall final : public catalog::IncomingCall {
 public:
  std::string Connection() const override { return "a test"; }
  bool Cancelled() const override { return false; }
};

/// A queue that runs two at a time: each exchange that is kept holds a turn.
class OpenExchangesTest : public testing::Test {
 protected:
  OpenExchangesTest()
      : world_({}),
        fabric_(*world_.OpenFabric("host", {.secret = "s"})),
        queue_(*fabric_, {.running_max = 2, .waiting_max = 0, .memory_bytes = 100}),
        open_(*fabric_) {}

  bool Put(uint64_t attempt, uint32_t client) {
    auto begun = queue_.Begin(call_, {.memory_bytes = 10}, [] {});
    EXPECT_TRUE(begun.ok()) << begun.status();
    return open_.Put(attempt, MemberId(client), {*std::move(begun), {}});
  }
  uint64_t used() const { return queue_.memory().used(); }

  fabric::sim::World world_;
  const std::unique_ptr<fabric::Fabric> fabric_;
  NoCall call_;
  AttemptQueue queue_;
  OpenExchanges open_;
};

TEST_F(OpenExchangesTest, AreTakenOnceByTheirClient) {
  EXPECT_TRUE(Put(7, 1));
  EXPECT_EQ(open_.Clients(), std::set<MemberId>{MemberId(1)});
  EXPECT_FALSE(open_.Take(7, MemberId(2)).has_value()) << "another client's";
  EXPECT_FALSE(open_.Take(8, MemberId(1)).has_value());
  std::optional<OpenExchanges::Ends> ends = open_.Take(7, MemberId(1));
  ASSERT_TRUE(ends.has_value());
  EXPECT_EQ(used(), 10u) << "the attempt goes on with what it has had";
  EXPECT_FALSE(open_.Take(7, MemberId(1)).has_value());
  ends.reset();
  EXPECT_EQ(used(), 0u);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(OpenExchangesTest, TwoOfOneAttemptAreRefused) {
  EXPECT_TRUE(Put(7, 1));
  EXPECT_FALSE(Put(7, 1));
  EXPECT_EQ(used(), 10u) << "of the first";
  EXPECT_TRUE(Put(7, 2));
}

TEST_F(OpenExchangesTest, GoWithTheirClientOrWhenItDoesNotWantThem) {
  EXPECT_TRUE(Put(7, 1));
  EXPECT_TRUE(Put(7, 2));
  open_.DropOf(MemberId(1));
  EXPECT_EQ(open_.Clients(), std::set<MemberId>{MemberId(2)});
  EXPECT_EQ(used(), 10u);
  open_.Release(7, MemberId(1));
  open_.Release(7, MemberId(2));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(used(), 0u);
}

TEST_F(OpenExchangesTest, GoWhenNoAttemptComesForLong) {
  EXPECT_TRUE(Put(7, 1));
  Clock& clock = fabric_->clock();
  clock.SleepUntil(clock.After(100'000'000));
  EXPECT_TRUE(Put(8, 1));
  open_.DropOld();
  EXPECT_EQ(used(), 20u);
  clock.SleepUntil(clock.After(30'000'000));
  open_.DropOld();
  EXPECT_EQ(used(), 10u) << "the older one";
  EXPECT_TRUE(open_.Take(8, MemberId(1)).has_value());
}

TEST_F(OpenExchangesTest, AServerThatEndsTakesNoMore) {
  EXPECT_TRUE(Put(7, 1));
  open_.End();
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(Put(8, 1));
  EXPECT_EQ(used(), 0u);
}

}  // namespace
}  // namespace nam::computeserver
