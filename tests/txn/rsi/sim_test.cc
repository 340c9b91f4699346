#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/base/seeds.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/rsi/random_transactions.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "txn/check/history_checker.h"
#include "txn/rsi/session.h"

namespace nam::txn {
namespace {

/// Clients in a simulated world, where operations are late, torn, and overtake each other, connections break,
/// and clients die after any verb. There is one scenario per seed; NAM_SEED=N runs one again, NAM_SEEDS=N
/// runs that many.
class TransactionScenario {
 public:
  enum class Fetches { kAsDrawn, kOvertaking };  // the latter: all READs, and no other fault of operations
  enum class Sessions { kAlone, kSharing };      // the latter: several of each process, with fewer clients
  TransactionScenario(TimestampKind timestamps, uint64_t seed, const RsiOptions& options = {},
                      uint64_t keys = 8, Fetches fetches = Fetches::kAsDrawn,
                      Sessions sessions = Sessions::kAlone)
      : random_(seed),
        sessions_(sessions),
        options_(options),
        transactions_({.keys = keys}),
        timestamps_(timestamps),
        cluster_(ClusterOptions(timestamps, seed, keys, fetches)) {
    const uint32_t versions[] = {1, 1, 2, 4};
    cluster_.AddTable(
        "rows", {.row_bytes = sizeof(NamedRow), .versions = versions[random_() % 4], .small = seed % 2 == 0});
    if (keys < 8) return;  // a broken rule is found soonest by updates of few rows, in long sessions
    const int deletes[] = {10, 10, 30, 50};
    // Many rows, of which many are deleted, or a few that are always contended.
    if (keys == 8 && random_() % 3 == 0) keys = 200;
    transactions_ = {.keys = keys, .deletes_percent = deletes[random_() % 4]};
  }

  void Run() {
    const int clients = 2 + static_cast<int>(random_() % 4);
    {
      std::vector<std::unique_ptr<fabric::Thread>> threads;
      for (int i = 0; i < clients; ++i) {
        threads.push_back(
            cluster_.client().StartThread("client", [this, seed = random_()] { RunClient(seed); }));
      }
    }
    Mend();
    AuditTable();
  }
  CheckReport Check(bool dependencies) const {
    std::vector<const SessionHistory*> sessions;
    for (const auto& history : histories_) sessions.push_back(history.get());
    CheckOptions options;
    options.read_own_commits = options_.sees_own_commits;
    return dependencies ? CheckDependencies(sessions, options) : CheckTimestamps(sessions, options);
  }
  int deaths() const { return deaths_; }
  int breaks() const { return breaks_; }
  size_t committed_at_end() const { return rows_at_end_; }
  const TableAudit& audit() const { return audit_; }

 private:
  static RecordCluster::Options ClusterOptions(TimestampKind timestamps, uint64_t seed, uint64_t keys,
                                               Fetches fetches) {
    std::mt19937_64 random(seed ^ 0x5eed);
    RecordCluster::Options options{.kind = fabric::Kind::kSim, .seed = seed, .timestamps = timestamps};
    options.memory_bytes = uint64_t{20} << 20;
    options.faults.delay_probability = random() % 3 == 0 ? 0.0 : 0.1;
    options.faults.delay_ns_max = 20'000;
    // Keys are few, so that a broken rule is found soon.
    options.faults.torn_operation = random() % 3 == 0 ? 0.0 : keys < 8 ? 0.9 : 0.3;
    options.faults.wake_delay_ns_max = random() % 2 == 0 ? 0 : 5'000;
    options.faults.overtaking_fetch = random() % 2 == 0 ? 0.0 : 0.5;
    if (fetches == Fetches::kOvertaking) {
      options.faults = {.overtaking_fetch = 1,
                        .overtaking_ns_max = 1 + static_cast<int64_t>(random() % 10'000)};
    }
    return options;
  }

  // Clients run one after the other: each that dies is followed by the next.
  void RunClient(uint64_t seed) {
    std::mt19937_64 random(seed);
    const bool churn = transactions_.keys >= 8;
    int left = churn ? 30 : 60;
    while (left > 0) {
      const uint32_t member = ++members_;
      const std::unique_ptr<fabric::Fabric> fabric = cluster_.OpenFabric("client");
      histories_.push_back(SessionHistory::InMemory());
      HistoryRecorder recorder(static_cast<uint32_t>(histories_.size()), *histories_.back());
      MortalFabric mortal(*fabric, random() % 2 == 0 ? MortalFabric::kNever : random() % 2'000);
      if (random() % 3 == 0) {
        mortal.BreakAfter(random() % 1'000, 1 + random() % 1'000,
                          static_cast<int64_t>(random() % 2 * random() % 200));
        mortal.SetBreaksUnheard(random() % 2 == 0);
      }
      const int of_session = std::min(left, churn ? 1 + static_cast<int>(random() % 15) : left);
      RecordCluster::Member tables(cluster_, mortal, member);
      if (sessions_ == Sessions::kSharing) {
        RunSharers(tables, of_session, random);
        left -= of_session;
      } else {
        left -= RunSession(tables, of_session, recorder, random);
      }
      breaks_ += mortal.breaks();
      // The end of its process leaves to others the state that it could not clean up itself.
      if (mortal.dead() || !tables.lost_clients().TakeAll().empty()) {
        ++deaths_;
        cluster_.world().KillProcess(cluster_.world().ProcessOf(*fabric));
        cluster_.SetDead(MemberId(member));
      }
    }
  }

  // How many transactions it has begun.
  int RunSession(Tables& tables, int transactions, HistoryRecorder& recorder, std::mt19937_64& random) {
    auto session = OpenRsiSession(tables, options_);
    const auto table = session.ok() ? (*session)->OpenTable("rows") : session.status();
    int begun = 0;
    while (table.ok() && begun < transactions &&
           (++begun, transactions_.Run(**session, *table, recorder, random))) {
    }
    return begun;  // the end of the session it may not survive
  }
  void RunSharers(Tables& tables, int transactions, std::mt19937_64& random) {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (uint32_t i = 0; i <= options_.clients_max + random() % 3; ++i) {
      threads.push_back(cluster_.client().StartThread("sharer", [&, seed = random()] {
        std::mt19937_64 own_random(seed);
        histories_.push_back(SessionHistory::InMemory());
        HistoryRecorder recorder(static_cast<uint32_t>(histories_.size()), *histories_.back());
        RunSession(tables, transactions, recorder, own_random);
      }));
    }
  }

  // Everything can be written again, by a client that waits for all that the dead have left.
  void Mend() {
    histories_.push_back(SessionHistory::InMemory());
    HistoryRecorder recorder(static_cast<uint32_t>(histories_.size()), *histories_.back());
    RecordCluster::Member tables(cluster_, cluster_.client(), ++members_);
    auto session = OpenRsiSession(tables, options_);
    ASSERT_TRUE(session.ok()) << session.status();
    const TableHandle table = *(*session)->OpenTable("rows");
    Clock& clock = cluster_.client().clock();
    const Deadline deadline = clock.After(10'000'000);
    for (uint64_t key = 0; key < transactions_.keys; ++key) {
      while (true) {
        ASSERT_FALSE(clock.Passed(deadline)) << "row " << key << " stays locked, or the snapshot behind";
        const absl::StatusOr<bool> written = WriteRow(**session, table, key, recorder);
        ASSERT_TRUE(written.ok()) << written.status();
        if (*written) break;
        clock.SleepUntil(clock.After(100));
      }
      ++rows_at_end_;
    }
  }
  // No row is locked, and every block is a row, free, or will be searched for.
  void AuditTable() {
    RecordCluster::Member tables(cluster_, cluster_.client(), ++members_);
    Auditor auditor(tables, timestamps_);
    auditor.RecoverAll();
    std::vector<std::vector<std::byte>> keys;
    for (uint64_t key = 0; key < transactions_.keys; ++key) {
      const auto bytes = std::as_bytes(std::span(&key, 1));
      keys.emplace_back(bytes.begin(), bytes.end());
    }
    EXPECT_TRUE(auditor.LivingClients().empty()) << "a client that is gone was not recovered";
    audit_ = auditor.Audit("rows", keys);
    EXPECT_TRUE(audit_.faults.empty()) << audit_.ToString();
    EXPECT_EQ(audit_.live - audit_.deleted, transactions_.keys);
  }
  static absl::StatusOr<bool> WriteRow(Session& session, TableHandle table, uint64_t key,
                                       HistoryRecorder& recorder) {
    const auto again = [](const absl::Status& status) -> absl::StatusOr<bool> {
      if (AbortReasonOf(status).has_value()) return false;
      return status;
    };
    if (const absl::Status status = session.Begin(); !status.ok()) return again(status);
    recorder.Begin(session.snapshot());
    NamedRow row;
    Lookup lookup{table, std::as_bytes(std::span(&key, 1)), std::as_writable_bytes(std::span(&row, 1))};
    if (const absl::Status status = session.Read({&lookup, 1}); !status.ok()) return again(status);
    recorder.Read(RecordId(0, key), lookup.found ? row.Read() : kNoValue);
    row = NamedRow::Of(key, recorder.NextValue());
    const absl::Status status = lookup.found ? session.Update(table, std::as_bytes(std::span(&row, 1)))
                                             : session.Insert(table, std::as_bytes(std::span(&row, 1)));
    if (!status.ok()) return again(status);
    recorder.Write(lookup.found ? OperationKind::kUpdate : OperationKind::kInsert, RecordId(0, key),
                   row.value);
    recorder.Committing();
    const absl::StatusOr<uint64_t> committed = session.Commit();
    recorder.RecordOutcome(committed.ok() ? Outcome::kCommitted : Outcome::kAborted,
                           committed.ok() ? *committed : 0);
    if (!committed.ok()) return again(committed.status());
    return true;
  }

  std::mt19937_64 random_;
  const Sessions sessions_;
  const RsiOptions options_;
  RandomTransactions transactions_;
  const TimestampKind timestamps_;
  // One simulated thread runs at a time: the following variables need no lock.
  std::vector<std::unique_ptr<SessionHistory>> histories_;
  uint32_t members_ = 0;
  int deaths_ = 0;
  int breaks_ = 0;
  size_t rows_at_end_ = 0;
  TableAudit audit_;
  RecordCluster cluster_;
};

class RsiSim : public ::testing::TestWithParam<TimestampKind> {};
INSTANTIATE_TEST_SUITE_P(Timestamps, RsiSim,
                         ::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector),
                         [](const auto& info) {
                           return info.param == TimestampKind::kLeased ? "leased" : "bitvector";
                         });

TEST_P(RsiSim, NoAnomalyWhateverDies) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 100);
  size_t transactions = 0, committed = 0, deleted = 0;
  int deaths = 0, breaks = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    TransactionScenario scenario(GetParam(), seed);
    scenario.Run();
    for (const bool dependencies : {false, true}) {
      const CheckReport report = scenario.Check(dependencies);
      ASSERT_TRUE(report.ok()) << report.ToString();
      if (dependencies) continue;
      transactions += report.transactions;
      committed += report.committed;
    }
    deaths += scenario.deaths();
    breaks += scenario.breaks();
    deleted += scenario.audit().deleted;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << count << " seeds: " << transactions << " transactions, " << committed << " committed, "
            << deaths << " clients died, " << breaks << " connections broke, " << deleted
            << " deleted rows were left\n";
  EXPECT_GT(committed, count * 20);
}

/// Sessions of a process take turns with fewer clients, of which some are lost, until the process dies.
TEST_P(RsiSim, NoAnomalyOfSessionsThatShareClients) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 60);
  size_t committed = 0;
  int breaks = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    const RsiOptions options{.clients_max = 1 + static_cast<uint32_t>(seed % 2)};
    TransactionScenario scenario(GetParam(), seed, options, /*keys=*/8,
                                 TransactionScenario::Fetches::kAsDrawn,
                                 TransactionScenario::Sessions::kSharing);
    scenario.Run();
    for (const bool dependencies : {false, true}) {
      const CheckReport report = scenario.Check(dependencies);
      ASSERT_TRUE(report.ok()) << report.ToString();
      if (!dependencies) committed += report.committed;
    }
    breaks += scenario.breaks();
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(committed, count * 20);
  EXPECT_TRUE(breaks > 0 || count <= 20);
}

/// Header, block, header, each by a READ of its own: whatever the order in which the words of the block come,
/// a version is whole or READ again. Without the headers' judgement the same worlds show torn rows.
TEST_P(RsiSim, FetchesThatOvertakeEachOtherBringNoTornVersion) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TransactionScenario scenario(GetParam(), seed, {}, /*keys=*/2, TransactionScenario::Fetches::kOvertaking);
    scenario.Run();
    for (const bool dependencies : {false, true}) {
      const CheckReport report = scenario.Check(dependencies);
      ASSERT_TRUE(report.ok()) << report.ToString();
    }
  }
  bool torn = false;
  for (uint64_t seed = 1; seed <= 400 && !torn; ++seed) {
    TransactionScenario scenario(GetParam(), seed, {.broken = {.torn_reads = true}}, /*keys=*/2,
                                 TransactionScenario::Fetches::kOvertaking);
    scenario.Run();
    torn = !scenario.Check(false).ok();
  }
  EXPECT_TRUE(torn) << "the worlds do not reorder what the protocol is for";
}

/// The checker notices when a rule of the protocol is broken.
class RsiBroken : public ::testing::Test {
 protected:
  static bool Found(const RsiOptions& options, TimestampKind timestamps = TimestampKind::kLeased) {
    for (uint64_t seed = 1; seed <= 1'000; ++seed) {
      TransactionScenario scenario(timestamps, seed, options, /*keys=*/2);
      scenario.Run();
      if (!scenario.Check(false).ok() && !scenario.Check(true).ok()) return true;
    }
    return false;
  }
};
TEST_F(RsiBroken, TornReads) {
  EXPECT_TRUE(Found({.broken = {.torn_reads = true}}));
}
TEST_F(RsiBroken, BlindLocks) {
  EXPECT_TRUE(Found({.broken = {.blind_locks = true}}));
}
TEST_F(RsiBroken, VisibleEarly) {
  EXPECT_TRUE(Found({.broken = {.visible_early = true}}));
  EXPECT_TRUE(Found({.broken = {.visible_early = true}}, TimestampKind::kBitVector));
}

}  // namespace
}  // namespace nam::txn
