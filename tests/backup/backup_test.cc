#include "backup/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backup/restore.h"
#include "base/interruption.h"
#include "catalog/server.h"
#include "computeserver/server.h"
#include "localcluster/data_layout.h"
#include "memserver/server.h"
#include "session/record_engine.h"
#include "session/saved_records.h"
#include "session/session.h"
#include "tests/catalog/temp_folder.h"
#include "tests/cluster/in_process_cluster.h"

namespace nam::testing {
namespace {

using backup::EntryKind;
using backup::Manifest;
using backup::SavedFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMemoryBytes = uint64_t{256} << 20;
constexpr uint64_t kRegionBytes = uint64_t{8} << 20;

std::vector<std::string> Rows(session::Session& session, const std::string& statement) {
  const auto result = session.Execute(statement);
  EXPECT_TRUE(result.ok()) << statement << ": " << result.status();
  std::vector<std::string> rows;
  if (!result.ok()) return rows;
  for (const auto& row : result->rows) {
    std::string& text = rows.emplace_back();
    for (const Value& value : row) text += (text.empty() ? "" : "|") + value.ToString();
  }
  return rows;
}

/// A cluster on the files of a restore.
class RestoredCluster {
 public:
  RestoredCluster(const std::string& data_directory, int memory_servers) {
    auto catalog = catalog::CatalogServer::Start({.listen_address = "127.0.0.1:0",
                                                  .store_path = StoreIn(data_directory),
                                                  .cluster_name = "test",
                                                  .fabric = fabric::Kind::kShm,
                                                  .secret = "another secret"});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    if (!catalog.ok()) return;
    catalog_ = *std::move(catalog);
    const catalog::ClientOptions client{.address = catalog_->address(), .secret = "another secret"};
    for (int place = 1; place <= memory_servers; ++place) {
      memserver::MemoryServerOptions options;
      options.catalog = client;
      options.memory_bytes = kMemoryBytes;
      options.region_bytes = kRegionBytes;
      options.huge_pages = false;
      options.data_directory = MemoryDirectoryIn(data_directory, place);
      auto server = memserver::MemoryServer::Start(options);
      EXPECT_TRUE(server.ok()) << server.status();
      if (!server.ok()) return;
      memory_.push_back(*std::move(server));
    }
    auto compute = computeserver::ComputeServer::Start({.catalog = client});
    EXPECT_TRUE(compute.ok()) << compute.status();
    if (!compute.ok()) return;
    compute_ = *std::move(compute);
    auto attachment = catalog::Attachment::Attach({.catalog = client});
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    if (!attachment.ok()) return;
    attachment_ = *std::move(attachment);
    const auto engine = session::MakeRecordEngine(*attachment_);
    const auto loaded = session::LoadRecords(*attachment_, *engine, SavedRecordsIn(data_directory));
    EXPECT_TRUE(loaded.ok() || absl::IsNotFound(loaded.status())) << loaded.status();
    session_ = *session::Session::Open(*attachment_);
  }

  session::Session& session() { return *session_; }
  catalog::Attachment& attachment() { return *attachment_; }

 private:
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::vector<std::unique_ptr<memserver::MemoryServer>> memory_;
  std::unique_ptr<computeserver::ComputeServer> compute_;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<session::Session> session_;
};

class BackupTest : public ::testing::Test {
 protected:
  std::vector<std::string> Run(const std::string& statement) { return Rows(cluster_.session(), statement); }
  /// Columnar tables, one of them of two groups, record tables, a view and a schema.
  void MakeTables() {
    Run("create schema s");
    Run("create table t (a int, b text) with (storage = columnar)");
    Run("insert into t select g, 'text ' || g from generate_series(1, 20000) g");
    Run("set nam.compaction = off");
    Run("insert into t select g, 'more ' || g from generate_series(20001, 30000) g");
    Run("create table s.u (a bigint) with (storage = columnar)");
    Run("insert into s.u values (1), (2), (null)");
    Run("create table empty (a int) with (storage = columnar)");
    Run("create view v as select count(*) as n, sum(a) as total from t");
    Run("create table accounts (id serial primary key, balance int) with (storage = record)");
    Run("insert into accounts (balance) select 100 from generate_series(1, 1000) g");
    Run("create table \"Two Words\" (id int primary key, t text unique) with (storage = record)");
    Run("insert into \"Two Words\" values (1, 'one'), (2, 'two')");
  }
  static void ExpectTables(session::Session& session) {
    EXPECT_THAT(Rows(session, "select * from v"), ElementsAre("30000|450015000"));
    EXPECT_THAT(Rows(session, "select b from t where a in (7, 20001) order by a"),
                ElementsAre("text 7", "more 20001"));
    EXPECT_THAT(Rows(session, "select a from s.u order by a"), ElementsAre("1", "2", "NULL"));
    EXPECT_THAT(Rows(session, "select count(*) from empty"), ElementsAre("0"));
    EXPECT_THAT(Rows(session, "select count(*), sum(balance) from accounts"), ElementsAre("1000|100000"));
    EXPECT_THAT(Rows(session, "select * from \"Two Words\" order by id"), ElementsAre("1|one", "2|two"));
  }

  absl::StatusOr<Manifest> Backup(backup::OnProgress progress = {}, int64_t wait_us = 60'000'000) {
    return backup::WriteBackup(
        cluster_.attachment(),
        {.directory = directory_, .program = "a test", .wait_us = wait_us, .progress = std::move(progress)});
  }
  absl::StatusOr<Manifest> Restore() {
    return backup::Restore({.directory = directory_, .data_directory = data_});
  }
  void ExpectNothingLeft() {
    EXPECT_FALSE(std::filesystem::exists(directory_));
    Run("create table after_all (a int) with (storage = columnar)");
    Run("drop table after_all");
  }

  InProcessCluster cluster_{{.fabric = fabric::Kind::kShm,
                             .memory_servers = 2,
                             .compute_servers = 1,
                             .memory_bytes = kMemoryBytes,
                             .region_bytes = kRegionBytes,
                             .lease_ms = 1'500}};
  const TempFolder folder_;
  const std::string directory_ = folder_.File("backup");
  const std::string data_ = folder_.File("data");
};

TEST_F(BackupTest, EverythingComesBackInAnotherCluster) {
  MakeTables();
  const auto manifest = Backup();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->CountOf(EntryKind::kColumnar), 3u);
  EXPECT_EQ(manifest->CountOf(EntryKind::kRecord), 2u);
  EXPECT_EQ(manifest->CountOf(EntryKind::kView), 1u);
  EXPECT_EQ(manifest->CountOf(EntryKind::kSchema), 1u);
  for (const backup::Entry& entry : manifest->entries) {
    const uint64_t rows = entry.name == "t" ? 30'000 : entry.name == "accounts" ? 1'000 : entry.rows;
    EXPECT_EQ(entry.rows, rows) << entry.name;
  }
  EXPECT_EQ(manifest->memory_servers.size(), 2u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    struct stat info;
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, entry.is_directory() ? 0700u : 0600u) << entry.path();
  }
  Run("insert into t values (0, 'later')");
  Run("drop table \"Two Words\"");

  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  RestoredCluster other(data_, 2);  // beside the former one
  ExpectTables(other.session());
  EXPECT_THAT(Run("select n from v"), ElementsAre("30001"));
  const auto now = other.attachment().catalog().GetCluster(),
             former = cluster_.attachment().catalog().GetCluster();
  EXPECT_NE(now->store(), former->store());
  // It goes on as any cluster does: rows are added, tables dropped, numbers counted on.
  Rows(other.session(), "insert into t values (30001, 'new')");
  Rows(other.session(), "insert into accounts (balance) values (1)");
  EXPECT_THAT(Rows(other.session(), "select count(*), count(distinct id) from accounts"),
              ElementsAre("1001|1001"));
  EXPECT_THAT(Rows(other.session(), "select n from v"), ElementsAre("30001"));
  Rows(other.session(), "drop view v");
  Rows(other.session(), "drop table t");
  Rows(other.session(), "create table t (a int) with (storage = columnar)");
}

TEST_F(BackupTest, AClusterWithoutTablesIsOneToo) {
  ASSERT_TRUE(Backup().ok());
  ASSERT_TRUE(Restore().ok());
  RestoredCluster other(data_, 2);
  Rows(other.session(), "create table t (a int) with (storage = columnar)");
}

// The catalog is quiet no longer while files are copied; what is pinned is given to no other until the end.
TEST_F(BackupTest, TablesThatAreDroppedWhileTheyAreCopiedAreWhole) {
  MakeTables();
  bool dropped = false;
  const auto leaving = [&] {
    uint64_t bytes = 0;
    for (const auto& server : cluster_.memory())
      bytes += cluster_.attachment().MemoryUsage(server->id())->leaving_bytes();
    return bytes;
  };
  const auto drop = [&](std::string_view doing, uint64_t, uint64_t) {
    if (doing != "copying" || std::exchange(dropped, true)) return;
    const uint64_t used = cluster_.UsedBytes();
    Run("drop view v");
    Run("drop table t");
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (leaving() == 0 && cluster_.UsedBytes() >= used && !clock.Passed(deadline))
      clock.SleepUntil(clock.After(5'000));
    for (int i = 0; i < 3; ++i) {
      const std::string name = "other" + std::to_string(i);
      Run("create table " + name + " (a int, b text) with (storage = columnar)");
      Run("insert into " + name + " select -g, 'other ' || g from generate_series(1, 30000) g");
    }
  };
  const auto manifest = Backup(drop);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_TRUE(dropped);
  ASSERT_TRUE(Restore().ok());
  RestoredCluster other(data_, 2);
  ExpectTables(other.session());
  Clock& clock = cluster_.attachment().fabric().clock();
  const Deadline deadline = clock.After(60'000'000);
  while (leaving() > 0 && !clock.Passed(deadline)) clock.SleepUntil(clock.After(5'000));
  EXPECT_EQ(leaving(), 0u) << "what was pinned is free again";
}

TEST_F(BackupTest, RecordTablesAreSavedAtOneSnapshot) {
  MakeTables();
  Run("create table other_accounts (id int primary key, balance int) with (storage = record, versions = 8)");
  Run("insert into other_accounts values (1, 0)");
  std::atomic<bool> over = false;
  std::atomic<int> moved = 0;
  const auto session = cluster_.NewSession();
  std::thread mover([&] {
    while (!over) {
      const bool ok = session->Execute("begin").ok() &&
                      session->Execute("update accounts set balance = balance - 1 where id = 1000").ok() &&
                      session->Execute("update other_accounts set balance = balance + 1 where id = 1").ok();
      if (session->Execute(ok ? "commit" : "rollback").ok() && ok) ++moved;
    }
  });
  Clock& clock = cluster_.attachment().fabric().clock();
  while (moved < 10) clock.SleepUntil(clock.After(1'000));
  // On a busy host the mover may be faster than the backup, which says so.
  const Deadline deadline = clock.After(60'000'000);
  auto manifest = Backup();
  while (manifest.status().message().find("a quieter moment") != std::string::npos && !clock.Passed(deadline))
    manifest = Backup();
  over = true;
  mover.join();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_TRUE(Restore().ok());
  RestoredCluster other(data_, 2);
  EXPECT_THAT(Rows(other.session(),
                   "select (select sum(balance) from accounts) + (select sum(balance) from "
                   "other_accounts) as total"),
              ElementsAre("100000"));
}

TEST_F(BackupTest, WhenItIsCancelledNothingIsLeft) {
  MakeTables();
  std::atomic<bool> cancelled = false;
  const Interruption interruption(&cancelled);
  const auto manifest = Backup([&](std::string_view, uint64_t, uint64_t) { cancelled = true; });
  EXPECT_TRUE(absl::IsCancelled(manifest.status())) << manifest.status();
  cancelled = false;
  ExpectNothingLeft();
}

TEST_F(BackupTest, WhenItIsCancelledFilesOfOthersStay) {
  MakeTables();
  std::atomic<bool> cancelled = false;
  const Interruption interruption(&cancelled);
  const auto manifest = Backup([&](std::string_view, uint64_t, uint64_t) {
    std::ofstream(directory_ + "/notes") << "of another";
    cancelled = true;
  });
  EXPECT_TRUE(absl::IsCancelled(manifest.status())) << manifest.status();
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    left.push_back(entry.path().filename());
  EXPECT_THAT(left, ElementsAre("notes"));
}

TEST_F(BackupTest, ADirectoryThatIsInUseIsLeftAlone) {
  std::filesystem::create_directory(directory_);
  const std::string file = directory_ + "/file";
  std::ofstream(file) << "of another";
  EXPECT_TRUE(absl::IsAlreadyExists(Backup().status()));
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove(file);
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  const absl::Status open_to_others = Backup().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open_to_others));
  EXPECT_THAT(std::string(open_to_others.message()), HasSubstr("chmod 700"));
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  EXPECT_TRUE(Backup().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Backup().status())) << "a backup is not written over";
}

TEST_F(BackupTest, LoadsThatAreUnderWayAreWaitedFor) {
  catalog::Client& catalog = cluster_.attachment().catalog();
  const auto load = catalog.BeginLoad(cluster_.attachment().member(), "loading", /*replace=*/false);
  ASSERT_TRUE(load.ok()) << load.status();
  const absl::Status waited = Backup({}, /*wait_us=*/50'000).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(waited)) << waited;
  EXPECT_THAT(std::string(waited.message()), HasSubstr("loading"));
  ExpectNothingLeft();
  const auto other = catalog::Attachment::Attach({.catalog = cluster_.Client()});
  ASSERT_TRUE((*other)->catalog().BeginQuiet((*other)->member()).ok());
  EXPECT_THAT(std::string(Backup().status().message()), HasSubstr("a backup is under way"));
  ASSERT_TRUE((*other)->catalog().EndQuiet((*other)->member()).ok());
  ASSERT_TRUE(catalog.AbortLoad(*load).ok());
  EXPECT_TRUE(Backup().ok());
}

TEST_F(BackupTest, AStatementWaitsUntilTheCatalogIsQuietNoMore) {
  const auto other = catalog::Attachment::Attach({.catalog = cluster_.Client()});
  ASSERT_TRUE((*other)->catalog().BeginQuiet((*other)->member()).ok());
  std::atomic<bool> asked = false;
  std::thread statement([&] {
    asked = true;
    Run("create table t (a int) with (storage = columnar)");
  });
  Clock& clock = cluster_.attachment().fabric().clock();
  while (!asked) clock.SleepUntil(clock.After(1'000));
  clock.SleepUntil(clock.After(100'000));  // until it is likely to have come to the catalog
  EXPECT_TRUE((*other)->catalog().EndQuiet((*other)->member()).ok());
  statement.join();
  Run("insert into t values (1)");
}

TEST_F(BackupTest, ATableThatHasLostMemoryIsNotLeftOutSilently) {
  Run("create table t (a int, b text) with (storage = columnar)");
  Run("insert into t select g, 'text ' || g from generate_series(1, 20000) g");
  cluster_.memory().pop_back();
  const absl::Status lost = Backup().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("table t has lost memory"));
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

class RestoreTest : public BackupTest {
 protected:
  RestoreTest() {
    MakeTables();
    auto manifest = Backup();
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    if (manifest.ok()) manifest_ = *std::move(manifest);
  }
  /// The error names the file, and nothing is made.
  void ExpectRefused(const std::string& path) {
    const absl::Status status = Restore().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << path << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_FALSE(std::filesystem::exists(data_));
  }

  Manifest manifest_;
};

TEST_F(RestoreTest, DamagedAndMissingFilesAreNamedBeforeAnythingIsMade) {
  ASSERT_FALSE(manifest_.files.empty());
  for (const SavedFile& file : manifest_.files) {
    const std::string path = directory_ + "/" + file.path;
    for (const uint64_t at : {uint64_t{9}, file.bytes / 2, file.bytes - 1}) {
      const auto flip = [&] {
        std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekg(static_cast<std::streamoff>(at));
        const char byte = static_cast<char>(bytes.get() ^ 16);
        bytes.seekp(static_cast<std::streamoff>(at));
        bytes.put(byte);
      };
      flip();
      ExpectRefused(path);
      flip();
    }
    std::filesystem::resize_file(path, file.bytes + 1);
    if (backup::ParseSealedPath(file.path).has_value()) ExpectRefused(path);
    std::filesystem::resize_file(path, file.bytes);
    std::filesystem::rename(path, path + ".away");
    ExpectRefused(path);
    std::filesystem::rename(path + ".away", path);
  }
  EXPECT_TRUE(Restore().ok());
}

// Whole in itself, and not the one of this backup.
TEST_F(RestoreTest, AFileOfAnotherBackupIsRefused) {
  const std::string first = directory_ + ".first", records = directory_ + "/records.saved";
  std::filesystem::rename(directory_, first);
  Run("update accounts set balance = 99 where id = 7");
  ASSERT_TRUE(Backup().ok());
  std::filesystem::copy_file(first + "/records.saved", records,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectRefused(records);
}

TEST_F(RestoreTest, WithoutAManifestThereIsNoBackup) {
  std::filesystem::remove(directory_ + "/manifest");
  const absl::Status status = Restore().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no manifest"));
  EXPECT_FALSE(std::filesystem::exists(data_));
}

TEST_F(RestoreTest, WhatIsThereIsLeftAlone) {
  std::filesystem::create_directory(data_);
  std::ofstream(StoreIn(data_)) << "of another";
  EXPECT_TRUE(absl::IsAlreadyExists(Restore().status()));
  EXPECT_EQ(std::filesystem::file_size(StoreIn(data_)), 10u);
}

TEST_F(RestoreTest, WhenItIsCancelledNothingIsLeft) {
  std::atomic<bool> cancelled = false;
  const Interruption interruption(&cancelled);
  const auto status = backup::Restore({.directory = directory_,
                                       .data_directory = data_,
                                       .progress = [&](std::string_view doing, uint64_t,
                                                       uint64_t) { cancelled = doing == "restoring"; }})
                          .status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(std::filesystem::exists(data_));
}

/// What a restore leaves that is killed at each of its reports: a copy of the directory as it is then.
TEST_F(RestoreTest, WheneverItIsKilledNoClusterStartsOnWhatItLeaves) {
  std::map<std::string, int> reports;
  const auto look = [&](std::string_view doing, uint64_t, uint64_t) {
    const std::string left = folder_.File("left");
    std::filesystem::remove_all(left);
    std::filesystem::copy(data_, left, std::filesystem::copy_options::recursive);
    ASSERT_EQ(chmod(left.c_str(), 0700), 0);
    ++reports[std::string(doing)];
    const absl::Status started = MakeDataDirectory(left);
    EXPECT_TRUE(absl::IsFailedPrecondition(started)) << doing << ": " << started;
    EXPECT_THAT(std::string(started.message()), HasSubstr("interrupted"));
    const absl::Status again = backup::Restore({.directory = directory_, .data_directory = left}).status();
    EXPECT_EQ(again, started) << "the next restore says the same";
    EXPECT_TRUE(std::filesystem::exists(UnfinishedStoreIn(left))) << "and leaves it alone";
  };
  const auto restored = backup::Restore({.directory = directory_, .data_directory = data_, .progress = look});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_GT(reports["checking"], 0);
  EXPECT_GT(reports["restoring"], 0);
  EXPECT_TRUE(MakeDataDirectory(data_).ok());
}

// Members of the former cluster are no members of the new one, nor are its data directories its own.
TEST_F(RestoreTest, FormerMarksAndDirectoriesAreRefused) {
  ASSERT_TRUE(Restore().ok());
  const std::string again = folder_.File("again");
  ASSERT_TRUE(backup::Restore({.directory = directory_, .data_directory = again}).ok());
  auto catalog = catalog::CatalogServer::Start({.listen_address = "127.0.0.1:0",
                                                .store_path = StoreIn(again),
                                                .cluster_name = "test",
                                                .fabric = fabric::Kind::kShm,
                                                .secret = "secret"});
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  memserver::MemoryServerOptions options;
  options.catalog = {.address = (*catalog)->address(), .secret = "secret"};
  options.memory_bytes = kMemoryBytes;
  options.region_bytes = kRegionBytes;
  options.huge_pages = false;
  options.data_directory = MemoryDirectoryIn(data_, 1);
  const auto server = memserver::MemoryServer::Start(options);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("belongs to the cluster"));
}

}  // namespace
}  // namespace nam::testing
