#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/teller.h"
#include "txn/rsi/record_table.h"
#include "txn/rsi/session.h"
#include "txn/snapshot_scan.h"

/// Rows that are read in place while other threads write to them.
namespace nam::txn {
namespace {

constexpr uint64_t kRows = 4;

struct Large {
  uint64_t key = 0;
  std::array<uint64_t, 1'000> values = {};
};

/// A session that knows the table of large rows.
struct LargeRowClient {
  LargeRowClient(RecordCluster& cluster, uint32_t id)
      : member{cluster, cluster.client(), id}, session(*OpenRsiSession(member, {})) {
    table = *session->OpenTable("large");
  }
  /// Begins, and reads all rows.
  absl::Status ReadAll(std::span<Large> rows, std::span<Lookup> lookups) {
    for (uint64_t i = 0; i < kRows; ++i)
      lookups[i] = {table, Bytes(keys[i]), std::as_writable_bytes(rows.subspan(i, 1))};
    return session->BeginAndRead(lookups);
  }

  RecordCluster::Member member;
  std::unique_ptr<Session> session;
  TableHandle table;
  std::array<uint64_t, kRows> keys = {0, 1, 2, 3};
};

/// Every commit writes one number into all words of all rows: a reader sees one number in all of them, never
/// a part of a row.
TEST(InPlaceTest, RowsAreWholeWhileOthersWrite) {
  RecordCluster cluster({.kind = fabric::Kind::kShm, .memory_bytes = uint64_t{64} << 20});
  cluster.AddTable("accounts", {});
  cluster.AddTable("large", {.row_bytes = sizeof(Large), .extent_bytes = 8 << 20});
  {
    LargeRowClient client(cluster, 1);
    ASSERT_TRUE(client.session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key)
      ASSERT_TRUE(client.session->Insert(client.table, Bytes(Large{.key = key})).ok());
    ASSERT_TRUE(client.session->Commit().ok());
  }
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> commits{0}, reads{0}, torn{0}, mixed{0};
  const auto write = [&](uint32_t id) {
    LargeRowClient client(cluster, id);
    std::vector<Large> rows(kRows);
    std::array<Lookup, kRows> lookups;
    for (uint64_t number = uint64_t{id} << 32; !ends; ++number) {
      if (!client.ReadAll(rows, lookups).ok()) continue;
      bool wrote = true;
      for (Large& row : rows) {
        row.values.fill(number);
        wrote = wrote && client.session->Update(client.table, Bytes(row)).ok();
      }
      if (wrote && client.session->Commit().ok()) ++commits;
    }
  };
  const auto read = [&](uint32_t id) {
    LargeRowClient client(cluster, id);
    std::vector<Large> rows(kRows);
    std::array<Lookup, kRows> lookups;
    while (!ends) {
      if (!client.ReadAll(rows, lookups).ok()) continue;
      const uint64_t number = rows[0].values[0];
      for (const Large& row : rows) {
        for (const uint64_t value : row.values) torn += value != row.values[0];
        mixed += row.values[0] != number;
      }
      client.session->Abort();
      ++reads;
    }
  };
  std::vector<std::thread> threads;
  for (const uint32_t id : {2, 3}) threads.emplace_back(write, id);
  for (const uint32_t id : {4, 5}) threads.emplace_back(read, id);
  Clock& clock = cluster.client().clock();
  const Deadline end = clock.After(10'000'000), hangs = clock.After(120'000'000);
  const auto enough = [&] {
    const bool some = commits > 100 && reads > 1'000, many = commits >= 3'000 && reads >= 20'000;
    return many || (some && clock.Passed(end)) || clock.Passed(hangs);
  };
  while (!enough()) clock.SleepUntil(clock.After(10'000));
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(commits, 100u);
  EXPECT_GT(reads, 1'000u);
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(mixed, 0u);
}

/// A table of large rows in memory that is in place.
class HandedOnTest : public ::testing::Test {
 protected:
  HandedOnTest() : cluster_({.kind = fabric::Kind::kShm, .memory_bytes = uint64_t{64} << 20}) {
    cluster_.AddTable("large", {.row_bytes = sizeof(Large), .extent_bytes = 8 << 20});
    client_.emplace(cluster_, 1);
    EXPECT_TRUE(client_->session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key)
      EXPECT_TRUE(client_->session->Insert(client_->table, Bytes(Large{.key = key})).ok());
    EXPECT_TRUE(client_->session->Commit().ok());
  }
  /// Another member has its memory.
  void HandOn() { cluster_.DropTable("large", /*zeroed=*/true); }

  RecordCluster cluster_;
  std::optional<LargeRowClient> client_;
};

/// A transaction asks for its rows, and has to wait before it begins. The memory that it then finds has no
/// owner, so it is no answer.
TEST_F(HandedOnTest, ATransactionThatWaitedForItsBeginIsToldSo) {
  std::vector<Large> rows(kRows);
  std::array<Lookup, kRows> lookups;
  ASSERT_TRUE(client_->ReadAll(rows, lookups).ok());
  for (const Lookup& lookup : lookups) EXPECT_TRUE(lookup.found);
  // The commit cannot ask for a change of indexes; its next transaction asks as it begins.
  LargeRowClient other(cluster_, 2);
  ASSERT_TRUE(other.session->AwaitCommits().ok());
  client_->member.BeforeFind([] { return absl::UnavailableError("no catalog"); });
  ASSERT_TRUE(client_->session->Update(client_->table, Bytes(rows[0])).ok());
  ASSERT_FALSE(client_->session->Commit().ok());
  bool handed_on = false;
  client_->member.BeforeFind([&] {
    if (!std::exchange(handed_on, true)) HandOn();
    return absl::OkStatus();
  });
  const absl::Status read = client_->ReadAll(rows, lookups);
  EXPECT_TRUE(handed_on);
  EXPECT_FALSE(read.ok()) << "rows were there";
  client_->member.BeforeFind(nullptr);
}

/// A thread pauses between a look at memory in place and the copy.
TEST_F(HandedOnTest, WhatIsCopiedLaterDoesNotCount) {
  RecordCluster::Member member(cluster_, cluster_.client(), 2);
  const auto channel = *storage::Channel::Open(member.fabric(), member.directory(), {});
  storage::VerbBatch batch(*channel);
  const auto table = *RecordTable::Open(*member.Find("large"), *channel, batch, ClientSlot(), [](uint32_t) {
    return absl::UnavailableError("no client takes nodes here");
  });
  const uint64_t key = 1;
  const uint64_t hash = table->HashOf(Bytes(key));
  HashIndex::Probe probe{.hash = hash};
  ASSERT_TRUE(table->index().Lookup({&probe, 1}).ok());
  ASSERT_EQ(probe.candidates.count, 1u);
  HashIndex::Claim claim{.hash = hash, .record = 1'000};
  BlockRead words{.record = probe.candidates.records[0]}, slot = words;
  const auto outcome = [&](const BlockRead& block) {
    return ChooseVersion(table->blocks(), block, {.snapshot = storage::kTimestampMask}).outcome;
  };
  ASSERT_TRUE(table->index().AddLookup({&probe, 1}).ok());
  ASSERT_TRUE(table->index().AddSeek({&claim, 1}).ok());
  ASSERT_TRUE(table->AddRead(words).ok() && table->AddRead(slot).ok());
  ASSERT_TRUE(batch.Execute().ok());
  table->CopyWords(slot);
  EXPECT_EQ(outcome(slot), storage::VersionChoice::Outcome::kVersion);
  ASSERT_TRUE(table->AddReadSlot(slot, 0).ok());
  HandOn();
  EXPECT_FALSE(table->index().LookedUp({&probe, 1}));
  EXPECT_FALSE(table->index().Sought({&claim, 1}));
  table->CopyWords(words);
  EXPECT_EQ(outcome(words), storage::VersionChoice::Outcome::kMoved);
  table->CopySlot(slot);
  EXPECT_EQ(outcome(slot), storage::VersionChoice::Outcome::kMoved);
  // The next look-up returns the reason.
  EXPECT_FALSE(table->index().Lookup({&probe, 1}).ok());
}

}  // namespace
}  // namespace nam::txn
