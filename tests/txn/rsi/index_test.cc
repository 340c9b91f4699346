#include <gtest/gtest.h>

#include <thread>

#include "tests/txn/clerk.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "txn/index/table_index.h"
#include "txn/rsi/session.h"

namespace nam::txn {
namespace {

using Keys = std::vector<uint64_t>;
std::vector<std::byte> Group(uint8_t group) {
  return {std::byte{group}};
}

class RsiIndexTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  RsiIndexTest() : cluster_({.kind = GetParam()}) { cluster_.AddTable("items", {.row_bytes = sizeof(Item)}); }
  /// The index is made and filled by a client of its own.
  absl::StatusOr<AllocationId> Create(const IndexDescription& index, size_t extents_max = 256) {
    Clerk clerk(cluster_, 99);
    const AllocationId allocation = cluster_.AddIndex("items", index, extents_max);
    const absl::StatusOr<uint64_t> usable_from = clerk.session->FillIndex(clerk.items, allocation);
    if (!usable_from.ok()) return usable_from.status();
    cluster_.SetUsable("items", allocation, *usable_from);
    return allocation;
  }
  RecordCluster cluster_;
};

TEST_P(RsiIndexTest, RowsByRanges) {
  const AllocationId index = *Create(ByGroup());
  Clerk clerk(cluster_, 1);
  for (uint64_t key = 0; key < 100; ++key) {
    ASSERT_TRUE(clerk.Put(ItemOf(key, static_cast<uint8_t>(key % 7), nullptr)).ok());
  }
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index).size(), 100u);
  EXPECT_EQ(clerk.KeysBy(index, Group(3), Group(4)).size(), 14u);
  EXPECT_EQ(clerk.KeysBy(index, Group(5), {}).size(), 28u);
  EXPECT_EQ(clerk.KeysBy(index, Group(7), {}), Keys());
  EXPECT_EQ(clerk.KeysBy(index, Group(4), Group(3)), Keys());
  // Stops when it is told to.
  int visited = 0;
  ASSERT_TRUE(clerk.session->ScanIndex(clerk.items, index, {}, {}, [&](auto) { return ++visited < 5; }).ok());
  EXPECT_EQ(visited, 5);
}

TEST_P(RsiIndexTest, OwnWritesAreInTheirPlace) {
  const AllocationId index = *Create(ByGroup());
  Clerk clerk(cluster_, 1), other(cluster_, 2);
  for (uint64_t key = 1; key <= 4; ++key) {
    ASSERT_TRUE(clerk.Put(ItemOf(key, static_cast<uint8_t>(10 * key), nullptr)).ok());
  }
  ASSERT_TRUE(other.session->Begin().ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  ASSERT_TRUE(clerk.Insert(ItemOf(5, 25, nullptr)).ok());
  ASSERT_TRUE(clerk.Update(ItemOf(1, 35, nullptr)).ok());
  ASSERT_TRUE(clerk.Delete(4).ok());
  EXPECT_EQ(clerk.KeysBy(index), (Keys{2, 5, 3, 1}));
  EXPECT_EQ(clerk.KeysBy(index, Group(0), Group(26)), (Keys{2, 5}));
  EXPECT_EQ(other.KeysBy(index), (Keys{1, 2, 3, 4}));
  ASSERT_TRUE(clerk.session->Commit().ok());
  EXPECT_EQ(other.KeysBy(index), (Keys{1, 2, 3, 4})) << "its snapshot is older";
  other.session->Abort();
  ASSERT_TRUE(other.session->Begin().ok());
  EXPECT_EQ(other.KeysBy(index), (Keys{2, 5, 3, 1}));
}

/// The statement that goes beyond the bound is refused. An entry of a short key takes 32 bytes, beside some
/// 900 of the row.
TEST_P(RsiIndexTest, EntriesAreMemoryOfTheirTransaction) {
  const auto item = [](uint64_t key) {
    const std::string name = {static_cast<char>('a' + key / 100 % 100), static_cast<char>('!' + key % 100)};
    return ItemOf(key, static_cast<uint8_t>(key % 250), name.c_str());
  };
  const auto rows_that_fit = [&](Clerk& clerk) {
    clerk.session->SetTransactionBytesMax(5 << 20);
    EXPECT_TRUE(clerk.session->Begin().ok());
    uint64_t fits = 0;
    absl::Status status = clerk.Insert(item(0));
    while (status.ok()) status = clerk.Insert(item(++fits));
    EXPECT_TRUE(IsTooLarge(status)) << status;
    return fits;
  };
  Clerk plain(cluster_, 1);
  const uint64_t without = rows_that_fit(plain);
  const AllocationId by_group = *Create(ByGroup()), by_name = *Create(ByName());
  Clerk clerk(cluster_, 2);
  const uint64_t fits = rows_that_fit(clerk);
  EXPECT_LT(fits, without - without / 32);
  EXPECT_GT(fits, without - without / 8);
  ASSERT_TRUE(clerk.session->Begin().ok());
  for (uint64_t key = 0; key < fits; ++key) ASSERT_TRUE(clerk.Insert(item(key)).ok());
  const auto committed = clerk.session->Commit();
  ASSERT_TRUE(committed.ok()) << committed.status();
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(by_group).size(), fits);
  EXPECT_EQ(clerk.KeysBy(by_name).size(), fits);
}

// An extent has room for some thousand entries.
TEST_P(RsiIndexTest, EntriesOfOldVersionsAreRemoved) {
  const AllocationId index = *Create(ByGroup(), 1);
  Clerk clerk(cluster_, 1);
  for (uint64_t key = 0; key < 50; ++key) ASSERT_TRUE(clerk.Put(ItemOf(key, 0, nullptr)).ok());
  for (uint64_t n = 0; n < 8'000; ++n) {
    ASSERT_TRUE(clerk.session->Begin().ok());
    ASSERT_TRUE(clerk.Update(ItemOf(n % 50, static_cast<uint8_t>(n % 251), nullptr)).ok());
    const auto committed = clerk.session->Commit();
    ASSERT_TRUE(committed.ok()) << n << " " << committed.status();
  }
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index).size(), 50u);
}

TEST_P(RsiIndexTest, EntriesOfDeletedRowsAreRemoved) {
  const AllocationId index = *Create(ByGroup(), 1);
  Clerk clerk(cluster_, 1);
  for (uint64_t n = 0; n < 8'000; ++n) {
    const absl::Status put = clerk.Put(ItemOf(n, static_cast<uint8_t>(n % 251), nullptr));
    ASSERT_TRUE(put.ok()) << n << " " << put;
    ASSERT_TRUE(clerk.session->Begin().ok());
    ASSERT_TRUE(clerk.Delete(n).ok());
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index), Keys());
}

TEST_P(RsiIndexTest, AKeyThatComesBackLeadsToItsRowOnce) {
  const AllocationId index = *Create(ByGroup());
  Clerk clerk(cluster_, 1);
  ASSERT_TRUE(clerk.Put(ItemOf(1, 1, nullptr)).ok());
  for (const uint8_t group : {2, 1, 2, 1}) {
    ASSERT_TRUE(clerk.session->Begin().ok());
    ASSERT_TRUE(clerk.Update(ItemOf(1, group, nullptr)).ok());
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  ASSERT_TRUE(clerk.session->Begin().ok());
  ASSERT_TRUE(clerk.Delete(1).ok());
  ASSERT_TRUE(clerk.session->Commit().ok());
  ASSERT_TRUE(clerk.Put(ItemOf(1, 1, nullptr)).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index), Keys{1});
}

TEST_P(RsiIndexTest, UniqueKeys) {
  const AllocationId index = *Create(ByName());
  Clerk clerk(cluster_, 1), other(cluster_, 2);
  ASSERT_TRUE(clerk.Put(ItemOf(1, 0, "aa")).ok());
  ASSERT_TRUE(clerk.Put(ItemOf(2, 0, nullptr)).ok());
  ASSERT_TRUE(clerk.Put(ItemOf(3, 0, nullptr)).ok()) << "NULLs are not equal";
  EXPECT_TRUE(absl::IsAlreadyExists(clerk.Put(ItemOf(4, 0, "aa"))));
  ASSERT_TRUE(other.session->Begin().ok());
  ASSERT_TRUE(other.Insert(ItemOf(5, 0, "bb")).ok());
  ASSERT_TRUE(clerk.Put(ItemOf(6, 0, "bb")).ok());
  EXPECT_TRUE(absl::IsAborted(other.session->Commit().status())) << "the other is newer than its snapshot";
  // Within one transaction keys may change hands.
  ASSERT_TRUE(clerk.session->Begin().ok());
  ASSERT_TRUE(clerk.Update(ItemOf(1, 0, "bb")).ok());
  ASSERT_TRUE(clerk.Update(ItemOf(6, 0, "aa")).ok());
  EXPECT_TRUE(clerk.session->Commit().ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  ASSERT_TRUE(clerk.Insert(ItemOf(7, 0, "cc")).ok());
  ASSERT_TRUE(clerk.Insert(ItemOf(8, 0, "cc")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(clerk.session->Commit().status()));
  // Keys that were given up are free again, and so are those of deleted rows.
  EXPECT_TRUE(clerk.Put(ItemOf(7, 0, "cc")).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  ASSERT_TRUE(clerk.Delete(7).ok());
  ASSERT_TRUE(clerk.Insert(ItemOf(8, 0, "cc")).ok());
  EXPECT_TRUE(clerk.session->Commit().ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index, {std::byte{0}}, {std::byte{1}}), (Keys{6, 1, 8}));
}

TEST_P(RsiIndexTest, AnIndexOfRowsThatAreThere) {
  Clerk clerk(cluster_, 1);
  for (uint64_t key = 0; key < 1'000; ++key) {
    ASSERT_TRUE(clerk.Put(ItemOf(key, static_cast<uint8_t>(key % 250), key == 7 ? "xx" : nullptr)).ok());
  }
  Clerk other(cluster_, 2);
  const AllocationId by_group = *Create(ByGroup());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(by_group, Group(17), Group(18)).size(), 4u);
  EXPECT_EQ(clerk.KeysBy(by_group).size(), 1'000u);
  clerk.session->Abort();
  // A session that does not know of the index learns of it in its next commit; or, if the catalog is out of
  // reach, with the one after that.
  ASSERT_TRUE(other.Put(ItemOf(2'000, 17, "xx")).ok());
  ASSERT_TRUE(clerk.session->AwaitCommits().ok());
  other.member.BeforeFind([] { return absl::UnavailableError("no catalog"); });
  EXPECT_TRUE(absl::IsAborted(other.Put(ItemOf(2'001, 18, "xx"))));
  other.member.BeforeFind(nullptr);
  ASSERT_TRUE(other.Put(ItemOf(2'001, 18, "xx")).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(by_group, Group(17), Group(18)).size(), 5u);
  clerk.session->Abort();
  const absl::Status twice = Create(ByName()).status();
  EXPECT_TRUE(absl::IsAlreadyExists(twice)) << twice;
}

/// No two entries of a record with the same key have the same tag: tags come from timestamps, and repeat
/// after 8 million of them.
TEST_P(RsiIndexTest, ATagThatIsThereIsNotUsedTwice) {
  const AllocationId index = *Create(ByGroup());
  uint64_t first = 0;
  {
    Clerk clerk(cluster_, 1);
    ASSERT_TRUE(clerk.Put(ItemOf(1, 10, nullptr)).ok());
    ASSERT_TRUE(clerk.session->Begin().ok());
    first = clerk.session->snapshot();  // the row's timestamp
    ASSERT_TRUE(clerk.Update(ItemOf(1, 20, nullptr)).ok());
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  constexpr uint64_t kTags = (1 << 23) - 1;
  ASSERT_EQ(IndexEntry::TagOf(first + kTags), IndexEntry::TagOf(first));
  cluster_.SetLastTimestamp(first + kTags - 1);
  Clerk clerk(cluster_, 2);
  const auto update = [&] {
    EXPECT_TRUE(clerk.session->Begin().ok());
    EXPECT_TRUE(clerk.Update(ItemOf(1, 10, nullptr)).ok());
    return clerk.session->Commit().status();
  };
  EXPECT_TRUE(absl::IsAborted(update()));
  EXPECT_TRUE(update().ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index, Group(10), Group(11)), Keys{1});
}

TEST_P(RsiIndexTest, AnIndexThatWasDroppedIsNotRead) {
  const AllocationId index = *Create(ByGroup());
  Clerk clerk(cluster_, 1), dropping(cluster_, 2);
  ASSERT_TRUE(clerk.Put(ItemOf(1, 1, nullptr)).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_EQ(clerk.KeysBy(index), Keys{1});
  clerk.session->Abort();
  cluster_.RemoveIndex("items", index);
  ASSERT_TRUE(dropping.session->AwaitCommits().ok());
  ASSERT_TRUE(dropping.Put(ItemOf(2, 1, nullptr)).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());
  EXPECT_TRUE(absl::IsAborted(ItemsBy(*clerk.session, clerk.items, index).status()));
}

/// Commits to another table clean up entries that this session has left behind.
TEST_P(RsiIndexTest, ATableThatWasDroppedIsNotRead) {
  cluster_.AddTable("others", {.row_bytes = sizeof(Item)});
  ASSERT_TRUE(Create(ByGroup()).ok());
  cluster_.SetUsable("others", cluster_.AddIndex("others", ByGroup()), 1);
  MortalFabric fabric(cluster_.client(), MortalFabric::kNever);
  Clerk clerk(cluster_, 1, fabric);
  const TableHandle others = *clerk.session->OpenTable("others");
  const auto put = [&](TableHandle table, uint8_t group) -> absl::Status {
    clerk.items = table;
    if (absl::Status begun = clerk.session->Begin(); !begun.ok()) return begun;
    const absl::Status put =
        group == 0 ? clerk.Insert(ItemOf(1, 0, nullptr)) : clerk.Update(ItemOf(1, group, nullptr));
    return put.ok() ? clerk.session->Commit().status() : put;
  };
  const TableHandle items = clerk.items;
  for (uint8_t group = 0; group < 15; ++group) ASSERT_TRUE(put(items, group).ok());
  ASSERT_TRUE(clerk.session->Begin().ok());  // the last commit's flips are there
  clerk.session->Abort();
  cluster_.DropTable("items");
  const int connections = fabric.connections();
  for (uint8_t group = 0; group < 100; ++group) {
    const absl::Status status = put(others, group);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(fabric.connections(), connections) << "something failed, and the session was replaced";
}

/// A change of indexes costs one question for all tables that are there.
TEST_P(RsiIndexTest, TablesAreAskedForTogether) {
  cluster_.AddTable("others", {.row_bytes = sizeof(Item)});
  Clerk clerk(cluster_, 1);
  ASSERT_TRUE(clerk.session->OpenTable("others").ok());
  int asked = 0;
  size_t named = 0;
  clerk.member.BeforeFind([&] {
    ++asked;
    return absl::OkStatus();
  });
  clerk.member.BeforeFindAll([&](std::span<const std::string> names) { named = names.size(); });
  const auto questions = [&] {
    asked = 0;
    named = 0;
    EXPECT_TRUE(clerk.session->AwaitCommits().ok());
    EXPECT_EQ(asked, 1);
    return named;
  };
  EXPECT_EQ(questions(), 2u);
  EXPECT_EQ(questions(), 2u);
  cluster_.DropTable("others");
  EXPECT_EQ(questions(), 2u);
  EXPECT_EQ(questions(), 1u);
  // Another table of its name is a different table.
  cluster_.AddTable("others", {.row_bytes = sizeof(Item)});
  EXPECT_EQ(questions(), 1u);
  ASSERT_TRUE(clerk.session->OpenTable("others").ok());
  EXPECT_EQ(questions(), 2u);
}

/// A client dies in mid-commit, at every verb in turn, and has perhaps locked a node of the index. Another
/// client has its slot, and lives, when the node is wanted.
TEST(RsiIndex, WhoHasTheSlotOfADeadOwnerDoesNotHoldItsNodes) {
  constexpr uint32_t kVictim = 2, kSuccessor = 7;
  bool finished = false;
  for (uint64_t requests = 4; !finished; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.kind = fabric::Kind::kSim});
    cluster.AddTable("items", {.row_bytes = sizeof(Item)});
    cluster.SetUsable("items", cluster.AddIndex("items", ByGroup()), 1);
    uint32_t slot = 0;
    RecordCluster::Member member(cluster, cluster.client(), 5);
    Auditor auditor(member, TimestampKind::kLeased);
    {
      MortalFabric mortal(cluster.client(), MortalFabric::kNever);
      Clerk victim(cluster, kVictim, mortal);
      slot = auditor.ClientOf(MemberId(kVictim));
      ASSERT_TRUE(victim.session->Begin().ok() && victim.Insert(ItemOf(1, 3, nullptr)).ok());
      mortal.DieAfter(requests);
      finished = victim.session->Commit().ok() && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster.SetDead(MemberId(kVictim));
    auditor.TakeFreeSlots();
    ASSERT_TRUE(auditor.Recover(slot));
    Clerk successor(cluster, kSuccessor);
    ASSERT_EQ(auditor.ClientOf(MemberId(kSuccessor)), slot);
    EXPECT_TRUE(successor.Put(ItemOf(2, 4, nullptr)).ok());
    if (HasFailure()) return;
  }
}

/// A client dies in mid-commit, at every verb in turn, and has perhaps made an entry. The client that
/// recovers it has opened the table before there was the index.
TEST(RsiIndex, RecoveryKnowsIndexesThatAreYoungerThanItsTable) {
  int entered = 0;
  bool finished = false;
  for (uint64_t requests = 4; !finished; ++requests) {
    SCOPED_TRACE(requests);
    RecordCluster cluster({.kind = fabric::Kind::kSim});
    cluster.AddTable("items", {.row_bytes = sizeof(Item)});
    RecordCluster::Member recoverer(cluster, cluster.client(), 5), looker(cluster, cluster.client(), 6);
    Auditor old(recoverer, TimestampKind::kLeased);
    EXPECT_TRUE(old.Audit("items", {}).faults.empty());
    for (const IndexDescription& index : {ByGroup(), ByName()})
      cluster.SetUsable("items", cluster.AddIndex("items", index), 1);
    Auditor young(looker, TimestampKind::kLeased);
    const Item item = ItemOf(1, 3, nullptr);
    const auto entries = [&] { return young.EntriesOf("items", KeyIn(ByGroup(), item)); };
    {
      MortalFabric mortal(cluster.client(), MortalFabric::kNever);
      Clerk victim(cluster, 2, mortal);
      ASSERT_TRUE(victim.session->Begin().ok() && victim.Insert(item).ok());
      mortal.DieAfter(requests);
      finished = victim.session->Commit().ok() && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster.SetDead(MemberId(2));
    const size_t before = entries();
    ASSERT_EQ(old.RecoverAll(), 1);
    Clerk reader(cluster, 7);
    ASSERT_TRUE(reader.session->Begin().ok());
    const size_t there = AllItems(*reader.session, reader.items)->size();
    EXPECT_EQ(entries(), there);
    entered += before > there;
  }
  EXPECT_GT(entered, 0);
}

/// The entries of a commit share round trips, and so do its looks for rivals.
TEST(RsiIndex, EntriesOfManyRowsShareRequests) {
  constexpr uint64_t kRows = 3'000;
  RecordCluster cluster({.kind = fabric::Kind::kTcp});
  cluster.AddTable("items", {.row_bytes = sizeof(Item), .extent_bytes = 1 << 20});
  for (const IndexDescription& index : {ByGroup(), ByName()})
    cluster.SetUsable("items", cluster.AddIndex("items", index), 1);
  MortalFabric fabric(cluster.client(), MortalFabric::kNever);
  Clerk clerk(cluster, 1, fabric);
  ASSERT_TRUE(clerk.session->Begin().ok());
  for (uint64_t key = 0; key < kRows; ++key) {
    const uint64_t mixed = key * 1'237 % kRows;
    const std::string name = {static_cast<char>('!' + mixed / 80), static_cast<char>('!' + mixed % 80)};
    ASSERT_TRUE(clerk.Insert(ItemOf(key, static_cast<uint8_t>(mixed % 250), name.c_str())).ok());
  }
  const uint64_t before = fabric.left();
  const auto committed = clerk.session->Commit();
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_LT(before - fabric.left(), 8 * kRows) << "an entry alone takes six requests";
  Clerk other(cluster, 2);
  ASSERT_TRUE(other.session->Begin().ok());
  for (const IndexDescription& index : cluster.IndexesOf("items"))
    EXPECT_EQ(other.KeysBy(index.allocation).size(), kRows);
}

/// The session does not wait for the clients that fill the index.
TEST_P(RsiIndexTest, AnIndexThatIsDroppedWhileItIsFilledIsNotUsedAnyMore) {
  Clerk clerk(cluster_, 1);
  ASSERT_TRUE(clerk.Put(ItemOf(1, 1, "aa")).ok());
  for (const IndexDescription& index : {ByGroup(), ByName()}) {
    const AllocationId allocation = cluster_.AddIndex("items", index);
    int asked = 0;
    clerk.member.BeforeFind([&] {
      if (++asked == 2) cluster_.RemoveIndex("items", allocation);  // behind its rows
      return absl::OkStatus();
    });
    const absl::Status filled = clerk.session->FillIndex(clerk.items, allocation).status();
    EXPECT_EQ(AbortReasonOf(filled), AbortReason::kWriteWrite) << index.name << ": " << filled;
    clerk.member.BeforeFind(nullptr);
    EXPECT_TRUE(clerk.session->AwaitCommits().ok());
  }
}

TEST_P(RsiIndexTest, FillingWhileOthersWrite) {
  constexpr int kWriters = 3;
  constexpr uint64_t kKeys = 400;
  {
    Clerk clerk(cluster_, 1);
    for (uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(clerk.Put(ItemOf(key, 0, nullptr)).ok());
  }
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      Clerk clerk(cluster_, static_cast<uint32_t>(10 + w));
      for (uint64_t n = 0; !stop; ++n) {
        ASSERT_TRUE(clerk.session->Begin().ok());
        const uint64_t key = (n * 37 + static_cast<uint64_t>(w) * 11) % kKeys;
        const absl::Status changed = clerk.Update(ItemOf(key, static_cast<uint8_t>(n % 200), nullptr));
        const absl::Status status = changed.ok() ? clerk.session->Commit().status() : changed;
        ASSERT_TRUE(status.ok() || AbortReasonOf(status).has_value()) << status;
      }
    });
  }
  const absl::StatusOr<AllocationId> index = Create(ByGroup());
  EXPECT_TRUE(index.ok()) << index.status();
  Clerk reader(cluster_, 50);
  int compared = 0;
  // On a busy host most snapshots are too old before they are read.
  Clock& clock = cluster_.client().clock();
  const Deadline hangs = clock.After(120'000'000);
  for (int tries = 0; index.ok() && compared < 20 && !clock.Passed(hangs); ++tries) {
    if (tries >= 2'000 && compared > 0) break;
    ASSERT_TRUE(reader.session->Begin().ok());
    auto by_scan = AllItems(*reader.session, reader.items);
    auto by_index = by_scan.ok() ? ItemsBy(*reader.session, reader.items, *index) : by_scan;
    reader.session->Abort();
    if (!by_index.ok()) continue;  // the snapshot is too old
    std::sort(by_scan->begin(), by_scan->end());
    std::sort(by_index->begin(), by_index->end());
    EXPECT_EQ(by_scan->size(), kKeys);
    ASSERT_TRUE(*by_scan == *by_index);
    ++compared;
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, RsiIndexTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& info) {
                           return std::string(info.param == fabric::Kind::kShm ? "Shm" : "Tcp");
                         });

}  // namespace
}  // namespace nam::txn
