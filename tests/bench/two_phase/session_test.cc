#include "bench/two_phase/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>

#include "tests/bench/two_phase/two_phase_cluster.h"

namespace nam::bench::two_phase {
namespace {

class TwoPhaseSessionTest : public ::testing::TestWithParam<Setting> {
 protected:
  /// Begins, and reads both.
  static void BeginWith(Teller& teller, uint64_t a, uint64_t b) {
    ASSERT_TRUE(teller.session->Begin().ok());
    ASSERT_TRUE((*teller.Read(a)).has_value());
    ASSERT_TRUE((*teller.Read(b)).has_value());
  }
};

TEST_P(TwoPhaseSessionTest, WhatIsCommittedIsSeen) {
  TwoPhaseCluster cluster(GetParam());
  Teller teller(cluster), other(cluster);
  EXPECT_EQ(teller.BalanceOf(7), std::nullopt);
  teller.Create(7, 100);
  EXPECT_EQ(other.BalanceOf(7), 100);
  ASSERT_TRUE(other.session->Begin().ok());
  ASSERT_TRUE(other.Read(7).ok());
  ASSERT_TRUE(other.Update(7, 50).ok());
  EXPECT_EQ((*other.Read(7))->balance, 50) << "its own write";
  EXPECT_EQ(teller.BalanceOf(7), 100) << "not committed yet";
  other.Commits();
  EXPECT_EQ(other.BalanceOf(7), 50);
  ASSERT_TRUE(teller.session->Begin().ok());
  EXPECT_EQ(*teller.session->Commit(), 0) << "nothing was written";
}

TEST_P(TwoPhaseSessionTest, SnapshotStaysUntilItIsTooOld) {
  TwoPhaseCluster cluster(GetParam());
  Teller reader(cluster), writer(cluster);
  writer.Create(1, 10);
  ASSERT_TRUE(reader.session->Begin().ok());
  writer.Set(1, 20);
  writer.Create(2, 5);
  EXPECT_EQ((*reader.Read(1))->balance, 10) << "two versions are kept";
  EXPECT_FALSE(reader.Read(2)->has_value());
  EXPECT_EQ(txn::AbortReasonOf(reader.Update(1, 0)), txn::AbortReason::kWriteWrite)
      << "known without a message";
  ASSERT_TRUE(reader.session->Begin().ok());
  writer.Set(1, 30);
  writer.Set(1, 40);
  EXPECT_EQ(txn::AbortReasonOf(reader.Read(1).status()), txn::AbortReason::kSnapshotTooOld);
  EXPECT_EQ(reader.BalanceOf(1), 40) << "and the session goes on";
}

TEST_P(TwoPhaseSessionTest, FirstCommitterWins) {
  TwoPhaseCluster cluster(GetParam());
  Teller a(cluster), b(cluster);
  for (uint64_t key = 0; key < 8; ++key) a.Create(key, 10);
  for (uint64_t other = 1; other < 8; ++other) {  // of the same participant, and of others
    BeginWith(a, 0, other);
    BeginWith(b, 0, other);
    ASSERT_TRUE(a.Update(0, 1).ok() && a.Update(other, 2).ok());
    ASSERT_TRUE(b.Update(other, 3).ok() && b.Update(0, 4).ok());
    a.Commits();
    EXPECT_EQ(txn::AbortReasonOf(b.session->Commit().status()), txn::AbortReason::kWriteWrite);
    EXPECT_EQ(b.BalanceOf(0), 1);
    EXPECT_EQ(b.BalanceOf(other), 2);
  }
  b.Set(7, 70);  // nothing was left locked
  BeginWith(a, 0, 1);
  BeginWith(b, 0, 1);
  ASSERT_TRUE(a.Update(0, 5).ok() && b.Update(1, 5).ok());
  a.Commits();
  b.Commits();  // write skew is allowed
}

TEST_P(TwoPhaseSessionTest, KeysAreUnique) {
  TwoPhaseCluster cluster(GetParam());
  Teller a(cluster), b(cluster);
  ASSERT_TRUE(a.session->Begin().ok() && b.session->Begin().ok());
  ASSERT_TRUE(a.Insert(1, 1).ok() && b.Insert(1, 2).ok() && b.Insert(2, 2).ok() && b.Insert(3, 2).ok());
  EXPECT_EQ(txn::AbortReasonOf(a.Insert(1, 3)), txn::AbortReason::kUniqueKey) << "its own";
  a.Create(1, 1);
  const absl::Status status = b.session->Commit().status();
  EXPECT_EQ(txn::AbortReasonOf(status), txn::AbortReason::kUniqueKey);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(a.BalanceOf(2), std::nullopt);
  EXPECT_EQ(a.BalanceOf(3), std::nullopt);
  a.Create(2, 1);
  EXPECT_EQ(a.BalanceOf(1), 1);
}

TEST_P(TwoPhaseSessionTest, DeletedAndInsertedAgain) {
  TwoPhaseCluster cluster(GetParam());
  Teller a(cluster), b(cluster);
  a.Create(1, 10);
  ASSERT_TRUE(b.session->Begin().ok());
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(a.Read(1).ok());
  ASSERT_TRUE(a.Delete(1).ok());
  EXPECT_FALSE(a.Read(1)->has_value());
  ASSERT_TRUE(a.Insert(1, 11).ok()) << "an update, then";
  ASSERT_TRUE(a.Delete(1).ok());
  ASSERT_TRUE(a.Insert(2, 1).ok());
  ASSERT_TRUE(a.Delete(2).ok()) << "as if it had never been";
  a.Commits();
  EXPECT_EQ((*b.Read(1))->balance, 10);
  b.session->Abort();
  EXPECT_EQ(b.BalanceOf(1), std::nullopt);
  EXPECT_EQ(b.BalanceOf(2), std::nullopt);
  b.Create(1, 12);
  EXPECT_EQ(a.BalanceOf(1), 12);
}

TEST_P(TwoPhaseSessionTest, ADeletionThatIsForgottenIsNotTakenForNothing) {
  TwoPhaseCluster cluster(GetParam(), {.deletions_kept = 0});
  Teller a(cluster), b(cluster), c(cluster);
  a.Create(1, 10);
  ASSERT_TRUE(b.session->Begin().ok() && c.session->Begin().ok());
  ASSERT_TRUE(a.session->Begin().ok() && a.Read(1).ok() && a.Delete(1).ok());
  a.Commits();
  EXPECT_EQ(txn::AbortReasonOf(b.Read(1).status()), txn::AbortReason::kSnapshotTooOld);
  ASSERT_TRUE(c.Insert(1, 3).ok());
  EXPECT_EQ(txn::AbortReasonOf(c.session->Commit().status()), txn::AbortReason::kSnapshotTooOld);
  EXPECT_EQ(b.BalanceOf(1), std::nullopt);
  b.Create(1, 5);
  EXPECT_EQ(a.BalanceOf(1), 5);
}

TEST_P(TwoPhaseSessionTest, TheLastAnswersSnapshotIsUsedOnce) {
  TwoPhaseCluster cluster(GetParam());
  Teller a(cluster, {.snapshots = SessionOptions::Snapshots::kLastAnswer}), b(cluster);
  a.Create(1, 10);
  const uint64_t frames = cluster.cluster().frames_received();
  ASSERT_TRUE(a.session->Begin().ok());
  EXPECT_EQ(cluster.cluster().frames_received(), frames) << "Begin cost no message";
  EXPECT_EQ((*a.Read(1))->balance, 10) << "its own commit";
  b.Set(1, 20);
  EXPECT_EQ((*a.Read(1))->balance, 10);
  EXPECT_EQ(txn::AbortReasonOf(a.Update(1, 11)), txn::AbortReason::kWriteWrite);
  EXPECT_EQ(a.BalanceOf(1), 20) << "and not with the same snapshot again";
  b.Set(1, 30);
  EXPECT_EQ(a.BalanceOf(1), 30);
}

TEST_P(TwoPhaseSessionTest, MisuseIsRefused) {
  TwoPhaseCluster cluster(GetParam());
  Teller a(cluster);
  EXPECT_EQ(a.session->OpenTable("nowhere").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(a.Insert(1, 1).code(), absl::StatusCode::kFailedPrecondition) << "before Begin";
  a.Create(1, 10);
  ASSERT_TRUE(a.session->Begin().ok());
  EXPECT_EQ(a.session->Begin().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(a.session->Insert(a.accounts, txn::Bytes(uint64_t{1})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(a.Update(1, 1).code(), absl::StatusCode::kNotFound) << "not read";
  EXPECT_EQ(a.session->Commit().status().code(), absl::StatusCode::kFailedPrecondition) << "it is over";
}

void WriteAndReadLongBatches(const Setting& setting, bool coalesce) {
  constexpr uint32_t kRowBytes = 1024;
  constexpr uint64_t kRows = 1500;
  TwoPhaseCluster cluster(setting,
                          {.transport = {.coalesce = coalesce},
                           .tables = {{"accounts", sizeof(txn::Account), 8, 1}, {"long", kRowBytes, 8, 1}}});
  Teller teller(cluster);
  const txn::TableHandle table = *teller.session->OpenTable("long");
  ASSERT_TRUE(teller.session->Begin().ok());
  for (uint64_t key = 0; key < kRows; ++key) {
    std::vector<std::byte> row(kRowBytes, static_cast<std::byte>(key));
    std::memcpy(row.data(), &key, sizeof(key));
    ASSERT_TRUE(teller.session->Insert(table, row).ok());
  }
  teller.Commits();
  ASSERT_TRUE(teller.session->Begin().ok());
  std::vector<uint64_t> keys(kRows + 1);
  std::vector<std::byte> rows(keys.size() * kRowBytes);
  std::vector<txn::Lookup> lookups;
  for (uint64_t key = 0; key <= kRows; ++key) {
    keys[key] = key;
    lookups.push_back({table, txn::Bytes(keys[key]), std::span(rows).subspan(key * kRowBytes, kRowBytes)});
  }
  ASSERT_TRUE(teller.session->Read(lookups).ok());
  for (uint64_t key = 0; key < kRows; ++key) {
    ASSERT_TRUE(lookups[key].found) << key;
    ASSERT_EQ(std::memcmp(lookups[key].row.data(), &key, sizeof(key)), 0) << key;
    ASSERT_EQ(lookups[key].row.back(), static_cast<std::byte>(key));
  }
  EXPECT_FALSE(lookups[kRows].found);
}

TEST_P(TwoPhaseSessionTest, BatchesLongerThanAnyBuffer) {
  WriteAndReadLongBatches(GetParam(), true);
  WriteAndReadLongBatches(GetParam(), false);
}

/// Clients move money between few accounts, and count their commits in one of their own: the total stays, at
/// every snapshot, and no update is lost.
void TransferConcurrently(TwoPhaseCluster& cluster, SessionOptions options, int transfers) {
  constexpr uint64_t kAccounts = 6;
  constexpr int kClients = 4;
  {
    Teller bank(cluster);
    for (uint64_t key = 0; key < kAccounts; ++key) bank.Create(key, 100);
    for (uint64_t key = 0; key < kClients; ++key) bank.Create(100 + key, 0);
    bank.Create(99, 0);
  }
  std::atomic<int64_t> committed_in_all = 0;
  const auto work = [&](uint32_t client) {
    SessionOptions mine = options;
    mine.coordinator = client;
    Teller teller(cluster, mine);
    std::mt19937_64 random(client);
    int64_t committed = 0;
    for (int i = 0; i < transfers; ++i) {
      ASSERT_TRUE(teller.session->Begin().ok());
      txn::Account rows[kAccounts + 2];
      uint64_t keys[kAccounts + 2];
      std::vector<txn::Lookup> lookups;
      for (uint64_t key = 0; key < kAccounts + 2; ++key) {
        keys[key] = key < kAccounts ? key : key == kAccounts ? 99 : 100 + client;
        lookups.push_back(
            {teller.accounts, txn::Bytes(keys[key]), std::as_writable_bytes(std::span(&rows[key], 1))});
      }
      absl::Status status = teller.session->Read(lookups);
      if (status.ok()) {
        int64_t total = 0;
        for (uint64_t key = 0; key < kAccounts; ++key) total += rows[key].balance;
        ASSERT_EQ(total, 100 * static_cast<int64_t>(kAccounts)) << "at one snapshot";
        ASSERT_EQ(rows[kAccounts + 1].balance, committed) << "its own commits";
        const uint64_t from = random() % kAccounts, to = (from + 1 + random() % (kAccounts - 1)) % kAccounts;
        status = teller.Update(from, rows[from].balance - 1);
        if (status.ok()) status = teller.Update(to, rows[to].balance + 1);
        if (status.ok()) status = teller.Update(100 + client, committed + 1);
        if (status.ok() && i % 4 == 0) status = teller.Update(99, rows[kAccounts].balance + 1);
        if (status.ok()) status = teller.session->Commit().status();
      }
      if (status.ok()) {
        ++committed;
        if (i % 4 == 0) ++committed_in_all;
      } else {
        ASSERT_TRUE(txn::AbortReasonOf(status).has_value()) << status;
      }
    }
    EXPECT_GT(committed, 0);
  };
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (uint32_t client = 0; client < kClients; ++client) {
    threads.push_back(cluster.client().StartThread("teller", [&work, client] { work(client); }));
  }
  threads.clear();
  Teller auditor(cluster);
  EXPECT_EQ(auditor.BalanceOf(99), committed_in_all);
}

TEST_P(TwoPhaseSessionTest, ConcurrentTransfersWithFreshSnapshots) {
  TwoPhaseCluster cluster(GetParam());
  TransferConcurrently(cluster, {}, 400);
}

TEST_P(TwoPhaseSessionTest, ConcurrentTransfersWithTheLastAnswersSnapshot) {
  TwoPhaseCluster cluster(GetParam());
  TransferConcurrently(cluster, {.snapshots = SessionOptions::Snapshots::kLastAnswer}, 400);
}

TEST_P(TwoPhaseSessionTest, ConcurrentTransfersOverTwoCoordinators) {
  TwoPhaseCluster cluster(GetParam(), {}, 2);
  TransferConcurrently(cluster, {.snapshots = SessionOptions::Snapshots::kLastAnswer}, 200);
}

INSTANTIATE_TEST_SUITE_P(Settings, TwoPhaseSessionTest,
                         ::testing::Values(Setting{TransportOptions::Kind::kSocket, fabric::Kind::kShm},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kShm},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kTcp},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kSim}),
                         NameOf);

}  // namespace
}  // namespace nam::bench::two_phase
