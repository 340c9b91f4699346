#include "txn/rsi/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>

#include "tests/txn/record_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"

namespace nam::txn {
namespace {

class RsiSessionTest : public ::testing::TestWithParam<std::tuple<fabric::Kind, TimestampKind>> {
 protected:
  RsiSessionTest() : cluster_({.kind = std::get<0>(GetParam()), .timestamps = std::get<1>(GetParam())}) {
    cluster_.AddTable("accounts", {});
  }
  RecordCluster cluster_;
};

TEST_P(RsiSessionTest, WhatIsCommittedIsSeen) {
  Teller teller(cluster_, 1);
  EXPECT_EQ(teller.BalanceOf(7), std::nullopt);
  teller.Create(7, 100);
  EXPECT_EQ(teller.BalanceOf(7), 100);
  Teller other(cluster_, 2);
  EXPECT_EQ(other.BalanceOf(7), 100);
  ASSERT_TRUE(other.session->Begin().ok());
  ASSERT_TRUE(other.Read(7).ok());
  ASSERT_TRUE(other.Update(7, 50).ok());
  EXPECT_EQ((*other.Read(7))->balance, 50) << "its own write";
  EXPECT_EQ(teller.BalanceOf(7), 100) << "not committed yet";
  ASSERT_TRUE(other.session->Commit().ok());
  EXPECT_EQ(teller.BalanceOf(7), 50);
}

TEST_P(RsiSessionTest, SnapshotStays) {
  Teller reader(cluster_, 1), writer(cluster_, 2);
  writer.Create(1, 10);
  ASSERT_TRUE(reader.session->Begin().ok());
  ASSERT_TRUE(writer.session->Begin().ok());
  ASSERT_TRUE(writer.Read(1).ok());
  ASSERT_TRUE(writer.Update(1, 20).ok());
  ASSERT_TRUE(writer.session->Commit().ok());
  writer.Create(2, 5);
  EXPECT_EQ((*reader.Read(1))->balance, 10);
  EXPECT_FALSE(reader.Read(2)->has_value());
}

TEST_P(RsiSessionTest, BeginsWithARead) {
  Teller teller(cluster_, 1), other(cluster_, 2);
  teller.Create(1, 10);
  const auto read = [&](std::vector<uint64_t> keys) {
    std::vector<Account> rows(keys.size());
    std::vector<Lookup> lookups;
    for (size_t i = 0; i < keys.size(); ++i) {
      lookups.push_back({teller.accounts, Bytes(keys[i]), std::as_writable_bytes(std::span(&rows[i], 1))});
    }
    EXPECT_TRUE(teller.session->BeginAndRead(lookups).ok());
    std::vector<std::optional<int64_t>> balances;
    for (size_t i = 0; i < keys.size(); ++i) {
      balances.push_back(lookups[i].found ? std::optional(rows[i].balance) : std::nullopt);
    }
    return balances;
  };
  using Balances = std::vector<std::optional<int64_t>>;
  EXPECT_EQ(read({1, 2}), (Balances{10, std::nullopt}));
  other.Create(2, 20);
  EXPECT_FALSE((*teller.Read(2)).has_value()) << "its snapshot stays";
  ASSERT_TRUE(teller.Update(1, 11).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(read({2, 1}), (Balances{20, 11}));
  EXPECT_FALSE(teller.session->BeginAndRead({}).ok()) << "one is under way";
  ASSERT_TRUE(teller.Delete(2).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(read({2, 1}), (Balances{std::nullopt, 11}));
  teller.session->Abort();
  EXPECT_EQ(read({}), Balances{});
  teller.session->Abort();
  // There are more keys than are looked up early, and most of them do not exist.
  std::vector<uint64_t> many;
  for (uint64_t key = 0; key < 700; ++key) many.push_back(key);
  Balances expected(many.size());
  expected[1] = 11;
  EXPECT_EQ(read(many), expected);
  ASSERT_TRUE(teller.session->Commit().ok());
}

TEST_P(RsiSessionTest, SnapshotTooOld) {
  Teller reader(cluster_, 1), writer(cluster_, 2);
  writer.Create(1, 0);
  ASSERT_TRUE(reader.session->Begin().ok());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(writer.session->Begin().ok());
    ASSERT_TRUE(writer.Read(1).ok());
    ASSERT_TRUE(writer.Update(1, i).ok());
    ASSERT_TRUE(writer.session->Commit().ok());
  }
  EXPECT_EQ(AbortReasonOf(reader.Read(1).status()), AbortReason::kSnapshotTooOld);
  EXPECT_EQ(reader.BalanceOf(1), 3) << "and the session goes on";
}

TEST_P(RsiSessionTest, FirstCommitterWins) {
  Teller a(cluster_, 1), b(cluster_, 2);
  a.Create(1, 10);
  a.Create(2, 10);
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(b.session->Begin().ok());
  ASSERT_TRUE(a.Read(2).ok());
  ASSERT_TRUE(a.Update(2, 11).ok());
  ASSERT_TRUE(b.Read(1).ok() && b.Read(2).ok());
  ASSERT_TRUE(b.Update(1, 12).ok() && b.Update(2, 12).ok());
  ASSERT_TRUE(a.session->Commit().ok());
  EXPECT_EQ(AbortReasonOf(b.session->Commit().status()), AbortReason::kWriteWrite);
  // Row 1, which the loser had locked, is unchanged, and free again.
  EXPECT_EQ(a.BalanceOf(1), 10);
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(a.Read(1).ok());
  ASSERT_TRUE(a.Update(1, 13).ok());
  EXPECT_TRUE(a.session->Commit().ok());
}

/// Rows that a transaction changes without having read them are read then, all in the round trips of one.
TEST_P(RsiSessionTest, RowsThatWereNotReadAreFoundToBeChanged) {
  Teller teller(cluster_, 1), other(cluster_, 2);
  ASSERT_TRUE(teller.InsertRows(1, 100).ok());
  ASSERT_TRUE(teller.session->Begin().ok());
  std::vector<Account> rows;
  std::vector<RowWrite> writes;
  for (uint64_t key = 1; key <= 100; ++key) rows.push_back({.key = key, .balance = 5});
  for (const Account& row : rows)
    writes.push_back({.kind = RowWrite::Kind::kUpdate, .table = teller.accounts, .row = Bytes(row)});
  ASSERT_TRUE(teller.session->Write(writes).ok());
  ASSERT_TRUE(teller.Delete(100).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(other.BalanceOf(99), 5);
  EXPECT_EQ(other.BalanceOf(100), std::nullopt);
  ASSERT_TRUE(teller.session->Begin().ok());
  EXPECT_TRUE(absl::IsNotFound(teller.Update(100, 1)));
  // As a read would, it finds out that another client was faster.
  ASSERT_TRUE(teller.session->Begin().ok());
  other.Set(7, 70);
  EXPECT_EQ(AbortReasonOf(teller.Update(7, 1)), AbortReason::kWriteWrite);
  EXPECT_EQ(other.BalanceOf(7), 70);
}

TEST_P(RsiSessionTest, WriteSkewIsAllowed) {
  Teller a(cluster_, 1), b(cluster_, 2);
  a.Create(1, 10);
  a.Create(2, 10);
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(b.session->Begin().ok());
  for (Teller* teller : {&a, &b}) {
    ASSERT_TRUE(teller->Read(1).ok());
    ASSERT_TRUE(teller->Read(2).ok());
  }
  ASSERT_TRUE(a.Update(1, 0).ok());
  ASSERT_TRUE(b.Update(2, 0).ok());
  EXPECT_TRUE(a.session->Commit().ok());
  EXPECT_TRUE(b.session->Commit().ok());
}

TEST_P(RsiSessionTest, KeysAreUnique) {
  Teller a(cluster_, 1), b(cluster_, 2);
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(b.session->Begin().ok());
  ASSERT_TRUE(a.Insert(1, 1).ok());
  ASSERT_TRUE(b.Insert(1, 2).ok());
  ASSERT_TRUE(a.session->Commit().ok());
  EXPECT_EQ(AbortReasonOf(b.session->Commit().status()), AbortReason::kWriteWrite) << "not of its snapshot";
  ASSERT_TRUE(b.session->Begin().ok());
  ASSERT_TRUE(b.Insert(1, 2).ok());
  EXPECT_EQ(AbortReasonOf(b.session->Commit().status()), AbortReason::kUniqueKey);
  EXPECT_EQ(b.BalanceOf(1), 1);
}

TEST_P(RsiSessionTest, DeletedAndInsertedAgain) {
  Teller a(cluster_, 1), old(cluster_, 2);
  a.Create(1, 1);
  ASSERT_TRUE(old.session->Begin().ok());
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(a.Read(1).ok());
  ASSERT_TRUE(a.Delete(1).ok());
  EXPECT_FALSE(a.Read(1)->has_value());
  ASSERT_TRUE(a.session->Commit().ok());
  EXPECT_EQ(a.BalanceOf(1), std::nullopt);
  EXPECT_EQ((*old.Read(1))->balance, 1) << "at its snapshot it is there";
  a.Create(1, 2);
  EXPECT_EQ(a.BalanceOf(1), 2);
}

TEST_P(RsiSessionTest, TransfersConserveTheSum) {
  constexpr int kAccounts = 20, kThreads = 4, kTransfers = 300;
  {
    Teller bank(cluster_, 1);
    for (uint64_t key = 0; key < kAccounts; ++key) bank.Create(key, 100);
  }
  std::atomic<int> committed = 0;
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(cluster_.client().StartThread("teller", [&, thread] {
      Teller teller(cluster_, 10 + static_cast<uint32_t>(thread));
      std::mt19937 random(static_cast<uint32_t>(thread));
      for (int i = 0; i < kTransfers; ++i) {
        const uint64_t from = random() % kAccounts, to = random() % kAccounts;
        if (from == to) continue;
        ASSERT_TRUE(teller.session->Begin().ok());
        const auto a = teller.Read(from);
        if (!a.ok()) continue;
        const auto b = teller.Read(to);
        if (!b.ok()) continue;
        ASSERT_TRUE(a->has_value() && b->has_value());
        if (!teller.Update(from, (*a)->balance - 1).ok()) continue;
        if (!teller.Update(to, (*b)->balance + 1).ok()) continue;
        const auto done = teller.session->Commit();
        if (done.ok()) ++committed;
        ASSERT_TRUE(done.ok() || AbortReasonOf(done.status()).has_value()) << done.status();
      }
    }));
  }
  threads.clear();
  EXPECT_GT(committed, 50);
  Teller bank(cluster_, 2);
  int64_t sum = 0;
  for (uint64_t key = 0; key < kAccounts; ++key) sum += bank.BalanceOf(key).value();
  EXPECT_EQ(sum, kAccounts * 100);
}

TEST_P(RsiSessionTest, ScanSeesTheSnapshotAndItsOwnWrites) {
  Teller a(cluster_, 1), b(cluster_, 2);
  for (uint64_t key = 0; key < 5; ++key) a.Create(key, static_cast<int64_t>(key));
  ASSERT_TRUE(a.session->Begin().ok());
  b.Create(9, 9);
  ASSERT_TRUE(a.Read(1).ok() && a.Read(2).ok());
  ASSERT_TRUE(a.Update(1, 11).ok());
  ASSERT_TRUE(a.Delete(2).ok());
  ASSERT_TRUE(a.Insert(7, 7).ok());
  std::map<uint64_t, int64_t> seen;
  ASSERT_TRUE(a.session
                  ->Scan(a.accounts,
                         [&](std::span<const std::byte> row) {
                           Account account;
                           std::memcpy(&account, row.data(), sizeof(account));
                           EXPECT_TRUE(seen.emplace(account.key, account.balance).second) << "twice";
                           return true;
                         })
                  .ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(0, 0), std::pair(1, 11), std::pair(3, 3),
                                           std::pair(4, 4), std::pair(7, 7)));
}

TEST_P(RsiSessionTest, ShowsItsOwnWrites) {
  cluster_.AddTable("others", {});
  Teller a(cluster_, 1);
  const TableHandle others = *a.session->OpenTable("others");
  for (uint64_t key = 0; key < 5; ++key) a.Create(key, static_cast<int64_t>(key));
  std::map<uint64_t, std::optional<int64_t>> writes;
  int most = 100;
  const auto visit = [&](std::span<const std::byte> key, std::span<const std::byte> row) {
    uint64_t number = 0;
    EXPECT_EQ(key.size(), sizeof(number));
    std::memcpy(&number, key.data(), sizeof(number));
    Account account;
    if (!row.empty()) std::memcpy(&account, row.data(), row.size());
    EXPECT_TRUE(writes.emplace(number, row.empty() ? std::nullopt : std::optional(account.balance)).second);
    EXPECT_TRUE(row.empty() || account.key == number);
    return --most > 0;
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(a.session->VisitWrites(a.accounts, visit)));
  ASSERT_TRUE(a.session->Begin().ok());
  ASSERT_TRUE(a.session->VisitWrites(a.accounts, visit).ok());
  EXPECT_TRUE(writes.empty());
  ASSERT_TRUE(a.Read(1).ok() && a.Read(2).ok() && a.Read(3).ok());
  ASSERT_TRUE(a.Update(1, 10).ok() && a.Update(1, 11).ok());  // twice
  ASSERT_TRUE(a.Delete(2).ok());
  ASSERT_TRUE(a.Delete(3).ok() && a.Insert(3, 33).ok());  // replaced
  ASSERT_TRUE(a.Insert(7, 7).ok());
  ASSERT_TRUE(a.Insert(8, 8).ok() && a.Delete(8).ok());  // never existed
  ASSERT_TRUE(a.session->Insert(others, Bytes(Account{1, 1})).ok());
  ASSERT_TRUE(a.session->VisitWrites(a.accounts, visit).ok());
  using Writes = std::map<uint64_t, std::optional<int64_t>>;
  EXPECT_EQ(writes, (Writes{{1, 11}, {2, std::nullopt}, {3, 33}, {7, 7}, {8, std::nullopt}}));
  writes.clear();
  ASSERT_TRUE(a.session->VisitWrites(others, visit).ok());
  EXPECT_EQ(writes, (Writes{{1, 1}}));
  writes.clear();
  most = 2;
  ASSERT_TRUE(a.session->VisitWrites(a.accounts, visit).ok());
  EXPECT_EQ(writes.size(), 2u) << "the visitor has had enough";
  ASSERT_TRUE(a.session->Commit().ok());
}

TEST_P(RsiSessionTest, ATransactionReadsAndScansAsOftenAsItLikes) {
  Teller a(cluster_, 1);
  for (uint64_t key = 0; key < 5; ++key) a.Create(key, 1);
  ASSERT_TRUE(a.session->Begin().ok());
  for (int round = 0; round < 300; ++round) {
    int rows = 0;
    const absl::Status scanned =
        a.session->Scan(a.accounts, [&](std::span<const std::byte>) { return ++rows != 4; });
    ASSERT_TRUE(scanned.ok()) << "round " << round << ": " << scanned;
    EXPECT_EQ(rows, 4);
    for (uint64_t key = 0; key < 20; ++key) {
      const auto account = a.Read(key);
      ASSERT_TRUE(account.ok()) << "round " << round << ": " << account.status();
      EXPECT_EQ(account->has_value(), key < 5);
    }
  }
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(a.Read(3).ok()) << "once more: " << i;
  ASSERT_TRUE(a.Update(3, 7).ok());
  ASSERT_TRUE(a.session->Commit().ok());
  EXPECT_EQ(a.BalanceOf(3), 7);
}

// The bit vector wraps round on its own. The ring is set to where it nearly has.
TEST_P(RsiSessionTest, TheRingOfTimestampsGoesRound) {
  constexpr uint64_t kBefore = 1'000;
  const bool ring = std::get<1>(GetParam()) == TimestampKind::kLeased;
  if (ring) cluster_.SetLastTimestamp(kRingEntries - kBefore);
  Teller a(cluster_, 1);
  a.Create(1, 0);
  const int commits = static_cast<int>(ring ? 2 * kBefore : 2 * kBitRows);
  for (int i = 1; i <= commits; ++i) {
    ASSERT_TRUE(a.session->Begin().ok());
    ASSERT_TRUE(a.Read(1).ok());
    ASSERT_TRUE(a.Update(1, i).ok());
    const auto committed = a.session->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  EXPECT_EQ(a.BalanceOf(1), commits);
  EXPECT_EQ(Teller(cluster_, 2).BalanceOf(1), commits) << "who comes late";
}

TEST_P(RsiSessionTest, ManyRowsGrowTheTable) {
  Teller a(cluster_, 1);
  constexpr uint64_t kRows = 20'000;
  for (uint64_t key = 0; key < kRows; key += 100) {
    ASSERT_TRUE(a.session->Begin().ok());
    for (uint64_t i = key; i < key + 100; ++i) ASSERT_TRUE(a.Insert(i, static_cast<int64_t>(i)).ok());
    const auto committed = a.session->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  for (uint64_t key = 0; key < kRows; key += 37) {
    EXPECT_EQ(a.BalanceOf(key), static_cast<int64_t>(key));
  }
}

/// Two chunks of 256 blocks.
RecordCluster::TableOptions TwoChunks() {
  return {.extent_bytes = 64 << 10, .extents_max = 2};
}

TEST_P(RsiSessionTest, DeletedRowsAreReclaimed) {
  RecordCluster cluster({.kind = std::get<0>(GetParam()), .timestamps = std::get<1>(GetParam())});
  cluster.AddTable("accounts", TwoChunks());
  Teller keeper(cluster, 1), teller(cluster, 2);
  for (uint64_t round = 0; round < 30; ++round) {
    const absl::Status inserted = teller.InsertRows(round * 100, 100);
    ASSERT_TRUE(inserted.ok()) << round << " " << inserted;
    const absl::Status deleted = teller.DeleteRows(round * 100, 99);
    ASSERT_TRUE(deleted.ok()) << round << " " << deleted;
  }
  EXPECT_EQ(keeper.BalanceOf(2'999), 1);
  EXPECT_EQ(keeper.BalanceOf(2'905), std::nullopt);
  Auditor auditor(teller.member, std::get<1>(GetParam()));
  const TableAudit audit = auditor.Audit("accounts", {});
  EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
}

TEST_P(RsiSessionTest, WhatASnapshotSeesIsNotReclaimed) {
  RecordCluster cluster({.kind = std::get<0>(GetParam()), .timestamps = std::get<1>(GetParam())});
  cluster.AddTable("accounts", TwoChunks());
  Teller reader(cluster, 1), teller(cluster, 2);
  ASSERT_TRUE(teller.InsertRows(0, 100).ok());
  ASSERT_TRUE(reader.session->Begin().ok());
  absl::Status status = teller.DeleteRows(0, 100);
  for (uint64_t round = 1; round < 10 && status.ok(); ++round) {
    status = teller.InsertRows(round * 100, 100);
    if (status.ok()) status = teller.DeleteRows(round * 100, 100);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (uint64_t key = 0; key < 100; ++key) EXPECT_TRUE(reader.Read(key)->has_value()) << key;
  reader.session->Abort();
  const absl::Status inserted = teller.InsertRows(5'000, 100);
  EXPECT_TRUE(inserted.ok()) << inserted;
}

/// Commits are refused then, and rows can be read. `leased`: a bit vector's rows end with others of its
/// limits.
TEST(RsiSession, TimestampsComeToTheirEnd) {
  RecordCluster cluster({});
  cluster.AddTable("accounts", {});
  cluster.SetLastTimestamp(storage::kPendingTimestamp - 3);
  Teller a(cluster, 1);
  a.Create(1, 1);
  a.Set(1, 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.session->Begin().ok());
    EXPECT_EQ((*a.Read(1))->balance, 2);
    ASSERT_TRUE(a.Update(1, 3).ok());
    const absl::Status refused = a.session->Commit().status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  }
  EXPECT_EQ(Teller(cluster, 2).BalanceOf(1), 2);
}

/// A block's row was replaced, then deleted, and the block was given to another: a snapshot from before that
/// one sees neither.
TEST(RsiSession, ABlockThatIsUsedAgainShowsNothingOfItsFormerRow) {
  constexpr uint64_t kRows = 250, kDeleted = 40;
  RecordCluster cluster({});
  cluster.AddTable("accounts", {.extent_bytes = 64 << 10, .extents_max = 1});  // one chunk
  {
    Teller first(cluster, 1);  // gives its chunk back
    ASSERT_TRUE(first.InsertRows(0, kRows).ok());
    ASSERT_TRUE(first.session->Begin().ok());
    for (uint64_t key = 0; key < kDeleted; ++key)
      ASSERT_TRUE(first.Read(key).ok() && first.Update(key, 2).ok());
    ASSERT_TRUE(first.session->Commit().ok());
    ASSERT_TRUE(first.DeleteRows(0, kDeleted).ok());
  }
  Teller reader(cluster, 2), second(cluster, 3);
  ASSERT_EQ(reader.BalanceOf(0), std::nullopt);
  ASSERT_TRUE(reader.session->Begin().ok());
  const absl::Status inserted = second.InsertRows(1'000, kDeleted);
  ASSERT_TRUE(inserted.ok()) << inserted << ": their blocks are to be reclaimed";
  uint64_t rows = 0;
  const absl::Status scanned = reader.session->Scan(reader.accounts, [&](std::span<const std::byte> row) {
    Account account;
    std::memcpy(&account, row.data(), sizeof(account));
    EXPECT_TRUE(account.key >= kDeleted && account.key < kRows) << account.key;
    ++rows;
    return true;
  });
  EXPECT_TRUE(scanned.ok()) << scanned;
  EXPECT_EQ(rows, kRows - kDeleted);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, RsiSessionTest,
                         ::testing::Combine(::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                                            ::testing::Values(TimestampKind::kLeased,
                                                              TimestampKind::kBitVector)),
                         [](const auto& info) {
                           return std::string(fabric::KindName(std::get<0>(info.param))) + "_" +
                                  NameOf(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace nam::txn
