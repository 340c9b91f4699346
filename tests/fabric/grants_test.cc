#include "fabric/grants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nam::fabric {
namespace {

constexpr AllocationId kAllocation(5), kOtherAllocation(6);
constexpr MemoryServerId kServer(1), kSecond(2);

class GrantsTest : public testing::Test {
 protected:
  std::shared_ptr<Grant> Open(AllocationId allocation, uint64_t attempt, MemoryServerId server) {
    return Grants::Opening(grants_, server).Add(allocation, attempt);
  }
  bool End(AllocationId allocation) { return grants_.End({&allocation, 1}); }
  std::vector<AllocationId> Closed() {
    std::vector<AllocationId> closed;
    for (const Grants::Closed& one : grants_.Close()) closed.push_back(one.grant->allocation());
    return closed;
  }
  std::vector<AllocationId> Only(AllocationId allocation) { return {allocation}; }

  Grants grants_;
};

TEST_F(GrantsTest, WhatIsOverIsClosedOnEachServer) {
  const auto grant = Open(kAllocation, 0, kServer);
  EXPECT_EQ(Open(kAllocation, 0, kSecond), grant);
  Open(kOtherAllocation, 0, kServer);
  EXPECT_EQ(grants_.Allocations(), (std::vector{kAllocation, kOtherAllocation}));
  EXPECT_TRUE(Closed().empty());
  EXPECT_FALSE(grants_.closing());
  EXPECT_TRUE(End(kAllocation));
  EXPECT_FALSE(End(AllocationId(7))) << "nothing is open of it";
  EXPECT_TRUE(grant->over());
  EXPECT_TRUE(grants_.closing());
  const auto closed = grants_.Close();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(closed[0].server, kServer);
  EXPECT_EQ(closed[1].server, kSecond);
  grants_.Forget(closed[0]);
  const auto left = grants_.Close();
  ASSERT_EQ(left.size(), 1u) << "until it is told, too";
  EXPECT_EQ(left[0].server, kSecond);
  grants_.Forget(closed[1]);
  EXPECT_FALSE(grants_.closing());
  EXPECT_EQ(grants_.Allocations(), std::vector{kOtherAllocation});
}

// The server opens the grant again right after it was told that it is closed.
TEST_F(GrantsTest, WhatIsOpenedWhileTheServerIsToldIsClosedAgain) {
  const auto grant = Open(kAllocation, 0, kServer);
  Open(kAllocation, 0, kSecond);
  End(kAllocation);
  const auto closed = grants_.Close();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(Open(kAllocation, 0, kServer), grant);
  for (const Grants::Closed& told : closed) grants_.Forget(told);
  EXPECT_TRUE(grants_.closing());
  const auto again = grants_.Close();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].server, kServer);
  grants_.Forget(again[0]);
  EXPECT_FALSE(grants_.closing());
}

// The server may be at work on the request for longer than this process waits.
TEST_F(GrantsTest, WhatAServerMayStillOpenIsClosedOnceMoreWhenItIsNotAwaited) {
  const auto other = std::make_unique<Grants::Opening>(grants_, kSecond);
  auto opening = std::make_unique<Grants::Opening>(grants_, kServer);
  opening->Add(kAllocation, 1);
  grants_.EndAttempt(kAllocation, 1);
  const auto early = grants_.Close();
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early[0].openings_from, opening->number());
  grants_.Forget(early[0]);
  EXPECT_TRUE(grants_.closing());
  EXPECT_TRUE(grants_.Close().empty()) << "the server knows as much";
  const uint64_t number = opening->number();
  const auto later = std::make_unique<Grants::Opening>(grants_, kServer);
  opening.reset();
  const auto closed = grants_.Close();
  ASSERT_EQ(closed.size(), 1u) << "whatever the second server is asked";
  EXPECT_EQ(closed[0].openings_from, later->number());
  EXPECT_GT(later->number(), number);
  grants_.Forget(closed[0]);
  EXPECT_FALSE(grants_.closing());
}

TEST_F(GrantsTest, AUseKeepsItOpen) {
  auto use = Grant::Use::Of(Open(kAllocation, 0, kServer));
  ASSERT_TRUE(use.has_value());
  End(kAllocation);
  EXPECT_TRUE(Closed().empty());
  Grant::Use kept = *std::move(use);
  use.reset();
  EXPECT_TRUE(Closed().empty()) << "it has only moved";
  kept = Grant::Use();
  EXPECT_EQ(Closed(), Only(kAllocation));
}

TEST_F(GrantsTest, NoUseBeginsBehindTheEnd) {
  const auto grant = Open(kAllocation, 0, kServer);
  End(kAllocation);
  EXPECT_FALSE(Grant::Use::Of(grant).has_value());
  EXPECT_EQ(Closed(), Only(kAllocation)) << "the refused one counts no more";
}

TEST_F(GrantsTest, ASectionThatBeganBeforeTheEndKeepsItOpen) {
  const auto gate = grants_.MakeGate(RealClock()), idle = grants_.MakeGate(RealClock());
  Open(kAllocation, 0, kServer);
  gate->Enter();
  End(kAllocation);
  EXPECT_TRUE(Closed().empty());
  gate->Leave();
  gate->Enter();  // the owner has seen this one's end
  EXPECT_EQ(Closed(), Only(kAllocation));
  // A section that began behind the end of one keeps what ends later.
  Open(kOtherAllocation, 0, kServer);
  End(kOtherAllocation);
  EXPECT_EQ(Closed(), Only(kAllocation));
}

TEST_F(GrantsTest, AParkedSectionEndsWhenItIsDrained) {
  const auto gate = grants_.MakeGate(RealClock());
  Open(kAllocation, 0, kServer);
  bool complete = false;
  gate->Enter();
  gate->Park([&] { return complete; });
  End(kAllocation);
  EXPECT_TRUE(Closed().empty());
  gate->Enter();  // goes on with the same section
  EXPECT_TRUE(Closed().empty());
  gate->Park([&] { return complete; });
  complete = true;
  EXPECT_EQ(Closed(), Only(kAllocation));
  EXPECT_TRUE(gate->idle());
  gate->Enter();
  gate->Leave();
}

class Connections final : public Unconfirmed {
 public:
  Connections(std::shared_ptr<Gate> gate, const bool& confirmed)
      : gate_(std::move(gate)), confirmed_(confirmed) {}
  bool Confirmed() override {
    if (confirmed_) gate_->Leave();
    return confirmed_;
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const bool& confirmed_;
};

TEST_F(GrantsTest, ConnectionsThatNobodyUsesKeepItOpenUntilTheirEndIsConfirmed) {
  Open(kAllocation, 0, kServer);
  bool confirmed = false;
  {
    const auto gate = grants_.MakeGate(RealClock());
    gate->Enter();
    grants_.Leave(std::make_unique<Connections>(gate, confirmed));
  }
  End(kAllocation);
  EXPECT_TRUE(Closed().empty());
  confirmed = true;
  EXPECT_EQ(Closed(), Only(kAllocation));
}

TEST_F(GrantsTest, AnAttemptsPartEndsAlone) {
  const auto one = Open(kAllocation, 1, kServer), other = Open(kAllocation, 2, kServer);
  EXPECT_EQ(grants_.Allocations(), Only(kAllocation));
  grants_.EndAttempt(kAllocation, 1);
  EXPECT_TRUE(one->over());
  EXPECT_FALSE(other->over());
  const auto closed = grants_.Close();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].grant->attempt(), 1u);
  End(kAllocation);
  EXPECT_EQ(grants_.Close().size(), 2u);
}

TEST_F(GrantsTest, WhatTheServerHasNotConfirmedIsNotFound) {
  Grants::Opening opening(grants_, kServer);
  const auto grant = opening.Add(kAllocation, 0);
  EXPECT_EQ(grants_.Find(kAllocation, kServer), nullptr);
  EXPECT_TRUE(opening.Confirm(*grant));
  EXPECT_EQ(grants_.Find(kAllocation, kServer), grant);
  EXPECT_EQ(grants_.Find(kAllocation, kSecond), nullptr);
  End(kAllocation);
  EXPECT_FALSE(opening.Confirm(*grant));
}

TEST_F(GrantsTest, ANewMemberHasNothingOpen) {
  auto opening = std::make_unique<Grants::Opening>(grants_, kServer);
  const auto grant = opening->Add(kAllocation, 0);
  opening->Add(kOtherAllocation, 0);
  grants_.EndAll();
  EXPECT_TRUE(grant->over());
  EXPECT_TRUE(grants_.Allocations().empty());
  EXPECT_FALSE(opening->Confirm(*grant));
  opening.reset();  // not confirmed for the other allocation
  EXPECT_EQ(grants_.Allocations(), (std::vector{kAllocation, kOtherAllocation}))
      << "the server may have both open for the member of now, so the catalog must say when they are over";
  const auto again = Open(kAllocation, 0, kServer);
  EXPECT_FALSE(again->over());
  EXPECT_NE(again, grant);
}

}  // namespace
}  // namespace nam::fabric
