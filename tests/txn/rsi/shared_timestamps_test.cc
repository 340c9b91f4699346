#include "txn/shared_timestamps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/timestamps/timestamps.h"

/// Timestamps that one session's FETCH_ADD takes for others of its process.
namespace nam::txn {
namespace {

class SpareTimestampsTest : public ::testing::Test {
 protected:
  SpareTimestampsTest() : cluster_({.kind = fabric::Kind::kSim}) { cluster_.AddTable("accounts", {}); }

  fabric::Fabric& fabric() { return cluster_.client(); }
  Clock& clock() { return fabric().clock(); }
  int64_t NowNs() { return clock().NowNs(); }
  /// As if two sessions had always come at once, of late.
  void ExpectAnother(SpareTimestamps& spares) {
    for (int i = 0; i < 20; ++i) {
      const SpareTimestamps::Place first = spares.Take(fabric()), second = spares.Take(fabric());
      spares.Arrive(*first.offer, 1, NowNs());
      if (second.number == 0) spares.Arrive(*second.offer, 1, NowNs());
    }
  }

  RecordCluster cluster_;
};

TEST_F(SpareTimestampsTest, AProcessWithOneSessionHasNone) {
  SpareTimestamps spares;
  for (int i = 0; i < 20; ++i) {
    const SpareTimestamps::Place place = spares.Take(fabric());
    EXPECT_EQ(place.number, 0u);
    EXPECT_EQ(place.offer->spares, 0u);
    EXPECT_EQ(spares.Arrive(*place.offer, 1, NowNs()), 0u);
  }
}

TEST_F(SpareTimestampsTest, EachSessionThatComesMeanwhileHasASpareOfItsOwn) {
  SpareTimestamps spares;
  for (int i = 0; i < 20; ++i) {
    std::vector<SpareTimestamps::Place> places;
    for (int session = 0; session < 4; ++session) places.push_back(spares.Take(fabric()));
    for (const auto& place : places) {
      if (place.number == 0) spares.Arrive(*place.offer, 1, NowNs());
    }
  }
  const SpareTimestamps::Place first = spares.Take(fabric()), second = spares.Take(fabric()),
                               third = spares.Take(fabric());
  ASSERT_GE(first.offer->spares, 2u);
  EXPECT_EQ(second.offer, first.offer);
  EXPECT_EQ(spares.Arrive(*first.offer, 10, NowNs()), first.offer->spares - 2) << "the rest is nobody's";
  EXPECT_EQ(spares.Await(second, clock()), 11u);
  EXPECT_EQ(spares.Await(third, clock()), 12u);
}

TEST_F(SpareTimestampsTest, NoneIsOfferedBehindItsFetch) {
  SpareTimestamps spares;
  ExpectAnother(spares);
  const SpareTimestamps::Place first = spares.Take(fabric());
  ASSERT_EQ(first.offer->spares, 1u);
  spares.Arrive(*first.offer, 10, NowNs());
  EXPECT_EQ(spares.Take(fabric()).number, 0u);
}

TEST_F(SpareTimestampsTest, NoneBehindAFetchThatTookLong) {
  SpareTimestamps spares;
  ExpectAnother(spares);
  const SpareTimestamps::Place first = spares.Take(fabric());
  spares.Arrive(*first.offer, 10, first.offer->began_ns + SpareTimestamps::kQuickNs + 1);
  EXPECT_EQ(spares.Take(fabric()).offer->spares, 0u);
}

TEST_F(SpareTimestampsTest, ASessionWhoseSpareDoesNotComeHearsOfIt) {
  SpareTimestamps spares;
  ExpectAnother(spares);
  const SpareTimestamps::Place first = spares.Take(fabric()), second = spares.Take(fabric());
  ASSERT_EQ(second.number, 1u);
  const int64_t begin_ns = NowNs();
  EXPECT_EQ(spares.Await(second, clock()), std::nullopt);
  EXPECT_GE(NowNs() - begin_ns, SpareTimestamps::kAwaitUs * 1'000);
  spares.Arrive(*first.offer, 0, NowNs());
  EXPECT_EQ(spares.Await(second, clock()), std::nullopt) << "its session ended";
}

/// The smallest race: a spare is taken that nobody comes for, and another transaction commits above it.
TEST_F(SpareTimestampsTest, ASpareThatNobodyReservedHoldsNoSnapshotBack) {
  Teller teller(cluster_, 1), reader(cluster_, 2);
  teller.Create(1, 100);
  ASSERT_EQ(reader.BalanceOf(1), 100);
  ExpectAnother(teller.member.State()->shared->spares());
  teller.Set(1, 50);
  teller.Set(1, 60);
  const int64_t begin_ns = NowNs();
  while (reader.BalanceOf(1) != 60) clock().SleepUntil(clock().After(10));
  EXPECT_LT(NowNs() - begin_ns, Timestamps::kPatienceUs * 1'000 / 2) << "nobody passed it over";
}

/// The session that posts for both stands still.
TEST_F(SpareTimestampsTest, ACommitWhoseSpareDoesNotComeTakesAnother) {
  Teller teller(cluster_, 1), reader(cluster_, 2);
  teller.Create(1, 100);
  SpareTimestamps& spares = teller.member.State()->shared->spares();
  ExpectAnother(spares);
  const SpareTimestamps::Place stalled = spares.Take(fabric());
  ASSERT_EQ(stalled.offer->spares, 1u);
  const int64_t begin_ns = NowNs();
  teller.Set(1, 50);
  EXPECT_EQ(stalled.offer->reserved, 1u);
  EXPECT_GE(NowNs() - begin_ns, SpareTimestamps::kAwaitUs * 1'000);
  while (reader.BalanceOf(1) != 50) clock().SleepUntil(clock().After(10));
  spares.Arrive(*stalled.offer, 0, NowNs());
}

TEST_F(SpareTimestampsTest, OneSessionKeepsTheWatermarkNear) {
  Teller teller(cluster_, 1);
  teller.Create(1, 0);
  for (int i = 0; i < 700; ++i) teller.Set(1, i);
  RecordCluster::Member member(cluster_, fabric(), 2);
  const uint64_t watermark = Auditor(member, TimestampKind::kLeased).Watermark();
  ASSERT_TRUE(teller.session->Begin().ok());
  EXPECT_LT(teller.session->snapshot() - watermark, 128u);
}

TEST(SharedTimestampsTest, TheGreatestWatermarkCounts) {
  SharedTimestamps shared;
  for (const uint64_t seen : {7, 5, 9, 8}) shared.SawWatermark(seen);
  EXPECT_EQ(shared.watermark(), 9u);
}

/// A session that was away for more commits than one READ of the ring shows.
TEST_F(SpareTimestampsTest, ASnapshotBeginsAtAWatermarkThatAnotherHasSeen) {
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
  // Publish its snapshot, and READ the head and the entries. Another look at these costs two more.
  EXPECT_LT(other.session->begin_costs().verbs - before, kTimes * 4);
}

}  // namespace
}  // namespace nam::txn
