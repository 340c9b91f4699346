#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Recovery of transactions over two tables, which lie on different memory servers.
namespace nam::txn {
namespace {

constexpr int64_t kSoonUs = 60'000'000;  // a hang guard

/// The state and `accounts` lie on memory server 1, `loans` on memory server 2, unless they are swapped.
class RecoveryTest : public ::testing::TestWithParam<TimestampKind> {
 protected:
  static constexpr uint32_t kVictim = 2;
  /// Work requests of a client's first commit, which changes one row, up to the one that follows its lock; in
  /// a slot that has a log.
  static constexpr uint64_t kUntilLocked = 7;

  void MakeCluster(bool swapped = false, RecordCluster::Options options = {}) {
    cluster_.reset();  // before the next world begins
    options.timestamps = GetParam();
    cluster_ = std::make_unique<RecordCluster>(options);
    cluster_->AddTable("accounts", {.first_server = swapped ? 2 : 1, .extents_max = 1});
    cluster_->AddTable("loans", {.first_server = swapped ? 1 : 2, .extents_max = 1});
    Teller bank(*cluster_, 1);
    const TableHandle loans = *bank.session->OpenTable("loans");
    ASSERT_TRUE(bank.session->Begin().ok());
    for (uint64_t key = 1; key <= 2; ++key) {
      ASSERT_TRUE(bank.Insert(key, 100).ok());
      ASSERT_TRUE(bank.session->Insert(loans, Bytes(Account{key, 100})).ok());
    }
    ASSERT_TRUE(bank.session->Commit().ok());
  }
  /// A client changes and inserts rows of both tables, and dies after this many work requests. Returns
  /// whether it was told that it has committed.
  bool DieAfter(uint64_t requests) {
    MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
    Teller victim(*cluster_, kVictim, mortal);
    const TableHandle loans = *victim.session->OpenTable("loans");
    mortal.DieAfter(requests);
    bool committed = victim.session->Begin().ok();
    for (const TableHandle table : {loans, victim.accounts}) {
      committed = committed && victim.Read(table, 1).ok() && victim.Read(table, 2).ok() &&
                  victim.session->Update(table, Bytes(Account{1, 50})).ok() &&
                  victim.session->Update(table, Bytes(Account{2, 150})).ok() &&
                  victim.session->Insert(table, Bytes(Account{3, 7})).ok();
    }
    committed = committed && victim.session->Commit().ok();
    finished_ = committed && !mortal.dead();
    mortal.DieAfter(0);
    victim.session.reset();
    cluster_->SetDead(MemberId(kVictim));
    return committed;
  }
  /// Whether the rows are those of the victim's commit: all of them, in both tables, or none.
  static bool HappenedInBoth(Teller& teller, TableHandle loans) {
    const bool happened = (*teller.Read(1))->balance == 50;
    for (const TableHandle table : {teller.accounts, loans}) {
      EXPECT_EQ((*teller.Read(table, 1))->balance, happened ? 50 : 100);
      EXPECT_EQ((*teller.Read(table, 2))->balance, happened ? 150 : 100);
      EXPECT_EQ((*teller.Read(table, 3)).has_value(), happened);
    }
    return happened;
  }

  /// The keys of the rows that another client sees once it has waited for all transactions in flight.
  std::set<uint64_t> ScannedBehindPatience(const std::string& name) {
    Teller other(*cluster_, 9);
    const TableHandle table = *other.session->OpenTable(name);
    Clock& clock = cluster_->client().clock();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(other.session->Begin().ok());
      other.session->Abort();
      clock.SleepUntil(clock.After(2 * SlotWord::kPatienceUs));
    }
    std::set<uint64_t> keys;
    EXPECT_TRUE(other.session->Begin().ok());
    const absl::Status scanned = other.session->Scan(table, [&](std::span<const std::byte> row) {
      uint64_t key = 0;
      std::memcpy(&key, row.data(), sizeof(key));
      return keys.insert(key).second;
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return keys;
  }

  std::unique_ptr<RecordCluster> cluster_;
  bool finished_ = false;
};
INSTANTIATE_TEST_SUITE_P(Timestamps, RecoveryTest,
                         ::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector),
                         [](const auto& info) { return NameOf(info.param); });

/// The memory server with one of the two tables dies together with a client in mid-commit over both. Others
/// go on with the other table, snapshots advance, and nothing stays locked or held.
TEST_P(RecoveryTest, AMemoryServerIsBuriedInMidCommit) {
  int reported = 0;
  for (uint64_t requests = 0; !finished_; ++requests) {
    SCOPED_TRACE(requests);
    MakeCluster();
    Teller other(*cluster_, 3);
    ASSERT_TRUE(other.session->OpenTable("loans").ok());
    const int64_t before = *other.BalanceOf(1);
    ASSERT_EQ(before, 100);
    const bool committed = DieAfter(requests);
    cluster_->KillServer(2, /*buried=*/true);
    Teller newcomer(*cluster_, 4);
    EXPECT_TRUE(absl::IsUnavailable(newcomer.session->OpenTable("loans").status()));
    for (Teller* teller : {&other, &newcomer}) {
      absl::Status status = absl::UnknownError("");
      const Deadline patience = cluster_->client().clock().After(kSoonUs);
      std::optional<Account> first, second, third;
      while (!status.ok() && !cluster_->client().clock().Passed(patience)) {
        status = teller->session->Begin();
        ASSERT_TRUE(status.ok()) << status;
        const auto one = teller->Read(1);
        const auto two = one.ok() ? teller->Read(2) : one;
        const auto three = two.ok() ? teller->Read(3) : two;
        status = three.status();
        if (!status.ok()) continue;
        first = *one, second = *two, third = *three;
        status = teller->Update(1, first->balance + 1);
        if (status.ok()) status = teller->Update(2, second->balance - 1);
        if (status.ok()) status = teller->session->Commit().status();
      }
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(first->balance + second->balance, 200);
      EXPECT_EQ(first->balance < 100, third.has_value()) << "half of a transaction";
      EXPECT_TRUE(third.has_value() || !committed) << "an acknowledged commit is gone";
    }
    // Each client sees the other's commits: snapshots have advanced beyond the dead client's timestamp.
    EXPECT_EQ(other.BalanceOf(1), newcomer.BalanceOf(1));
    other.session.reset();
    newcomer.session.reset();
    RecordCluster::Member member(*cluster_, cluster_->client(), 5);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    EXPECT_TRUE(auditor.LivingClients().empty()) << "a slot is held although no client lives";
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    for (const std::string& report : cluster_->reports()) {
      EXPECT_THAT(report, ::testing::HasSubstr("table loans: 3 of 3 rows"));
    }
    reported += !cluster_->reports().empty();
    if (HasFailure()) return;
  }
  EXPECT_GT(reported, 5);
}

/// Either all segments of a log count, or none. Segments beyond the slot's first one are returned.
TEST_P(RecoveryTest, ALogOfSeveralSegments) {
  constexpr uint64_t kRows = 300;
  static_assert(kRows * LoggedBytes(0) > 2 * kLogPieceBytesMax);
  int died_decided = 0;
  for (uint64_t requests = 1; !finished_; requests += 97) {
    SCOPED_TRACE(requests);
    MakeCluster();
    bool committed = false;
    {
      MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
      Teller victim(*cluster_, kVictim, mortal);
      mortal.DieAfter(requests);
      committed = victim.session->Begin().ok();
      for (uint64_t i = 0; committed && i < kRows; ++i) committed = victim.Insert(10 + i, 1).ok();
      committed = committed && victim.session->Commit().ok();
      finished_ = committed && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster_->SetDead(MemberId(kVictim));
    RecordCluster::Member member(*cluster_, cluster_->client(), 3);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    EXPECT_EQ(auditor.StrayLogSegments(), 0u);
    Teller reader(*cluster_, 4);
    ASSERT_TRUE(reader.session->Begin().ok());
    const bool happened = (*reader.Read(10)).has_value();
    for (uint64_t i = 0; i < kRows; ++i) EXPECT_EQ((*reader.Read(10 + i)).has_value(), happened) << i;
    EXPECT_TRUE(happened || !committed) << "an acknowledged commit is gone";
    died_decided += happened && !finished_;
    if (HasFailure()) return;
  }
  EXPECT_GT(died_decided, 0) << "it never died between its decision and its last flip";
}

/// A client dies in mid-commit, and with it the memory server with its log. A scan of all rows finds its
/// locks, and others have their logs elsewhere.
TEST_P(RecoveryTest, ALogIsBuriedWithItsMemoryServer) {
  int searched = 0, died_decided = 0;
  for (uint64_t requests = 0; !finished_; ++requests) {
    SCOPED_TRACE(requests);
    MakeCluster(/*swapped=*/false, {.servers = 3, .log_server = 3});
    const bool committed = DieAfter(requests);
    cluster_->KillServer(3, /*buried=*/true);
    RecordCluster::Member member(*cluster_, cluster_->client(), 3);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    EXPECT_TRUE(auditor.LivingClients().empty()) << "its slot is still held";
    for (const char* const name : {"accounts", "loans"}) {
      const TableAudit audit = auditor.Audit(name, {});
      EXPECT_TRUE(audit.faults.empty()) << name << ": " << audit.ToString();
    }
    searched += !cluster_->reports().empty();
    Teller writer(*cluster_, 4);
    const TableHandle loans = *writer.session->OpenTable("loans");
    ASSERT_TRUE(writer.session->Begin().ok());
    const bool happened = HappenedInBoth(writer, loans);
    EXPECT_TRUE(happened || !committed) << "an acknowledged commit is gone";
    died_decided += happened && !finished_;
    ASSERT_TRUE(writer.Update(1, 1).ok());
    const auto written = writer.session->Commit();
    EXPECT_TRUE(written.ok()) << written.status();
    if (HasFailure()) return;
  }
  EXPECT_GT(searched, 5);
  EXPECT_GT(died_decided, 2) << "it never died between its decision and its last flip";
}

/// The slot decides for both tables. Those of the memory server that a session has met first are flipped
/// first.
TEST_P(RecoveryTest, TheSlotDecidesForBothTables) {
  for (const bool swapped : {false, true}) {
    finished_ = false;
    int died_decided = 0;
    for (uint64_t requests = 0; !finished_; ++requests) {
      SCOPED_TRACE(requests);
      MakeCluster(swapped);
      const bool committed = DieAfter(requests);
      RecordCluster::Member member(*cluster_, cluster_->client(), 3);
      Auditor auditor(member, GetParam());
      auditor.RecoverAll();
      for (const char* const name : {"accounts", "loans"}) {
        const TableAudit audit = auditor.Audit(name, {});
        EXPECT_TRUE(audit.faults.empty()) << name << ": " << audit.ToString();
      }
      EXPECT_EQ(auditor.StrayLogSegments(), 0u);
      EXPECT_EQ(auditor.UnderWayOfOthers(), 0u) << "others would wait for it";
      Teller reader(*cluster_, 4);
      const TableHandle loans = *reader.session->OpenTable("loans");
      ASSERT_TRUE(reader.session->Begin().ok());
      const bool happened = HappenedInBoth(reader, loans);
      EXPECT_TRUE(happened || !committed) << "an acknowledged commit is gone";
      died_decided += happened && !finished_;
      if (HasFailure()) return;
    }
    EXPECT_GT(died_decided, 2) << "it never died between its decision and its last flip";
  }
}

/// A client dies in the middle of each of its work requests in turn: only the later half of a WRITE is placed.
/// After recovery every snapshot sees whole rows, or is too old.
TEST_P(RecoveryTest, ARowThatIsHalfWrittenIsNoVersion) {
  const auto put = [](Teller& teller, int64_t balance, char fill) {
    Account account{1, balance};
    std::memset(account.padding, fill, sizeof(account.padding));
    return teller.session->Begin().ok() && teller.Read(1).ok() &&
           teller.session->Update(teller.accounts, Bytes(account)).ok() && teller.session->Commit().ok();
  };
  const auto expect_whole = [](const Account& account, int64_t balance, char fill) {
    EXPECT_EQ(account.balance, balance);
    EXPECT_EQ(std::string(account.padding, sizeof(account.padding)),
              std::string(sizeof(account.padding), fill));
  };
  int torn = 0;
  for (uint64_t requests = 0; !finished_; ++requests) {
    SCOPED_TRACE(requests);
    MakeCluster();
    Teller old(*cluster_, 3), other(*cluster_, 4);
    ASSERT_TRUE(put(other, 100, 'a'));
    ASSERT_TRUE(old.session->Begin().ok());
    ASSERT_TRUE(put(other, 60, 'b'));
    {
      MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
      Teller victim(*cluster_, kVictim, mortal);
      mortal.TearAfter(requests);
      finished_ = put(victim, 50, 'c') && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster_->SetDead(MemberId(kVictim));
    RecordCluster::Member member(*cluster_, cluster_->client(), 5);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    Teller reader(*cluster_, 6);
    ASSERT_TRUE(reader.session->Begin().ok());
    const Account newest = **reader.Read(1);
    const bool happened = newest.balance == 50;
    expect_whole(newest, happened ? 50 : 60, happened ? 'c' : 'b');
    const auto older = old.Read(1);
    if (older.ok()) {
      expect_whole(**older, 100, 'a');
    } else {
      EXPECT_EQ(AbortReasonOf(older.status()), AbortReason::kSnapshotTooOld) << older.status();
      torn += !happened;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(torn, 1);
}

/// A client's requests to one memory server are lost when it dies, at every one in turn, while those to the
/// other arrive. So it may have locked rows for a timestamp that its slot, which still says that its last
/// transaction has committed, does not know. Others skip that timestamp, and see nothing of it.
TEST_P(RecoveryTest, LocksMayArriveWithoutTheirClaim) {
  bool finished = false;
  for (uint64_t requests = 0; !finished; ++requests) {
    SCOPED_TRACE(requests);
    MakeCluster(/*swapped=*/false, {.kind = fabric::Kind::kSim});
    bool committed = false;
    {
      MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
      Teller victim(*cluster_, kVictim, mortal);
      const TableHandle loans = *victim.session->OpenTable("loans");
      const auto add = [&](uint64_t key) {
        return victim.session->Begin().ok() && victim.Read(loans, 1).ok() &&
               victim.session->Update(loans, Bytes(Account{1, 50})).ok() &&
               victim.session->Insert(loans, Bytes(Account{key, 7})).ok();
      };
      ASSERT_TRUE(add(3) && victim.session->Commit().ok() && add(4));
      mortal.LoseAfter(requests);
      committed = victim.session->Commit().ok();
      finished = !mortal.dead();
      mortal.DieAfter(0);
    }
    if (GetParam() == TimestampKind::kLeased) {
      EXPECT_EQ(ScannedBehindPatience("loans").contains(4), committed);
    }
    cluster_->SetDead(MemberId(kVictim));
    RecordCluster::Member member(*cluster_, cluster_->client(), 3);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    const TableAudit audit = auditor.Audit("loans", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    EXPECT_EQ(audit.live, committed ? 4u : 3u);
    EXPECT_EQ(auditor.UnderWayOfOthers(), 0u);
    Teller reader(*cluster_, 4);
    const TableHandle loans = *reader.session->OpenTable("loans");
    ASSERT_TRUE(reader.session->Begin().ok());
    EXPECT_TRUE((*reader.Read(loans, 3)).has_value());
    EXPECT_EQ((*reader.Read(loans, 4)).has_value(), committed);
    if (HasFailure()) return;
  }
}

/// A recoverer has seen that a slot's client is gone; meanwhile another one recovers it, and a new client
/// takes the slot and has a transaction in flight there, which the recoverer must not end.
TEST_P(RecoveryTest, ARecovererLooksAgainWhoseSlotItIs) {
  int took_over = 0;
  for (uint64_t requests = 0; requests < 6; ++requests) {
    SCOPED_TRACE(requests);
    MakeCluster();
    DieAfter(MortalFabric::kNever / 2);
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever),
        stands_still(cluster_->client(), MortalFabric::kNever);
    RecordCluster::Member slow_member(*cluster_, fabric, 5), fast_member(*cluster_, cluster_->client(), 6);
    Auditor slow(slow_member, GetParam()), fast(fast_member, GetParam());
    const uint32_t victim = fast.ClientOf(MemberId(kVictim));
    ASSERT_NE(victim, 0u);
    fast.TakeFreeSlots();
    std::optional<Teller> next;
    fabric.PauseAfter(requests, [&] {
      if (!fast.Recover(victim)) return;
      next.emplace(*cluster_, 7, stands_still);
      // It stalls when it has locked the row.
      ASSERT_TRUE(next->session->Begin().ok() && next->Read(1).ok() && next->Update(1, 1).ok());
      stands_still.PauseAfter(kUntilLocked, [&] { stands_still.DieAfter(0); });
      ASSERT_FALSE(next->session->Commit().ok());
    });
    slow.Recover(victim);
    ASSERT_TRUE(fabric.paused());
    if (!next.has_value()) continue;
    ++took_over;
    EXPECT_EQ(fast.ClientOf(MemberId(7)), victim) << "its slot is another's";
    EXPECT_EQ(fast.Audit("accounts", {}).faults.size(), 1u) << "a lock was taken away";
    cluster_->SetDead(MemberId(7));
  }
  EXPECT_GT(took_over, 0);
}

/// A client stalls in mid-commit, at every verb in turn. Commits that others make after it are acknowledged;
/// third parties see them as soon as the client's patience is over, or for `bitvector`, after its lease.
TEST_P(RecoveryTest, CommitsBehindAStoppedClientAreSeenSoon) {
  constexpr int64_t kLeaseNs = 730'000'000, kSoonNs = 150'000'000, kPatienceNs = 20'000'000;
  const bool skips = GetParam() == TimestampKind::kLeased;
  int held = 0;
  for (uint64_t requests = 0; requests < 40; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.kind = fabric::Kind::kSim, .timestamps = GetParam()});
    cluster.AddTable("accounts", {});
    MortalFabric stopped(cluster.client(), MortalFabric::kNever);
    Teller victim(cluster, kVictim, stopped), writer(cluster, 3), reader(cluster, 4);
    victim.Create(1, 100);
    writer.Create(2, 100);
    Clock& clock = cluster.client().clock();
    ASSERT_TRUE(victim.session->Begin().ok() && victim.Read(1).ok() && victim.Update(1, 50).ok());
    stopped.DieAfter(requests);
    const bool committed = victim.session->Commit().ok();
    ASSERT_TRUE(writer.session->Begin().ok());
    ASSERT_TRUE(writer.Read(2).ok() && writer.Update(2, 101).ok());
    ASSERT_TRUE(writer.session->Commit().ok());
    const int64_t acknowledged_ns = clock.NowNs();
    bool dead = false, missed = false;
    while (reader.BalanceOf(2) != 101) {
      missed = true;
      if (!dead && !skips && clock.NowNs() - acknowledged_ns >= kLeaseNs) {
        cluster.SetDead(MemberId(kVictim));
        dead = true;
      }
      ASSERT_LT(clock.NowNs() - acknowledged_ns, skips ? kPatienceNs : kLeaseNs + kSoonNs);
      clock.SleepUntil(clock.After(1'000));
    }
    if (committed && !stopped.dead()) break;
    if (!skips) {
      EXPECT_EQ(missed, dead) << "it was seen before the client was fenced, and had held it back";
    }
    held += skips ? missed || clock.NowNs() - acknowledged_ns > 1'000'000 : dead;
    EXPECT_EQ(writer.BalanceOf(2), 101) << "a session sees its own commit";
    // Others see the outcome that the stopped client was told; its locks are free after its lease.
    EXPECT_TRUE(!committed || reader.BalanceOf(1) == 50) << "an acknowledged commit is not seen";
    if (!dead) cluster.SetDead(MemberId(kVictim));
    const int64_t seen = *reader.BalanceOf(1);
    absl::Status written = absl::UnknownError("");
    const Deadline patience = clock.After(kSoonUs);
    while (!written.ok() && !clock.Passed(patience)) {
      written = writer.session->Begin();
      if (written.ok()) written = writer.Read(1).status();
      if (written.ok()) written = writer.Update(1, seen + 1);
      if (written.ok()) written = writer.session->Commit().status();
    }
    EXPECT_TRUE(written.ok()) << written;
    EXPECT_EQ(reader.BalanceOf(1), seen + 1);
  }
  EXPECT_GT(held, 0);
}

/// A memory server that is only out of reach may come back with its rows, so nothing is decided without it.
/// Until then others read, at the existing snapshots.
TEST_P(RecoveryTest, AMemoryServerOutOfReachIsWaitedFor) {
  int waited = 0;
  for (uint64_t requests = 0; !finished_; requests += 3) {
    SCOPED_TRACE(requests);
    MakeCluster();
    DieAfter(requests);
    cluster_->KillServer(2, /*buried=*/false);
    Teller other(*cluster_, 3);
    EXPECT_TRUE(other.BalanceOf(1).has_value());
    EXPECT_TRUE(cluster_->reports().empty());
    RecordCluster::Member member(*cluster_, cluster_->client(), 4);
    Auditor auditor(member, GetParam());
    auditor.RecoverAll();
    waited += auditor.LivingClients().size() > 1;  // the dead client still holds its slot
    other.session.reset();
    cluster_->KillServer(2, /*buried=*/true);
    Auditor later(member, GetParam());
    later.RecoverAll();
    const TableAudit audit = later.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    if (HasFailure()) return;
  }
  EXPECT_GT(waited, 3);
}

/// A memory server is out of reach, so that a process that is gone cannot be fenced. Other clients do not
/// wait for its clients one by one, nor for a long part of the time.
TEST_P(RecoveryTest, AFenceThatFailsIsNotTriedForEveryClient) {
  RecordCluster cluster({.kind = fabric::Kind::kSim, .timestamps = GetParam()});
  cluster.AddTable("accounts", {});
  MortalFabric stopped(cluster.client(), MortalFabric::kNever);
  std::vector<std::unique_ptr<Teller>> gone;
  for (int i = 0; i < 20; ++i) gone.push_back(std::make_unique<Teller>(cluster, kVictim, stopped));
  stopped.DieAfter(0);
  cluster.SetDead(MemberId(kVictim));
  RecordCluster::Member member(cluster, cluster.client(), 3);
  Clock& clock = cluster.client().clock();
  int fences = 0;
  bool reachable = false;
  member.BeforeFence([&] {
    ++fences;
    if (!reachable) clock.SleepUntil(clock.After(500'000));
    return reachable ? absl::OkStatus() : absl::UnavailableError("a memory server is out of reach");
  });
  Auditor auditor(member, GetParam());
  const int64_t begun_ns = clock.NowNs();
  for (int i = 0; i < 40; ++i) {
    auditor.RecoverAll();
    clock.SleepUntil(clock.After(100'000));
  }
  EXPECT_EQ(fences, 1);
  EXPECT_LT(clock.NowNs() - begun_ns, 5'000'000'000);
  reachable = true;
  clock.SleepUntil(clock.After(5'000'000));
  EXPECT_EQ(auditor.RecoverAll(), 20);
}

}  // namespace
}  // namespace nam::txn
