#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/interruption.h"
#include "tests/txn/clerk.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Clients that wait for records which others have locked: Session::SetLockTimeout.
namespace nam::txn {
namespace {

constexpr int64_t kLongUs = 1'000'000, kPauseUs = 100;
/// Work requests of a commit of one row up to the one behind its lock, as in tests/txn/rsi/stalled_test.cc. A
/// commit of two rows has one more.
constexpr uint64_t kUntilRowLocked = 6;

/// Accounts 1, 2 and 3, with 100 each. A holder stalls in the middle of its commit, with account 1 locked.
class LockWaitTest : public ::testing::Test {
 protected:
  LockWaitTest() : cluster_({.kind = fabric::Kind::kSim}) {
    cluster_.AddTable("accounts", {});
    Teller bank(cluster_, 1);
    for (const uint64_t key : {1, 2, 3}) bank.Create(key, 100);
    fabric_.emplace(cluster_.client(), MortalFabric::kNever);
    holder_.emplace(cluster_, 2, *fabric_);
    holder_->Create(9, 1);
  }
  Clock& clock() { return cluster_.client().clock(); }
  void WaitFor(const bool& what) {
    while (!what) clock().SleepUntil(clock().After(kPauseUs));
  }
  /// Its commit has `locks` records; it stalls behind the last lock, until `meanwhile` has run.
  absl::StatusOr<uint64_t> HolderCommits(uint64_t locks, const std::function<void()>& meanwhile) {
    bool locked = false, goes_on = false;
    absl::StatusOr<uint64_t> result = absl::UnknownError("");
    fabric_->PauseAfter(kUntilRowLocked + locks - 1, [&] {
      locked = true;
      WaitFor(goes_on);
    });
    auto thread = cluster_.client().StartThread("holder", [&] { result = holder_->session->Commit(); });
    WaitFor(locked);
    meanwhile();
    goes_on = true;
    thread.reset();
    return result;
  }
  /// While the holder is stalled the waiter commits; the holder goes on once `before` has run.
  struct Outcome {
    absl::StatusOr<uint64_t> holder = absl::UnknownError(""), waiter = absl::UnknownError("");
    int64_t waited_us = 0;
  };
  Outcome WaiterCommits(Teller& waiter, uint64_t holder_locks, const std::function<void()>& before) {
    Outcome outcome;
    std::unique_ptr<fabric::Thread> thread;
    outcome.holder = HolderCommits(holder_locks, [&] {
      thread = cluster_.client().StartThread("waiter", [&] {
        const int64_t begin_ns = clock().NowNs();
        outcome.waiter = waiter.session->Commit();
        outcome.waited_us = (clock().NowNs() - begin_ns) / 1'000;
      });
      clock().SleepUntil(clock().After(10 * kPauseUs));
      before();
    });
    thread.reset();
    return outcome;
  }
  void Audit() {
    RecordCluster::Member member(cluster_, cluster_.client(), 9);
    Auditor auditor(member, TimestampKind::kLeased);
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    EXPECT_EQ(auditor.UnderWayOfOthers(), 0u);
  }

  RecordCluster cluster_;
  std::optional<MortalFabric> fabric_;
  std::optional<Teller> holder_;
};

bool Reads(Teller& teller, const std::vector<uint64_t>& keys) {
  if (!teller.session->Begin().ok()) return false;
  for (const uint64_t key : keys) {
    if (!teller.Read(key).ok()) return false;
  }
  return true;
}

/// The holder does not change the row: the waiter's commit goes on. Without a timeout it conflicts at once.
TEST_F(LockWaitTest, AWaiterGoesOnBehindALock) {
  for (const int64_t timeout_us : {int64_t{0}, kLongUs}) {
    Teller waiter(cluster_, 3);
    waiter.session->SetLockTimeout(timeout_us);
    ASSERT_TRUE(Reads(waiter, {1, 2}) && waiter.Update(1, 7).ok() && waiter.Update(2, 8).ok());
    ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Lock(1).ok());
    const Outcome outcome = WaiterCommits(waiter, 1, [] {});
    EXPECT_TRUE(outcome.holder.ok()) << outcome.holder.status();
    EXPECT_EQ(outcome.waiter.ok(), timeout_us > 0) << outcome.waiter.status();
    if (timeout_us == 0) {
      EXPECT_EQ(AbortReasonOf(outcome.waiter.status()), AbortReason::kWriteWrite);
    }
    EXPECT_EQ(waiter.BalanceOf(1), timeout_us > 0 ? 7 : 100);
    EXPECT_EQ(waiter.BalanceOf(2), timeout_us > 0 ? 8 : 100);
  }
  Audit();
}

/// The holder changes the row: the waiter must not overwrite the change.
TEST_F(LockWaitTest, AWaiterLosesToAChange) {
  Teller waiter(cluster_, 3);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(Reads(waiter, {1}) && waiter.Update(1, 7).ok());
  ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Update(1, 50).ok());
  const Outcome outcome = WaiterCommits(waiter, 1, [] {});
  EXPECT_TRUE(outcome.holder.ok()) << outcome.holder.status();
  EXPECT_EQ(AbortReasonOf(outcome.waiter.status()), AbortReason::kWriteWrite) << outcome.waiter.status();
  EXPECT_EQ(waiter.BalanceOf(1), 50);
  Audit();
}

/// The holder's change is taken back, since it has lost to another client: the waiter's commit goes on,
/// including its inserts.
TEST_F(LockWaitTest, AWaiterGoesOnBehindAChangeThatIsTakenBack) {
  Teller waiter(cluster_, 3), third(cluster_, 4);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(Reads(waiter, {1}) && waiter.Update(1, 7).ok() && waiter.Insert(4, 9).ok());
  ASSERT_TRUE(Reads(*holder_, {1, 2}) && holder_->Update(1, 50).ok() && holder_->Update(2, 50).ok());
  third.Set(2, 60);
  const Outcome outcome = WaiterCommits(waiter, 2, [] {});
  EXPECT_EQ(AbortReasonOf(outcome.holder.status()), AbortReason::kWriteWrite) << outcome.holder.status();
  EXPECT_TRUE(outcome.waiter.ok()) << outcome.waiter.status();
  EXPECT_EQ(waiter.BalanceOf(1), 7);
  EXPECT_EQ(waiter.BalanceOf(2), 60);
  EXPECT_EQ(waiter.BalanceOf(4), 9);
  Audit();
}

/// A waiting client holds no locks: others change the other rows that it writes, and see commits made
/// meanwhile without waiting for it.
TEST_F(LockWaitTest, AWaiterHoldsNothing) {
  Teller waiter(cluster_, 3), third(cluster_, 4), reader(cluster_, 5);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(Reads(waiter, {1, 2}) && waiter.Update(1, 7).ok() && waiter.Update(2, 8).ok());
  ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Lock(1).ok());
  const Outcome outcome = WaiterCommits(waiter, 1, [&] {
    ASSERT_TRUE(Reads(third, {2}) && third.Update(2, 60).ok());
    third.Commits();
  });
  EXPECT_EQ(AbortReasonOf(outcome.waiter.status()), AbortReason::kWriteWrite) << outcome.waiter.status();
  EXPECT_EQ(reader.BalanceOf(1), 100);
  EXPECT_EQ(reader.BalanceOf(2), 60);
  Audit();
}

/// Two clients lock the same rows in opposite orders, each verb of one being followed by all of the other's.
/// Neither waits for ever, and both commit: the locks do not change the rows.
TEST_F(LockWaitTest, NoTwoWaitForEachOther) {
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    MortalFabric fabric(cluster_.client(), MortalFabric::kNever);
    Teller first(cluster_, 3, fabric), second(cluster_, 4);
    for (Teller* const teller : {&first, &second}) {
      teller->session->SetLockTimeout(kLongUs);
      const bool forth = teller == &first;
      ASSERT_TRUE(Reads(*teller, {1, 2}) && teller->Lock(forth ? 1 : 2).ok() &&
                  teller->Lock(forth ? 2 : 1).ok());
    }
    absl::Status other;
    std::unique_ptr<fabric::Thread> thread;
    fabric.PauseAfter(requests, [&] {
      thread = cluster_.client().StartThread("second", [&] { other = second.session->Commit().status(); });
      clock().SleepUntil(clock().After(50));
    });
    const absl::Status self = first.session->Commit().status();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    thread.reset();
    EXPECT_TRUE(self.ok()) << self;
    EXPECT_TRUE(other.ok()) << other;
    if (HasFailure()) return;
  }
  Audit();
}

/// A lock that is held longer than the timeout ends the waiter's commit, in time, and leaves nothing of it.
TEST_F(LockWaitTest, AWaitEnds) {
  constexpr int64_t kTimeoutUs = 5'000;
  Teller waiter(cluster_, 3);
  waiter.session->SetLockTimeout(kTimeoutUs);
  ASSERT_TRUE(Reads(waiter, {1, 2}) && waiter.Update(1, 7).ok() && waiter.Update(2, 8).ok());
  ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Lock(1).ok());
  const Outcome outcome =
      WaiterCommits(waiter, 1, [&] { clock().SleepUntil(clock().After(4 * kTimeoutUs)); });
  EXPECT_EQ(AbortReasonOf(outcome.waiter.status()), AbortReason::kLockTimeout) << outcome.waiter.status();
  EXPECT_GE(outcome.waited_us, kTimeoutUs);
  EXPECT_LT(outcome.waited_us, 2 * kTimeoutUs);
  EXPECT_TRUE(outcome.holder.ok()) << outcome.holder.status();
  EXPECT_EQ(waiter.BalanceOf(1), 100);
  EXPECT_EQ(waiter.BalanceOf(2), 100);
  Audit();
}

/// A wait can be cancelled.
TEST_F(LockWaitTest, AWaitIsInterrupted) {
  std::atomic<bool> cancelled = false;
  Teller waiter(cluster_, 3);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(Reads(waiter, {1}) && waiter.Update(1, 7).ok());
  ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Lock(1).ok());
  absl::Status waited;
  int64_t waited_us = 0;
  std::unique_ptr<fabric::Thread> thread;
  const auto held = HolderCommits(1, [&] {
    thread = cluster_.client().StartThread("waiter", [&] {
      const Interruption interruption(&cancelled);
      const int64_t begin_ns = clock().NowNs();
      waited = waiter.session->Commit().status();
      waited_us = (clock().NowNs() - begin_ns) / 1'000;
    });
    clock().SleepUntil(clock().After(1'000));
    cancelled = true;
    clock().SleepUntil(clock().After(20'000));
  });
  thread.reset();
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
  EXPECT_LT(waited_us, 10'000);
  EXPECT_EQ(waiter.BalanceOf(1), 100);
  Audit();
}

/// A transaction that has read the row while another one holds its lock waits as it changes or locks the row.
TEST_F(LockWaitTest, AChangeOfALockedRowWaits) {
  for (const bool changes : {false, true}) {
    for (const int64_t timeout_us : {int64_t{0}, kLongUs}) {
      SCOPED_TRACE(timeout_us);
      Teller waiter(cluster_, 3);
      waiter.session->SetLockTimeout(timeout_us);
      const int64_t before = *waiter.BalanceOf(1);
      ASSERT_TRUE(Reads(*holder_, {1}));
      ASSERT_TRUE((changes ? holder_->Update(1, before + 1) : holder_->Lock(1)).ok());
      absl::Status changed;
      std::unique_ptr<fabric::Thread> thread;
      const auto held = HolderCommits(1, [&] {
        ASSERT_TRUE(Reads(waiter, {1}));
        thread = cluster_.client().StartThread("waiter", [&] {
          changed = waiter.Update(1, 70);
          if (changed.ok()) changed = waiter.session->Commit().status();
        });
        clock().SleepUntil(clock().After(1'000));
      });
      thread.reset();
      EXPECT_TRUE(held.ok()) << held.status();
      const bool wins = timeout_us > 0 && !changes;
      EXPECT_EQ(changed.ok(), wins) << changed;
      if (!wins) {
        EXPECT_EQ(AbortReasonOf(changed), AbortReason::kWriteWrite) << changed;
      }
      EXPECT_EQ(waiter.BalanceOf(1), wins ? 70 : changes ? before + 1 : before);
    }
  }
  Audit();
}

/// Two transactions insert the same key. The second waits until the outcome of the first is known.
TEST_F(LockWaitTest, AnInsertWaitsForAnother) {
  for (const bool first_commits : {false, true}) {
    const uint64_t key = first_commits ? 20 : 30;
    Teller waiter(cluster_, 3), third(cluster_, 4);
    waiter.session->SetLockTimeout(kLongUs);
    ASSERT_TRUE(Reads(waiter, {1}) && waiter.Insert(key, 7).ok());
    ASSERT_TRUE(Reads(*holder_, {2}) && holder_->Insert(key, 8).ok() && holder_->Update(2, 1).ok());
    if (!first_commits) third.Set(2, 60);
    const Outcome outcome = WaiterCommits(waiter, 4, [] {});
    EXPECT_EQ(outcome.holder.ok(), first_commits) << outcome.holder.status();
    EXPECT_EQ(outcome.waiter.ok(), !outcome.holder.ok()) << outcome.waiter.status();
    EXPECT_EQ(waiter.BalanceOf(key), first_commits ? 8 : 7);
  }
  Audit();
}

/// The waiter inserts keys whose rows were deleted. It could take over all of their records but the last,
/// which is locked by a holder that takes back its insert. In the end all are taken over, and the index
/// entries of the deleted rows go. The holder stalls at each of its verbs in turn.
TEST_F(LockWaitTest, RowsAreTakenOverBehindTheLockOfAnother) {
  constexpr uint8_t kOther = 250;  // a group
  constexpr uint64_t kKeys = 4;
  cluster_.AddTable("items", {.row_bytes = sizeof(Item)});
  cluster_.SetUsable("items", cluster_.AddIndex("items", ByGroup()), 1);
  MortalFabric fabric(cluster_.client(), MortalFabric::kNever);
  Clerk holder(cluster_, 3, fabric), waiter(cluster_, 4);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(waiter.Put(ItemOf(0, kOther, nullptr)).ok());
  const auto update = [&](Clerk& clerk, uint8_t group) {
    const absl::Status begun = clerk.session->Begin();
    return begun.ok() ? clerk.Update(ItemOf(0, group, nullptr)) : begun;
  };
  uint8_t tries = 0;
  for (bool paused = true; paused; ++tries) {
    SCOPED_TRACE(tries);
    ASSERT_LT(tries, kOther);
    const uint64_t first = 1 + kKeys * tries, last = first + kKeys - 1;
    for (uint64_t key = first; key <= last; ++key)
      ASSERT_TRUE(waiter.Put(ItemOf(key, key == last ? kOther : tries, nullptr)).ok());
    ASSERT_TRUE(waiter.session->Begin().ok());
    for (uint64_t key = first; key <= last; ++key) ASSERT_TRUE(waiter.Delete(key).ok());
    ASSERT_TRUE(waiter.session->Commit().ok());
    ASSERT_TRUE(update(holder, kOther + 1).ok());
    ASSERT_TRUE(holder.Insert(ItemOf(last, kOther, nullptr)).ok());
    ASSERT_TRUE(update(waiter, kOther + 2).ok() && waiter.session->Commit().ok());
    ASSERT_TRUE(waiter.session->Begin().ok());
    for (uint64_t key = first; key <= last; ++key)
      ASSERT_TRUE(waiter.Insert(ItemOf(key, kOther, nullptr)).ok());
    absl::Status waited;
    std::unique_ptr<fabric::Thread> thread;
    fabric.PauseAfter(tries, [&] {
      thread = cluster_.client().StartThread("waiter", [&] { waited = waiter.session->Commit().status(); });
      clock().SleepUntil(clock().After(10 * kPauseUs));
    });
    const absl::Status held = holder.session->Commit().status();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    thread.reset();
    if (!paused) waited = waiter.session->Commit().status();
    EXPECT_EQ(AbortReasonOf(held), AbortReason::kWriteWrite) << held;
    EXPECT_TRUE(waited.ok()) << waited;
  }
  // These commits clean up.
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(update(waiter, i % 2 == 0 ? kOther : kOther + 1).ok() && waiter.session->Commit().ok());
  RecordCluster::Member member(cluster_, cluster_.client(), 9);
  Auditor auditor(member, TimestampKind::kLeased);
  for (uint8_t group = 0; group < tries; ++group)
    EXPECT_EQ(auditor.EntriesOf("items", std::array{std::byte{group}}), 0u) << int{group};
  const TableAudit audit = auditor.Audit("items", {});
  EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
}

/// The holder has died: it is recovered, and the waiter's commit goes on.
TEST_F(LockWaitTest, ALockOfADeadClientIsRecovered) {
  Teller waiter(cluster_, 3);
  waiter.session->SetLockTimeout(kLongUs);
  ASSERT_TRUE(Reads(waiter, {1}) && waiter.Update(1, 7).ok());
  ASSERT_TRUE(Reads(*holder_, {1}) && holder_->Update(1, 50).ok());
  fabric_->DieAfter(kUntilRowLocked);
  EXPECT_FALSE(holder_->session->Commit().ok());
  holder_.reset();
  cluster_.SetDead(MemberId(2));
  const absl::Status waited = waiter.session->Commit().status();
  EXPECT_TRUE(waited.ok()) << waited;
  EXPECT_EQ(waiter.BalanceOf(1), 7);
  Audit();
}

}  // namespace
}  // namespace nam::txn
