#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Rows that a transaction locks and does not change: Session::Lock.
namespace nam::txn {
namespace {

/// Accounts 1 and 2, with 100 each.
class LockTest : public ::testing::Test {
 protected:
  void SetUp() override { Make({.kind = fabric::Kind::kSim}); }
  void Make(const RecordCluster::Options& options) {
    cluster_.reset();  // before the next world begins
    cluster_ = std::make_unique<RecordCluster>(options);
    cluster_->AddTable("accounts", {});
    Teller bank(*cluster_, 1);
    for (const uint64_t key : {1, 2}) bank.Create(key, 100);
  }
  /// Begins a transaction that has read both accounts, and takes 200 from `own` if both together cover it.
  static bool Withdraws(Teller& teller, uint64_t own, bool locks) {
    if (!teller.session->Begin().ok()) return false;
    const auto one = teller.Read(1), two = teller.Read(2);
    if (!one.ok() || !two.ok() || (*one)->balance + (*two)->balance < 200) return false;
    if (locks && !teller.Lock(own == 1 ? 2 : 1).ok()) return false;
    return teller.Update(own, (own == 1 ? *one : *two)->balance - 200).ok();
  }
  /// A client pauses before each of its verbs in turn, while another one commits. Returns how often both
  /// withdraw.
  int BothWithdraw(bool lock) {
    int both = 0;
    for (uint64_t requests = 0, paused = true; paused; ++requests) {
      SCOPED_TRACE(requests);
      Make({.kind = fabric::Kind::kSim});
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      Teller first(*cluster_, 2, fabric), second(*cluster_, 3);
      bool other = false;
      fabric.PauseAfter(requests,
                        [&] { other = Withdraws(second, 2, lock) && second.session->Commit().ok(); });
      const bool self = Withdraws(first, 1, lock) && first.session->Commit().ok();
      paused = fabric.paused();
      if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
      both += self && other;
      EXPECT_TRUE(self || other || paused);
      Teller reader(*cluster_, 4);
      EXPECT_EQ(*reader.BalanceOf(1) + *reader.BalanceOf(2), 200 - 200 * (self + other));
    }
    return both;
  }

  std::unique_ptr<RecordCluster> cluster_;
};

/// The smallest write skew: each of two transactions reads both rows and changes one.
TEST_F(LockTest, RowsThatWereReadAreLockedAgainstWriteSkew) {
  EXPECT_GT(BothWithdraw(/*lock=*/false), 3);
  EXPECT_EQ(BothWithdraw(/*lock=*/true), 0);
}

/// A row that another client has changed since the snapshot cannot be locked, at whichever verb the change
/// comes.
TEST_F(LockTest, ALockedRowIsUnchangedFromSnapshotToCommit) {
  int refused = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make({.kind = fabric::Kind::kSim});
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Teller locker(*cluster_, 2, fabric), writer(*cluster_, 3);
    absl::StatusOr<uint64_t> changed = absl::UnknownError("");
    fabric.PauseAfter(requests, [&] {
      if (!writer.session->Begin().ok() || !writer.Read(1).ok() || !writer.Update(1, 7).ok()) return;
      changed = writer.session->Commit();
    });
    ASSERT_TRUE(locker.session->Begin().ok());
    const uint64_t snapshot = locker.session->snapshot();
    const bool locks = locker.Read(1).ok() && locker.Lock(1).ok();
    const absl::StatusOr<uint64_t> locked = locks ? locker.session->Commit() : absl::AbortedError("");
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    if (locked.ok()) {
      EXPECT_GT(*locked, 0u);
      EXPECT_TRUE(!changed.ok() || *changed <= snapshot || *changed > *locked);
    }
    refused += !locked.ok() && changed.ok();
    Teller reader(*cluster_, 4);
    EXPECT_EQ(reader.BalanceOf(1), changed.ok() ? 7 : 100);
    reader.Set(1, 8);  // it is no longer locked
  }
  EXPECT_GT(refused, 3);
}

/// A writer that stands still at any of its verbs may have an older timestamp than a lock that has come and
/// gone meanwhile. It changes the row all the same, but commits behind the lock's transaction. The locker
/// does not begin again: it would wait for a snapshot that has its commit, and so pass over the writer's
/// timestamp.
TEST_F(LockTest, AWriterThatStandsStillCommitsBehindALock) {
  int both = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make({.kind = fabric::Kind::kSim});
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Teller writer(*cluster_, 2, fabric), locker(*cluster_, 3);
    ASSERT_TRUE(locker.session->Begin().ok());
    const uint64_t snapshot = locker.session->snapshot();
    absl::StatusOr<uint64_t> locked = absl::UnknownError("");
    fabric.PauseAfter(requests, [&] {
      if (!locker.Read(1).ok() || !locker.Lock(1).ok()) return;
      locked = locker.session->Commit();
      locker.session.reset();  // its flips have arrived
    });
    ASSERT_TRUE(writer.session->Begin().ok() && writer.Read(1).ok() && writer.Update(1, 7).ok());
    const absl::StatusOr<uint64_t> changed = writer.session->Commit();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    if (locked.ok() && changed.ok()) {
      EXPECT_TRUE(*changed <= snapshot || *changed > *locked) << *changed << ", and the lock's " << *locked;
      ++both;
    }
    EXPECT_TRUE(locked.ok() || changed.ok());
    Teller reader(*cluster_, 4);
    EXPECT_EQ(reader.BalanceOf(1), changed.ok() ? 7 : 100);
  }
  EXPECT_GT(both, 3);
}

/// The same, seen by a third: what the locker has changed under its lock is there in every snapshot that has
/// the writer's later change of the locked row.
TEST_F(LockTest, WhoSeesALaterChangeSeesWhatWasDoneUnderTheLock) {
  int later = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make({.kind = fabric::Kind::kSim});
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever),
        lockers(cluster_->client(), MortalFabric::kNever);
    Teller writer(*cluster_, 2, fabric), locker(*cluster_, 3, lockers), reader(*cluster_, 4);
    writer.Create(10, 1);  // both have logs
    locker.Create(11, 1);
    Clock& clock = cluster_->client().clock();
    bool unlocked = false, written = false;
    const auto wait_for = [&](const bool& what) {
      while (!what) clock.SleepUntil(clock.After(1));
    };
    std::unique_ptr<fabric::Thread> thread;
    absl::StatusOr<uint64_t> locked = absl::UnknownError("");
    ASSERT_TRUE(writer.session->Begin().ok() && writer.Read(1).ok() && writer.Update(1, 7).ok());
    ASSERT_TRUE(locker.session->Begin().ok() && locker.Read(1).ok() && locker.Read(2).ok());
    ASSERT_TRUE(locker.Lock(1).ok() && locker.Update(2, 50).ok());
    fabric.PauseAfter(2, [&] {  // its log is written, and its timestamp is taken
      thread = cluster_->client().StartThread("locker", [&] {
        lockers.PauseAfter(requests, [&] {
          unlocked = true;
          wait_for(written);
        });
        locked = locker.session->Commit();
        unlocked = true;
      });
      wait_for(unlocked);
    });
    // Its next transaction sees the change.
    const bool changed = writer.session->Commit().ok();
    ASSERT_TRUE(!changed || writer.session->Begin().ok());
    ASSERT_TRUE(reader.session->Begin().ok());
    const auto one = reader.Read(1), two = reader.Read(2);
    ASSERT_TRUE(one.ok() && two.ok());
    const bool sees_change = (*one)->balance == 7, sees_lockers = (*two)->balance == 50;
    written = true;
    thread.reset();
    paused = lockers.paused();
    if (!paused) lockers.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_TRUE(!sees_change || !locked.ok() || sees_lockers) << "what was done under the lock is missing";
    later += sees_change && sees_lockers;
  }
  EXPECT_GT(later, 0);
}

/// The lock leaves no trace: other transactions that read the row before it was locked see the same versions
/// behind it, and may change the row.
TEST_F(LockTest, ALockThatIsGoneIsNotNoticed) {
  Teller old(*cluster_, 2), locker(*cluster_, 3), writer(*cluster_, 4);
  ASSERT_TRUE(old.session->Begin().ok());
  writer.Set(1, 50);
  ASSERT_TRUE(writer.session->Begin().ok() && writer.Read(1).ok());
  ASSERT_TRUE(locker.session->Begin().ok() && locker.Read(1).ok() && locker.Lock(1).ok());
  locker.Commits();
  EXPECT_EQ(locker.BalanceOf(1), 50);  // its flips are complete
  EXPECT_EQ((*old.Read(1))->balance, 100) << "the older version is where it was";
  ASSERT_TRUE(writer.Update(1, 60).ok());
  writer.Commits();
  EXPECT_EQ(locker.BalanceOf(1), 60);
}

/// A transaction may change rows that it has locked, and the other way around; deleted rows cannot be locked.
TEST_F(LockTest, LocksMeetTheTransactionsOwnWrites) {
  Teller teller(*cluster_, 2);
  ASSERT_TRUE(teller.session->Begin().ok());
  ASSERT_TRUE(absl::IsNotFound(teller.Lock(99)));
  ASSERT_TRUE(teller.session->Begin().ok() && teller.Read(1).ok() && teller.Read(2).ok());
  ASSERT_TRUE(teller.Lock(1).ok() && teller.Lock(1).ok() && teller.Update(1, 7).ok() && teller.Lock(1).ok());
  ASSERT_TRUE(teller.Insert(3, 8).ok() && teller.Lock(3).ok());
  ASSERT_TRUE(teller.Lock(2).ok() && teller.Delete(2).ok());
  EXPECT_EQ((*teller.Read(1))->balance, 7);
  teller.Commits();
  EXPECT_EQ(teller.BalanceOf(1), 7);
  EXPECT_EQ(teller.BalanceOf(2), std::nullopt);
  EXPECT_EQ(teller.BalanceOf(3), 8);
  ASSERT_TRUE(teller.session->Begin().ok() && teller.Read(1).ok() && teller.Lock(1).ok());
  EXPECT_EQ(AbortReasonOf(teller.Insert(1, 9)), AbortReason::kUniqueKey);
  ASSERT_TRUE(teller.session->Begin().ok() && teller.Read(1).ok() && teller.Delete(1).ok());
  EXPECT_TRUE(absl::IsNotFound(teller.Lock(1)));
}

/// A row that is locked twice is one lock, and is not among the transaction's writes.
TEST_F(LockTest, ScansSeeLockedRowsOnce) {
  Teller teller(*cluster_, 2);
  ASSERT_TRUE(teller.session->Begin().ok() && teller.Read(1).ok() && teller.Lock(1).ok());
  int rows = 0, written = 0;
  EXPECT_TRUE(teller.session->Scan(teller.accounts, [&](auto) { return ++rows > 0; }).ok());
  EXPECT_TRUE(teller.session->VisitWrites(teller.accounts, [&](auto, auto) { return ++written > 0; }).ok());
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(written, 0);
}

/// A client that has locked a row and changed another one stalls before each of its verbs, until others have
/// skipped its commit. The locked row keeps its versions, whatever the outcome of the commit.
TEST_F(LockTest, ALockOfAClientThatStandsStill) {
  int skipped = 0, held = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make({.kind = fabric::Kind::kSim});
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Teller victim(*cluster_, kVictim, fabric, {.skips_retried = 0}), old(*cluster_, 3), other(*cluster_, 4);
    ASSERT_TRUE(old.session->Begin().ok());
    other.Set(1, 50);
    ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Read(2).ok());
    const uint64_t snapshot = victim.session->snapshot();
    ASSERT_TRUE(victim.Lock(1).ok() && victim.Update(2, 150).ok());
    absl::StatusOr<uint64_t> changed = absl::UnknownError("");
    Clock& clock = cluster_->client().clock();
    fabric.PauseAfter(requests, [&] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(other.BalanceOf(1), 50);
        clock.SleepUntil(clock.After(2 * SlotWord::kPatienceUs));
      }
      ASSERT_TRUE(other.session->Begin().ok() && other.Read(1).ok());
      changed = other.Update(1, 60).ok() ? other.session->Commit() : absl::AbortedError("");
      held += !changed.ok();
    });
    const absl::StatusOr<uint64_t> result = victim.session->Commit();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    skipped += AbortReasonOf(result.status()) == AbortReason::kSkipped;
    if (result.ok() && changed.ok()) {
      EXPECT_TRUE(*changed <= snapshot || *changed > *result) << "a locked row was changed";
    }
    victim.session.reset();
    EXPECT_EQ(other.BalanceOf(1), changed.ok() ? 60 : 50);
    EXPECT_EQ(other.BalanceOf(2), result.ok() ? 150 : 100);
    if (!changed.ok()) {
      EXPECT_EQ((*old.Read(1))->balance, 100) << "the older version went";
    }
    other.Set(1, 5);  // it is no longer locked
    RecordCluster::Member member(*cluster_, cluster_->client(), 6);
    const TableAudit audit = Auditor(member, TimestampKind::kLeased).Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    if (HasFailure()) return;
  }
  EXPECT_GT(skipped, 2);
  EXPECT_GT(held, 2);
}

/// A client that has locked a row and changed another one dies after each of its work requests. Recovery
/// releases the lock and leaves all versions of the row. If the log is lost with its memory server, it cannot
/// tell the lock from a change, and the older version may go.
TEST_F(LockTest, ALockOfAClientThatDies) {
  for (const bool log_lost : {false, true}) {
    int died_decided = 0;
    for (uint64_t requests = 0, finished = false; !finished; ++requests) {
      SCOPED_TRACE(requests);
      Make({.servers = 3, .log_server = 3});
      Teller old(*cluster_, 3), other(*cluster_, 4);
      ASSERT_TRUE(old.session->Begin().ok());
      other.Set(1, 50);
      bool committed = false;
      {
        MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
        Teller victim(*cluster_, kVictim, mortal);
        mortal.DieAfter(requests);
        committed = victim.session->Begin().ok() && victim.Read(1).ok() && victim.Read(2).ok() &&
                    victim.Lock(1).ok() && victim.Update(2, 150).ok() && victim.session->Commit().ok();
        finished = committed && !mortal.dead();
        mortal.DieAfter(0);
      }
      cluster_->SetDead(MemberId(kVictim));
      if (log_lost) cluster_->KillServer(3, /*buried=*/true);
      RecordCluster::Member member(*cluster_, cluster_->client(), 5);
      Auditor auditor(member, TimestampKind::kLeased);
      auditor.RecoverAll();
      const TableAudit audit = auditor.Audit("accounts", {});
      EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
      Teller reader(*cluster_, 6);
      EXPECT_EQ(reader.BalanceOf(1), 50);
      const auto older = old.Read(1);
      if (!log_lost || older.ok()) {
        EXPECT_EQ((*older)->balance, 100) << "the older version went";
      } else {
        EXPECT_EQ(AbortReasonOf(older.status()), AbortReason::kSnapshotTooOld);
      }
      const bool happened = reader.BalanceOf(2) == 150;
      EXPECT_TRUE(happened || !committed) << "an acknowledged commit is gone";
      died_decided += happened && !finished;
      reader.Set(1, 5);  // it is no longer locked
      if (HasFailure()) return;
    }
    EXPECT_GT(died_decided, 0);
  }
}

}  // namespace
}  // namespace nam::txn
