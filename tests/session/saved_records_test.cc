#include "session/saved_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/record_engine.h"
#include "session/session.h"
#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "tests/catalog/temp_folder.h"
#include "tests/cluster/in_process_cluster.h"
#include "txn/cluster_tables.h"
#include "txn/timestamps/client_slot.h"
#include "txn/timestamps/commit_point.h"
#include "txn/timestamps/timestamps.h"

namespace nam::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A client that has claimed a timestamp for a large commit, and stands still: others wait for it for long
/// before they skip it.
class StalledCommit {
 public:
  explicit StalledCommit(catalog::Attachment& attachment)
      : tables_(attachment),
        channel_(*storage::Channel::Open(tables_.fabric(), tables_.directory(), {})),
        batch_(*channel_),
        state_(*txn::ExtentSpace::Open(*channel_, tables_.State()->extents, txn::kStateBytes)),
        geometry_(tables_.State()->timestamps),
        slot_(ClaimSlot()),
        commit_point_(state_, geometry_, slot_),
        timestamps_(txn::Timestamps::Make(tables_.State()->timestamps, state_, geometry_, slot_.client,
                                          commit_point_, tables_.fabric().clock(), nullptr)) {
    commit_point_.Expect(size_t{1} << 20);
    EXPECT_TRUE(timestamps_->AddTake(batch_).ok() && batch_.Execute().ok());
    EXPECT_TRUE(timestamps_->AddClaim(batch_).ok() && batch_.Execute().ok());
    EXPECT_TRUE(timestamps_->ConfirmClaim(batch_).ok());
  }

 private:
  txn::ClientSlot ClaimSlot() {
    txn::ClientSlot slot;
    const txn::SlotOwner owner{.member = tables_.member().value(), .session = 1};
    EXPECT_TRUE(txn::ClientSlot::Claim(state_, geometry_, batch_, owner, 0, &slot).ok());
    return slot;
  }

  txn::ClusterTables tables_;
  const std::unique_ptr<storage::Channel> channel_;
  storage::VerbBatch batch_;
  txn::ExtentSpace state_;
  const txn::StateGeometry geometry_;
  const txn::ClientSlot slot_;
  txn::CommitPoint commit_point_;
  const std::unique_ptr<txn::Timestamps> timestamps_;
};

class SavedRecordsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Run(const std::string& statement) {
    const auto result = cluster_.session().Execute(statement);
    EXPECT_TRUE(result.ok()) << statement << ": " << result.status();
    std::vector<std::string> rows;
    if (!result.ok()) return rows;
    for (const auto& row : result->rows) {
      std::string& text = rows.emplace_back();
      for (const Value& value : row) text += (text.empty() ? "" : "|") + value.ToString();
    }
    return rows;
  }
  std::string Refused(const std::string& statement) {
    const auto result = cluster_.session().Execute(statement);
    EXPECT_FALSE(result.ok()) << statement;
    return std::string(result.status().message());
  }
  /// As for a cluster that ends.
  absl::StatusOr<session::SavedRecords> Save() {
    const auto saved = session::SaveRecords(cluster_.attachment(), *engine_, path_);
    if (saved.ok()) Mark(saved->number);
    return saved;
  }
  void Mark(uint64_t number) {
    EXPECT_TRUE(session::MarkSaved(cluster_.attachment().catalog(), number).ok());
  }
  absl::StatusOr<session::SavedRecords> Load() {
    return session::LoadRecords(cluster_.attachment(), *engine_, path_);
  }

  InProcessCluster cluster_{{.fabric = fabric::Kind::kShm, .memory_servers = 2, .compute_servers = 1}};
  const TempFolder folder_;
  const std::string path_ = folder_.File("records.saved");
  const std::unique_ptr<session::RecordAccess> engine_ = session::MakeRecordEngine(cluster_.attachment());
};

TEST_F(SavedRecordsTest, TablesComeBackWithAllThatTheyHave) {
  Run("create table child_before_parent (id int primary key) with (storage = record)");
  Run("create table parent (id int primary key, code text unique, check (id > 0)) with (storage = record)");
  Run("create table child (id serial primary key, parent int references parent, other int references child, "
      "note varchar(20)) with (storage = record)");
  Run("create table keyless (a int, b text) with (storage = record)");
  Run("create index by_note on child (note)");
  Run("insert into parent values (1, 'one'), (2, null)");
  Run("insert into child (parent, other, note) values (1, null, 'first'), (2, 1, 'second')");
  Run("insert into keyless select g, null from generate_series(1, 3000) g");
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->rows, 3'004u);
  EXPECT_THAT(saved->lost, IsEmpty());
  EXPECT_EQ(std::filesystem::file_size(path_), saved->bytes);
  for (const char* table : {"child", "parent", "keyless", "child_before_parent"})
    Run(std::string("drop table ") + table);

  const auto loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->tables.size(), 4u);
  EXPECT_EQ(loaded->rows, saved->rows);
  EXPECT_THAT(Run("select * from parent order by id"), ElementsAre("1|one", "2|NULL"));
  EXPECT_THAT(Run("select parent, other, note from child where note >= 'f' order by note"),
              ElementsAre("1|NULL|first", "2|1|second"));
  EXPECT_THAT(Run("select count(*), sum(a) from keyless"), ElementsAre("3000|4501500"));
  EXPECT_THAT(Refused("insert into parent values (0, 'x')"), HasSubstr("check"));
  EXPECT_THAT(Refused("insert into parent values (3, 'one')"), HasSubstr("unique"));
  EXPECT_THAT(Refused("insert into child (parent) values (9)"), HasSubstr("foreign key"));
  EXPECT_THAT(Refused("delete from parent where id = 1"), HasSubstr("foreign key"));
  EXPECT_THAT(Refused("drop index nosuch"), HasSubstr("nosuch"));
  Run("insert into child (parent, note) values (1, 'third')");  // by a number that no row had
  EXPECT_THAT(Run("select count(*), count(distinct id) from child"), ElementsAre("3|3"));
  Run("insert into keyless values (1, 'x')");
  Run("drop index by_note");
}

TEST_F(SavedRecordsTest, OthersGoOnBehindTheSnapshotIfTheyMay) {
  Run("create table wide (a int primary key, b varchar(1000)) with (storage = record)");
  Run("insert into wide select g, 'x' from generate_series(1, 3000) g");
  Run("create table small (a int primary key) with (storage = record)");
  Run("insert into small values (1)");
  int commits = 0;
  const auto commit = [&](uint64_t rows, uint64_t bytes) {
    EXPECT_GT(rows, 0u);
    EXPECT_GT(bytes, 0u);
    Run("insert into small values (" + std::to_string(100 + commits++) + ")");
  };
  const auto refused = session::SaveRecords(cluster_.attachment(), *engine_, path_,
                                            {.allow_later_commits = false, .progress = commit});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_FALSE(std::filesystem::exists(path_));
  const int before = commits;
  const auto saved = session::SaveRecords(cluster_.attachment(), *engine_, path_,
                                          {.allow_later_commits = true, .progress = commit});
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_GT(commits, before);
  EXPECT_EQ(saved->rows, 3'000u + 1 + static_cast<uint64_t>(before)) << "as they were at the snapshot";
  const auto found = session::CheckSavedRecords(path_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->bytes, saved->bytes);
  EXPECT_EQ(found->checksum, saved->checksum);
}

/// Another client's commit is under way: snapshots do not hold the commits behind it, though these are
/// acknowledged. What is saved does.
TEST_F(SavedRecordsTest, CommitsBehindOneThatIsUnderWayAreSaved) {
  for (const bool allow_later_commits : {false, true}) {
    SCOPED_TRACE(allow_later_commits);
    Run("create table small (id int primary key, v int) with (storage = record)");
    Run("insert into small values (1, 0)");
    const StalledCommit stalled(cluster_.attachment());
    Run("update small set v = 42");
    const auto saved = session::SaveRecords(cluster_.attachment(), *engine_, path_,
                                            {.allow_later_commits = allow_later_commits});
    ASSERT_TRUE(saved.ok()) << saved.status();
    Mark(saved->number);
    Run("drop table small");
    ASSERT_TRUE(Load().ok());
    EXPECT_THAT(Run("select v from small"), ElementsAre("42"));
    Run("drop table small");
  }
}

/// So do commits that come while rows are saved.
TEST_F(SavedRecordsTest, CommitsBehindOneThatBeganMeanwhileAreSaved) {
  Run("create table wide (a int primary key, b varchar(1000)) with (storage = record)");
  Run("insert into wide select g, 'x' from generate_series(1, 3000) g");
  Run("create table small (id int primary key, v int) with (storage = record)");
  Run("insert into small values (1, 0)");
  std::optional<StalledCommit> stalled;
  const auto saved =
      session::SaveRecords(cluster_.attachment(), *engine_, path_, {.progress = [&](uint64_t, uint64_t) {
                             if (stalled.has_value()) return;
                             stalled.emplace(cluster_.attachment());
                             Run("update small set v = 42");
                           }});
  ASSERT_TRUE(stalled.has_value());
  ASSERT_TRUE(saved.ok()) << saved.status();
  Mark(saved->number);
  Run("drop table small");
  Run("drop table wide");
  ASSERT_TRUE(Load().ok());
  EXPECT_THAT(Run("select v from small"), ElementsAre("42"));
}

/// The file of a cluster that went on, or an older one that was put back, has rows that are not the last.
TEST_F(SavedRecordsTest, OnlyTheFileThatWasMarkedIsLoaded) {
  Run("create table t (a int primary key, b int) with (storage = record)");
  Run("create table u (a int primary key) with (storage = record)");
  Run("insert into t values (1, 1)");
  const auto first = session::SaveRecords(cluster_.attachment(), *engine_, path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string kept = folder_.File("kept");
  std::filesystem::copy_file(path_, kept);
  Run("update t set b = 2");
  const auto refused = [&] {
    Run("drop table t");
    Run("drop table u");
    const absl::Status status = Load().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("when the cluster ended"));
    EXPECT_FALSE(cluster_.attachment().catalog().GetTable("t").ok());
    Run("create table t (a int primary key, b int) with (storage = record)");
    Run("create table u (a int primary key) with (storage = record)");
    Run("insert into t values (1, 3)");
  };
  refused();
  const auto second = Save();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->number, first->number);
  const std::string newer = folder_.File("newer");
  std::filesystem::rename(path_, newer);
  std::filesystem::copy_file(kept, path_);
  refused();
  std::filesystem::rename(newer, path_);
  Run("drop table t");
  Run("drop table u");
  ASSERT_TRUE(Load().ok());
  EXPECT_THAT(Run("select b from t"), ElementsAre("3"));
  refused();  // a second time
}

TEST_F(SavedRecordsTest, WithoutTablesThereIsNoFile) {
  EXPECT_THAT(Save()->tables, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(absl::IsNotFound(Load().status()));
}

TEST_F(SavedRecordsTest, NoDamagedFileIsLoaded) {
  Run("create table t (a int primary key) with (storage = record)");
  Run("insert into t select g from generate_series(1, 100) g");
  ASSERT_TRUE(Save().ok());
  Run("drop table t");
  std::string bytes;
  {
    std::ifstream file(path_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto load = [&](const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    const auto loaded = Load();
    EXPECT_EQ(cluster_.attachment().catalog().GetTable("t").ok(), loaded.ok());
    return loaded.status();
  };
  for (const size_t at : {size_t{3}, size_t{10}, size_t{30}, bytes.size() / 2, bytes.size() - 4}) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    const absl::Status status = load(flipped);
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)) << at << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
  for (const size_t size : {size_t{0}, size_t{20}, bytes.size() / 2, bytes.size() - 1, bytes.size() - 24})
    EXPECT_TRUE(absl::IsDataLoss(load(bytes.substr(0, size)))) << size;
  EXPECT_TRUE(load(bytes).ok());
}

}  // namespace
}  // namespace nam::testing
