#include "localcluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nam {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kLongMs = 60'000;

std::string LogFile() {
  return testing::TempDir() + "stderr.log";
}

std::unique_ptr<Process> StartChild(std::vector<std::string> arguments, ProcessOptions options = {}) {
  options.name = "the child";
  options.executable = "tests/localcluster/child";
  options.arguments = std::move(arguments);
  auto process = Process::Start(std::move(options));
  EXPECT_TRUE(process.ok()) << process.status();
  return std::move(process).value();
}

absl::Status Ready(Process& process, int64_t timeout_ms = kLongMs, int interrupt_fd = -1) {
  Process* const one[] = {&process};
  return AwaitReady(one, timeout_ms, interrupt_fd);
}

/// True if the process has ended; only its parent can wait for it.
bool Ended(int pidfd) {
  pollfd wait{pidfd, POLLIN, 0};
  return poll(&wait, 1, kLongMs) > 0;
}

TEST(ReadyLineTest, ParsesWhatItWrites) {
  const auto line = ReadyLine::Parse("READY memserver control=127.0.0.1:1 id=7");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->role, "memserver");
  EXPECT_EQ(line->values.at("control"), "127.0.0.1:1");
  EXPECT_EQ(line->ToString(), "READY memserver control=127.0.0.1:1 id=7");
}

TEST(ReadyLineTest, RefusesOtherLines) {
  for (const char* line :
       {"", "READY", "READYmemserver", "ready memserver", "READY memserver id", "READY m =x"}) {
    EXPECT_FALSE(ReadyLine::Parse(line).has_value()) << line;
  }
}

TEST(ProcessTest, HandshakeThenOrderlyStop) {
  const auto child = StartChild({"ready"});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_EQ(child->ready()->role, "server");
  EXPECT_EQ(child->ready()->values.at("id"), "7");
  EXPECT_TRUE(child->running());
  EXPECT_EQ(child->Stop(kLongMs), absl::OkStatus());
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->Outcome(), "exit code 0");
}

TEST(ProcessTest, OtherLinesMayComeFirst) {
  const auto child = StartChild({"chatty"});
  EXPECT_TRUE(Ready(*child).ok());
}

TEST(ProcessTest, ChildThatDiesEarlyIsQuoted) {
  const auto child = StartChild({"die"}, {.stderr_file = LogFile()});
  const absl::Status status = Ready(*child);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("the child ended before it was ready (exit code 3)"));
  EXPECT_THAT(message, HasSubstr("complaint 20"));
  EXPECT_THAT(message, Not(HasSubstr("complaint 2\n")));  // only the last ones
}

TEST(ProcessTest, WhatIsQuotedNeedsNoDisk) {
  const auto child = StartChild({"die"}, {.quote_stderr = true});
  const std::string message(Ready(*child).message());
  EXPECT_THAT(message, HasSubstr("(exit code 3); it said:\n"));
  EXPECT_THAT(message, HasSubstr("    complaint 20"));
  EXPECT_THAT(message, Not(HasSubstr("complaint 2\n")));
  const auto silent = StartChild({"silent"}, {.quote_stderr = true});
  absl::Status late;
  for (int i = 0; i < 600 && late.message().find("it said") == absl::string_view::npos; ++i)
    late = Ready(*silent, 50);
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("was not ready within 0.1 s; it said:\n    waits for nothing"));
}

TEST(ProcessTest, OnlyThisChildsPartOfTheLogIsQuoted) {
  { std::ofstream(LogFile()) << "from an earlier run\n"; }
  const auto child = StartChild({"die"}, {.stderr_file = LogFile()});
  EXPECT_THAT(std::string(Ready(*child).message()), Not(HasSubstr("earlier run")));
}

TEST(ProcessTest, ProgramThatIsNotThere) {
  auto process = Process::Start({.name = "nobody", .executable = "/nonexistent", .stderr_file = LogFile()});
  ASSERT_TRUE(process.ok());
  EXPECT_THAT(std::string(Ready(**process).message()), HasSubstr("cannot execute"));
}

TEST(ProcessTest, SilenceEndsAtTheDeadline) {
  const auto child = StartChild({"silent"});
  EXPECT_EQ(Ready(*child, 50).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(child->running());
}

TEST(ProcessTest, WaitingCanBeInterrupted) {
  const auto child = StartChild({"silent"});
  const UniqueFd interrupt(eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ(Ready(*child, kLongMs, interrupt.get()).code(), absl::StatusCode::kCancelled);
}

TEST(ProcessTest, StubbornChildIsKilled) {
  const auto child = StartChild({"stubborn"});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_EQ(child->Stop(50).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(child->running());
  EXPECT_THAT(child->Outcome(), HasSubstr("signal 9"));
}

TEST(ProcessTest, EnvironmentIsAddedAndReplaced) {
  setenv("NAM_TEST_VALUE", "old", 1);
  const auto child =
      StartChild({"environment", "NAM_TEST_VALUE"}, {.environment = {{"NAM_TEST_VALUE", "new"}}});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_EQ(child->ready()->values.at("value"), "new");
}

TEST(ProcessTest, EnvironmentCanBeKeptBack) {
  setenv("NAM_TEST_VALUE", "old", 1);
  const auto child = StartChild({"environment", "NAM_TEST_VALUE"}, {.drop_prefix = "NAM_"});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_EQ(child->ready()->values.at("value"), "unset");
}

TEST(ProcessTest, SeveralChildrenStartAndStopTogether) {
  std::vector<std::unique_ptr<Process>> children;
  std::vector<Process*> pointers;
  for (int i = 0; i < 4; ++i) pointers.push_back(children.emplace_back(StartChild({"ready"})).get());
  ASSERT_TRUE(AwaitReady(pointers, kLongMs).ok());
  EXPECT_TRUE(StopAll(pointers, kLongMs).ok());
}

TEST(ProcessTest, DestructorLeavesNoChild) {
  auto child = StartChild({"stubborn"});
  ASSERT_TRUE(Ready(*child).ok());
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);  // not even a zombie
  EXPECT_EQ(errno, ESRCH);
}

TEST(ProcessTest, DeathOfTheParentTakesItsChildren) {
  const auto parent = StartChild({"parent"});
  ASSERT_TRUE(Ready(*parent).ok());
  const pid_t grandchild = std::stoi(parent->ready()->values.at("child"));
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, grandchild, 0)));
  ASSERT_TRUE(pidfd.valid());
  parent->Signal(SIGKILL);
  ASSERT_TRUE(parent->AwaitEnd(kLongMs));
  EXPECT_TRUE(Ended(pidfd.get()));
}

TEST(ProcessTest, DetachedChildOutlivesItsOwnerAndCanBeEnded) {
  auto child = StartChild({"ready"}, {.detached = true});
  ASSERT_TRUE(Ready(*child).ok());
  const pid_t pid = child->pid();
  const auto identity = IdentityOf(pid);
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->pid, pid);
  EXPECT_THAT(identity->executable, testing::EndsWith("/tests/localcluster/child"));
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  child.reset();
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_EQ(getsid(pid), pid);
  // Another process with this pid: a different start time, boot or program.
  ProcessIdentity later = *identity, rebooted = *identity, other = *identity;
  ++later.start_time;
  rebooted.boot = "another";
  other.executable = "/usr/bin/editor";
  for (const ProcessIdentity& stranger : {later, rebooted, other})
    EXPECT_FALSE(EndForeignProcess(stranger, kLongMs));
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_TRUE(EndForeignProcess(*identity, kLongMs));
  EXPECT_TRUE(Ended(pidfd.get()));
  EXPECT_FALSE(EndForeignProcess(*identity, kLongMs));  // a zombie of this process
}

TEST(ProcessTest, ProcessesOfOtherUsersAreNobody) {
  if (geteuid() != 0) {
    EXPECT_FALSE(IdentityOf(1).has_value()) << "init is root's";
    return;
  }
  const auto child = StartChild({"as", "65534"});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_FALSE(IdentityOf(child->pid()).has_value());
  EXPECT_FALSE(EndForeignProcess({.pid = child->pid()}, kLongMs));
  EXPECT_TRUE(child->running());
}

TEST(ProcessTest, WorksInADirectoryWhateverBecomesOfItsPath) {
  std::string path = testing::TempDir() + "folder-XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string moved = path + "-moved";
  ASSERT_EQ(rename(path.c_str(), moved.c_str()), 0);
  ASSERT_EQ(symlink("/", path.c_str()), 0);
  const auto child = StartChild({"folder"}, {.stderr_file = "err.log", .directory_fd = folder.get()});
  ASSERT_TRUE(Ready(*child).ok());
  EXPECT_EQ(child->ready()->values.at("folder"), moved);
  EXPECT_EQ(access((moved + "/err.log").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace nam
