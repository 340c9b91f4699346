#include "localcluster/state_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace nam {
namespace {

class StateDirectoryTest : public testing::Test {
 protected:
  StateDirectoryTest() {
    // TEST_TMPDIR is long and shared; each test gets a directory of its own.
    path_ = CreateTemporaryDirectory("nam-test-").value();
  }
  ~StateDirectoryTest() override { RemoveTree(path_); }
  std::string path_;
};

TEST_F(StateDirectoryTest, TemporaryDirectoryIsPrivate) {
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(EnsurePrivateDirectory(path_).ok());
  EXPECT_TRUE(EnsurePrivateDirectory(path_ + "/a/b").ok());
}

TEST_F(StateDirectoryTest, RefusesADirectoryOpenToOthersAndALink) {
  chmod(path_.c_str(), 0755);
  EXPECT_EQ(EnsurePrivateDirectory(path_).code(), absl::StatusCode::kFailedPrecondition);
  chmod(path_.c_str(), 0700);
  const std::string link = path_ + "/link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_EQ(EnsurePrivateDirectory(link).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateDirectoryTest, SecretsAreFreshPrivateAndReadBack) {
  const std::string file = SecretFile(path_);
  ASSERT_TRUE(WriteFreshSecret(file).ok());
  const std::string first = ReadSecret(file).value();
  EXPECT_EQ(first.size(), 64u);
  ASSERT_TRUE(WriteFreshSecret(file).ok());
  EXPECT_NE(ReadSecret(file).value(), first);
  chmod(file.c_str(), 0644);
  EXPECT_EQ(ReadSecret(file).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadSecret(path_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StateDirectoryTest, StateIsReadBack) {
  const ClusterState state{.catalog_address = "127.0.0.1:4711",
                           .fabric = "shm",
                           .supervisor = {"supervisor", 4242, 17},
                           .servers = {{"catalog", 4243, 18}, {"memory server 1", 4244, 1ull << 40}}};
  ASSERT_TRUE(SaveState(path_, state).ok());
  const ClusterState read = LoadState(path_).value();
  EXPECT_EQ(read.catalog_address, state.catalog_address);
  EXPECT_EQ(read.fabric, "shm");
  EXPECT_EQ(read.supervisor.pid, 4242);
  ASSERT_EQ(read.servers.size(), 2u);
  EXPECT_EQ(read.servers[1].name, "memory server 1");
  EXPECT_EQ(read.servers[1].start_time, 1ull << 40);
}

TEST_F(StateDirectoryTest, DamagedStateIsNoCrash) {
  EXPECT_EQ(LoadState(path_).status().code(), absl::StatusCode::kNotFound);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"catalog": 1})", "\xff",
        R"({"catalog":"a","fabric":"shm","supervisor":{},"servers":[]})",
        R"({"catalog":"a","fabric":"shm","supervisor":{"name":"s","pid":-1,"start_time":1},"servers":[]})",
        R"({"catalog":"a","fabric":"shm","supervisor":{"name":"s","pid":5,"start_time":1},"servers":[7]})"}) {
    std::ofstream(StateFile(path_)) << text;
    EXPECT_EQ(LoadState(path_).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_F(StateDirectoryTest, OneLockAtATime) {
  auto first = LockDirectory(path_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(LockDirectory(path_).status().code(), absl::StatusCode::kFailedPrecondition);
  first->reset();
  EXPECT_TRUE(LockDirectory(path_).ok());
}

TEST_F(StateDirectoryTest, RunFilesGoLogsStay) {
  ASSERT_TRUE(WriteFreshSecret(SecretFile(path_)).ok());
  std::ofstream(path_ + "/catalog.log") << "x";
  std::ofstream(path_ + "/catalog.db-wal") << "x";
  RemoveRunFiles(path_);
  EXPECT_FALSE(std::filesystem::exists(SecretFile(path_)));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/catalog.db-wal"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/catalog.log"));
}

}  // namespace
}  // namespace nam
