#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/txn/clerk.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Commits of many rows, which write almost everything before they take their timestamps: what others see
/// meanwhile, and what stays of one that does not get further. txn/rsi/committer.h draws the steps.
namespace nam::txn {
namespace {

constexpr uint64_t kManyRows = 260;  // just enough to be many
constexpr uint64_t kOldRows = 60;    // of them rows that were there, with other keys

class PreparedTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make(TimestampKind timestamps = TimestampKind::kLeased) {
    auditor_.reset();
    looker_.reset();
    cluster_.reset();  // before the next world begins
    cluster_ = std::make_unique<RecordCluster>(
        RecordCluster::Options{.kind = fabric::Kind::kSim, .timestamps = timestamps});
    cluster_->AddTable("accounts", {});
    cluster_->AddTable("items", {.row_bytes = sizeof(Item), .extent_bytes = 1 << 20});
    for (const IndexDescription& index : {ByGroup(), ByName()})
      cluster_->SetUsable("items", cluster_->AddIndex("items", index), 1);
    looker_ = std::make_unique<RecordCluster::Member>(*cluster_, cluster_->client(), 20);
    auditor_ = std::make_unique<Auditor>(*looker_, timestamps);
  }
  Clock& clock() { return cluster_->client().clock(); }
  SlotFate FateOf(uint32_t member) { return auditor_->WordOf(MemberId(member)).fate(); }
  bool Preparing(uint32_t member) { return auditor_->WordOf(MemberId(member)).preparing(); }
  /// Puts the rows that are there before, in group 1.
  void PutOld() {
    Clerk clerk(*cluster_, 9);
    ASSERT_TRUE(clerk.session->Begin().ok());
    for (uint64_t key = 0; key < kOldRows; ++key) ASSERT_TRUE(clerk.Insert(ItemOf(key, 1, nullptr)).ok());
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  /// Begins a transaction that gives all rows the group 2, and deletes one.
  static void ChangeAll(Clerk& clerk, uint64_t old) {
    ASSERT_TRUE(clerk.session->Begin().ok());
    for (uint64_t key = 0; key < kManyRows; ++key) {
      const Item item = ItemOf(key, 2, nullptr);
      const absl::Status changed = key + 1 == old ? clerk.Delete(key)
                                   : key < old    ? clerk.Update(item)
                                                  : clerk.Insert(item);
      ASSERT_TRUE(changed.ok()) << changed;
    }
  }
  /// Entries that lead to rows of the group, as far as they have one key.
  size_t EntriesOf(uint8_t group) {
    return auditor_->EntriesOf("items", KeyIn(ByGroup(), ItemOf(0, group, nullptr)));
  }
  /// Runs `look` every so many requests of the client until it says that this is enough.
  void Watch(MortalFabric& fabric, uint64_t every, std::function<bool()> look) {
    watch_ = [this, &fabric, every, look = std::move(look)] {
      if (!look()) fabric.PauseAfter(every, watch_);
    };
    fabric.PauseAfter(every, watch_);
  }

  std::unique_ptr<RecordCluster> cluster_;
  std::unique_ptr<RecordCluster::Member> looker_;
  std::unique_ptr<Auditor> auditor_;
  std::function<void()> watch_;
};

/// At each verb before the commit's claim another client commits, and a third sees that at once. Behind the
/// claim there are few verbs up to the decision: they give the new rows their timestamps.
TEST_F(PreparedTest, LaterCommitsAreSeenWhileItWritesItsEntries) {
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Clerk victim(*cluster_, kVictim, fabric);
  Teller writer(*cluster_, 3), reader(*cluster_, 4);
  writer.Create(1, 0);
  ChangeAll(victim, 0);
  int64_t balance = 0;
  uint64_t looks = 0, prepared = 0, hidden = 0, claimed = 0;
  Watch(fabric, 1, [&] {
    const SlotFate fate = FateOf(kVictim);
    if (fate == SlotFate::kCommitting) return true;
    if (fate == SlotFate::kClaimed) {
      ++claimed;
      return false;
    }
    ++looks;
    prepared += Preparing(kVictim);
    writer.Set(1, ++balance);
    hidden += reader.BalanceOf(1) != balance;
    return false;
  });
  const auto committed = victim.session->Commit();
  fabric.PauseAfter(MortalFabric::kNever, [] {});
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_GT(prepared, kManyRows);
  EXPECT_LE(hidden, 1u) << "it had taken its timestamp, and not claimed it yet";
  EXPECT_GT(claimed, 0u);
  EXPECT_LT(claimed, 20u) << "of " << looks;
}

/// The client dies at many of its verbs. All of its rows are there, or none, and so are their entries: each
/// leads to a row that has had its key.
TEST_F(PreparedTest, NothingIsLeftOfOneThatDies) {
  int prepared = 0, claimed = 0;
  bool finished = false;
  for (uint64_t requests = 0; !finished; requests += claimed > 0 || requests < 5 ? 7 : 41) {
    SCOPED_TRACE(requests);
    Make();
    PutOld();
    bool told = false;
    {
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      Clerk victim(*cluster_, kVictim, fabric);
      ChangeAll(victim, kOldRows);
      fabric.DieAfter(requests);
      told = victim.session->Commit().ok();
      finished = told && !fabric.dead();
      fabric.DieAfter(0);
    }
    prepared += Preparing(kVictim);
    claimed += FateOf(kVictim) == SlotFate::kClaimed;
    cluster_->SetDead(MemberId(kVictim));
    EXPECT_EQ(auditor_->RecoverAll(), 1);
    EXPECT_EQ(auditor_->UnderWayOfOthers(), 0u);
    const TableAudit audit = auditor_->Audit("items", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    Clerk reader(*cluster_, 4);
    ASSERT_TRUE(reader.session->Begin().ok());
    const std::vector<Item> rows = *AllItems(*reader.session, reader.items);
    const bool happened = rows.size() == kManyRows - 1;
    EXPECT_TRUE(happened || rows.size() == kOldRows) << rows.size();
    EXPECT_TRUE(happened || !told) << "an acknowledged commit is gone";
    EXPECT_EQ(EntriesOf(2), happened ? kManyRows - 1 : 0);
    EXPECT_EQ(EntriesOf(1), kOldRows) << "older snapshots may need them";
    for (const Item& item : rows) ASSERT_TRUE(reader.Update(ItemOf(item.key, 3, nullptr)).ok());
    const absl::Status changed = reader.session->Commit().status();
    EXPECT_TRUE(changed.ok()) << "something is locked: " << changed;
    if (HasFailure()) return;
  }
  EXPECT_GT(prepared, 5);
  EXPECT_GT(claimed, 1);
}

/// The client stands still behind its claim until it is skipped. It takes everything back, and does it again.
TEST_F(PreparedTest, OneThatIsSkippedBeginsAnew) {
  for (const uint32_t retried : {0u, 4u}) {
    SCOPED_TRACE(retried);
    Make();
    PutOld();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Clerk victim(*cluster_, kVictim, fabric, {.skips_retried = retried});
    Teller writer(*cluster_, 3), reader(*cluster_, 4);
    writer.Create(1, 0);
    ChangeAll(victim, kOldRows);
    int claimed = 0;
    Watch(fabric, 5, [&] {
      if (FateOf(kVictim) != SlotFate::kClaimed || ++claimed < 2) return false;
      writer.Set(1, 7);
      while (reader.BalanceOf(1) != 7) clock().SleepUntil(clock().After(500));
      return true;
    });
    const absl::Status committed = victim.session->Commit().status();
    EXPECT_TRUE(fabric.paused());
    if (retried > 0) {
      EXPECT_TRUE(committed.ok()) << committed;
    } else {
      EXPECT_EQ(AbortReasonOf(committed), AbortReason::kSkipped) << committed;
    }
    Clerk other(*cluster_, 5);
    ASSERT_TRUE(other.session->Begin().ok());
    EXPECT_EQ(AllItems(*other.session, other.items)->size(), retried > 0 ? kManyRows - 1 : kOldRows);
    EXPECT_EQ(EntriesOf(2), retried > 0 ? kManyRows - 1 : 0);
    EXPECT_EQ(auditor_->UnderWayOfOthers(), 0u);
  }
}

/// Who changes indexes takes a client that has claimed for one whose transaction was over, and then waits for
/// the timestamps that are taken. But others have passed over the client's, so it takes another. It hears of
/// the change behind that claim, and makes entries in an index that has come.
TEST_F(PreparedTest, AnIndexThatComesWhileItPreparesGetsItsEntries) {
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Clerk victim(*cluster_, kVictim, fabric);
  Clerk changer(*cluster_, 3);
  Teller writer(*cluster_, 5), reader(*cluster_, 4);
  writer.Create(1, 0);
  ChangeAll(victim, 0);
  std::unique_ptr<fabric::Thread> thread;
  AllocationId index;
  Watch(fabric, 1, [&] {
    if (thread == nullptr && EntriesOf(2) == kManyRows) {
      EXPECT_TRUE(Preparing(kVictim));
      const IndexDescription by_count{
          .name = "by_count", .fields = {{.offset = 12, .bytes = 4}}, .key_bytes = 4};
      index = cluster_->AddIndex("items", by_count);
      thread = cluster_->client().StartThread("changer", [&] {
        const auto usable_from = changer.session->FillIndex(changer.items, index);
        EXPECT_TRUE(usable_from.ok()) << usable_from.status();
        cluster_->SetUsable("items", index, usable_from.value_or(0));
      });
      clock().SleepUntil(clock().After(1'000));
    }
    if (FateOf(kVictim) != SlotFate::kClaimed) return false;
    // Its slot says so, and not yet the ring.
    writer.Set(1, 7);
    while (reader.BalanceOf(1) != 7) clock().SleepUntil(clock().After(500));
    clock().SleepUntil(clock().After(5'000));  // the rows that are there are entered
    return true;
  });
  const auto committed = victim.session->Commit();
  ASSERT_NE(thread, nullptr);
  thread.reset();
  ASSERT_TRUE(committed.ok()) << committed.status();
  Clerk other(*cluster_, 6);
  ASSERT_TRUE(other.session->Begin().ok());
  EXPECT_EQ(other.KeysBy(index).size(), kManyRows);
}

/// Likewise, it leaves an index alone that has gone, whose memory may have another owner by now: even what it
/// has entered there itself.
TEST_F(PreparedTest, AnIndexThatGoesWhileItPreparesIsLeftAlone) {
  const IndexDescription by_group = cluster_->IndexesOf("items")[0];
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Clerk victim(*cluster_, kVictim, fabric, {.skips_retried = 0});
  Clerk changer(*cluster_, 3);
  Teller writer(*cluster_, 5), reader(*cluster_, 4);
  writer.Create(1, 0);
  ChangeAll(victim, 0);
  std::unique_ptr<fabric::Thread> thread;
  bool gone = false;
  int claimed = 0;
  Watch(fabric, 1, [&] {
    if (thread == nullptr && EntriesOf(2) == kManyRows) {
      EXPECT_TRUE(Preparing(kVictim));
      cluster_->RemoveIndex("items", by_group.allocation);
      thread = cluster_->client().StartThread("changer", [&] {
        EXPECT_TRUE(changer.session->AwaitCommits().ok());
        gone = true;
      });
      clock().SleepUntil(clock().After(1'000));
      EXPECT_FALSE(gone) << "it was not waited for";
    }
    // The slot's word, the ring's entry, and the count of changes are behind it.
    if (FateOf(kVictim) != SlotFate::kClaimed || ++claimed < 4) return false;
    // It is skipped, and takes back what it has written.
    writer.Set(1, 7);
    while (reader.BalanceOf(1) != 7) clock().SleepUntil(clock().After(500));
    return true;
  });
  EXPECT_EQ(AbortReasonOf(victim.session->Commit().status()), AbortReason::kSkipped);
  ASSERT_NE(thread, nullptr);
  thread.reset();
  EXPECT_TRUE(gone);
  EXPECT_EQ(EntriesOf(2), kManyRows) << "it has changed an index that was dropped";
}

/// A client that changes an index waits for a commit that prepares, as long as that goes on.
TEST_F(PreparedTest, WhoChangesIndexesWaitsAsLongAsItGoesOn) {
  constexpr uint64_t kMany = 1'000;
  Clerk slow(*cluster_, 9);
  ASSERT_TRUE(slow.session->Begin().ok());
  for (uint64_t key = 0; key < kMany; ++key) ASSERT_TRUE(slow.Insert(ItemOf(key, 1, nullptr)).ok());
  ASSERT_TRUE(slow.session->Commit().ok());
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Clerk victim(*cluster_, kVictim, fabric);
  Clerk changer(*cluster_, 3, cluster_->client(), {.own_commit_timeout_us = 40'000});
  ASSERT_TRUE(victim.session->Begin().ok());
  for (uint64_t key = 0; key < kMany; ++key) ASSERT_TRUE(victim.Update(ItemOf(key, 2, nullptr)).ok());
  std::unique_ptr<fabric::Thread> thread;
  int pauses = 0;
  Watch(fabric, 100, [&] {
    if (!Preparing(kVictim)) return false;
    if (thread == nullptr) {
      thread = cluster_->client().StartThread("changer", [&] {
        const absl::Status awaited = changer.session->AwaitCommits().status();
        EXPECT_TRUE(awaited.ok()) << awaited;
      });
    }
    clock().SleepUntil(clock().After(8'000));
    ++pauses;
    return false;
  });
  const auto committed = victim.session->Commit();
  fabric.PauseAfter(MortalFabric::kNever, [] {});
  thread.reset();
  EXPECT_TRUE(committed.ok()) << committed.status();
  EXPECT_GT(pauses, 15);
}

/// Two clients want the same unique key, one of them by a commit of many rows, at many verbs of which the
/// other commits: one of them gets it.
TEST_F(PreparedTest, OneOfTwoGetsAUniqueKey) {
  int first = 0, second = 0;
  for (uint64_t requests = 0, paused = true; paused; requests += 23) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Clerk many(*cluster_, kVictim, fabric), one(*cluster_, 3);
    ChangeAll(many, 0);
    ASSERT_TRUE(many.Insert(ItemOf(1'000, 2, "kk")).ok());
    bool got = false;
    fabric.PauseAfter(requests, [&] { got = one.Put(ItemOf(2'000, 3, "kk")).ok(); });
    const absl::Status committed = many.session->Commit().status();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_NE(committed.ok(), got && paused) << committed;
    first += committed.ok();
    second += got;
  }
  EXPECT_GT(first, 3);
  EXPECT_GT(second, 3);
}

/// A key that another row gives up while the commit prepares is free only from that moment on. With a bit
/// vector the commit's timestamp may be the smaller one, though it is taken later: then the commit fails.
TEST_F(PreparedTest, AUniqueKeyIsFreeFromTheTimestampThatGaveItUp) {
  for (const TimestampKind kind : {TimestampKind::kLeased, TimestampKind::kBitVector}) {
    int got = 0, refused = 0;
    for (uint64_t requests = 0, paused = true; paused; requests += 23) {
      SCOPED_TRACE(requests);
      Make(kind);
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      Clerk many(*cluster_, kVictim, fabric), one(*cluster_, 3);
      ASSERT_TRUE(many.Put(ItemOf(3'000, 3, nullptr)).ok() && one.Put(ItemOf(2'000, 3, "kk")).ok());
      ChangeAll(many, 0);
      ASSERT_TRUE(many.Insert(ItemOf(1'000, 2, "kk")).ok());
      absl::StatusOr<uint64_t> given_up = absl::UnknownError("");
      fabric.PauseAfter(requests, [&] {
        if (!one.session->Begin().ok() || !one.Update(ItemOf(2'000, 3, "zz")).ok()) return;
        given_up = one.session->Commit();
      });
      const absl::StatusOr<uint64_t> committed = many.session->Commit();
      paused = fabric.paused();
      if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
      got += committed.ok();
      refused += !committed.ok() && given_up.ok();
      if (!committed.ok()) continue;
      EXPECT_TRUE(given_up.ok()) << "two rows have the key";
      EXPECT_GT(*committed, given_up.value_or(0)) << "two rows have the key in between";
    }
    EXPECT_GT(kind == TimestampKind::kLeased ? got : refused, 3);
  }
}

}  // namespace
}  // namespace nam::txn
