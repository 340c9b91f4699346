#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Rows that are read where they lie while other threads write to them.
namespace nam::txn {
namespace {

constexpr uint64_t kRows = 4;

struct Large {
  uint64_t key = 0;
  std::array<uint64_t, 1'000> values = {};
};

/// A session that knows the table of large rows.
struct Client {
  Client(RecordCluster& cluster, uint32_t id)
      : member{cluster, cluster.client(), id}, session(*OpenRsiSession(member, {})) {
    table = *session->OpenTable("large");
  }
  /// Begins; all rows.
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

/// Every commit writes one number into all words of all rows: a reader sees one number, of rows that are
/// whole.
TEST(InPlaceTest, RowsAreWholeWhileOthersWrite) {
  RecordCluster cluster({.kind = fabric::Kind::kShm, .memory_bytes = uint64_t{64} << 20});
  cluster.AddTable("accounts", {});
  cluster.AddTable("large", {.row_bytes = sizeof(Large), .extent_bytes = 8 << 20});
  {
    Client client(cluster, 1);
    ASSERT_TRUE(client.session->Begin().ok());
    for (uint64_t key = 0; key < kRows; ++key)
      ASSERT_TRUE(client.session->Insert(client.table, Bytes(Large{.key = key})).ok());
    ASSERT_TRUE(client.session->Commit().ok());
  }
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> commits{0}, reads{0}, torn{0}, mixed{0};
  const auto write = [&](uint32_t id) {
    Client client(cluster, id);
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
    Client client(cluster, id);
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
  const Deadline end = clock.After(10'000'000);
  while ((commits < 3'000 || reads < 20'000) && !clock.Passed(end)) clock.SleepUntil(clock.After(10'000));
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(commits, 100u);
  EXPECT_GT(reads, 1'000u);
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(mixed, 0u);
}

}  // namespace
}  // namespace nam::txn
