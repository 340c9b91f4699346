#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"

/// Clients that die after any number of their work requests.
namespace nam::txn {
namespace {

/// Without a fabric's name the memory belongs to this process.
class RsiClients : public ::testing::TestWithParam<TimestampKind> {};
INSTANTIATE_TEST_SUITE_P(Timestamps, RsiClients,
                         ::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector),
                         [](const auto& info) { return NameOf(info.param); });

/// A client dies after any number of work requests of its transaction; no client sees half of it, and all
/// rows can be written again.
TEST_P(RsiClients, AfterEveryVerb) {
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.timestamps = GetParam()});
    cluster.AddTable("accounts", {});
    {
      Teller bank(cluster, 1);  // no further client that the others would look at
      bank.Create(1, 100);
      bank.Create(2, 100);
    }
    bool finished = false;
    {
      // The first of these requests open the session; a client that does nothing else counts them.
      MortalFabric mortal(cluster.client(), ~uint64_t{0} >> 1);
      const uint64_t before = mortal.left();
      Teller victim(cluster, 2, mortal);
      static const uint64_t opening = before - mortal.left();
      (void)opening;
      mortal.DieAfter(requests);
      bool alive = victim.session->Begin().ok() && victim.Read(1).ok() && victim.Read(2).ok() &&
                   victim.Update(1, 50).ok() && victim.Update(2, 150).ok() && victim.Insert(3, 7).ok();
      finished = alive && victim.session->Commit().ok() && !mortal.dead();
      if (!finished) mortal.DieAfter(0);
      victim.session.reset();
    }
    cluster.SetDead(MemberId(2));
    std::optional<Teller> heir;
    // Both rows can be changed, at the latest after the recovery that a few tries cause, each by a client
    // that has seen nothing of the others.
    uint32_t tries = 0;
    absl::StatusOr<uint64_t> committed = absl::UnknownError("");
    absl::Status step;
    std::optional<int64_t> one, two, three;
    const Deadline patience = cluster.client().clock().After(60'000'000);
    while (!committed.ok() && !cluster.client().clock().Passed(patience)) {
      heir.emplace(cluster, 3 + tries++);
      ASSERT_TRUE(heir->session->Begin().ok());
      const auto a = heir->Read(1);
      const auto b = a.ok() ? heir->Read(2) : a;
      const auto c = b.ok() ? heir->Read(3) : b;
      step = c.status();
      if (!c.ok()) continue;
      one = (*a)->balance;
      two = (*b)->balance;
      three = c->has_value() ? std::optional((*c)->balance) : std::nullopt;
      step = heir->Update(1, *one + 1);
      if (step.ok()) step = heir->Update(2, *two - 1);
      if (step.ok() && !three.has_value()) step = heir->Insert(3, 7);
      if (!step.ok()) continue;
      committed = heir->session->Commit();
    }
    ASSERT_TRUE(committed.ok()) << committed.status() << step;
    EXPECT_EQ(*one + *two, 200);
    EXPECT_EQ(*one == 50, three.has_value()) << "half of a transaction";
    Teller newcomer(cluster, 3 + tries);
    EXPECT_EQ(newcomer.BalanceOf(1), *one + 1);
    EXPECT_EQ(newcomer.BalanceOf(3), 7);
    if (finished) {
      EXPECT_GT(requests, 20u);
      break;
    }
  }
}

/// Clients must not retry without a pause while a stopped client holds locks.
TEST_P(RsiClients, AHeldLockIsTriedWithPauses) {
  constexpr int64_t kStoppedUs = 50'000;
  constexpr int kTriesMax = 200;  // without pauses it would be thousands
  bool met_a_lock = false;
  for (uint64_t requests = 0; !met_a_lock; ++requests) {
    RecordCluster cluster({.timestamps = GetParam()});
    cluster.AddTable("accounts", {});
    MortalFabric mortal(cluster.client(), ~uint64_t{0} >> 1);
    Teller stopped(cluster, 1, mortal), other(cluster, 2);
    other.Create(1, 100);
    ASSERT_TRUE(stopped.session->Begin().ok());
    ASSERT_TRUE(stopped.Read(1).ok() && stopped.Update(1, 50).ok());
    mortal.DieAfter(requests);
    if (stopped.session->Commit().ok()) break;
    int tries = 0;
    for (const Deadline end = cluster.client().clock().After(kStoppedUs);
         !cluster.client().clock().Passed(end); ++tries) {
      ASSERT_TRUE(other.session->Begin().ok());
      ASSERT_TRUE(other.Read(1).ok());
      absl::Status status = other.Update(1, 60);
      if (status.ok()) status = other.session->Commit().status();
      if (status.ok()) break;
      ASSERT_EQ(AbortReasonOf(status), AbortReason::kWriteWrite) << status;
      met_a_lock = true;
    }
    EXPECT_LT(tries, kTriesMax);
    stopped.session.reset();
    cluster.SetDead(MemberId(1));
    const Deadline patience = cluster.client().clock().After(60'000'000);
    absl::Status status = absl::UnknownError("");
    while (!status.ok() && !cluster.client().clock().Passed(patience)) {
      ASSERT_TRUE(other.session->Begin().ok());
      ASSERT_TRUE(other.Read(1).ok());
      status = other.Update(1, 60);
      if (status.ok()) status = other.session->Commit().status();
    }
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(met_a_lock);
}

/// A client dies after any number of the work requests by which it reclaims and inserts; all blocks can be
/// used afterwards.
TEST_P(RsiClients, ReclaimAfterEveryVerb) {
  for (uint64_t requests = 0;; requests += 3) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.timestamps = GetParam()});
    cluster.AddTable("accounts", {.extent_bytes = 64 << 10, .extents_max = 1});
    {
      Teller first(cluster, 1);
      ASSERT_TRUE(first.InsertRows(0, 250).ok());
      ASSERT_TRUE(first.DeleteRows(0, 40).ok());
    }
    bool finished = false;
    {
      MortalFabric mortal(cluster.client(), ~uint64_t{0} >> 1);
      Teller victim(cluster, 2, mortal);
      mortal.DieAfter(requests);
      finished = victim.InsertRows(1'000, 20).ok() && !mortal.dead();
      if (!finished) mortal.DieAfter(0);
      victim.session.reset();
    }
    cluster.SetDead(MemberId(2));
    RecordCluster::Member third(cluster, cluster.client(), 3);
    Auditor auditor(third, GetParam());
    auditor.RecoverAll();
    const TableAudit audit = auditor.Audit("accounts", {});
    ASSERT_TRUE(audit.faults.empty()) << audit.ToString();
    Teller heir(cluster, 4);
    const bool there = heir.BalanceOf(1'000).has_value();
    // 210 rows and perhaps the victim's 20 are there: every other block can be used.
    const absl::Status inserted = heir.InsertRows(2'000, there ? 26 : 46);
    ASSERT_TRUE(inserted.ok()) << inserted << audit.ToString();
    EXPECT_TRUE(absl::IsResourceExhausted(heir.InsertRows(3'000, 1)));
    if (finished) {
      EXPECT_TRUE(there);
      EXPECT_GT(requests, 500u);
      break;
    }
  }
}

/// A table of one chunk, which is full. Row 7 was changed and then deleted, so that both slots of its block
/// have versions: a client that inserts a row has to free the block first.
class FullTable {
 public:
  static constexpr uint64_t kRows = 256;
  explicit FullTable(TimestampKind kind) : kind_(kind), cluster_({.timestamps = kind}) {
    cluster_.AddTable("accounts", {.extent_bytes = 64 << 10, .extents_max = 1});
    Teller first(cluster_, 1);
    EXPECT_TRUE(first.InsertRows(0, kRows).ok());
    first.Set(7, 2);
    EXPECT_TRUE(first.DeleteRows(7, 1).ok());
  }
  RecordCluster& cluster() { return cluster_; }
  /// Member 2 inserts a row, and dies after this many requests. Returns how many it made.
  uint64_t InsertAndDie(uint64_t requests) {
    MortalFabric mortal(cluster_.client(), MortalFabric::kNever);
    Teller victim(cluster_, kVictim, mortal);
    mortal.DieAfter(requests);
    inserted_ = victim.InsertRows(1'000, 1).ok() && !mortal.dead();
    const uint64_t made = requests - mortal.left();
    mortal.DieAfter(0);
    return made;
  }
  /// Member 3 recovers the victim, and dies after this many requests. False: it has finished before.
  bool RecoverAndDie(uint64_t requests) {
    MortalFabric mortal(cluster_.client(), MortalFabric::kNever);
    RecordCluster::Member member(cluster_, mortal, 3);
    Auditor auditor(member, kind_);
    mortal.DieAfter(requests);
    auditor.TryRecoverAll().IgnoreError();
    const bool died = mortal.dead();
    mortal.DieAfter(0);
    return died;
  }
  bool Locked() {
    RecordCluster::Member member(cluster_, cluster_.client(), 4);
    const TableAudit audit = Auditor(member, kind_).Audit("accounts", {});
    return std::any_of(audit.faults.begin(), audit.faults.end(), [](const std::string& fault) {
      return fault.find("it is locked") != std::string::npos;
    });
  }
  /// A scan by another client sees all rows.
  void ExpectScanned(uint32_t member) {
    Teller other(cluster_, member);
    ASSERT_TRUE(other.session->Begin().ok());
    uint64_t rows = 0;
    const absl::Status scanned = other.session->Scan(other.accounts, [&](auto) { return ++rows > 0; });
    EXPECT_TRUE(scanned.ok()) << scanned;
    EXPECT_GE(rows, inserted_ ? kRows : kRows - 1);
    EXPECT_LE(rows, kRows);
  }

 private:
  const TimestampKind kind_;
  RecordCluster cluster_;
  bool inserted_ = false;
};

/// A client dies after any number of the work requests by which it frees a block. Scans go on, before its
/// lease is over and after.
TEST_P(RsiClients, AScanBesideOneThatDiedWhileItFreedABlock) {
  const uint64_t all = FullTable(GetParam()).InsertAndDie(MortalFabric::kNever);
  int locked = 0;
  for (uint64_t requests = all - 50; requests < all; ++requests) {
    SCOPED_TRACE(requests);
    FullTable table(GetParam());
    table.InsertAndDie(requests);
    table.ExpectScanned(5);
    locked += table.Locked();
    table.cluster().SetDead(MemberId(kVictim));
    table.ExpectScanned(6);
    if (HasFailure()) return;
  }
  EXPECT_GT(locked, 3);
}

/// Its recoverer dies, too, after any number of work requests.
TEST_P(RsiClients, AScanBesideOneThatDiedWhileItFinishedAFreedBlock) {
  uint64_t until_locked = FullTable(GetParam()).InsertAndDie(MortalFabric::kNever) - 50;
  for (bool locked = false; !locked; ++until_locked) {
    FullTable table(GetParam());
    table.InsertAndDie(until_locked);
    locked = table.Locked();
  }
  bool died = true;
  uint64_t requests = 0;
  for (; died; ++requests) {
    SCOPED_TRACE(requests);
    FullTable table(GetParam());
    table.InsertAndDie(until_locked);
    table.cluster().SetDead(MemberId(kVictim));
    died = table.RecoverAndDie(requests);
    table.ExpectScanned(5);
    table.cluster().SetDead(MemberId(3));
    table.ExpectScanned(6);
    if (HasFailure()) return;
  }
  EXPECT_GT(requests, 20u);
}

/// A scan needs an old version, in the slot that the holder of a lock may write to. The holder dies after any
/// number of its work requests: the scan recovers it, and sees the version.
TEST_P(RsiClients, AScanRecoversTheDeadClientThatItWaitsFor) {
  bool finished = false;
  int met = 0;
  for (uint64_t requests = 0; !finished; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.timestamps = GetParam()});
    cluster.AddTable("accounts", {});
    Teller old(cluster, 3), other(cluster, 4);
    for (const uint64_t key : {1, 2}) other.Create(key, 100);
    ASSERT_TRUE(old.session->Begin().ok());
    other.Set(1, 50);
    {
      MortalFabric mortal(cluster.client(), MortalFabric::kNever);
      Teller victim(cluster, kVictim, mortal);
      mortal.DieAfter(requests);
      finished = victim.session->Begin().ok() && victim.Read(1).ok() && victim.Lock(1).ok() &&
                 victim.session->Commit().ok() && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster.SetDead(MemberId(kVictim));
    RecordCluster::Member member(cluster, cluster.client(), 5);
    met += !Auditor(member, GetParam()).Audit("accounts", {}).faults.empty();
    int64_t sum = 0;
    const absl::Status scanned = old.session->Scan(old.accounts, [&](std::span<const std::byte> row) {
      Account account;
      std::memcpy(&account, row.data(), sizeof(account));
      sum += account.balance;
      return true;
    });
    ASSERT_TRUE(scanned.ok()) << scanned;
    EXPECT_EQ(sum, 200);
  }
  EXPECT_GT(met, 1);
}

}  // namespace
}  // namespace nam::txn
