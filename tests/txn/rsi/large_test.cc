#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/base/seeds.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Transactions of many rows: their bounds, and the state that they leave when their client dies.
namespace nam::txn {
namespace {

class LargeTest : public ::testing::TestWithParam<std::tuple<fabric::Kind, TimestampKind>> {
 protected:
  LargeTest() : cluster_({.kind = std::get<0>(GetParam()), .timestamps = std::get<1>(GetParam())}) {
    cluster_.AddTable("accounts", {});
  }
  RecordCluster cluster_;
};
INSTANTIATE_TEST_SUITE_P(Fabrics, LargeTest,
                         ::testing::Combine(::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                                            ::testing::Values(TimestampKind::kLeased,
                                                              TimestampKind::kBitVector)),
                         [](const auto& info) {
                           return std::string(fabric::KindName(std::get<0>(info.param))) + "_" +
                                  NameOf(std::get<1>(info.param));
                         });

/// Transactions that fit are committed; the statement that goes beyond the bound is refused, never the
/// Commit.
TEST_P(LargeTest, ATransactionThatIsTooLargeIsRefusedAtItsStatement) {
  struct Wide {
    uint64_t key = 0;
    std::byte filling[16'376] = {};
  };
  cluster_.AddTable("wide", {.row_bytes = sizeof(Wide), .extent_bytes = 16 << 20});
  Teller teller(cluster_, 1, cluster_.client(), RsiOptions{.transaction_bytes_max = 5 << 20});
  const TableHandle wide = *teller.session->OpenTable("wide");
  const auto insert = [&](TableHandle table, uint64_t key) {
    if (table.value == teller.accounts.value) return teller.Insert(key, 1);
    const auto row = std::make_unique<Wide>(Wide{.key = key});
    return teller.session->Insert(table, Bytes(*row));
  };
  for (const TableHandle table : {teller.accounts, wide}) {
    ASSERT_TRUE(teller.session->Begin().ok());
    uint64_t fits = 0;
    absl::Status status = insert(table, 0);
    while (status.ok()) status = insert(table, ++fits);
    EXPECT_TRUE(IsTooLarge(status)) << status;
    EXPECT_EQ(fits < 511, table.value == wide.value) << fits;
    ASSERT_TRUE(teller.session->Begin().ok()) << "it has ended";
    ASSERT_TRUE(insert(table, fits).ok() && teller.session->Delete(table, Bytes(fits)).ok());
    // Withdrawn writes are kept for a rollback.
    for (uint64_t key = 0; key + fits / 20 < fits; ++key)
      ASSERT_TRUE(insert(table, key).ok()) << key << " of " << fits;
    const auto committed = teller.session->Commit();
    EXPECT_TRUE(committed.ok()) << committed.status();
  }
  // A statement beyond the bound may be refused before it has found all of its rows.
  ASSERT_TRUE(teller.session->Begin().ok());
  EXPECT_TRUE(teller.session->MayWrite(1'000).ok());
  EXPECT_TRUE(IsTooLarge(teller.session->MayWrite(100'000)));
}

/// The log has many segments, buffers lie beside the first one, and patience lasts as long as the commit.
TEST_P(LargeTest, ATransactionOfManyRows) {
  constexpr uint64_t kRows = 3'000;
  cluster_.AddTable("many", {.extent_bytes = 4 << 20, .extents_max = 8});
  Teller teller(cluster_, 1, cluster_.client(), RsiOptions{.scratch_bytes = 1 << 20});
  const TableHandle table = *teller.session->OpenTable("many");
  Teller reader(cluster_, 2);
  const TableHandle seen = *reader.session->OpenTable("many");
  const auto sum = [&] {
    EXPECT_TRUE(reader.session->Begin().ok());
    int64_t rows = 0, balance = 0;
    EXPECT_TRUE(reader.session
                    ->Scan(seen,
                           [&](std::span<const std::byte> row) {
                             Account account;
                             std::memcpy(&account, row.data(), sizeof(account));
                             ++rows;
                             balance += account.balance;
                             return true;
                           })
                    .ok());
    reader.session->Abort();
    return std::pair(rows, balance);
  };
  const auto change_all = [&](auto change) {
    for (uint64_t first = 0; first < kRows; first += 500) {
      std::vector<Account> rows(500);
      std::vector<uint64_t> keys(500);
      std::vector<Lookup> lookups;
      for (size_t i = 0; i < rows.size(); ++i) {
        keys[i] = first + i;
        lookups.push_back({table, Bytes(keys[i]), std::as_writable_bytes(std::span(&rows[i], 1))});
      }
      ASSERT_TRUE(teller.session->Read(lookups).ok());
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_TRUE(lookups[i].found) << keys[i];
        ASSERT_TRUE(change(rows[i]).ok()) << keys[i];
      }
    }
  };
  ASSERT_TRUE(teller.session->Begin().ok());
  for (uint64_t key = 0; key < kRows; ++key)
    ASSERT_TRUE(teller.session->Insert(table, Bytes(Account{.key = key, .balance = 1})).ok());
  ASSERT_EQ(sum(), std::pair(int64_t{0}, int64_t{0}));
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(sum(), std::pair(int64_t{kRows}, int64_t{kRows}));

  ASSERT_TRUE(teller.session->Begin().ok());
  change_all([&](Account& row) {
    row.balance = 3;
    return teller.session->Update(table, Bytes(row));
  });
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(sum(), std::pair(int64_t{kRows}, int64_t{3 * kRows}));

  ASSERT_TRUE(teller.session->Begin().ok());
  change_all([&](Account& row) { return teller.session->Delete(table, Bytes(row.key)); });
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(sum(), std::pair(int64_t{0}, int64_t{0}));
}

/// A client learns in its commit that an extent is lost, and so cannot give back the blocks that it has taken
/// there. The transaction's writes end with it all the same.
TEST_P(LargeTest, ATransactionEndsThoughItsBlocksCannotBeGivenBack) {
  constexpr uint64_t kRows = 2'000;  // for two extents
  cluster_.AddTable("many", {.first_server = 2});
  Teller teller(cluster_, 1);
  const TableHandle table = *teller.session->OpenTable("many");
  ASSERT_TRUE(teller.session->Begin().ok());
  for (uint64_t key = 0; key < kRows; ++key)
    ASSERT_TRUE(teller.session->Insert(table, Bytes(Account{.key = key, .balance = 1})).ok());
  cluster_.BuryServer(2);
  const auto committed = teller.session->Commit();
  EXPECT_TRUE(committed.ok()) << committed.status();
  ASSERT_TRUE(teller.session->Begin().ok());
  const auto nothing = teller.session->Commit();
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(*nothing, 0u) << "it has written what the one before wrote";
}

/// So many keys are looked up in portions: an existing one is found among them, and a deleted one is taken
/// over.
TEST_P(LargeTest, ManyInsertsMeetARow) {
  constexpr uint64_t kRows = 1'200;
  Teller teller(cluster_, 1);
  teller.Create(700, 5);
  teller.Create(900, 5);
  const auto remove = [&](uint64_t key) {
    ASSERT_TRUE(teller.session->Begin().ok());
    ASSERT_TRUE(teller.Read(key)->has_value());
    ASSERT_TRUE(teller.Delete(key).ok());
    teller.Commits();
  };
  const auto insert_all = [&] {
    EXPECT_TRUE(teller.session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key) EXPECT_TRUE(teller.Insert(key, 1).ok());
    return teller.session->Commit().status();
  };
  remove(900);
  EXPECT_EQ(AbortReasonOf(insert_all()), AbortReason::kUniqueKey);
  EXPECT_EQ(teller.BalanceOf(700), 5);
  EXPECT_EQ(teller.BalanceOf(0), std::nullopt);
  remove(700);
  const absl::Status inserted = insert_all();
  ASSERT_TRUE(inserted.ok()) << inserted;
  Teller other(cluster_, 2);
  ASSERT_TRUE(other.session->Begin().ok());
  for (uint64_t key = 0; key < kRows; ++key) ASSERT_EQ((*other.Read(key))->balance, 1) << key;
}

/// Writes behind a mark are taken back: new ones, and changes of earlier ones.
TEST_P(LargeTest, WritesAreRolledBackToAMark) {
  Teller teller(cluster_, 1);
  teller.Create(1, 10);
  teller.Create(2, 20);
  Session& session = *teller.session;
  ASSERT_TRUE(session.Begin().ok());
  ASSERT_TRUE(teller.Read(1)->has_value() && teller.Read(2)->has_value());
  ASSERT_TRUE(teller.Update(1, 11).ok());
  ASSERT_TRUE(teller.Insert(3, 30).ok());
  const size_t mark = session.Mark();
  ASSERT_TRUE(teller.Update(1, 12).ok());
  ASSERT_TRUE(teller.Delete(3).ok());
  ASSERT_TRUE(teller.Insert(3, 31).ok());
  ASSERT_TRUE(teller.Delete(2).ok());
  for (uint64_t key = 100; key < 150; ++key) ASSERT_TRUE(teller.Insert(key, 1).ok());
  ASSERT_TRUE(session.RollBackTo(mark).ok());
  EXPECT_EQ((*teller.Read(1))->balance, 11);
  EXPECT_EQ((*teller.Read(2))->balance, 20);
  EXPECT_EQ((*teller.Read(3))->balance, 30);
  EXPECT_FALSE(teller.Read(149)->has_value());
  // Writes that were taken back can be repeated.
  ASSERT_TRUE(teller.Insert(149, 5).ok());
  ASSERT_TRUE(session.Commit().ok());
  Teller other(cluster_, 2);
  EXPECT_EQ(other.BalanceOf(1), 11);
  EXPECT_EQ(other.BalanceOf(2), 20);
  EXPECT_EQ(other.BalanceOf(3), 30);
  EXPECT_EQ(other.BalanceOf(149), 5);
  ASSERT_TRUE(other.session->Begin().ok());
  EXPECT_FALSE(other.Read(100)->has_value());
}

/// A commit needs no more scratch memory than its statements have reserved for it, wherever its rows end.
TEST_P(LargeTest, WhatEveryStatementAllowsIsCommitted) {
  RsiOptions options;
  options.scratch_bytes = options.transaction_bytes_max = 640 << 10;
  Teller teller(cluster_, 1, cluster_.client(), options);
  for (uint32_t row_bytes = 64; row_bytes < 256; row_bytes += 32) {
    SCOPED_TRACE(row_bytes);
    const std::string name = "rows" + std::to_string(row_bytes);
    cluster_.AddTable(name, {.row_bytes = row_bytes, .extent_bytes = 4 << 20});
    const TableHandle table = *teller.session->OpenTable(name);
    const auto insert = [&](uint64_t key) {
      std::vector<std::byte> row(row_bytes);
      std::memcpy(row.data(), &key, sizeof(key));
      return teller.session->Insert(table, row);
    };
    ASSERT_TRUE(teller.session->Begin().ok());
    uint64_t fits = 0;
    while (insert(fits).ok()) ++fits;
    ASSERT_LT(fits, 500u);
    ASSERT_TRUE(teller.session->Begin().ok());
    for (uint64_t key = 0; key < fits; ++key) ASSERT_TRUE(insert(key).ok());
    const auto committed = teller.session->Commit();
    EXPECT_TRUE(committed.ok()) << committed.status();
  }
}

/// A commit of many rows into a table with three indexes comes to its end beside clients that read and write
/// another table, and is not skipped once. NAM_ROWS: another number of rows.
TEST(LargeIndexedTest, ManyRowsBesideOtherClients) {
  const uint64_t rows = FromEnvironment("NAM_ROWS", 30'000);
  for (const fabric::Kind kind : {fabric::Kind::kShm, fabric::Kind::kTcp}) {
    SCOPED_TRACE(fabric::KindName(kind));
    RecordCluster cluster({.kind = kind, .memory_bytes = (uint64_t{64} << 20) + rows * 512});
    cluster.AddTable("accounts", {});
    cluster.AddTable("items", {.row_bytes = sizeof(Item), .extent_bytes = 16 << 20});
    const IndexDescription by_filling{
        .name = "by_filling", .fields = {{.offset = 16, .bytes = 8}}, .key_bytes = 8};
    for (const IndexDescription& index : {ByGroup(), ByName(), by_filling})
      cluster.SetUsable("items", cluster.AddIndex("items", index, 4'096), 1);
    RecordCluster::Member member(cluster, cluster.client(), 1);
    const std::unique_ptr<Session> session =
        *OpenRsiSession(member, {.transaction_bytes_max = uint64_t{4} << 30, .skips_retried = 0});
    const TableHandle items = *session->OpenTable("items");
    ASSERT_TRUE(session->Begin().ok());
    for (uint64_t key = 0; key < rows; ++key) {
      const Item item{.key = key,
                      .group = static_cast<uint8_t>(key % 250),
                      .nulls = 1,
                      .filling = {key * 0x9e3779b97f4a7c15}};
      ASSERT_TRUE(session->Insert(items, BytesOf(item)).ok());
    }
    std::atomic<bool> over = false;
    std::atomic<int> read = 0;
    std::vector<std::thread> others;
    for (uint32_t id : {2, 3}) {
      others.emplace_back([&, id] {
        Teller teller(cluster, id);
        teller.Create(id, 1);
        while (!over) {
          ASSERT_TRUE(teller.session->Begin().ok());
          const auto found = teller.Read(id);
          ASSERT_TRUE(found.ok()) << found.status();
          teller.session->Abort();
          ++read;
        }
      });
    }
    while (read < 10) std::this_thread::yield();
    const auto committed = session->Commit();
    over = true;
    for (std::thread& other : others) other.join();
    ASSERT_TRUE(committed.ok()) << committed.status();
    ASSERT_TRUE(session->Begin().ok());
    for (const IndexDescription& index : cluster.IndexesOf("items")) {
      const auto found = ItemsBy(*session, items, index.allocation);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->size(), rows);
    }
  }
}

/// A client dies in the middle of a commit of more rows than its log has segments for at first: all of them
/// are there, or none, and none is locked.
TEST(LargeRecoveryTest, AllOrNothingOfManyRows) {
  constexpr uint64_t kRows = 400;
  // The client dies before the log, within it, after some locks, among its timestamps, and in the flips.
  for (const uint64_t requests : {2, 8, 12, 200, 500, 900, 1'200, 1'700, 2'100, 2'500}) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({});
    cluster.AddTable("accounts", {.extent_bytes = 1 << 20});
    Teller bank(cluster, 1);
    ASSERT_TRUE(bank.session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key) ASSERT_TRUE(bank.Insert(key, 1).ok());
    bank.Commits();
    MortalFabric mortal(cluster.client(), MortalFabric::kNever);
    Teller victim(cluster, 2, mortal);
    ASSERT_TRUE(victim.session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key) {
      ASSERT_TRUE(victim.Read(key)->has_value());
      ASSERT_TRUE(victim.Update(key, 2).ok());
    }
    mortal.DieAfter(requests);
    const bool told = victim.session->Commit().ok();
    mortal.DieAfter(0);
    victim.session.reset();
    cluster.SetDead(MemberId(2));
    RecordCluster::Member third{cluster, cluster.client(), 4};
    Auditor auditor(third, TimestampKind::kLeased);
    auditor.RecoverAll();
    const TableAudit audit = auditor.Audit("accounts", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    Teller heir(cluster, 3);
    ASSERT_TRUE(heir.session->Begin().ok());
    uint64_t changed = 0;
    for (uint64_t key = 0; key < kRows; ++key) changed += (*heir.Read(key))->balance == 2;
    EXPECT_TRUE(changed == 0 || changed == kRows) << changed;
    EXPECT_TRUE(!told || changed == kRows);
  }
}

}  // namespace
}  // namespace nam::txn
