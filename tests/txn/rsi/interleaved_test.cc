#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/txn/clerk.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Two clients: one pauses between any two of its work requests while the other sends all of its own.
namespace nam::txn {
namespace {

/// Runs `scenario` on a fresh cluster, with the first client paused after each number of requests in turn,
/// until that client completes without a pause.
void AfterEveryVerb(uint64_t requests_min,
                    const std::function<bool(uint64_t requests, RecordCluster& cluster)>& scenario) {
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({});
    const bool paused = scenario(requests, cluster);
    if (::testing::Test::HasFailure()) return;
    if (paused) continue;
    EXPECT_GT(requests, requests_min);
    return;
  }
}

AllocationId MakeUniqueIndex(RecordCluster& cluster) {
  cluster.AddTable("items", {.row_bytes = sizeof(Item)});
  Clerk clerk(cluster, 99);
  const AllocationId index = cluster.AddIndex("items", ByName());
  const auto usable_from = clerk.session->FillIndex(clerk.items, index);
  EXPECT_TRUE(usable_from.ok()) << usable_from.status();
  cluster.SetUsable("items", index, *usable_from);
  return index;
}

/// Both insert a row with the same key of a unique index. A rival whose record is locked may be about to get
/// the key.
void InsertTheSameUniqueKey(bool begun_before) {
  int second_won = 0;
  AfterEveryVerb(20, [&](uint64_t requests, RecordCluster& cluster) {
    MakeUniqueIndex(cluster);
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    Clerk first(cluster, 1, fabric), second(cluster, 2);
    bool inserted = false;
    if (begun_before) {
      EXPECT_TRUE(second.session->Begin().ok());
    }
    fabric.PauseAfter(requests, [&] {
      if (!begun_before) {
        EXPECT_TRUE(second.session->Begin().ok());
      }
      inserted = second.Insert(ItemOf(2, 0, "kk")).ok() && second.session->Commit().ok();
    });
    const bool first_inserted = first.Put(ItemOf(1, 0, "kk")).ok();
    const bool paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_FALSE(first_inserted && inserted) << "two rows have the key";
    EXPECT_TRUE(first_inserted || paused);
    second_won += inserted;
    return paused;
  });
  EXPECT_GT(second_won, 0);
}

/// The second client waits as it begins, until it may skip the first one.
TEST(Interleaved, OneOfTwoInsertsGetsAUniqueKey) {
  InsertTheSameUniqueKey(/*begun_before=*/false);
}

/// The second client has begun before, so that it skips nothing.
TEST(Interleaved, OneOfTwoInsertsGetsAUniqueKeyIfNobodyWaits) {
  InsertTheSameUniqueKey(/*begun_before=*/true);
}

/// One client inserts a row with a key that the other gives up. It may have the key if it is given up before
/// its own timestamp; if after, both rows would have it at the snapshots in between.
TEST(Interleaved, AUniqueKeyIsFreeFromTheTimestampThatGaveItUp) {
  int given_up = 0;
  AfterEveryVerb(20, [&](uint64_t requests, RecordCluster& cluster) {
    MakeUniqueIndex(cluster);
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    Clerk first(cluster, 1, fabric), second(cluster, 2);
    EXPECT_TRUE(second.Put(ItemOf(2, 0, "kk")).ok());
    absl::StatusOr<uint64_t> changed = absl::UnknownError("");
    fabric.PauseAfter(requests, [&] {
      if (!second.session->Begin().ok() || !second.Update(ItemOf(2, 0, "zz")).ok()) return;
      changed = second.session->Commit();
    });
    EXPECT_TRUE(first.session->Begin().ok());
    EXPECT_TRUE(first.Insert(ItemOf(1, 0, "kk")).ok());
    const absl::StatusOr<uint64_t> inserted = first.session->Commit();
    const bool paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    given_up += changed.ok();
    if (inserted.ok()) {
      EXPECT_TRUE(changed.ok()) << "two rows have the key";
      EXPECT_GT(*inserted, changed.value_or(0)) << "two rows have the key in between";
    }
    return paused;
  });
  EXPECT_GT(given_up, 10);
}

/// Both insert the same row.
TEST(Interleaved, OneOfTwoInsertsGetsAPrimaryKey) {
  int second_won = 0;
  AfterEveryVerb(10, [&](uint64_t requests, RecordCluster& cluster) {
    cluster.AddTable("accounts", {});
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    Teller first(cluster, 1, fabric), second(cluster, 2);
    bool inserted = false;
    fabric.PauseAfter(requests, [&] {
      inserted = second.session->Begin().ok() && second.Insert(7, 2).ok() && second.session->Commit().ok();
    });
    EXPECT_TRUE(first.session->Begin().ok());
    EXPECT_TRUE(first.Insert(7, 1).ok());
    const bool first_inserted = first.session->Commit().ok();
    const bool paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_FALSE(first_inserted && inserted) << "two rows have the key";
    EXPECT_TRUE(first_inserted || inserted || paused);
    Teller reader(cluster, 3);
    if (first_inserted || inserted) {
      EXPECT_EQ(reader.BalanceOf(7), first_inserted ? 1 : 2);
    }
    second_won += inserted;
    return paused;
  });
  EXPECT_GT(second_won, 0);
}

/// Both move money between two accounts. Neither sees half of the other's transfer, and neither overwrites
/// it.
TEST(Interleaved, TwoMovesAreOneAfterTheOther) {
  int second_won = 0;
  AfterEveryVerb(15, [&](uint64_t requests, RecordCluster& cluster) {
    cluster.AddTable("accounts", {.versions = 4});
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    Teller first(cluster, 1, fabric), second(cluster, 2);
    second.Create(1, 100);
    second.Create(2, 100);
    const auto move = [](Teller& teller, int64_t amount) {
      if (!teller.session->Begin().ok()) return false;
      const auto one = teller.Read(1);
      const auto two = one.ok() ? teller.Read(2) : one;
      if (!two.ok()) return false;
      EXPECT_EQ((*one)->balance + (*two)->balance, 200) << "half of a move is seen";
      if (!teller.Update(1, (*one)->balance - amount).ok()) return false;
      return teller.Update(2, (*two)->balance + amount).ok() && teller.session->Commit().ok();
    };
    bool second_moved = false;
    fabric.PauseAfter(requests, [&] { second_moved = move(second, 10); });
    const bool first_moved = move(first, 1);
    const bool paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    Teller reader(cluster, 3);
    EXPECT_EQ(reader.BalanceOf(1), 100 - (first_moved ? 1 : 0) - (second_moved ? 10 : 0));
    EXPECT_EQ(reader.BalanceOf(2), 100 + (first_moved ? 1 : 0) + (second_moved ? 10 : 0));
    EXPECT_TRUE(first_moved || paused);
    second_won += second_moved;
    return paused;
  });
  EXPECT_GT(second_won, 0);
}

}  // namespace
}  // namespace nam::txn
