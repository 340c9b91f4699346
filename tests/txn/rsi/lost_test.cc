#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/rsi/random_transactions.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "txn/check/history_checker.h"
#include "txn/rsi/session.h"

/// Sessions whose connection breaks while their process lives, so that no other process may clean up after
/// them.
namespace nam::txn {
namespace {

/// A process with a session, whose transactions are recorded.
struct RecordedClient {
  RecordedClient(RecordCluster& cluster, uint32_t id, SessionHistory& history)
      : under(cluster.OpenFabric("client")),
        fabric(*under, MortalFabric::kNever),
        tables(cluster, fabric, id),
        recorder(id, history) {}
  void Open() {
    auto opened = OpenRsiSession(tables, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    session = *std::move(opened);
    table = *session->OpenTable("rows");
  }

  /// Writes a new value to each of these rows, or inserts it. `before` gets the values that were read.
  absl::StatusOr<uint64_t> Write(const std::vector<uint64_t>& keys, std::vector<NamedRow>* before = nullptr) {
    if (absl::Status begun = session->Begin(); !begun.ok()) return begun;
    recorder.Begin(session->snapshot());
    absl::StatusOr<uint64_t> committed = Change(keys, before);
    if (!committed.ok()) recorder.End(Outcome::kAborted, 0);  // unless it was committing
    return committed;
  }
  absl::StatusOr<uint64_t> Change(const std::vector<uint64_t>& keys, std::vector<NamedRow>* before) {
    std::vector<NamedRow> rows(keys.size());
    std::vector<Lookup> lookups;
    for (size_t i = 0; i < keys.size(); ++i) {
      lookups.push_back(
          {table, std::as_bytes(std::span(&keys[i], 1)), std::as_writable_bytes(std::span(&rows[i], 1))});
    }
    if (absl::Status read = session->Read(lookups); !read.ok()) return read;
    if (before != nullptr) *before = rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      recorder.Read(RecordId(0, keys[i]), lookups[i].found ? rows[i].Read() : kNoValue);
      const bool found = lookups[i].found;
      const NamedRow row = NamedRow::Of(keys[i], recorder.NextValue());
      const auto bytes = std::as_bytes(std::span(&row, 1));
      if (absl::Status put = found ? session->Update(table, bytes) : session->Insert(table, bytes);
          !put.ok()) {
        return put;
      }
      recorder.Write(found ? OperationKind::kUpdate : OperationKind::kInsert, RecordId(0, keys[i]),
                     row.value);
    }
    recorder.Committing();
    const absl::StatusOr<uint64_t> committed = session->Commit();
    if (committed.ok()) recorder.RecordOutcome(Outcome::kCommitted, *committed);
    if (AbortReasonOf(committed.status()).has_value()) recorder.RecordOutcome(Outcome::kAborted, 0);
    return committed;
  }
  /// Tries again until it is committed, for at most this time.
  absl::Status WriteWithin(int64_t us, const std::vector<uint64_t>& keys,
                           std::vector<NamedRow>* before = nullptr) {
    const Deadline deadline = fabric.clock().After(us);
    while (true) {
      const absl::Status status = Write(keys, before).status();
      if (status.ok() || !AbortReasonOf(status).has_value() || fabric.clock().Passed(deadline)) return status;
    }
  }

  std::unique_ptr<fabric::Fabric> under;
  MortalFabric fabric;
  RecordCluster::Member tables;
  HistoryRecorder recorder;
  std::unique_ptr<Session> session;
  TableHandle table;
};

/// With timestamps of either kind, and different times that the client takes to notice a broken connection.
class RsiLost : public ::testing::TestWithParam<std::tuple<TimestampKind, int64_t>> {
 protected:
  static constexpr int64_t kSoonUs = 200'000;  // far below any lease
  static constexpr int64_t kLateUs = 1'000;

  /// The logs of more than two servers lie on the last.
  void Open(uint64_t seed, int servers = 2) {
    clients_.clear();
    histories_.clear();
    cluster_.reset();
    RecordCluster::Options options{
        .kind = fabric::Kind::kSim, .seed = seed, .timestamps = std::get<0>(GetParam())};
    options.memory_bytes = uint64_t{20} << 20;
    options.servers = servers;
    options.log_server = servers == 2 ? 1 : servers;
    // Requests in flight on a broken connection arrive after the next connections are made.
    options.faults.delay_probability = 0.3;
    options.faults.delay_ns_max = 400'000;
    cluster_ = std::make_unique<RecordCluster>(options);
    cluster_->AddTable("rows", {.row_bytes = sizeof(NamedRow)});
  }
  RecordedClient& Add() {
    histories_.push_back(SessionHistory::InMemory());
    clients_.push_back(std::make_unique<RecordedClient>(*cluster_, clients_.size() + 1, *histories_.back()));
    return *clients_.back();
  }
  void CheckHistory() {
    std::vector<const SessionHistory*> sessions;
    for (const auto& history : histories_) sessions.push_back(history.get());
    for (const CheckReport& report : {CheckTimestamps(sessions, {}), CheckDependencies(sessions, {})}) {
      EXPECT_TRUE(report.ok()) << report.ToString();
    }
  }
  /// No client has died: all slots, locks and segments have an owner, or were given back.
  void AuditTable(const std::vector<uint64_t>& keys) {
    for (const auto& client : clients_) client->session.reset();
    RecordCluster::Member tables(*cluster_, cluster_->client(), static_cast<uint32_t>(clients_.size() + 1));
    Auditor auditor(tables, std::get<0>(GetParam()));
    EXPECT_TRUE(auditor.LivingClients().empty()) << "a slot is held although no client lives";
    std::vector<std::vector<std::byte>> bytes;
    for (const uint64_t key : keys) {
      const auto of_key = std::as_bytes(std::span(&key, 1));
      bytes.emplace_back(of_key.begin(), of_key.end());
    }
    const TableAudit audit = auditor.Audit("rows", bytes);
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    EXPECT_EQ(audit.live, keys.size()) << audit.ToString();
  }

  std::unique_ptr<RecordCluster> cluster_;
  std::vector<std::unique_ptr<SessionHistory>> histories_;
  std::vector<std::unique_ptr<RecordedClient>> clients_;
};
INSTANTIATE_TEST_SUITE_P(
    Clients, RsiLost,
    ::testing::Combine(::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector),
                       ::testing::Values(0, 1'000)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) == TimestampKind::kLeased ? "leased" : "bitvector") +
             (std::get<1>(info.param) == 0 ? "_at_once" : "_late");
    });

/// The connection breaks after any number of work requests of a transaction, with or without the completions
/// of the last ones. The transaction has happened or it has not, as its client is told; others change the
/// same rows soon, and so does its session.
TEST_P(RsiLost, AfterEveryVerb) {
  for (const bool unheard : {false, true}) {
    int lost = 0, committed = 0;
    bool finished = false;
    for (uint64_t requests = 0; !finished; ++requests) {
      SCOPED_TRACE(absl::StrCat(requests, unheard ? ", unheard" : ""));
      ASSERT_NO_FATAL_FAILURE(Open(requests + 1));
      RecordedClient& first = Add();
      ASSERT_NO_FATAL_FAILURE(first.Open());
      ASSERT_TRUE(first.Write({1, 2}).ok());
      first.session.reset();
      RecordedClient& victim = Add();
      ASSERT_NO_FATAL_FAILURE(victim.Open());
      victim.fabric.SetBreaksUnheard(unheard);
      victim.fabric.BreakAfter(requests, MortalFabric::kNever, std::get<1>(GetParam()));
      std::vector<NamedRow> before;
      const absl::StatusOr<uint64_t> result = victim.Write({1, 2, 3}, &before);
      finished = victim.fabric.breaks() == 0;
      RecordedClient& other = Add();
      ASSERT_NO_FATAL_FAILURE(other.Open());
      std::vector<NamedRow> found;
      const absl::Status others = other.WriteWithin(kSoonUs, {1, 2, 3}, &found);
      ASSERT_TRUE(others.ok()) << others << " after " << result.status();
      ASSERT_EQ(found.size(), 3u);
      const bool happened = found[2].value != 0;
      EXPECT_EQ(result.ok(), happened) << result.status();
      if (!result.ok()) {
        EXPECT_EQ(AbortReasonOf(result.status()), AbortReason::kConnectionLost) << result.status();
      }
      lost += !result.ok();
      committed += result.ok() && !finished;
      const absl::Status again = victim.WriteWithin(kSoonUs, {3, 2, 1});
      EXPECT_TRUE(again.ok()) << again;
      CheckHistory();
      AuditTable({1, 2, 3});
      if (HasFailure()) return;
    }
    EXPECT_GT(lost, 10);
    EXPECT_GT(committed, 0);
  }
}

/// The next connections break, too, again and again, while the client cleans up after the first.
TEST_P(RsiLost, AgainAndAgain) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(Open(seed));
    std::mt19937_64 random(seed);
    RecordedClient& victim = Add();
    ASSERT_NO_FATAL_FAILURE(victim.Open());
    ASSERT_TRUE(victim.Write({1, 2}).ok());
    victim.fabric.SetBreaksUnheard(random() % 2 == 0);
    victim.fabric.BreakAfter(random() % 40, 1 + random() % 120, std::get<1>(GetParam()));
    for (int i = 0; i < 10; ++i) lost += !victim.Write({1, 2, 3}).ok();
    victim.fabric.BreakAfter(MortalFabric::kNever);
    // Any process that opens a session recovers those that could not be recovered.
    const absl::Status again = victim.WriteWithin(kSoonUs, {3, 2, 1});
    EXPECT_TRUE(again.ok()) << again;
    RecordedClient& other = Add();
    ASSERT_NO_FATAL_FAILURE(other.Open());
    const absl::Status others = other.WriteWithin(kSoonUs, {1, 2, 3});
    EXPECT_TRUE(others.ok()) << others;
    CheckHistory();
    AuditTable({1, 2, 3});
    if (HasFailure()) return;
  }
  EXPECT_GT(lost, 100);
}

/// A session that only reads holds its snapshot, and with it deleted rows, and its slot.
TEST_P(RsiLost, WhileItReads) {
  for (uint64_t requests = 0; requests < 12; ++requests) {
    SCOPED_TRACE(requests);
    ASSERT_NO_FATAL_FAILURE(Open(requests + 1));
    RecordedClient& reader = Add();
    ASSERT_NO_FATAL_FAILURE(reader.Open());
    ASSERT_TRUE(reader.Write({1}).ok());
    reader.fabric.BreakAfter(requests, MortalFabric::kNever, std::get<1>(GetParam()));
    for (int i = 0; i < 3; ++i) {
      if (!reader.session->Begin().ok()) continue;
      NamedRow row;
      const uint64_t key = 1;
      Lookup lookup{reader.table, std::as_bytes(std::span(&key, 1)),
                    std::as_writable_bytes(std::span(&row, 1))};
      if (reader.session->Read({&lookup, 1}).ok()) reader.session->Abort();
    }
    EXPECT_EQ(reader.fabric.breaks(), 1);
    EXPECT_TRUE(reader.Write({1}).ok());
    AuditTable({1});
  }
}

/// One session of a process joins the cluster again. Another still belongs to the former member, and a fence
/// of that member ends it.
TEST_P(RsiLost, AFenceOfAFormerMemberEndsItsSessions) {
  for (const bool fenced : {false, true}) {
    SCOPED_TRACE(fenced);
    ASSERT_NO_FATAL_FAILURE(Open(1));
    RecordedClient& process = Add();
    ASSERT_NO_FATAL_FAILURE(process.Open());
    ASSERT_TRUE(process.Write({1}).ok());
    const std::unique_ptr<Session> second = *OpenRsiSession(process.tables, {});
    const TableHandle rows = *second->OpenTable("rows");
    const MemberId former = process.tables.member();
    cluster_->SetDead(former);
    process.fabric.BreakAfter(0);
    ASSERT_FALSE(process.Write({1}).ok());
    ASSERT_NE(process.tables.member(), former);
    ASSERT_TRUE(second->Begin().ok());
    const NamedRow row = NamedRow::Of(100, 1);
    ASSERT_TRUE(second->Insert(rows, std::as_bytes(std::span(&row, 1))).ok());
    RecordCluster::Member tables(*cluster_, cluster_->client(), 99);
    if (fenced) {
      ASSERT_TRUE(tables.Fence(former).ok());
    }
    const absl::Status status = second->Commit().status();
    if (!fenced) {
      EXPECT_TRUE(status.ok()) << status << ": no client fences or recovers it";
      continue;
    }
    EXPECT_EQ(AbortReasonOf(status), AbortReason::kConnectionLost) << status;
    EXPECT_TRUE(second->Begin().ok());
    EXPECT_EQ(Auditor(tables, std::get<0>(GetParam())).ClientOf(former), 0u) << "a session goes on as it";
  }
}

/// A process joins again while it opens a session, whose connections belong to the former member by then.
TEST_P(RsiLost, ASessionsSlotHasTheMemberThatItsConnectionsHave) {
  ASSERT_NO_FATAL_FAILURE(Open(1));
  RecordedClient& process = Add();
  const MemberId former = process.tables.member();
  process.fabric.OnConnected([&] {
    cluster_->SetDead(former);
    ASSERT_TRUE(process.tables.KeepMembership().ok());
  });
  ASSERT_NO_FATAL_FAILURE(process.Open());
  ASSERT_NE(process.tables.member(), former);
  RecordCluster::Member tables(*cluster_, cluster_->client(), 99);
  EXPECT_EQ(Auditor(tables, std::get<0>(GetParam())).ClientOf(process.tables.member()), 0u);
}

/// Two clients that were to recover a session have failed when its timestamp was already completed, with all
/// its rows flipped. Its slot still tells how it ended.
TEST_P(RsiLost, WhatIsRecoveredAlreadyIsKnown) {
  int unknown = 0;
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    ASSERT_NO_FATAL_FAILURE(Open(requests + 1));
    RecordedClient& victim = Add();
    ASSERT_NO_FATAL_FAILURE(victim.Open());
    ASSERT_TRUE(victim.Write({1, 2}).ok());
    victim.tables.BeforeAll([asked = 0]() mutable {
      ++asked;  // for the log's tables, and for those with chunks
      return asked == 2 || asked == 4 ? absl::UnavailableError("no catalog") : absl::OkStatus();
    });
    victim.fabric.BreakAfter(requests, MortalFabric::kNever, std::get<1>(GetParam()));
    const absl::Status result = victim.Write({1, 2, 3}).status();
    const bool finished = victim.fabric.breaks() == 0;
    RecordedClient& other = Add();
    ASSERT_NO_FATAL_FAILURE(other.Open());
    std::vector<NamedRow> found;
    ASSERT_TRUE(other.WriteWithin(kSoonUs, {1, 2, 3}, &found).ok());
    const bool happened = found[2].value != 0;
    if (result.ok() || AbortReasonOf(result).has_value()) {
      EXPECT_EQ(result.ok(), happened) << result;
    }
    unknown += absl::IsUnavailable(result);
    CheckHistory();
    if (HasFailure()) return;
    if (finished) break;
  }
  EXPECT_EQ(unknown, 0);
}

/// A connection breaks, perhaps with the flips of a commit in flight, as the memory server with the client's
/// log is buried. The client's locks are found without the log.
TEST_P(RsiLost, TogetherWithItsLog) {
  bool finished = false;
  for (uint64_t requests = 0; !finished; ++requests) {
    SCOPED_TRACE(requests);
    ASSERT_NO_FATAL_FAILURE(Open(requests + 1, /*servers=*/3));
    RecordedClient& victim = Add();
    ASSERT_NO_FATAL_FAILURE(victim.Open());
    ASSERT_TRUE(victim.Write({1, 2}).ok());
    victim.fabric.PauseAfter(requests, [&] {
      cluster_->KillServer(3, /*buried=*/true);
      victim.fabric.BreakAfter(0, MortalFabric::kNever, std::get<1>(GetParam()));
    });
    const absl::StatusOr<uint64_t> result = victim.Write({1, 2, 3});
    finished = !victim.fabric.paused();
    if (finished) victim.fabric.PauseAfter(MortalFabric::kNever, [] {});
    // Runs before another client helps.
    AuditTable(result.ok() ? std::vector<uint64_t>{1, 2, 3} : std::vector<uint64_t>{1, 2});
    RecordedClient& other = Add();
    ASSERT_NO_FATAL_FAILURE(other.Open());
    std::vector<NamedRow> found;
    const absl::Status others = other.WriteWithin(kSoonUs, {1, 2, 3}, &found);
    ASSERT_TRUE(others.ok()) << others << " after " << result.status();
    EXPECT_EQ(result.ok(), found[2].value != 0) << result.status();
    CheckHistory();
    if (HasFailure()) return;
  }
}

/// A process stalls until its client is recovered and another client has its slot; then its connection
/// breaks. The slot's word belongs to the other client, and does not tell of its own transaction.
TEST_P(RsiLost, AnothersSlotTellsNothing) {
  int unknown = 0, foreign = 0;
  bool finished = false;
  for (uint64_t requests = 6; !finished; ++requests) {
    SCOPED_TRACE(requests);
    ASSERT_NO_FATAL_FAILURE(Open(requests + 1));
    RecordedClient& victim = Add();
    ASSERT_NO_FATAL_FAILURE(victim.Open());
    ASSERT_TRUE(victim.Write({1, 2}).ok());
    RecordedClient& spare = Add();
    ASSERT_NO_FATAL_FAILURE(spare.Open());
    RecordCluster::Member tables(*cluster_, cluster_->client(), 99);
    std::optional<Auditor> auditor;
    victim.fabric.PauseAfter(requests, [&] {
      auditor.emplace(tables, std::get<0>(GetParam()));
      const MemberId former = victim.tables.member();
      const uint32_t client = auditor->ClientOf(former);
      cluster_->SetDead(former);
      ASSERT_TRUE(auditor->Recover(client));
      auditor->TakeFreeSlots();
      RecordedClient& next = Add();
      ASSERT_NO_FATAL_FAILURE(next.Open());
      ASSERT_TRUE(next.Write({3}).ok());
      foreign += auditor->ClientOf(next.tables.member()) == client;
      spare.session.reset();  // a slot for the heir
      victim.fabric.BreakAfter(0, MortalFabric::kNever, std::get<1>(GetParam()));
    });
    const absl::Status result = victim.Write({1, 2}).status();
    finished = !victim.fabric.paused();
    if (finished) victim.fabric.PauseAfter(MortalFabric::kNever, [] {});
    unknown += absl::IsUnavailable(result);
    CheckHistory();
    if (HasFailure()) return;
  }
  EXPECT_GT(foreign, 5);
  EXPECT_GT(unknown, 0);
}

/// A commit is decided as the connection breaks, and its client does not learn of it. While the heir looks at
/// the slot, another process, which believes that the client is gone, recovers it, and a third one takes the
/// slot for a transaction that is taken back.
TEST_P(RsiLost, AnothersSlotTellsNothingInBetween) {
  int recovered = 0;
  const auto committed = [&](uint64_t requests, uint64_t of_heir, bool* paused) {
    EXPECT_NO_FATAL_FAILURE(Open(1));
    RecordedClient& victim = Add();
    victim.Open();
    EXPECT_TRUE(victim.Write({1, 2}).ok());
    RecordedClient &spare = Add(), &another = Add();  // their slots are for the heir and others
    spare.Open();
    another.Open();
    RecordCluster::Member tables(*cluster_, cluster_->client(), 99);
    Auditor auditor(tables, std::get<0>(GetParam()));
    const uint32_t client = auditor.ClientOf(victim.tables.member());
    cluster_->SetDead(victim.tables.member());
    victim.fabric.SetBreaksUnheard(true);
    victim.fabric.BreakAfter(requests, MortalFabric::kNever, kLateUs);  // the decision has arrived
    victim.fabric.PauseAfter(requests + of_heir, [&] {
      if (!auditor.Recover(client)) return;  // the heir does
      auditor.TakeFreeSlots();
      RecordedClient &next = Add(), &other = Add();
      next.Open();
      spare.session.reset();
      another.session.reset();
      other.Open();
      const uint64_t key = 1;
      NamedRow row;
      Lookup lookup{next.table, std::as_bytes(std::span(&key, 1)),
                    std::as_writable_bytes(std::span(&row, 1))};
      EXPECT_TRUE(next.session->Begin().ok() && next.session->Read({&lookup, 1}).ok());
      EXPECT_TRUE(next.session->Update(next.table, std::as_bytes(std::span(&row, 1))).ok());
      EXPECT_TRUE(other.Write({1}).ok());
      EXPECT_FALSE(next.session->Commit().ok());
      other.session.reset();
      ++recovered;
    });
    const absl::Status result = victim.Write({1, 2}).status();
    *paused = victim.fabric.paused();
    if (!*paused) victim.fabric.PauseAfter(MortalFabric::kNever, [] {});
    RecordedClient& reader = Add();
    reader.Open();
    EXPECT_TRUE(reader.WriteWithin(kSoonUs, {1, 2}).ok());
    CheckHistory();
    return result.ok();
  };
  bool paused = false;
  uint64_t decided = 0;
  while (!committed(decided, MortalFabric::kNever / 2, &paused) && !HasFailure()) ++decided;
  for (uint64_t of_heir = 0; of_heir == 0 || paused; ++of_heir) {
    SCOPED_TRACE(of_heir);
    committed(decided, of_heir, &paused);
    if (HasFailure()) return;
  }
  EXPECT_GT(recovered, 5);
}

/// A lost client that could not be recovered is tried again although the process opens no further session,
/// also after one attempt has failed. By then the process may have to join the cluster again.
TEST_P(RsiLost, WhatIsPutBackIsTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(Open(1));
  RecordedClient& process = Add();
  ASSERT_NO_FATAL_FAILURE(process.Open());
  ASSERT_TRUE(process.Write({1}).ok());
  process.fabric.SetDisconnects(false);
  process.fabric.BreakAfter(0);
  EXPECT_FALSE(process.Write({1}).ok());
  EXPECT_NE(process.tables.TakeAttempt(), nullptr);
  ASSERT_TRUE(OpenRsiSession(process.tables, {}).ok());
  const std::function<void()> attempt = process.tables.TakeAttempt();
  ASSERT_NE(attempt, nullptr);
  const MemberId former = process.tables.member();
  cluster_->SetDead(former);
  process.fabric.SetDisconnects(true);
  attempt();
  EXPECT_TRUE(process.tables.lost_clients().empty());
  EXPECT_NE(process.tables.member(), former);
}

/// A table went with its memory server. A session that is replaced goes on with its other tables.
TEST_P(RsiLost, ATableThatIsGoneTakesNoOtherWithIt) {
  ASSERT_NO_FATAL_FAILURE(Open(1));
  cluster_->AddTable("others", {.first_server = 2, .row_bytes = sizeof(NamedRow)});
  RecordedClient& client = Add();
  ASSERT_NO_FATAL_FAILURE(client.Open());
  const TableHandle others = *client.session->OpenTable("others");
  ASSERT_TRUE(client.Write({1}).ok());
  cluster_->KillServer(2, /*buried=*/true);
  client.fabric.BreakAfter(0);
  ASSERT_FALSE(client.Write({1}).ok());
  const absl::Status begun = client.session->Begin();
  ASSERT_TRUE(begun.ok()) << begun;
  const uint64_t key = 1;
  NamedRow row;
  Lookup lookup{client.table, std::as_bytes(std::span(&key, 1)), std::as_writable_bytes(std::span(&row, 1))};
  EXPECT_TRUE(client.session->Read({&lookup, 1}).ok());
  EXPECT_TRUE(lookup.found);
  lookup.table = others;
  const absl::Status refused = client.session->Read({&lookup, 1});
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(refused.message().find("table others"), std::string::npos) << refused;
  EXPECT_TRUE(client.Write({1}).ok());
}

}  // namespace
}  // namespace nam::txn
