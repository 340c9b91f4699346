#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "tests/txn/accounts.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "txn/rsi/session.h"

/// Sessions of a process share its clients: in simulated worlds of two memory servers and two tables.
namespace nam::txn {
namespace {

/// A process, whose connections are counted.
struct Process {
  Process(RecordCluster& cluster, uint32_t id)
      : under(cluster.OpenFabric("client")),
        fabric(*under, MortalFabric::kNever),
        tables(cluster, fabric, id) {}

  std::unique_ptr<fabric::Fabric> under;
  MortalFabric fabric;
  RecordCluster::Member tables;
};

/// A session that knows both tables.
struct Sharer : AccountSession {
  Sharer(Process& process, const RsiOptions& options)
      : AccountSession(OpenRsiSession(process.tables, options)), others(*session->OpenTable("others")) {}
  absl::Status Put(TableHandle table, uint64_t key, int64_t balance) {
    if (absl::Status begun = session->Begin(); !begun.ok()) return begun;
    const auto before = Read(table, key);
    if (!before.ok()) return before.status();
    const Account account{key, balance};
    const absl::Status put =
        before->has_value() ? session->Update(table, Bytes(account)) : session->Insert(table, Bytes(account));
    return put.ok() ? session->Commit().status() : put;
  }
  /// Reads in a transaction of its own; nullopt if the row does not exist.
  absl::StatusOr<std::optional<int64_t>> Get(TableHandle table, uint64_t key) {
    if (absl::Status begun = session->Begin(); !begun.ok()) return begun;
    const auto account = Read(table, key);
    session->Abort();
    if (!account.ok()) return account.status();
    return account->has_value() ? std::optional(account->value().balance) : std::nullopt;
  }

  TableHandle others;
};

class RsiPool : public ::testing::TestWithParam<TimestampKind> {
 protected:
  static constexpr int64_t kWaitUs = 50'000;
  RsiPool()
      : cluster_({.kind = fabric::Kind::kSim, .memory_bytes = uint64_t{20} << 20, .timestamps = GetParam()}) {
    cluster_.AddTable("accounts", {.row_bytes = sizeof(Account)});
    cluster_.AddTable("others", {.first_server = 2, .row_bytes = sizeof(Account)});
  }
  static RsiOptions Options(uint32_t clients_max) {
    return {.clients_max = clients_max, .client_timeout_us = kWaitUs};
  }
  /// Not counting the client that looks.
  size_t LivingClients() {
    if (!auditor_.has_value()) auditor_.emplace(onlooker_, GetParam());
    return auditor_->LivingClients().size();
  }

  RecordCluster cluster_;
  RecordCluster::Member onlooker_{cluster_, cluster_.client(), 99};
  std::optional<Auditor> auditor_;
};
std::string KindName(const ::testing::TestParamInfo<TimestampKind>& info) {
  return info.param == TimestampKind::kLeased ? "leased" : "bitvector";
}
const auto kKinds = ::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector);
INSTANTIATE_TEST_SUITE_P(Timestamps, RsiPool, kKinds, KindName);

/// Many sessions of two processes commit in turn. Each process has as many clients as it may, each of which
/// has one connection to either memory server and one slot.
TEST_P(RsiPool, SessionsBeyondTheBoundCommit) {
  constexpr uint32_t kClients = 3, kSessions = 20;
  Process first(cluster_, 1), second(cluster_, 2);
  std::vector<std::unique_ptr<Sharer>> sessions;
  for (uint32_t i = 0; i < kSessions; ++i)
    sessions.push_back(std::make_unique<Sharer>(i % 2 == 0 ? first : second, Options(kClients)));
  for (int64_t round = 1; round <= 3; ++round) {
    for (uint32_t i = 0; i < kSessions; ++i) {
      Sharer& sharer = *sessions[i];
      const absl::Status put = sharer.Put(i % 3 == 0 ? sharer.others : sharer.accounts, i, round);
      ASSERT_TRUE(put.ok()) << put << ": session " << i;
    }
  }
  EXPECT_EQ(first.fabric.open_connections(), 2 * kClients);
  EXPECT_EQ(second.fabric.open_connections(), 2 * kClients);
  EXPECT_EQ(LivingClients(), 2 * kClients);
  for (uint32_t i = 0; i < kSessions; ++i) {
    Sharer& reader = *sessions[(i + 1) % kSessions];
    EXPECT_EQ(*reader.Get(i % 3 == 0 ? reader.others : reader.accounts, i), 3) << i;
  }
  // There are no more clients than sessions, and none without sessions.
  sessions.resize(2);
  EXPECT_EQ(LivingClients(), 2u);
  sessions.clear();
  EXPECT_EQ(LivingClients(), 0u);
  EXPECT_EQ(first.fabric.open_connections(), 0);
}

/// A session that no other one disturbs stays with its client: it opens no table again, and its slot is the
/// same.
TEST_P(RsiPool, ASessionKeepsItsClient) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2));
  AccountSession two(OpenRsiSession(process.tables, Options(2)));  // its client knows no other table
  ASSERT_TRUE(one.Put(one.others, 1, 1).ok());
  two.Create(1, 1);
  int asked = 0;
  process.tables.BeforeFind([&] {
    ++asked;
    return absl::OkStatus();
  });
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(one.Put(one.others, 1, i).ok());
    EXPECT_TRUE(one.Put(one.others, 1, -i).ok());
    two.Set(1, i);
  }
  EXPECT_EQ(asked, 0);
}

/// A session sees its own commits, whichever client it gets next, even while another client holds its
/// timestamp open: the snapshot of that client waits.
TEST_P(RsiPool, OwnCommitsAreSeenThroughAnotherClient) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2)), two(process, Options(2)), three(process, Options(2));
  for (int64_t i = 1; i <= 10; ++i) {
    const absl::Status put = one.Put(one.accounts, 1, i);
    ASSERT_TRUE(put.ok()) << put;
    // The others take both clients, in turn.
    ASSERT_TRUE((i % 2 == 0 ? two : three).session->Begin().ok());
    ASSERT_TRUE((i % 2 == 0 ? three : two).session->Begin().ok());
    (i % 3 == 0 ? two : three).session->Abort();
    EXPECT_EQ(*one.Get(one.accounts, 1), i);
    two.session->Abort();
    three.session->Abort();
  }
}

/// The cost of a begin is counted for the session itself, not for those that had the client before.
TEST_P(RsiPool, BeginsAreCountedBySession) {
  Process process(cluster_, 1);
  Sharer one(process, Options(1)), two(process, Options(1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(one.Put(one.accounts, 1, i).ok());
    ASSERT_TRUE(one.Put(one.accounts, 1, i).ok());
    ASSERT_TRUE(two.Put(two.accounts, 2, i).ok());
  }
  EXPECT_EQ(one.session->begin_costs().begins, 6u);
  EXPECT_EQ(two.session->begin_costs().begins, 3u);
  EXPECT_GT(two.session->begin_costs().verbs, 0u);
}

/// Sessions in transactions have all clients. One more waits, and after its timeout it learns that there are
/// too many. Nothing of it has begun.
TEST_P(RsiPool, OneTooManyIsToldSo) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2)), two(process, Options(2)), three(process, Options(2));
  ASSERT_TRUE(one.session->Begin().ok());
  ASSERT_TRUE(two.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  const int64_t began_ns = clock.NowNs();
  std::atomic<bool> cancelled = false;
  {
    const auto limit = process.fabric.StartThread("limit", [&] {  // otherwise the test would wait for ever
      clock.SleepUntil(clock.After(10 * kWaitUs));
      cancelled = true;
    });
    const Interruption interruption(&cancelled);
    const absl::Status refused = three.session->Begin();
    EXPECT_TRUE(IsNoClientFree(refused)) << refused;
  }
  EXPECT_GE(clock.NowNs() - began_ns, kWaitUs * 1'000);
  EXPECT_TRUE(absl::IsFailedPrecondition(three.Insert(1, 1))) << "nothing has begun";
  one.session->Abort();
  EXPECT_TRUE(three.Put(three.accounts, 1, 1).ok());
  EXPECT_TRUE(two.Insert(2, 2).ok());
  two.Commits();
}

/// Sessions that wait get clients in the order in which they came, also before the one that gives it back.
TEST_P(RsiPool, FirstComeFirstServed) {
  constexpr int kWaiting = 5;
  Process process(cluster_, 1);
  RsiOptions options = Options(1);
  options.client_timeout_us = 10'000'000;
  Sharer holder(process, options);
  std::vector<std::unique_ptr<Sharer>> sharers;
  for (int i = 0; i < kWaiting; ++i) sharers.push_back(std::make_unique<Sharer>(process, options));
  ASSERT_TRUE(holder.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  std::vector<int> order;
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < kWaiting; ++i) {
      threads.push_back(process.fabric.StartThread("waiter", [&, i] {
        EXPECT_TRUE(sharers[i]->session->Begin().ok());
        order.push_back(i);
        clock.SleepUntil(clock.After(100));
        sharers[i]->session->Abort();
      }));
      clock.SleepUntil(clock.After(1'000));  // until it waits
    }
    holder.session->Abort();
    EXPECT_TRUE(holder.session->Begin().ok());
    order.push_back(kWaiting);
    holder.session->Abort();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

/// A session that has waited in vain leaves the queue: the client goes to the next.
TEST_P(RsiPool, WhoGivesUpIsServedNoMore) {
  Process process(cluster_, 1);
  Sharer holder(process, Options(1)), early(process, Options(1)), late(process, Options(1));
  ASSERT_TRUE(holder.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  {
    const auto first =
        process.fabric.StartThread("early", [&] { EXPECT_TRUE(IsNoClientFree(early.session->Begin())); });
    clock.SleepUntil(clock.After(kWaitUs / 2));
    const auto second = process.fabric.StartThread("late", [&] {
      EXPECT_TRUE(late.session->Begin().ok());
      late.session->Abort();
    });
    clock.SleepUntil(clock.After(3 * kWaitUs / 4));
    holder.session->Abort();
  }
  EXPECT_TRUE(early.session->Begin().ok());
}

/// A statement that is cancelled waits no longer.
TEST_P(RsiPool, CancelEndsTheWait) {
  Process process(cluster_, 1);
  RsiOptions options = Options(1);
  options.client_timeout_us = 100'000'000;
  Sharer holder(process, options), waiter(process, options);
  ASSERT_TRUE(holder.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  std::atomic<bool> cancelled = false;
  const int64_t began_ns = clock.NowNs();
  {
    const auto canceller = process.fabric.StartThread("canceller", [&] {
      clock.SleepUntil(clock.After(10'000));
      cancelled = true;
    });
    const Interruption interruption(&cancelled);
    EXPECT_TRUE(absl::IsCancelled(waiter.session->Begin()));
  }
  EXPECT_LT(clock.NowNs() - began_ns, 1'000'000'000);
  holder.session->Abort();
  EXPECT_TRUE(waiter.session->Begin().ok());
}

/// An error that ends a transaction gives the client back, and so does the end of a session within one.
TEST_P(RsiPool, WhateverEndsATransactionGivesTheClientBack) {
  Process process(cluster_, 1);
  Sharer other(process, Options(1));
  ASSERT_TRUE(other.Put(other.accounts, 1, 1).ok());
  auto failing = std::make_unique<Sharer>(process, Options(1));
  const std::vector<std::function<void()>> ends = {
      [&] { EXPECT_TRUE(absl::IsNotFound(failing->Update(9, 2))); },
      [&] { failing->session->Abort(); },
      [&] { EXPECT_TRUE(failing->session->Commit().ok()); },
      [&] { failing.reset(); },
  };
  for (size_t i = 0; i < ends.size(); ++i) {
    ASSERT_TRUE(failing->session->Begin().ok());
    ends[i]();
    EXPECT_TRUE(other.session->Begin().ok()) << i;
    other.session->Abort();
  }
}

/// A handle means the same table with each client, in whichever order a client meets tables. A table that was
/// made anew is another one.
TEST_P(RsiPool, AHandleIsOneTable) {
  Process process(cluster_, 1);
  Sharer one(process, Options(3));
  ASSERT_TRUE(one.Put(one.accounts, 1, 10).ok());
  ASSERT_TRUE(one.Put(one.others, 1, 20).ok());
  auto backwards = OpenRsiSession(process.tables, Options(3));
  ASSERT_TRUE(backwards.ok());
  EXPECT_EQ((*backwards)->OpenTable("others")->value, one.others.value);
  EXPECT_EQ((*backwards)->OpenTable("accounts")->value, one.accounts.value);
  // This client has opened no table: the other two are in use.
  Sharer two(process, Options(3));
  ASSERT_TRUE(one.session->Begin().ok());
  ASSERT_TRUE((*backwards)->Begin().ok());
  EXPECT_EQ(*two.Get(one.others, 1), 20);
  EXPECT_EQ(*two.Get(one.accounts, 1), 10);
  one.session->Abort();
  (*backwards)->Abort();
  const TableHandle former = one.others;
  cluster_.DropTable("others");
  cluster_.AddTable("others", {.first_server = 2, .row_bytes = sizeof(Account)});
  const TableHandle anew = *one.session->OpenTable("others");
  EXPECT_NE(anew.value, former.value);
  EXPECT_EQ(*one.Get(anew, 1), std::nullopt);
  Sharer three(process, Options(3));
  ASSERT_TRUE(three.session->Begin().ok());
  EXPECT_FALSE(three.Read(former, 1).ok());
  three.session->Abort();
  EXPECT_FALSE(three.session->Begin().ok() && three.Read(TableHandle{1'000}, 1).ok());
}

/// A lost client costs only the transaction that uses it. It is replaced, not added to.
TEST_P(RsiPool, ALostClientCostsOneTransaction) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2)), two(process, Options(2)), three(process, Options(2));
  ASSERT_TRUE(one.Put(one.accounts, 1, 1).ok());
  ASSERT_TRUE(two.session->Begin().ok());
  ASSERT_TRUE(two.Insert(2, 2).ok());
  process.fabric.BreakAfter(3);
  const absl::Status lost = one.Put(one.accounts, 1, 2);
  EXPECT_EQ(AbortReasonOf(lost), AbortReason::kConnectionLost) << lost;
  EXPECT_EQ(process.fabric.breaks(), 1);
  two.Commits();
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(three.Put(three.accounts, 3, i).ok());
    EXPECT_TRUE(one.Put(one.others, 1, i).ok());
    EXPECT_TRUE(two.Put(two.accounts, 2, i).ok());
  }
  EXPECT_EQ(process.fabric.open_connections(), 4);
  EXPECT_EQ(LivingClients(), 2u);
}

/// While a lost client cannot be replaced, others go on with theirs, and it counts as a client.
TEST_P(RsiPool, ALostClientThatStaysLostCounts) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2)), two(process, Options(2)), three(process, Options(2));
  ASSERT_TRUE(one.Put(one.accounts, 1, 1).ok());
  process.fabric.SetDisconnects(false);
  process.fabric.BreakAfter(3);
  EXPECT_FALSE(one.Put(one.accounts, 1, 2).ok());
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(two.Put(two.accounts, 2, i).ok());
    EXPECT_TRUE(three.Put(three.accounts, 3, i).ok()) << "the client that is whole is idle";
  }
  EXPECT_LE(process.fabric.open_connections(), 5);
  process.fabric.SetDisconnects(true);
  EXPECT_TRUE(one.Put(one.accounts, 1, 3).ok());
}

/// There is no slot for another client: the session shares those that the process has.
TEST_P(RsiPool, WithoutASlotASessionShares) {
  Process process(cluster_, 1);
  Sharer one(process, Options(8));
  RecordCluster::Member tables(cluster_, cluster_.client(), 99);
  Auditor auditor(tables, GetParam());
  auditor.TakeFreeSlots();
  Process stranger(cluster_, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(OpenRsiSession(stranger.tables, Options(8)).status()));
  Sharer two(process, Options(8));
  for (int64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(one.Put(one.accounts, 1, i).ok());
    EXPECT_TRUE(two.Put(two.accounts, 2, i).ok());
  }
  ASSERT_TRUE(one.session->Begin().ok());
  EXPECT_TRUE(IsNoClientFree(two.session->Begin()));
}

/// When there are slots again, waiting sessions get more clients although their queue never empties.
TEST_P(RsiPool, ThePoolGrowsWhenThereAreSlotsAgain) {
  RsiOptions options = Options(2);
  options.client_timeout_us = 10'000'000;
  Process process(cluster_, 1);
  Sharer one(process, options);
  RecordCluster::Member tables(cluster_, cluster_.client(), 99);
  Auditor auditor(tables, GetParam());
  auditor.TakeFreeSlots();
  Sharer two(process, options), three(process, options);
  ASSERT_TRUE(one.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (Sharer* const sharer : {&two, &three}) {
      threads.push_back(process.fabric.StartThread("waits", [sharer] {
        const absl::Status begun = sharer->session->Begin();
        EXPECT_TRUE(begun.ok()) << begun;
        sharer->session->Abort();
      }));
    }
    clock.SleepUntil(clock.After(1'000'000));
    auditor.FreeTakenSlots();
  }
  one.session->Abort();
  EXPECT_GT(process.fabric.open_connections(), 2) << "those of one client";
}

/// A client that is lost and cannot be replaced costs one session an error. Waiting sessions get the intact
/// client.
TEST_P(RsiPool, AClientThatCannotBeReplacedServesNobody) {
  RsiOptions options = Options(2);
  options.client_timeout_us = 100'000'000;
  Process process(cluster_, 1);
  Sharer one(process, options), two(process, options);
  std::vector<std::unique_ptr<Sharer>> others;
  for (int i = 0; i < 4; ++i) others.push_back(std::make_unique<Sharer>(process, options));
  ASSERT_TRUE(one.Put(one.accounts, 1, 1).ok());
  ASSERT_TRUE(two.session->Begin().ok());
  int tries = 0;
  process.tables.BeforeKeep([&] {
    ++tries;
    return absl::UnavailableError("the catalog is out of reach");
  });
  ASSERT_TRUE(one.session->Begin().ok());
  Clock& clock = process.fabric.clock();
  int failed = 0;
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (const auto& sharer : others) {
      threads.push_back(process.fabric.StartThread("waits", [&] {
        failed += !sharer->session->Begin().ok();
        sharer->session->Abort();
      }));
    }
    clock.SleepUntil(clock.After(100'000));  // until they wait
    process.fabric.BreakAfter(0);
    EXPECT_FALSE(one.Read(one.accounts, 1).ok());
    clock.SleepUntil(clock.After(100'000));
    two.session->Abort();
  }
  EXPECT_EQ(failed, 1) << "the first has tried to replace the client";
  EXPECT_EQ(tries, 2) << "as it was lost, and as it was to be replaced";
  // The session that had the client does not try it again at once.
  ASSERT_TRUE(two.session->Begin().ok());
  {
    const auto waits = process.fabric.StartThread("waits", [&] {
      EXPECT_TRUE(one.session->Begin().ok());
      one.session->Abort();
    });
    clock.SleepUntil(clock.After(100'000));
    two.session->Abort();
  }
  EXPECT_EQ(tries, 2);
  // After some time it is tried again.
  process.tables.BeforeKeep(nullptr);
  clock.SleepUntil(clock.After(2'000'000));
  ASSERT_TRUE(two.session->Begin().ok());
  EXPECT_TRUE(one.session->Begin().ok());
}

/// After the process has joined anew, a client of the former member serves no session but its own: another
/// session that takes it over replaces it.
TEST_P(RsiPool, AFormerMembersClientIsReplacedByOthers) {
  Process process(cluster_, 1);
  const MemberId former = process.tables.member();
  Sharer two(process, Options(1));
  {
    Sharer one(process, Options(1));
    ASSERT_TRUE(one.Put(one.accounts, 1, 1).ok());
    cluster_.SetDead(former);
    ASSERT_TRUE(process.tables.KeepMembership().ok());
  }
  ASSERT_NE(process.tables.member(), former);
  ASSERT_TRUE(two.session->Begin().ok());
  ASSERT_TRUE(two.Insert(2, 2).ok());
  RecordCluster::Member tables(cluster_, cluster_.client(), 99);
  ASSERT_TRUE(tables.Fence(former).ok());
  two.Commits();
}

/// Sessions of a process that want clients of different kinds are refused.
TEST_P(RsiPool, OptionsAreTheProcesss) {
  Process process(cluster_, 1);
  Sharer one(process, Options(2));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenRsiSession(process.tables, Options(3)).status()));
}

/// Sessions of a process whose clients are fewer, while clients of another process come and go: a lane of the
/// bit vector that becomes present holds back those that have not looked beyond it yet.
class SessionsThatChangeClients {
 public:
  SessionsThatChangeClients(TimestampKind timestamps, uint64_t seed)
      : cluster_({.kind = fabric::Kind::kSim,
                  .seed = seed,
                  .faults = {.delay_probability = 0.1, .delay_ns_max = 200'000, .wake_delay_ns_max = 5'000},
                  .memory_bytes = uint64_t{20} << 20,
                  .timestamps = timestamps}) {
    cluster_.AddTable("accounts", {.row_bytes = sizeof(Account)});
    cluster_.AddTable("others", {.first_server = 2, .row_bytes = sizeof(Account)});
  }
  void Run() {
    Process process(cluster_, 1), other(cluster_, 2);
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    const auto start = [&](Process& of, auto run) {
      threads.push_back(of.fabric.StartThread("session", [&of, run, key = threads.size()] { run(of, key); }));
    };
    for (int i = 0; i < 2; ++i) {
      start(process, [](Process& of, uint64_t key) { GoesForward(of, key, /*writes=*/true); });
      start(process, [](Process& of, uint64_t key) { GoesForward(of, key, /*writes=*/false); });
      start(other, ComeAndGo);
    }
  }

 private:
  static constexpr int64_t kRounds = 30;
  static RsiOptions Two() { return {.clients_max = 2}; }

  static void GoesForward(Process& process, uint64_t key, bool writes) {
    Sharer sharer(process, Two());
    uint64_t last = 0;
    for (int64_t round = 1; round <= kRounds; ++round) {
      const TableHandle table = round % 2 == 0 ? sharer.others : sharer.accounts;
      if (writes) {
        const absl::Status put = sharer.Put(table, key, round);
        ASSERT_TRUE(put.ok()) << put;
        ASSERT_GE(sharer.session->snapshot(), last) << "round " << round;
        last = sharer.session->snapshot();
      }
      const auto seen = sharer.Get(table, key);
      ASSERT_TRUE(seen.ok()) << seen.status();
      ASSERT_EQ(*seen, writes ? std::optional(round) : std::nullopt);
      ASSERT_GE(sharer.session->snapshot(), last) << "round " << round;
      last = sharer.session->snapshot();
    }
  }
  static void ComeAndGo(Process& process, uint64_t key) {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      Sharer sharer(process, Two());
      const absl::Status put = sharer.Put(sharer.accounts, 100 * key + round, round);
      ASSERT_TRUE(put.ok()) << put;
    }
  }

  RecordCluster cluster_;
};

class RsiPoolSim : public ::testing::TestWithParam<TimestampKind> {};
INSTANTIATE_TEST_SUITE_P(Timestamps, RsiPoolSim, kKinds, KindName);

/// A snapshot is no older than the session's last one, and holds the session's last commit, whatever the
/// client knew that the session has now.
TEST_P(RsiPoolSim, SessionsThatChangeClientsGoForward) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    SessionsThatChangeClients(GetParam(), seed).Run();
  }
}

}  // namespace
}  // namespace nam::txn
