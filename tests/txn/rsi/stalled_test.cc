#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tests/txn/indexed_rows.h"
#include "tests/txn/lent_reader.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Clients that stall in mid-commit, and go on: what they, and the clients that they delayed, may see and do.
/// The rules are drawn in txn/transaction_state.h (SlotWord) and storage/record_block.h (VersionChoice).
namespace nam::txn {
namespace {

/// Shows each claim that was skipped.
constexpr RsiOptions kOneTry = {.skips_retried = 0};

constexpr int64_t kPatienceNs = SlotWord::kPatienceUs * 1'000;
/// Work requests of a commit of one row up to its claim, the one behind its lock, and the one behind its
/// decision: the log and the timestamp; the slot's word, the ring's entry, the count of index changes, and
/// the lock; the row and the decision.
constexpr uint64_t kUntilClaim = 2, kUntilLocked = 6, kUntilDecided = 8;

/// Accounts 1 and 2, which the victim changes together, and 3, which other clients change.
class StalledTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make() {
    teller_.reset();
    cluster_.reset();  // before the next world begins
    cluster_ = std::make_unique<RecordCluster>(RecordCluster::Options{.kind = fabric::Kind::kSim});
    // The accounts are on two memory servers, whatever order these are asked in.
    cluster_->AddTable("accounts", {});
    teller_ = std::make_unique<Teller>(*cluster_, 3);
    for (const uint64_t key : {1, 2, 3}) teller_->Create(key, 100);
  }
  Clock& clock() { return cluster_->client().clock(); }
  /// Runs the victim up to its commit.
  static void Prepare(Teller& victim) {
    ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Read(2).ok());
    ASSERT_TRUE(victim.Update(1, 50).ok() && victim.Update(2, 150).ok() && victim.Insert(4, 7).ok());
  }
  /// The time until another client sees a commit that the teller makes now.
  int64_t VisibleAfterNs(Teller& reader, int64_t balance) {
    teller_->Set(3, balance);
    const int64_t begin_ns = clock().NowNs();
    const Deadline deadline = clock().After(1'000'000);
    while (reader.BalanceOf(3) != balance && !clock().Passed(deadline))
      clock().SleepUntil(clock().After(100));
    return clock().NowNs() - begin_ns;
  }

  /// All accounts that the reader's transaction sees, by a scan of all blocks, which flips nothing.
  static LentReader::Balances Scanned(Teller& reader) {
    LentReader::Balances balances;
    const absl::Status scanned = reader.session->Scan(reader.accounts, [&](std::span<const std::byte> row) {
      Account account;
      std::memcpy(&account, row.data(), sizeof(account));
      balances.emplace(account.key, account.balance);
      return true;
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return balances;
  }

  std::unique_ptr<RecordCluster> cluster_;
  std::unique_ptr<Teller> teller_;
};

/// A client stalls before each of its verbs in turn, until others have skipped it, and goes on. A transaction
/// that has begun meanwhile sees all of its commit or nothing, both before and after it goes on, as its
/// timestamp says.
TEST_F(StalledTest, OneThatWakesIsSeenByAllOrNobody) {
  int skipped = 0, helped = 0;
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4), later(*cluster_, 5);
    Prepare(victim);
    std::optional<int64_t> one, two;
    bool fourth = false, other_wrote = false;
    fabric.PauseAfter(requests, [&] {
      EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
      ASSERT_TRUE(reader.session->Begin().ok());
      const LentReader::Balances scanned = Scanned(reader);
      one = (*reader.Read(1))->balance;
      fourth = (*reader.Read(4)).has_value();
      EXPECT_EQ(scanned.at(1), one);
      EXPECT_EQ(scanned.contains(4), fourth);
      // Its rows are locked, or committed; no client changes them before it knows which.
      ASSERT_TRUE(later.session->Begin().ok());
      other_wrote = later.Read(1).ok() && later.Update(1, 1'000).ok() && later.session->Commit().ok();
    });
    const absl::StatusOr<uint64_t> result = victim.session->Commit();
    if (!fabric.paused()) {
      fabric.PauseAfter(MortalFabric::kNever, [] {});
      break;
    }
    // The transaction that is still in flight.
    const auto again = reader.Read(2);
    ASSERT_TRUE(again.ok()) << again.status();
    two = (*again)->balance;
    const bool saw = one == 50;
    EXPECT_EQ(two, saw ? 150 : 100) << "half of a commit";
    EXPECT_EQ((*reader.Read(4)).has_value(), saw);
    EXPECT_EQ(fourth, saw);
    if (result.ok()) {
      EXPECT_EQ(saw, *result <= reader.session->snapshot());
    } else {
      EXPECT_FALSE(saw) << result.status();
    }
    skipped += !result.ok() && AbortReasonOf(result.status()) == AbortReason::kSkipped;
    helped += result.ok() && saw;
    EXPECT_TRUE(other_wrote || !saw) << "a client that sees a commit may change its rows";
    // A client that is told that its commit has happened finds it, and nothing else.
    const int64_t end = *later.BalanceOf(1);
    EXPECT_EQ(end, other_wrote ? 1'000 : result.ok() ? 50 : 100);
    EXPECT_EQ(later.BalanceOf(2), result.ok() ? 150 : 100);
    later.Set(2, 5);  // it is no longer locked
    EXPECT_EQ(reader.session->Commit().value_or(1), 0u);
    victim.session.reset();
    RecordCluster::Member member(*cluster_, cluster_->client(), 6);
    Auditor auditor(member, TimestampKind::kLeased);
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    EXPECT_EQ(auditor.UnderWayOfOthers(), 0u);
    if (HasFailure()) return;
  }
  EXPECT_GT(skipped, 3) << "it was never passed over behind its claim";
  EXPECT_GT(helped, 1) << "no reader saw a commit whose flips were missing";
}

/// All commits in the way are timed at once: several stalled clients cost no more than one.
TEST_F(StalledTest, SeveralCostOnePatience) {
  constexpr uint32_t kStalled = 4;
  std::vector<std::unique_ptr<MortalFabric>> fabrics;
  std::vector<std::unique_ptr<Teller>> stalled;
  for (uint32_t i = 0; i < kStalled; ++i) {
    fabrics.push_back(std::make_unique<MortalFabric>(cluster_->client(), MortalFabric::kNever));
    stalled.push_back(std::make_unique<Teller>(*cluster_, 10 + i, *fabrics.back(), kOneTry));
    stalled.back()->Create(100 + i, 1);
  }
  Teller reader(*cluster_, 4);
  std::vector<absl::Status> results(kStalled);
  int64_t visible_ns = 0;
  const std::function<void(uint32_t)> stall = [&](uint32_t next) {
    if (next == kStalled) {
      visible_ns = VisibleAfterNs(reader, 101);
      return;
    }
    Teller& one = *stalled[next];
    ASSERT_TRUE(one.session->Begin().ok() && one.Read(100 + next).ok() && one.Update(100 + next, 2).ok());
    fabrics[next]->PauseAfter(kUntilLocked, [&, next] { stall(next + 1); });
    results[next] = one.session->Commit().status();
  };
  stall(0);
  EXPECT_GE(visible_ns, kPatienceNs) << "no commit was in the way";
  EXPECT_LT(visible_ns, kPatienceNs * 3 / 2);
  for (const absl::Status& result : results)
    EXPECT_EQ(AbortReasonOf(result), AbortReason::kSkipped) << result;
}

/// The claim of a commit of many rows lasts longer than its patience, 40 ms, in pauses of 8 ms: others see
/// that its word moves, and wait. In another run one pause is longer than the patience: it is skipped.
TEST_F(StalledTest, ALongCommitThatGoesOnIsNotSkipped) {
  constexpr uint64_t kRows = 1'000, kRequests = 100;
  for (const bool stands_still : {false, true}) {
    SCOPED_TRACE(stands_still);
    Make();
    cluster_->AddTable("items", {.row_bytes = sizeof(Item), .extent_bytes = 1 << 20});
    cluster_->SetUsable("items", cluster_->AddIndex("items", ByGroup()), 1);
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    RecordCluster::Member member(*cluster_, fabric, kVictim);
    const std::unique_ptr<Session> session = *OpenRsiSession(member, kOneTry);
    const TableHandle items = *session->OpenTable("items");
    const auto change_all = [&](uint8_t group) -> absl::Status {
      if (absl::Status begun = session->Begin(); !begun.ok()) return begun;
      for (uint64_t key = 0; key < kRows; ++key) {
        Item old;
        Lookup lookup{items, BytesOf(key), std::as_writable_bytes(std::span(&old, 1))};
        if (absl::Status status = session->Read({&lookup, 1}); !status.ok()) return status;
        const Item item{.key = key, .group = group, .nulls = 1};
        const absl::Status changed =
            lookup.found ? session->Update(items, BytesOf(item)) : session->Insert(items, BytesOf(item));
        if (!changed.ok()) return changed;
      }
      return absl::OkStatus();
    };
    ASSERT_TRUE(change_all(1).ok() && session->Commit().ok());
    ASSERT_TRUE(change_all(2).ok());
    Teller reader(*cluster_, 4);
    RecordCluster::Member looker(*cluster_, cluster_->client(), 6);
    Auditor auditor(looker, TimestampKind::kLeased);
    bool stood = !stands_still;
    int64_t paused_us = 0;
    const std::function<void()> pause = [&] {
      const bool claimed = auditor.WordOf(MemberId(kVictim)).fate() == SlotFate::kClaimed;
      const int64_t us = claimed && !std::exchange(stood, stood || claimed) ? 200'000 : 8'000;
      if (claimed) paused_us += us;
      for (const Deadline end = clock().After(us); !clock().Passed(end);) {
        reader.BalanceOf(3);
        clock().SleepUntil(clock().After(500));
      }
      fabric.PauseAfter(kRequests, pause);
    };
    fabric.PauseAfter(kRequests, pause);
    const absl::Status committed = session->Commit().status();
    fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_GT(paused_us, 60'000);
    if (stands_still) {
      EXPECT_EQ(AbortReasonOf(committed), AbortReason::kSkipped) << committed;
    } else {
      EXPECT_TRUE(committed.ok()) << committed;
    }
  }
}

/// A commit may notice that it was skipped while it makes index entries: it says so, since a commit that was
/// skipped may be tried again. The keys are long, so that its entries take several windows of leaves.
TEST_F(StalledTest, ACommitThatIsSkippedAmongItsEntriesSaysSo) {
  constexpr uint64_t kRows = 250;  // each locked, and written, by a request; so few claim first
  IndexDescription index{.name = "long", .key_bytes = 240};
  for (int i = 0; i < 5; ++i) index.fields.push_back({.offset = 16, .bytes = 48});
  int skipped = 0;
  for (uint64_t requests = 2 * kRows; requests < 2 * kRows + 300; requests += 15) {
    SCOPED_TRACE(requests);
    Make();
    cluster_->AddTable("items", {.row_bytes = sizeof(Item), .extent_bytes = 1 << 20});
    cluster_->SetUsable("items", cluster_->AddIndex("items", index), 1);
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    RecordCluster::Member member(*cluster_, fabric, kVictim);
    const std::unique_ptr<Session> session = *OpenRsiSession(member, kOneTry);
    const TableHandle items = *session->OpenTable("items");
    ASSERT_TRUE(session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key)
      ASSERT_TRUE(session->Insert(items, BytesOf(Item{.key = key, .nulls = 1, .filling = {key * 7}})).ok());
    ASSERT_TRUE(session->Commit().ok());
    ASSERT_TRUE(session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key) {
      Item item;
      Lookup lookup{items, BytesOf(key), std::as_writable_bytes(std::span(&item, 1))};
      ASSERT_TRUE(session->Read({&lookup, 1}).ok());
      item.filling[0] = key * 11;
      ASSERT_TRUE(session->Update(items, BytesOf(item)).ok());
    }
    Teller reader(*cluster_, 4);
    fabric.PauseAfter(requests, [&] {
      for (const Deadline end = clock().After(100'000); !clock().Passed(end);) {
        reader.BalanceOf(3);
        clock().SleepUntil(clock().After(500));
      }
    });
    const absl::Status committed = session->Commit().status();
    fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_TRUE(committed.ok() || AbortReasonOf(committed) == AbortReason::kSkipped) << committed;
    skipped += !committed.ok();
  }
  EXPECT_GT(skipped, 5);
}

/// Each time that a client is skipped, others wait longer for its next claims: a commit that takes long
/// completes although others wait.
TEST_F(StalledTest, ALongCommitComesToItsEnd) {
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Teller slow(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4);
  slow.Create(9, 1);
  int tries = 0;
  absl::Status result = absl::UnknownError("");
  for (; tries < 10 && !result.ok(); ++tries) {
    ASSERT_TRUE(slow.session->Begin().ok() && slow.Read(1).ok() && slow.Update(1, 50).ok());
    fabric.PauseAfter(kUntilLocked, [&] {
      const Deadline end = clock().After(5 * SlotWord::kPatienceUs);
      while (!clock().Passed(end)) {
        teller_->BalanceOf(3);
        clock().SleepUntil(clock().After(100));
      }
    });
    teller_->Set(3, tries);
    result = slow.session->Commit().status();
  }
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(tries, 4) << "patience of 4, 8, 16 and 32 ms, for a commit of 20";
  EXPECT_EQ(reader.BalanceOf(1), 50);
  // The next commit begins with little patience again.
  ASSERT_TRUE(slow.session->Begin().ok() && slow.Read(1).ok() && slow.Update(1, 60).ok());
  fabric.PauseAfter(kUntilLocked, [&] { EXPECT_LT(VisibleAfterNs(reader, 77), 2 * kPatienceNs); });
  EXPECT_EQ(AbortReasonOf(slow.session->Commit().status()), AbortReason::kSkipped);
}

/// A client stalls before each of its verbs in turn, until others have skipped it, and goes on. A transaction
/// sees the same at each later verb of the client, until the end. If the client had taken a timestamp and not
/// claimed it, its claim is refused, and it takes another.
TEST_F(StalledTest, WhatATransactionHasSeenStays) {
  int late = 0;
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4);
    Prepare(victim);
    ASSERT_TRUE(reader.session->Begin().ok());
    const uint64_t before = reader.session->snapshot();
    reader.session->Abort();
    LentReader::Balances seen;
    const std::function<void()> look_again = [&] {
      EXPECT_EQ(Scanned(reader), seen);
      fabric.PauseAfter(1, look_again);
    };
    fabric.PauseAfter(requests, [&] {
      EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
      ASSERT_TRUE(reader.session->Begin().ok());
      seen = Scanned(reader);
      fabric.PauseAfter(1, look_again);
    });
    const absl::StatusOr<uint64_t> result = victim.session->Commit();
    fabric.PauseAfter(MortalFabric::kNever, [] {});
    if (seen.empty()) break;
    EXPECT_EQ(Scanned(reader), seen);
    const bool saw = seen.contains(4);
    if (result.ok()) {
      EXPECT_EQ(saw, *result <= reader.session->snapshot());
    } else {
      EXPECT_FALSE(saw) << result.status();
    }
    // The other's timestamp, and the one that was skipped.
    late += result.ok() && !saw && reader.session->snapshot() == before + 2;
    if (HasFailure()) return;
  }
  EXPECT_GT(late, 0);
}

/// A reader has READ a locked block, and pauses before it asks the lock's holder. Meanwhile the holder ends
/// this commit and begins the next one, so that its slot does not tell of the first any more.
TEST_F(StalledTest, ABlockInDoubtIsReadAgainBehindItsHolder) {
  constexpr int64_t kPauseUs = 100;
  for (const bool lent : {false, true}) {
    uint64_t requests = 0;
    for (bool paused = true; paused; ++requests) {
      SCOPED_TRACE(requests);
      Make();
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      MortalFabric reader_fabric(cluster_->client(), MortalFabric::kNever);
      Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4, reader_fabric);
      LentReader lent_reader(*cluster_, 5, reader_fabric);
      victim.Create(9, 1);
      ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Update(1, 50).ok());
      bool decided = false, goes_on = false, over = false;
      const auto wait_for = [&](const bool& what) {
        while (!what) clock().SleepUntil(clock().After(kPauseUs));
      };
      fabric.PauseAfter(kUntilDecided, [&] {
        decided = true;
        wait_for(goes_on);
      });
      const auto thread = cluster_->client().StartThread("victim", [&] {
        victim.Commits();
        victim.Set(2, 7);
        over = true;
      });
      wait_for(decided);
      EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
      ASSERT_TRUE(reader.session->Begin().ok());
      reader_fabric.PauseAfter(requests, [&] {
        goes_on = true;
        wait_for(over);
      });
      if (lent) {
        const auto balances = lent_reader.Read(reader.session->snapshot(), /*window=*/1, /*run=*/1);
        ASSERT_TRUE(balances.ok()) << balances.status();
        EXPECT_EQ(balances->at(1), 50);
      } else {
        EXPECT_EQ((*reader.Read(1))->balance, 50);
      }
      paused = reader_fabric.paused() && requests < 20;
      if (!reader_fabric.paused()) reader_fabric.PauseAfter(MortalFabric::kNever, [] {});
      goes_on = true;
      if (HasFailure()) return;
    }
    EXPECT_GT(requests, 4u);
  }
}

/// A commit that was skipped may still write to indexes until all of it is taken back. A session that drops
/// one waits for it.
TEST_F(StalledTest, IndexesAreChangedBehindASkippedCommit) {
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4);
  Teller changer(*cluster_, 5, cluster_->client(), {.own_commit_timeout_us = 50'000});
  victim.Create(9, 1);
  ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Update(1, 50).ok());
  fabric.PauseAfter(kUntilLocked, [&] {
    EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
    const absl::Status awaited = changer.session->AwaitCommits().status();
    EXPECT_TRUE(absl::IsUnavailable(awaited)) << awaited;
  });
  EXPECT_EQ(AbortReasonOf(victim.session->Commit().status()), AbortReason::kSkipped);
  const absl::Status awaited = changer.session->AwaitCommits().status();
  EXPECT_TRUE(awaited.ok()) << awaited;
}

/// A client's claim comes late, so that it takes another timestamp. A session that changes an index has
/// waited for the first one alone: the client must notice the change before it commits with the other.
TEST_F(StalledTest, IndexesAreChangedBehindALateClaim) {
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4), changer(*cluster_, 5);
  victim.Create(9, 1);
  ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Update(1, 50).ok());
  std::unique_ptr<fabric::Thread> thread;
  const auto change = [&] {
    thread = cluster_->client().StartThread("changer", [&] {
      const absl::Status awaited = changer.session->AwaitCommits().status();
      EXPECT_TRUE(awaited.ok()) << awaited;
    });
    clock().SleepUntil(clock().After(1'000));
  };
  fabric.PauseAfter(kUntilClaim, [&] {
    EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
    fabric.PauseAfter(kUntilLocked - kUntilClaim, change);
  });
  // It notices the change, and would ask the catalog for it.
  victim.member.BeforeFind([] { return absl::UnavailableError("no catalog"); });
  const absl::Status result = victim.session->Commit().status();
  ASSERT_NE(thread, nullptr);
  thread.reset();
  EXPECT_EQ(AbortReasonOf(result), AbortReason::kWriteWrite) << result;
}

/// A client that skips a stalled one may stall itself, halfway.
TEST_F(StalledTest, OneThatSkipsStandsStill) {
  constexpr int64_t kPauseUs = 100;
  int skipped = 0;
  bool paused = true;
  for (uint64_t requests = 0; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    MortalFabric waiter_fabric(cluster_->client(), MortalFabric::kNever);
    Teller victim(*cluster_, kVictim, fabric, kOneTry), waiter(*cluster_, 4, waiter_fabric),
        reader(*cluster_, 5);
    victim.Create(9, 1);
    ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Update(1, 50).ok());
    bool locked = false, goes_on = false, over = false;
    const auto wait_for = [&](const bool& what) {
      while (!what) clock().SleepUntil(clock().After(kPauseUs));
    };
    fabric.PauseAfter(kUntilLocked, [&] {
      locked = true;
      wait_for(goes_on);
    });
    const auto thread = cluster_->client().StartThread("victim", [&] {
      skipped += !victim.session->Commit().ok();
      over = true;
    });
    wait_for(locked);
    waiter_fabric.PauseAfter(requests, [&] {
      ASSERT_TRUE(reader.session->Begin().ok());
      const LentReader::Balances seen = Scanned(reader);
      goes_on = true;
      wait_for(over);
      EXPECT_EQ(Scanned(reader), seen);
    });
    teller_->Set(3, 101);
    const Deadline deadline = clock().After(100'000);
    while (waiter.BalanceOf(3) != 101 && !clock().Passed(deadline)) clock().SleepUntil(clock().After(1'000));
    EXPECT_FALSE(clock().Passed(deadline));
    paused = waiter_fabric.paused();
    if (!paused) waiter_fabric.PauseAfter(MortalFabric::kNever, [] {});
    goes_on = true;
    wait_for(over);
    if (HasFailure()) return;
  }
  EXPECT_GT(skipped, 1);
}

/// A commit that was taken back holds no snapshot up. A client that was skipped, wherever it stalled, takes
/// everything back and commits with another timestamp if its rows are unchanged. If they are not, it gives
/// up.
TEST_F(StalledTest, OneThatWasPassedOverTriesAgain) {
  int again = 0;
  for (const bool changed : {false, true}) {
    for (uint64_t requests = 0, paused = true; paused; ++requests) {
      SCOPED_TRACE(requests);
      Make();
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      Teller victim(*cluster_, kVictim, fabric), reader(*cluster_, 4), other(*cluster_, 5);
      Prepare(victim);
      uint64_t newest = 0;
      bool other_wrote = false;
      fabric.PauseAfter(requests, [&] {
        EXPECT_LT(VisibleAfterNs(reader, 101), 2 * kPatienceNs);
        ASSERT_TRUE(reader.session->Begin().ok());
        newest = reader.session->snapshot();
        reader.session->Abort();
        if (!changed) return;
        ASSERT_TRUE(other.session->Begin().ok());
        other_wrote = other.Read(1).ok() && other.Update(1, 1'000).ok() && other.session->Commit().ok();
      });
      const absl::StatusOr<uint64_t> result = victim.session->Commit();
      paused = fabric.paused();
      if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
      // Decided commits are seen early, so that others may change their rows.
      const bool before = result.ok() && *result <= newest;
      EXPECT_EQ(result.ok(), before || !other_wrote) << result.status();
      EXPECT_TRUE(result.ok() || AbortReasonOf(result.status()) == AbortReason::kWriteWrite);
      again += paused && result.ok() && !before;
      EXPECT_EQ(other.BalanceOf(2), result.ok() ? 150 : 100);
      EXPECT_EQ(other.BalanceOf(4).has_value(), result.ok());
      other.Set(2, 5);  // it is no longer locked
      victim.session.reset();
      RecordCluster::Member member(*cluster_, cluster_->client(), 6);
      Auditor auditor(member, TimestampKind::kLeased);
      const TableAudit audit = auditor.Audit("accounts", {});
      EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
      EXPECT_EQ(auditor.UnderWayOfOthers(), 0u);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(again, 3);
}

TEST_F(StalledTest, AnAbortedCommitIsDone) {
  Teller loser(*cluster_, kVictim), reader(*cluster_, 4);
  ASSERT_TRUE(loser.session->Begin().ok() && loser.Read(1).ok() && loser.Update(1, 50).ok());
  teller_->Set(1, 60);
  EXPECT_EQ(AbortReasonOf(loser.session->Commit().status()), AbortReason::kWriteWrite);
  EXPECT_LT(VisibleAfterNs(reader, 101), kPatienceNs / 10);
}

/// A commit of many rows takes longer, and others wait for it accordingly.
TEST_F(StalledTest, AClaimOfManyRowsIsWaitedForLonger) {
  constexpr uint64_t kRows = 300;
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Teller victim(*cluster_, kVictim, fabric, kOneTry), reader(*cluster_, 4);
  ASSERT_TRUE(victim.session->Begin().ok());
  for (uint64_t i = 0; i < kRows; ++i) ASSERT_TRUE(victim.Insert(1'000 + i, 1).ok());
  victim.Commits();
  ASSERT_TRUE(victim.session->Begin().ok());
  for (uint64_t i = 0; i < kRows; ++i) {
    ASSERT_TRUE(victim.Read(1'000 + i).ok() && victim.Update(1'000 + i, 2).ok());
  }
  RecordCluster::Member looker(*cluster_, cluster_->client(), 6);
  Auditor auditor(looker, TimestampKind::kLeased);
  const std::function<void()> stall = [&] {
    if (auditor.WordOf(MemberId(kVictim)).fate() != SlotFate::kClaimed) return fabric.PauseAfter(20, stall);
    const int64_t visible_ns = VisibleAfterNs(reader, 101);
    EXPECT_GT(visible_ns, kPatienceNs * 3 / 2);
    EXPECT_LT(visible_ns, kPatienceNs * 3);
  };
  fabric.PauseAfter(20, stall);
  EXPECT_EQ(AbortReasonOf(victim.session->Commit().status()), AbortReason::kSkipped);
}

/// Many sessions at once, more than a bit vector has lanes.
TEST(Sessions, MoreThanTheBitVectorHasLanes) {
  RecordCluster cluster({.memory_bytes = uint64_t{128} << 20});
  // Each session has a chunk of its own.
  cluster.AddTable("accounts", {.extent_bytes = uint64_t{4} << 20, .extents_max = 32});
  constexpr uint32_t kSessions = 600;
  std::vector<std::unique_ptr<Teller>> tellers;
  for (uint32_t i = 0; i < kSessions; ++i) {
    tellers.push_back(std::make_unique<Teller>(cluster, 1 + i % 3, cluster.client(),
                                               RsiOptions{.scratch_bytes = uint64_t{1} << 20}));
    tellers.back()->Create(i, i);
  }
  for (uint32_t i = 0; i < kSessions; ++i)
    EXPECT_EQ(tellers[i]->BalanceOf(kSessions - 1 - i), kSessions - 1 - i);
}

}  // namespace
}  // namespace nam::txn
