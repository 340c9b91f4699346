#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/txn/clerk.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "txn/rsi/session.h"

/// What Session::Vacuum takes away, and what it leaves: rows of group 1 get group 2, or are deleted.
namespace nam::txn {
namespace {

constexpr uint64_t kVacuumedRows = 70, kDeletedRows = 5;  // more than are looked at together

class VacuumTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make() {
    auditor_.reset();
    looker_.reset();
    cluster_.reset();  // before the next world begins
    cluster_ = std::make_unique<RecordCluster>(RecordCluster::Options{.kind = fabric::Kind::kSim});
    for (const std::string name : {"items", "others"}) {
      cluster_->AddTable(name, {.row_bytes = sizeof(Item)});
      cluster_->SetUsable(name, cluster_->AddIndex(name, ByGroup()), 1);
    }
    looker_ = std::make_unique<RecordCluster::Member>(*cluster_, cluster_->client(), 20);
    auditor_ = std::make_unique<Auditor>(*looker_, TimestampKind::kLeased);
    Clerk clerk(*cluster_, 9);
    ASSERT_TRUE(clerk.session->Begin().ok());
    for (uint64_t key = 0; key < kVacuumedRows; ++key)
      ASSERT_TRUE(clerk.Insert(ItemOf(key, 1, nullptr)).ok());
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  /// The session that does so ends, and with it what it remembers.
  void ChangeAll() {
    Clerk clerk(*cluster_, 10);
    ASSERT_TRUE(clerk.session->Begin().ok());
    for (uint64_t key = 0; key < kVacuumedRows; ++key) {
      ASSERT_TRUE((key < kDeletedRows ? clerk.Delete(key) : clerk.Update(ItemOf(key, 2, nullptr))).ok());
    }
    ASSERT_TRUE(clerk.session->Commit().ok());
  }
  size_t EntriesOf(uint8_t group) {
    return auditor_->EntriesOf("items", KeyIn(ByGroup(), ItemOf(0, group, nullptr)));
  }
  AllocationId Index() { return cluster_->IndexesOf("items")[0].allocation; }
  /// All rows are there, with the newest keys.
  void CheckRows() {
    Clerk reader(*cluster_, 11);
    ASSERT_TRUE(reader.session->Begin().ok());
    EXPECT_EQ(AllItems(*reader.session, reader.items)->size(), kVacuumedRows - kDeletedRows);
    EXPECT_EQ(reader.KeysBy(Index()).size(), kVacuumedRows - kDeletedRows);
  }

  std::unique_ptr<RecordCluster> cluster_;
  std::unique_ptr<RecordCluster::Member> looker_;
  std::unique_ptr<Auditor> auditor_;
};

TEST_F(VacuumTest, WhatNoSnapshotNeedsGoes) {
  ChangeAll();
  EXPECT_EQ(EntriesOf(1), kVacuumedRows);
  Clerk vacuum(*cluster_, 3);
  const auto gone = vacuum.session->Vacuum(vacuum.items);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->versions, kVacuumedRows);
  EXPECT_EQ(gone->entries, kVacuumedRows);
  EXPECT_EQ(EntriesOf(1), 0u);
  EXPECT_EQ(EntriesOf(2), kVacuumedRows - kDeletedRows);
  CheckRows();
  const auto again = vacuum.session->Vacuum(vacuum.items);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->versions + again->entries, 0u);
  const auto others = vacuum.session->Vacuum(*vacuum.session->OpenTable("others"));
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->versions + others->entries, 0u);
  // The session goes on.
  EXPECT_TRUE(vacuum.Put(ItemOf(1'000, 3, nullptr)).ok());
  EXPECT_TRUE(vacuum.Put(ItemOf(0, 3, nullptr)).ok()) << "a deleted row's key";
  EXPECT_EQ(auditor_->UnderWayOfOthers(), 0u);
}

TEST_F(VacuumTest, WhatASnapshotNeedsStays) {
  Clerk old(*cluster_, 2), vacuum(*cluster_, 3);
  ASSERT_TRUE(old.session->Begin().ok());
  ChangeAll();
  for (const bool needed : {true, false}) {
    const auto gone = vacuum.session->Vacuum(vacuum.items);
    ASSERT_TRUE(gone.ok()) << gone.status();
    EXPECT_EQ(gone->versions, needed ? 0 : kVacuumedRows);
    EXPECT_EQ(gone->entries, needed ? 0 : kVacuumedRows);
    if (!needed) break;
    EXPECT_EQ(old.KeysBy(Index(), {std::byte{1}}, {std::byte{2}}).size(), kVacuumedRows);
    old.session->Abort();
  }
  CheckRows();
}

/// A snapshot of a client that has died needs nothing.
TEST_F(VacuumTest, TheDeadNeedNothing) {
  auto dead = std::make_unique<MortalFabric>(cluster_->client(), MortalFabric::kNever);
  {
    Clerk old(*cluster_, kVictim, *dead);
    ASSERT_TRUE(old.session->Begin().ok());
    dead->DieAfter(0);
  }
  cluster_->SetDead(MemberId(kVictim));
  ChangeAll();
  Clerk vacuum(*cluster_, 3);
  const auto gone = vacuum.session->Vacuum(vacuum.items);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->entries, kVacuumedRows);
}

/// Another client changes rows to and fro at each verb of it: every row is found by its key.
TEST_F(VacuumTest, BesideAWriter) {
  uint64_t requests = 0, conflicts = 0;
  for (bool paused = true; paused; requests += 7) {
    SCOPED_TRACE(requests);
    Make();
    ChangeAll();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Clerk vacuum(*cluster_, 3, fabric), writer(*cluster_, 4);
    uint8_t group = 2;
    fabric.PauseAfter(requests, [&] {
      for (const uint8_t next : {1, 2, 1}) {
        ASSERT_TRUE(writer.session->Begin().ok());
        const bool written = writer.Update(ItemOf(kDeletedRows, next, nullptr)).ok() &&
                             writer.Update(ItemOf(kVacuumedRows - 1, next, nullptr)).ok() &&
                             writer.session->Commit().ok();
        if (written) group = next;
        conflicts += !written;
      }
    });
    const auto gone = vacuum.session->Vacuum(vacuum.items);
    EXPECT_TRUE(gone.ok()) << gone.status();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    Clerk reader(*cluster_, 5);
    ASSERT_TRUE(reader.session->Begin().ok());
    const auto next = static_cast<std::byte>(group + 1);
    const std::vector<uint64_t> found = reader.KeysBy(Index(), {std::byte{group}}, {next});
    for (const uint64_t key : {kDeletedRows, kVacuumedRows - 1})
      EXPECT_EQ(std::ranges::count(found, key), 1) << key;
    CheckRows();
    if (HasFailure()) return;
  }
  EXPECT_GT(requests, 100u);
  EXPECT_LT(conflicts, requests) << "it locks few rows for a short time";
}

/// It dies at each of its verbs. Nothing stays locked, and all rows are there.
TEST_F(VacuumTest, OneThatDies) {
  uint64_t requests = 0;
  for (bool finished = false; !finished; requests += 7) {
    SCOPED_TRACE(requests);
    Make();
    ChangeAll();
    {
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      Clerk vacuum(*cluster_, kVictim, fabric);
      fabric.DieAfter(requests);
      finished = vacuum.session->Vacuum(vacuum.items).ok() && !fabric.dead();
      fabric.DieAfter(0);
    }
    cluster_->SetDead(MemberId(kVictim));
    EXPECT_EQ(auditor_->RecoverAll(), 1);
    EXPECT_EQ(auditor_->UnderWayOfOthers(), 0u);
    const TableAudit audit = auditor_->Audit("items", {});
    EXPECT_TRUE(audit.faults.empty()) << audit.ToString();
    CheckRows();
    Clerk other(*cluster_, 4);
    const auto gone = other.session->Vacuum(other.items);
    EXPECT_TRUE(gone.ok()) << gone.status();
    EXPECT_EQ(EntriesOf(1), 0u);
    CheckRows();
    if (HasFailure()) return;
  }
  EXPECT_GT(requests, 100u);
}

/// The index goes while its entries are looked at. Who drops it waits for the client; the client hears of it.
TEST_F(VacuumTest, AnIndexThatGoesMeanwhileIsLeftAlone) {
  ChangeAll();
  MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
  Clerk vacuum(*cluster_, kVictim, fabric), changer(*cluster_, 4);
  std::unique_ptr<fabric::Thread> thread;
  bool gone = false;
  std::function<void()> look = [&] {
    if (!auditor_->WordOf(MemberId(kVictim)).preparing()) return fabric.PauseAfter(1, look);
    cluster_->RemoveIndex("items", Index());
    thread = cluster_->client().StartThread("changer", [&] {
      EXPECT_TRUE(changer.session->AwaitCommits().ok());
      gone = true;
    });
    Clock& clock = cluster_->client().clock();
    clock.SleepUntil(clock.After(1'000));
    EXPECT_FALSE(gone) << "it was not waited for";
  };
  fabric.PauseAfter(1, look);
  const auto counts = vacuum.session->Vacuum(vacuum.items);
  EXPECT_TRUE(counts.ok()) << counts.status();
  ASSERT_NE(thread, nullptr);
  thread.reset();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace nam::txn
