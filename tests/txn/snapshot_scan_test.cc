#include "txn/snapshot_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "tests/txn/lent_reader.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/table_audit.h"
#include "tests/txn/teller.h"

namespace nam::txn {
namespace {

using Balances = LentReader::Balances;

constexpr uint32_t kReaderMember = 90;

class SnapshotScanTest : public ::testing::TestWithParam<std::tuple<fabric::Kind, TimestampKind>> {
 protected:
  SnapshotScanTest() : cluster_({.kind = std::get<0>(GetParam()), .timestamps = std::get<1>(GetParam())}) {}

  /// Accounts [first, first + count), in few transactions.
  static void CreateMany(Teller& teller, uint64_t first, uint64_t count, int64_t balance) {
    for (uint64_t at = 0; at < count;) {
      ASSERT_TRUE(teller.session->Begin().ok());
      for (uint64_t i = 0; i < 200 && at < count; ++i, ++at)
        ASSERT_TRUE(teller.Insert(first + at, balance).ok());
      teller.Commits();
    }
  }
  static Balances All(uint64_t first, uint64_t count, int64_t balance) {
    Balances balances;
    for (uint64_t key = first; key < first + count; ++key) balances[key] = balance;
    return balances;
  }

  RecordCluster cluster_;
};

TEST_P(SnapshotScanTest, SeesItsSnapshotWhateverOthersDoBesideIt) {
  cluster_.AddTable("accounts", {.versions = 4});
  Teller owner(cluster_, 1), other(cluster_, 2);
  CreateMany(owner, 0, 1'500, 100);
  for (const uint64_t window : {1'024, 256, 100, 7}) {
    SCOPED_TRACE(testing::Message() << "window " << window);
    ASSERT_TRUE(owner.session->Begin().ok());
    const uint64_t snapshot = owner.session->snapshot();
    LentReader reader(cluster_, kReaderMember);
    const auto before = reader.Read(snapshot, window, 2);
    ASSERT_TRUE(before.ok()) << before.status();
    EXPECT_GE(before->size(), 1'300u);
    uint64_t key = window % 50;
    const auto change = [&] {
      // An update, a deletion and an insert between any two batches.
      if (key > 1'400) return;
      ASSERT_TRUE(other.session->Begin().ok());
      const auto updated = other.Read(key), deleted = other.Read(key + 1);
      ASSERT_TRUE(updated.ok() && deleted.ok());
      if (updated->has_value()) {
        ASSERT_TRUE(other.Update(key, (*updated)->balance + 1).ok());
      }
      if (deleted->has_value()) {
        ASSERT_TRUE(other.Delete(key + 1).ok());
      }
      ASSERT_TRUE(other.Insert(1'000'000 * window + key, 1).ok());
      other.Commits();
      key += 97;
    };
    const auto beside = reader.Read(snapshot, window, 2, change);
    ASSERT_TRUE(beside.ok()) << beside.status();
    EXPECT_EQ(*beside, *before);
    owner.session->Abort();
    ASSERT_TRUE(owner.session->Begin().ok());
    const auto later = reader.Read(owner.session->snapshot(), window, 64);
    ASSERT_TRUE(later.ok()) << later.status();
    EXPECT_NE(*later, *before) << "the changes are seen by later snapshots";
    owner.session->Abort();
  }
}

/// Sessions that begin now and then keep snapshots; a scan at one of them returns the model's state at that
/// time, or the error of a snapshot that is too old.
TEST_P(SnapshotScanTest, RandomHistoriesAgainstAModel) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  cluster_.AddTable("accounts", {.versions = 2});
  Teller a(cluster_, 1), b(cluster_, 2);
  constexpr uint64_t kKeys = 1'200;
  CreateMany(a, 0, kKeys / 2, 0);
  std::map<uint64_t, Balances> model;  // by commit timestamp
  Balances now = All(0, kKeys / 2, 0);
  struct Kept {
    std::unique_ptr<Teller> teller;
    Balances balances;
  };
  std::deque<Kept> kept;
  LentReader reader(cluster_, kReaderMember);
  int right = 0, too_old = 0;
  uint32_t member = 10;
  for (int step = 0; step < 240; ++step) {
    Teller& writer = random() % 2 == 0 ? a : b;
    ASSERT_TRUE(writer.session->Begin().ok());
    Balances next = now;
    for (int i = 0; i < 8; ++i) {
      const uint64_t key = random() % kKeys;
      const auto row = writer.Read(key);
      ASSERT_TRUE(row.ok()) << row.status();
      ASSERT_EQ(row->has_value(), next.contains(key));
      if (!row->has_value()) {
        ASSERT_TRUE(writer.Insert(key, next[key] = step).ok());
      } else if (random() % 3 == 0) {
        ASSERT_TRUE(writer.Delete(key).ok());
        next.erase(key);
      } else {
        ASSERT_TRUE(writer.Update(key, next[key] = step).ok());
      }
    }
    const auto committed = writer.session->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
    now = next;
    if (random() % 4 == 0) {
      auto teller = std::make_unique<Teller>(cluster_, ++member);
      ASSERT_TRUE(teller->session->Begin().ok());
      if (teller->session->snapshot() >= *committed) kept.push_back({std::move(teller), now});
    }
    if (kept.empty()) continue;
    const Kept& at = kept[random() % kept.size()];
    const auto read = reader.Read(at.teller->session->snapshot(), 1 + random() % 600, 1 + random() % 5);
    if (read.ok()) {
      ASSERT_EQ(*read, at.balances) << "step " << step;
      ++right;
    } else {
      ASSERT_EQ(AbortReasonOf(read.status()), AbortReason::kSnapshotTooOld) << read.status();
      ++too_old;
    }
    if (kept.size() > 5) kept.pop_front();
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(too_old, 0);
}

TEST_P(SnapshotScanTest, TakesNoSlotAndWritesNothing) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  owner.Create(1, 10);
  ASSERT_TRUE(owner.session->Begin().ok());
  LentReader reader(cluster_, kReaderMember);
  ASSERT_TRUE(reader.Read(owner.session->snapshot(), 64, 1).ok());
  RecordCluster::Member tables(cluster_, cluster_.client(), 80);
  Auditor auditor(tables, std::get<1>(GetParam()));
  EXPECT_EQ(auditor.ClientOf(MemberId(kReaderMember)), 0u);
  EXPECT_EQ(auditor.LivingClients().size(), 1u);
}

TEST_P(SnapshotScanTest, TooOld) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1), writer(cluster_, 2);
  writer.Create(1, 0);
  ASSERT_TRUE(owner.session->Begin().ok());
  LentReader reader(cluster_, kReaderMember);
  EXPECT_EQ(*reader.Read(owner.session->snapshot(), 64, 1), (Balances{{1, 0}}));
  writer.Set(1, 1);
  EXPECT_EQ(*reader.Read(owner.session->snapshot(), 64, 1), (Balances{{1, 0}})) << "still in its other slot";
  writer.Set(1, 2);
  const auto read = reader.Read(owner.session->snapshot(), 64, 1);
  EXPECT_EQ(AbortReasonOf(read.status()), AbortReason::kSnapshotTooOld) << read.status();
}

/// A client has made any change to its rows when it dies: a reader at an older snapshot sees them unchanged,
/// and a reader whose version the dead client may be overwriting gets an error that is worth another try.
TEST_P(SnapshotScanTest, RowsThatADeadClientLeftLocked) {
  if (std::get<0>(GetParam()) != fabric::Kind::kSim) GTEST_SKIP() << "waits in virtual time";
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1), writer(cluster_, 2), second(cluster_, 3);
  int undecided = 0;
  LentReader reader(cluster_, kReaderMember);
  uint32_t member = 10;
  bool died = true;
  for (uint64_t requests = 0; died; ++requests) {
    SCOPED_TRACE(testing::Message() << "dies after " << requests << " requests of its commit");
    const uint64_t first = 2 * requests, other = first + 1;
    writer.Create(first, 10);
    writer.Create(other, 10);
    ASSERT_TRUE(owner.session->Begin().ok());
    writer.Set(first, 20);  // its old version is in the victim slot now
    ASSERT_TRUE(second.session->Begin().ok());
    MortalFabric mortal(cluster_.client(), MortalFabric::kNever);
    RecordCluster::Member tables(cluster_, mortal, ++member);
    {
      AccountSession doomed(OpenRsiSession(tables, {}));
      ASSERT_TRUE(doomed.session->Begin().ok());
      ASSERT_TRUE(doomed.Read(first).ok() && doomed.Read(other).ok());
      ASSERT_TRUE(doomed.Update(first, 30).ok() && doomed.Update(other, 30).ok());
      mortal.DieAfter(requests);
      died = !doomed.session->Commit().ok();
      const auto now = reader.Read(second.session->snapshot(), 64, 1);
      ASSERT_TRUE(now.ok()) << now.status();
      EXPECT_EQ(now->at(first), 20);
      EXPECT_EQ(now->at(other), 10);
      const auto before = reader.Read(owner.session->snapshot(), 64, 1);
      if (before.ok()) {
        EXPECT_EQ(before->at(first), 10);
        EXPECT_EQ(before->at(other), 10);
      } else {
        EXPECT_EQ(AbortReasonOf(before.status()), AbortReason::kSnapshotTooOld) << before.status();
        ++undecided;
      }
    }
    owner.session->Abort();
    second.session->Abort();
    if (!died) break;
    cluster_.SetDead(MemberId(member));
    RecordCluster::Member mender(cluster_, cluster_.client(), 80);
    Auditor(mender, std::get<1>(GetParam())).RecoverAll();
  }
  EXPECT_GT(undecided, 0);
}

TEST_P(SnapshotScanTest, ADroppedTable) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  CreateMany(owner, 0, 600, 1);
  ASSERT_TRUE(owner.session->Begin().ok());
  LentReader reader(cluster_, kReaderMember);
  auto open = reader.Open(owner.session->snapshot(), 50);
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE((*open)->Start({.chunks = 5}).ok());
  ASSERT_EQ((*open)->Next()->size(), 50u);
  cluster_.DropTable("accounts");
  absl::Status status;
  while (status.ok()) {
    const auto rows = (*open)->Next();
    status = rows.status();
    if (rows.ok()) {
      ASSERT_FALSE(rows->empty()) << "the rest is not silently missing";
    }
  }
  // The test's source of extents does not say that the table was dropped, as the catalog's does.
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsPermissionDenied(status) ||
              AbortReasonOf(status) == AbortReason::kSnapshotTooOld)
      << status;
  owner.session->Abort();
}

/// A source that says, from some time on, that its table was dropped.
class DroppedSource final : public ExtentSource {
 public:
  explicit DroppedSource(std::shared_ptr<ExtentSource> under) : under_(std::move(under)) {}
  absl::StatusOr<std::vector<SpaceExtent>> Extents() override {
    if (dropped) return absl::NotFoundError("dropped");
    return under_->Extents();
  }
  absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) override { return under_->Grow(known); }
  bool dropped = false;

 private:
  const std::shared_ptr<ExtentSource> under_;
};

TEST_P(SnapshotScanTest, ADroppedTableIsWorthAnotherTry) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  CreateMany(owner, 0, 300, 1);
  ASSERT_TRUE(owner.session->Begin().ok());
  RecordCluster::Member tables(cluster_, cluster_.client(), kReaderMember);
  TableDescription table = *tables.Find("accounts");
  const auto source = std::make_shared<DroppedSource>(table.records);
  table.records = source;
  const auto channel = *storage::Channel::Open(cluster_.client(), tables.directory(), {});
  const auto reader = *RecordReader::Open(table, *tables.State(), *channel,
                                          {.snapshot = owner.session->snapshot(), .window_max = 100});
  ASSERT_TRUE(reader->Start({.chunks = 5}).ok());
  ASSERT_TRUE(reader->Next().ok());
  source->dropped = true;
  ASSERT_TRUE(reader->Next().ok()) << "nothing has failed yet";
  cluster_.DropTable("accounts");
  const auto rows = reader->Next();
  EXPECT_EQ(AbortReasonOf(rows.status()), AbortReason::kSnapshotTooOld) << rows.status();
  EXPECT_THAT(rows.status().message(), ::testing::HasSubstr("dropped"));
  owner.session->Abort();
}

/// Blocks of rows that were deleted are used again when no session's snapshot sees them: a reader whose
/// session has gone meanwhile must not find fewer rows.
TEST_P(SnapshotScanTest, ASnapshotThatNobodyKeepsAnyMore) {
  cluster_.AddTable("accounts", {.extents_max = 1});
  Teller writer(cluster_, 1);
  constexpr uint64_t kRows = 1'200;
  CreateMany(writer, 0, kRows, 5);
  LentReader reader(cluster_, kReaderMember);
  auto owner = std::make_unique<Teller>(cluster_, 2);
  ASSERT_TRUE(owner->session->Begin().ok());
  const uint64_t snapshot = owner->session->snapshot();
  const auto remove = [&](uint64_t first, uint64_t count) {
    ASSERT_TRUE(writer.session->Begin().ok());
    for (uint64_t key = first; key < first + count; ++key) {
      ASSERT_TRUE(writer.Read(key).ok());
      ASSERT_TRUE(writer.Delete(key).ok());
    }
    writer.Commits();
  };
  remove(0, 200);
  // There is no room, and rows that the lent snapshot sees are not given away for it.
  absl::Status full;
  for (uint64_t key = 10'000; full.ok(); ++key) {
    ASSERT_TRUE(writer.session->Begin().ok());
    ASSERT_TRUE(writer.Insert(key, 1).ok());
    full = writer.session->Commit().status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  auto read = reader.Read(snapshot, 100, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, All(0, kRows, 5));
  // Its session ends between two batches.
  int batch = 0;
  read = reader.Read(snapshot, 100, 2, [&] {
    if (++batch != 2) return;
    owner.reset();
    CreateMany(writer, 20'000, 100, 1);  // where deleted rows were
  });
  EXPECT_EQ(AbortReasonOf(read.status()), AbortReason::kSnapshotTooOld)
      << read.status() << ", " << (read.ok() ? read->size() : 0) << " rows";
  ASSERT_TRUE(writer.session->Begin().ok());
  read = reader.Read(writer.session->snapshot(), 100, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GE(read->size(), kRows - 200 + 100);
}

/// The same between any two requests of the reader: only the horizon behind the blocks' completions tells.
TEST(SnapshotScanRace, TheHorizonIsReadBehindTheBlocks) {
  int right = 0, too_old = 0;
  uint64_t total = 0;
  const auto run = [&](uint64_t requests) {
    SCOPED_TRACE(testing::Message() << "the snapshot ends after " << requests << " requests");
    RecordCluster cluster({.kind = fabric::Kind::kSim});
    cluster.AddTable("accounts", {.extent_bytes = 128 << 10, .extents_max = 1});
    Teller writer(cluster, 1);
    const auto create = [&](uint64_t first, uint64_t count, int64_t balance) {
      ASSERT_TRUE(writer.session->Begin().ok());
      for (uint64_t key = first; key < first + count; ++key) ASSERT_TRUE(writer.Insert(key, balance).ok());
      writer.Commits();
    };
    constexpr uint64_t kRows = 2 * kChunkRecords;  // all that there is room for
    create(0, 400, 5);
    create(400, kRows - 400, 5);
    auto owner = std::make_unique<Teller>(cluster, 2);
    ASSERT_TRUE(owner->session->Begin().ok());
    const uint64_t snapshot = owner->session->snapshot();
    ASSERT_TRUE(writer.session->Begin().ok());
    for (uint64_t key = 0; key < 100; ++key) {
      ASSERT_TRUE(writer.Read(key).ok());
      ASSERT_TRUE(writer.Delete(key).ok());
    }
    writer.Commits();
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    LentReader reader(cluster, kReaderMember, fabric);
    const auto end = [&] {
      owner.reset();
      create(1'000, 60, 1);  // where deleted rows were
    };
    fabric.PauseAfter(requests, end);
    const auto read = reader.Read(snapshot, kRows, 2);
    total = MortalFabric::kNever - fabric.left();
    if (read.ok()) {
      EXPECT_EQ(read->size(), kRows);
      for (const auto& [key, balance] : *read) EXPECT_EQ(balance, 5) << key;
      ++right;
    } else {
      EXPECT_EQ(AbortReasonOf(read.status()), AbortReason::kSnapshotTooOld) << read.status();
      ++too_old;
    }
  };
  run(MortalFabric::kNever);
  const uint64_t all = total;
  EXPECT_EQ(right, 1);
  for (uint64_t requests = 0; requests < all; requests += 61) run(requests);
  for (uint64_t requests = all - 4; requests <= all; ++requests) run(requests);
  EXPECT_GT(right, 1) << "what was READ before the snapshot ended is right";
  EXPECT_GT(too_old, 3);
}

TEST_P(SnapshotScanTest, IsCancelled) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  CreateMany(owner, 0, 300, 1);
  ASSERT_TRUE(owner.session->Begin().ok());
  LentReader reader(cluster_, kReaderMember);
  std::atomic<bool> cancel = false;
  auto open = reader.Open(owner.session->snapshot(), 100, &cancel);
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE((*open)->Start({.chunks = 5}).ok());
  ASSERT_TRUE((*open)->Next().ok());
  cancel = true;
  EXPECT_TRUE(absl::IsCancelled((*open)->Next().status()));
  EXPECT_TRUE(absl::IsCancelled((*open)->Start({.chunks = 1})));
}

/// Blocks above 4 KiB come in two steps, and few of them fit the buffer.
TEST_P(SnapshotScanTest, LargeRowsAndSmallBuffers) {
  cluster_.AddTable("accounts",
                    {.row_bytes = 3'000, .versions = 2, .extent_bytes = 4 << 20, .extents_max = 4});
  RecordCluster::Member member(cluster_, cluster_.client(), 1);
  const auto session = *OpenRsiSession(member, {});
  const TableHandle table = *session->OpenTable("accounts");
  std::vector<std::byte> row(3'000);
  for (uint64_t key = 0; key < 300; ++key) {
    if (key % 100 == 0) {
      ASSERT_TRUE(session->Begin().ok());
    }
    const Account account{key, static_cast<int64_t>(key) * 7};
    std::memcpy(row.data(), &account, sizeof(account));
    ASSERT_TRUE(session->Insert(table, row).ok());
    if (key % 100 == 99) {
      ASSERT_TRUE(session->Commit().ok());
    }
  }
  ASSERT_TRUE(session->Begin().ok());
  Balances expected;
  for (uint64_t key = 0; key < 300; ++key) expected[key] = static_cast<int64_t>(key) * 7;
  for (const uint64_t buffer : {uint64_t{16} << 10, uint64_t{4} << 20}) {
    LentReader reader(cluster_, kReaderMember, cluster_.client(), buffer);
    const auto read = reader.Read(session->snapshot(), 1'024, 1);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, expected);
  }
  LentReader reader(cluster_, kReaderMember, cluster_.client(), 4 << 10);
  EXPECT_TRUE(absl::IsResourceExhausted(reader.Read(session->snapshot(), 1, 1).status()));
}

TEST_P(SnapshotScanTest, ExtentsThatCameLater) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  owner.Create(0, 1);
  LentReader reader(cluster_, kReaderMember);
  auto early = reader.Open(~uint64_t{0} >> 16);
  ASSERT_TRUE(early.ok());
  Balances balances;
  EXPECT_TRUE(absl::IsOutOfRange(LentReader::ReadRun(**early, {.extent = 7, .chunks = 1}, balances)));
  CreateMany(owner, 1, 3'000, 1);
  ASSERT_GT(reader.member().Find("accounts")->records->Extents()->size(), 2u);
  const uint64_t chunks = (*early)->layout().chunks;
  for (uint64_t extent = 0; extent < 3; ++extent) {
    ASSERT_TRUE(LentReader::ReadRun(**early, {.extent = extent, .chunks = chunks}, balances).ok());
  }
  EXPECT_EQ(balances, All(0, 3'001, 1));
}

TEST_P(SnapshotScanTest, ALostMemoryServer) {
  cluster_.AddTable("accounts", {});
  Teller owner(cluster_, 1);
  CreateMany(owner, 0, 2'000, 1);
  ASSERT_TRUE(owner.session->Begin().ok());
  const uint64_t snapshot = owner.session->snapshot();
  cluster_.KillServer(2, /*buried=*/true);
  LentReader reader(cluster_, kReaderMember);
  auto open = reader.Open(snapshot);
  ASSERT_TRUE(open.ok()) << open.status();
  Balances balances;
  EXPECT_TRUE(LentReader::ReadRun(**open, {.chunks = 5}, balances).ok());
  EXPECT_FALSE(balances.empty());
  EXPECT_TRUE(absl::IsUnavailable(LentReader::ReadRun(**open, {.extent = 1, .chunks = 5}, balances)));
}

INSTANTIATE_TEST_SUITE_P(Fabrics, SnapshotScanTest,
                         ::testing::Combine(::testing::Values(fabric::Kind::kShm, fabric::Kind::kSim),
                                            ::testing::Values(TimestampKind::kLeased,
                                                              TimestampKind::kBitVector)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == fabric::Kind::kShm ? "shm" : "sim") +
                                  "_" + NameOf(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace nam::txn
