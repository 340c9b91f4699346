#include "localcluster/state_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

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

TEST_F(StateDirectoryTest, IsMadePrivate) {
  ASSERT_TRUE(StateDirectory::Create(path_ + "/a/b").ok());
  struct stat info;
  ASSERT_EQ(stat((path_ + "/a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(StateDirectory::Open(path_ + "/a/b/").ok());
  const auto behind_slash = StateDirectory::Create(path_ + "/a/c/");
  EXPECT_TRUE(behind_slash.ok()) << behind_slash.status();
  EXPECT_EQ(StateDirectory::Open(path_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StateDirectoryTest, RefusesWhatOthersMayHaveMade) {
  const auto refused = [&](const std::string& path) {
    EXPECT_EQ(StateDirectory::Open(path).status().code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_EQ(StateDirectory::Create(path).status().code(), absl::StatusCode::kFailedPrecondition) << path;
  };
  chmod(path_.c_str(), 0755);
  refused(path_);
  chmod(path_.c_str(), 0700);
  const std::string link = path_ + "/link";
  std::filesystem::create_directory(path_ + "/target");
  chmod((path_ + "/target").c_str(), 0700);
  std::filesystem::create_symlink(path_ + "/target", link);
  refused(link);
  refused(link + "/");
  std::ofstream(path_ + "/file") << "x";
  refused(path_ + "/file");
  refused("/");  // root's, or open to all
}

TEST_F(StateDirectoryTest, RefusesAnotherUsersDirectoryAndFiles) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const StateDirectory directory = StateDirectory::Open(path_).value();
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  ASSERT_TRUE(directory.SaveState({.supervisor = {"supervisor", {.pid = 4242}}}).ok());
  ASSERT_TRUE(directory.Lock().ok());
  for (const char* name : {"secret", "cluster.json", "lock"})
    ASSERT_EQ(chown((path_ + "/" + name).c_str(), 65534, 65534), 0);
  EXPECT_EQ(directory.ReadSecret().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(directory.LoadState().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(directory.Lock().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadSecret(SecretFile(path_)).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(StateDirectory::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateDirectoryTest, LinksInItAreNotFollowed) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  const std::string target = path_ + "/target";
  std::ofstream(target) << "untouched";
  chmod(target.c_str(), 0600);
  for (const char* name : {"lock", "cluster.json"})
    std::filesystem::create_symlink(target, path_ + "/" + name);
  EXPECT_FALSE(directory.Lock().ok());
  EXPECT_FALSE(directory.LoadState().ok());
  std::filesystem::remove(SecretFile(path_));
  std::filesystem::create_symlink(target, SecretFile(path_));
  EXPECT_FALSE(directory.ReadSecret().ok());
  ASSERT_TRUE(directory.WriteFreshSecret().ok());  // in place of the link
  directory.RemoveRunFiles();
  std::string text;
  std::ifstream(target) >> text;
  EXPECT_EQ(text, "untouched");
}

TEST_F(StateDirectoryTest, APathThatIsSwappedLeadsNowhere) {
  const std::string path = path_ + "/state", victim = path_ + "/victim";
  const StateDirectory directory = StateDirectory::Create(path).value();
  ASSERT_TRUE(StateDirectory::Create(victim).ok());
  std::ofstream(victim + "/secret") << "another";
  std::ofstream(victim + "/letter") << "mine";
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  ASSERT_EQ(rename(path.c_str(), (path + "-moved").c_str()), 0);
  std::filesystem::create_symlink(victim, path);
  EXPECT_EQ(directory.ReadSecret()->size(), 64u);
  directory.RemoveRunFiles();
  EXPECT_TRUE(std::filesystem::exists(victim + "/secret"));
  EXPECT_TRUE(std::filesystem::exists(victim + "/letter"));
  EXPECT_FALSE(std::filesystem::exists(path + "-moved/secret"));
}

TEST_F(StateDirectoryTest, SecretsAreFreshPrivateAndReadBack) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  const std::string file = SecretFile(path_);
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  const std::string first = ReadSecret(file).value();
  EXPECT_EQ(first.size(), 64u);
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  EXPECT_NE(ReadSecret(file).value(), first);
  EXPECT_EQ(directory.ReadSecret().value(), ReadSecret(file).value());
  chmod(file.c_str(), 0644);
  EXPECT_EQ(ReadSecret(file).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadSecret(path_ + "/none").status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSecret(path_ + "/pipe").status().code(), absl::StatusCode::kFailedPrecondition)
      << "and no wait";
}

// An attacker on the network can try guesses.
TEST_F(StateDirectoryTest, AShortSecretIsRefused) {
  const std::string file = path_ + "/chosen";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    chmod(file.c_str(), 0600);
    return ReadSecret(file);
  };
  EXPECT_EQ(read("fifteen bytes..\n").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read("sixteen bytes...\n").value(), "sixteen bytes...");
}

ClusterState::Server ServerOf(const std::string& name, pid_t pid, uint64_t start_time) {
  return {name, {.pid = pid, .start_time = start_time, .boot = "b", .executable = "/bin/nam"}};
}

TEST_F(StateDirectoryTest, StateIsReadBack) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  const ClusterState state{
      .catalog_address = "127.0.0.1:4711",
      .fabric = "shm",
      .supervisor = ServerOf("supervisor", 4242, 17),
      .servers = {ServerOf("catalog", 4243, 18), ServerOf("memory server 1", 4244, 1ull << 40)},
      .events = {"one", "two"}};
  ASSERT_TRUE(directory.SaveState(state).ok());
  const ClusterState read = directory.LoadState().value();
  EXPECT_EQ(read.catalog_address, state.catalog_address);
  EXPECT_EQ(read.fabric, "shm");
  EXPECT_EQ(read.supervisor.process, state.supervisor.process);
  ASSERT_EQ(read.servers.size(), 2u);
  EXPECT_EQ(read.servers[1].name, "memory server 1");
  EXPECT_EQ(read.servers[1].process, state.servers[1].process);
  EXPECT_EQ(read.events, state.events);
}

TEST_F(StateDirectoryTest, DamagedStateIsNoCrash) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  EXPECT_EQ(directory.LoadState().status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(directory.SaveState({.supervisor = ServerOf("s", 5, 1)}).ok());
  ASSERT_TRUE(directory.LoadState().ok());
  const std::string good = R"("catalog":"a","fabric":"shm","servers":[],"events":[])";
  const std::string one = R"({"name":"s","pid":5,"start_time":1,"boot":"b","executable":"e"})";
  const std::vector<std::string> damaged = {
      "",
      "{",
      "[]",
      "{}",
      R"({"version":2,"catalog": 1})",
      "\xff",
      R"({"version":1,)" + good + R"(,"supervisor":)" + one + "}",
      R"({"version":2,)" + good + R"(,"supervisor":{}})",
      R"({"version":2,)" + good +
          R"(,"supervisor":{"name":"s","pid":-1,"start_time":1,"boot":"b","executable":"e"}})",
      R"({"version":2,"catalog":"a","fabric":"shm","servers":[7],"events":[],"supervisor":)" + one + "}"};
  for (const std::string& text : damaged) {
    std::ofstream(StateFile(path_)) << text;
    EXPECT_EQ(directory.LoadState().status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_F(StateDirectoryTest, OneLockAtATime) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  auto first = directory.Lock();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(directory.Lock().status().code(), absl::StatusCode::kAlreadyExists);
  first->reset();
  EXPECT_TRUE(directory.Lock().ok());
}

TEST_F(StateDirectoryTest, RunFilesGoLogsAndOthersStay) {
  const StateDirectory directory = StateDirectory::Open(path_).value();
  ASSERT_TRUE(directory.WriteFreshSecret().ok());
  for (const char* name : {"catalog.log", "memserver-3.log.1", "catalog.db-wal", "letter.txt"})
    std::ofstream(path_ + "/" + name) << "x";
  directory.RemoveRunFiles();
  EXPECT_FALSE(std::filesystem::exists(SecretFile(path_)));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/catalog.db-wal"));
  for (const char* name : {"catalog.log", "memserver-3.log.1", "letter.txt"})
    EXPECT_TRUE(std::filesystem::exists(path_ + "/" + name)) << name;
}

}  // namespace
}  // namespace nam
