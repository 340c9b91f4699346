#include "base/log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nam {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A log belongs to the process: each test uses its own directory for files and restores standard error.
class LogTest : public testing::Test {
 protected:
  LogTest() : stderr_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    path_ = testing::TempDir() + "log-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~LogTest() override {
    dup2(stderr_.get(), STDERR_FILENO);
    std::filesystem::remove_all(path_);
  }
  std::string File(const std::string& name) const { return ReadAll(path_ + "/" + name); }
  const UniqueFd stderr_;
  std::string path_;
};

TEST_F(LogTest, LinesTellTimeLevelAndMember) {
  StartLog(LogLevel::kInfo, "memserver");
  LogWarning("before there was a file");
  ASSERT_TRUE(OpenLogFile({.directory = path_, .name = "memserver-3"}).ok());
  LogInfo("joined\nas 3");
  LogDebug("too much");
  EXPECT_THAT(File("memserver-3.log"),
              ContainsRegex("^20[0-9-]+T[0-9:]+\\.[0-9]+Z warning memserver: before there was a file\n"
                            "20[0-9-]+T[0-9:]+\\.[0-9]+Z info memserver-3: joined as 3\n$"));
  struct stat info;
  ASSERT_EQ(stat((path_ + "/memserver-3.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LogTest, LevelsLeaveOut) {
  StartLog(ParseLogLevel("warning").value(), "catalog");
  ASSERT_TRUE(OpenLogFile({.directory = path_, .name = "catalog"}).ok());
  LogInfo("not this");
  LogError("but this");
  EXPECT_THAT(File("catalog.log"), HasSubstr(" error catalog: but this\n"));
  EXPECT_THAT(File("catalog.log"), Not(HasSubstr("not this")));
  EXPECT_EQ(ParseLogLevel("loud").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LogTest, RotatesAndKeepsAFew) {
  StartLog(LogLevel::kInfo, "compute");
  ASSERT_TRUE(
      OpenLogFile({.directory = path_, .name = "compute-4", .bytes_max = 1000, .older_files = 2}).ok());
  for (int i = 0; i < 100; ++i) LogInfo("line " + std::to_string(i));
  EXPECT_THAT(File("compute-4.log"), HasSubstr("line 99\n"));
  EXPECT_THAT(File("compute-4.log.1"), Not(HasSubstr("line 99\n")));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    ++files;
    EXPECT_LE(entry.file_size(), 1000u) << entry.path();
  }
  EXPECT_EQ(files, 3);
}

TEST_F(LogTest, OlderFilesStayWhileNoNewOneCanBeOpened) {
  StartLog(LogLevel::kInfo, "compute");
  ASSERT_TRUE(
      OpenLogFile({.directory = path_, .name = "compute-6", .bytes_max = 1000, .older_files = 2}).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 100; ++i) LogInfo("line " + std::to_string(i));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(File("compute-6.log"), HasSubstr("line 0\n"));
  EXPECT_THAT(File("compute-6.log"), HasSubstr("line 99\n"));
  LogInfo("line 100");
  EXPECT_THAT(File("compute-6.log"), Not(HasSubstr("line 99\n")));
  EXPECT_THAT(File("compute-6.log.1"), HasSubstr("line 99\n"));
}

TEST_F(LogTest, WhatLibrariesWriteIsThereAndCounts) {
  StartLog(LogLevel::kInfo, "compute");
  ASSERT_TRUE(OpenLogFile({.directory = path_, .name = "compute-5", .bytes_max = 1000}).ok());
  const std::string greeting(2000, 'x');
  ASSERT_EQ(write(STDERR_FILENO, greeting.data(), greeting.size()), 2000);
  LogInfo("after it");
  EXPECT_THAT(File("compute-5.log"), HasSubstr("after it"));
  EXPECT_EQ(File("compute-5.log.1"), greeting);
}

TEST_F(LogTest, LinksAreRefused) {
  const std::string target = path_ + "/target";
  std::ofstream(target) << "mine";
  std::filesystem::create_symlink(target, path_ + "/memserver-9.log");
  StartLog(LogLevel::kInfo, "memserver");
  EXPECT_FALSE(OpenLogFile({.directory = path_, .name = "memserver-9"}).ok());
  LogInfo("nowhere");
  EXPECT_EQ(ReadAll(target), "mine");
}

TEST_F(LogTest, APipeIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo((path_ + "/memserver-10.log").c_str(), 0600), 0);
  StartLog(LogLevel::kInfo, "memserver");
  EXPECT_FALSE(OpenLogFile({.directory = path_, .name = "memserver-10"}).ok());
}

/// The log must record the effects of a full disk, so its file has blocks ahead of its end.
TEST_F(LogTest, ThereIsRoomForLinesOfAFullDisk) {
  const auto ahead = [&]() -> int64_t {
    struct stat info;
    EXPECT_EQ(stat((path_ + "/catalog.log").c_str(), &info), 0);
    return info.st_blocks * 512 - info.st_size;
  };
  {
    const UniqueFd probe(open((path_ + "/probe").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (fallocate(probe.get(), FALLOC_FL_KEEP_SIZE, 0, 4096) != 0) GTEST_SKIP() << "not on this file system";
  }
  StartLog(LogLevel::kInfo, "catalog");
  ASSERT_TRUE(OpenLogFile({.directory = path_, .name = "catalog", .bytes_max = 300 << 10}).ok());
  for (int line = 0; line < 4'000; ++line) {
    LogInfo(std::string(100 + line % 37, 'x'));
    ASSERT_GE(ahead(), 30 << 10) << line;
  }
  EXPECT_TRUE(std::filesystem::exists(path_ + "/catalog.log.1")) << "a fresh file has it too";
}

}  // namespace
}  // namespace nam
