#include "txn/shared_timestamps.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/txn/record_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"

/// The timestamp state that the sessions of a process share.
namespace nam::txn {
namespace {

class SharedTimestampsTest : public ::testing::Test {
 protected:
  SharedTimestampsTest() : cluster_({.kind = fabric::Kind::kSim}) { cluster_.AddTable("accounts", {}); }

  RecordCluster cluster_;
};

TEST_F(SharedTimestampsTest, OneSessionKeepsTheWatermarkNear) {
  Teller teller(cluster_, 1);
  teller.Create(1, 0);
  for (int i = 0; i < 700; ++i) teller.Set(1, i);
  RecordCluster::Member member(cluster_, cluster_.client(), 2);
  const uint64_t watermark = Auditor(member, TimestampKind::kLeased).Watermark();
  ASSERT_TRUE(teller.session->Begin().ok());
  EXPECT_LT(teller.session->snapshot() - watermark, 128u);
}

TEST_F(SharedTimestampsTest, TheGreatestWatermarkCounts) {
  SharedTimestamps shared;
  for (const uint64_t seen : {7, 5, 9, 8}) shared.SawWatermark(seen);
  EXPECT_EQ(shared.watermark(), 9u);
}

/// The session was away for more commits than one READ of the ring shows.
TEST_F(SharedTimestampsTest, ASnapshotBeginsAtAWatermarkThatAnotherHasSeen) {
  constexpr uint64_t kTimes = 20;
  Teller teller(cluster_, 1);
  AccountSession other(OpenRsiSession(teller.member, {}));
  teller.Create(1, 0);
  // Both have clients of their own.
  ASSERT_TRUE(teller.session->Begin().ok() && other.session->Begin().ok());
  teller.session->Abort();
  other.session->Abort();
  const uint64_t before = other.session->begin_costs().verbs;
  for (uint64_t i = 0; i < kTimes; ++i) {
    for (int commit = 0; commit < 300; ++commit) teller.Set(1, commit);
    ASSERT_EQ(other.BalanceOf(1), 299);
  }
  // They publish its snapshot, and READ the head and the entries. Another look at these costs two more.
  EXPECT_LT(other.session->begin_costs().verbs - before, kTimes * 4);
}

}  // namespace
}  // namespace nam::txn
