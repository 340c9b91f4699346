#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/teller.h"

/// Many rows in one call of Session::Write.
namespace nam::txn {
namespace {

using Kind = RowWrite::Kind;

class ManyWritesTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  static constexpr uint64_t kAccounts = 40;

  ManyWritesTest() : cluster_({.kind = GetParam()}) {
    cluster_.AddTable("accounts", {});
    Teller teller(cluster_, 1);
    for (uint64_t key = 0; key < kAccounts; ++key) teller.Create(key, 10);
  }
  /// Begins, and reads accounts from `first` on.
  static std::vector<Lookup> BeginAndRead(Teller& teller, std::span<Account> rows, uint64_t first) {
    std::vector<Lookup> lookups;
    for (uint64_t i = 0; i < rows.size(); ++i) {
      rows[i].key = first + i;
      lookups.push_back({teller.accounts, Bytes(rows[i].key), std::as_writable_bytes(rows.subspan(i, 1))});
    }
    EXPECT_TRUE(teller.session->BeginAndRead(lookups).ok());
    return lookups;
  }

  RecordCluster cluster_;
};

TEST_P(ManyWritesTest, AreDoneInTheirOrder) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(3);
  const std::vector<Lookup> lookups = BeginAndRead(teller, rows, 0);
  const Account one{.key = 100, .balance = 1}, two{.key = 101, .balance = 2}, again{.key = 100, .balance = 3};
  rows[0].balance = 11;
  rows[1].balance = 12;
  const std::vector<RowWrite> writes = {
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(one)},
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(two)},
      {.kind = Kind::kUpdate, .table = teller.accounts, .row = Bytes(rows[0]), .met = lookups[0].met},
      {.kind = Kind::kUpdate, .table = teller.accounts, .row = Bytes(rows[1])},
      {.kind = Kind::kDelete, .table = teller.accounts, .row = Bytes(rows[2].key), .met = lookups[2].met},
      {.kind = Kind::kDelete, .table = teller.accounts, .row = Bytes(one.key)},
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(again)},
      {.kind = Kind::kLock, .table = teller.accounts, .row = Bytes(rows[0].key), .met = lookups[0].met},
  };
  ASSERT_TRUE(teller.session->Write(writes).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(other.BalanceOf(0), 11);
  EXPECT_EQ(other.BalanceOf(1), 12);
  EXPECT_EQ(other.BalanceOf(2), std::nullopt);
  EXPECT_EQ(other.BalanceOf(100), 3);
  EXPECT_EQ(other.BalanceOf(101), 2);
}

TEST_P(ManyWritesTest, AMetRowIsTheOneWithTheKey) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(3);
  const std::vector<Lookup> lookups = BeginAndRead(teller, rows, 5);
  EXPECT_NE(lookups[0].met, lookups[1].met);
  rows[0].balance = 50;
  rows[1].balance = 60;
  // Numbers that belong to other clients, or to no row.
  const std::vector<RowWrite> writes = {
      {.kind = Kind::kUpdate, .table = teller.accounts, .row = Bytes(rows[0]), .met = lookups[1].met},
      {.kind = Kind::kUpdate, .table = teller.accounts, .row = Bytes(rows[1]), .met = 1'000'000},
  };
  ASSERT_TRUE(teller.session->Write(writes).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  EXPECT_EQ(other.BalanceOf(5), 50);
  EXPECT_EQ(other.BalanceOf(6), 60);
  EXPECT_EQ(other.BalanceOf(7), 10);
}

TEST_P(ManyWritesTest, OneOfAnotherSizeAndNoneIsDone) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(1);
  BeginAndRead(teller, rows, 0);
  const Account one{.key = 100, .balance = 1};
  std::vector<RowWrite> writes = {
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(one)},
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(one).first(9)},
  };
  EXPECT_TRUE(absl::IsInvalidArgument(teller.session->Write(writes)));
  writes[1] = {.kind = Kind::kDelete, .table = TableHandle{77}, .row = Bytes(one.key)};
  EXPECT_TRUE(absl::IsInvalidArgument(teller.session->Write(writes)));
  ASSERT_TRUE(teller.session->Commit().ok()) << "the transaction went on";
  EXPECT_EQ(other.BalanceOf(100), std::nullopt);
}

TEST_P(ManyWritesTest, AnErrorEndsTheTransaction) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(1);
  BeginAndRead(teller, rows, 0);
  const Account one{.key = 100, .balance = 1}, there{.key = 0, .balance = 1};
  const std::vector<RowWrite> writes = {
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(one)},
      {.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(there)},
  };
  EXPECT_EQ(AbortReasonOf(teller.session->Write(writes)), AbortReason::kUniqueKey);
  EXPECT_FALSE(teller.session->Commit().ok());
  EXPECT_EQ(other.BalanceOf(100), std::nullopt);
}

// More than one chunk of records, and other writes in between: adjacent records are written at once, and
// nothing else with them.
TEST_P(ManyWritesTest, NewRowsAreWhatWasInserted) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(kAccounts);
  const std::vector<Lookup> lookups = BeginAndRead(teller, rows, 0);
  std::vector<Account> inserts;
  for (uint64_t i = 0; i < 2'000; ++i) inserts.push_back({.key = 1'000 + i, .balance = int64_t(i)});
  std::vector<RowWrite> writes;
  for (uint64_t i = 0; i < inserts.size(); ++i) {
    writes.push_back({.kind = Kind::kInsert, .table = teller.accounts, .row = Bytes(inserts[i])});
    if (i % 50 != 49) continue;
    Account& row = rows[i / 50];
    row.balance = int64_t(i);
    writes.push_back(
        {.kind = Kind::kUpdate, .table = teller.accounts, .row = Bytes(row), .met = lookups[i / 50].met});
  }
  ASSERT_TRUE(teller.session->Write(writes).ok());
  ASSERT_TRUE(teller.session->Commit().ok());
  for (uint64_t i = 0; i < inserts.size(); ++i) ASSERT_EQ(other.BalanceOf(1'000 + i), int64_t(i));
  for (uint64_t i = 0; i < kAccounts; ++i) ASSERT_EQ(other.BalanceOf(i), int64_t(50 * i + 49));
  // The slots that were written along are empty: the next versions find them so.
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(other.session->Begin().ok());
    ASSERT_TRUE(other.Read(1'000 + i).ok());
    ASSERT_TRUE(other.Update(1'000 + i, -1).ok());
    ASSERT_TRUE(other.session->Commit().ok());
    EXPECT_EQ(teller.BalanceOf(1'000 + i), -1);
  }
}

// Their records are adjacent; here the rows between them have the values that were read.
TEST_P(ManyWritesTest, NewRowsOfTwoStatementsAreWhatWasInserted) {
  Teller teller(cluster_, 2), other(cluster_, 3);
  std::vector<Account> rows(1);
  BeginAndRead(teller, rows, 0);
  for (uint64_t key = 200; key < 210; ++key) {
    ASSERT_TRUE(teller.Insert(key, int64_t(key)).ok());
    ASSERT_TRUE(teller.Read(key % kAccounts + 1).ok());
  }
  ASSERT_TRUE(teller.session->Commit().ok());
  for (uint64_t key = 200; key < 210; ++key) EXPECT_EQ(other.BalanceOf(key), int64_t(key));
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ManyWritesTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::txn
