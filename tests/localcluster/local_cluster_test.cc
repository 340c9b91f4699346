#include "localcluster/local_cluster.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "localcluster/buried_servers.h"

namespace nam {
namespace {

using testing::HasSubstr;

/// Uses `child` instead of `nam`: it interprets the subcommand as its action, and an unknown one as a server
/// that prints READY.
class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest() {
    options_.executable = "tests/localcluster/child";
    options_.directory = CreateTemporaryDirectory("nam-test-").value();
    options_.memory_servers = 3;
    options_.compute_servers = 2;
  }
  ~LocalClusterTest() override { RemoveTree(options_.directory); }
  LocalClusterOptions options_;
};

std::string CommandLine(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(LocalClusterTest, StartsAllServersAndStopsThem) {
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->catalog_address(), "127.0.0.1:4711");
  const std::vector<Process*> processes = (*cluster)->processes();
  ASSERT_EQ(processes.size(), 6u);
  EXPECT_EQ(processes[0]->name(), "catalog");
  EXPECT_EQ(processes[3]->name(), "memory server 3");
  const std::string secret = ReadSecret((*cluster)->secret_file()).value();
  std::vector<pid_t> pids;
  for (const Process* process : processes) {
    EXPECT_EQ(CommandLine(process->pid()).find(secret), std::string::npos);
    pids.push_back(process->pid());
  }
  EXPECT_THAT(CommandLine(pids[1]), HasSubstr("--catalog=127.0.0.1:4711"));
  EXPECT_TRUE((*cluster)->Stop().ok());
  for (const pid_t pid : pids) EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(LocalClusterTest, InterruptLeavesNothing) {
  const UniqueFd interrupt(eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ(LocalCluster::Start(options_, interrupt.get()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

TEST_F(LocalClusterTest, ProgramThatCannotRunIsAnError) {
  options_.executable = "/nonexistent";
  EXPECT_EQ(LocalCluster::Start(options_, -1).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LocalClusterTest, ComputeServersComeAndTheYoungestGo) {
  options_.memory_servers = 1;
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const auto fresh = (*cluster)->AddComputeServers(3, -1);
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  ASSERT_EQ(fresh->size(), 3u);
  EXPECT_EQ((*fresh)[2]->name(), "compute server 5");
  EXPECT_EQ((*cluster)->running_compute_servers(), 5);
  EXPECT_EQ((*cluster)->running_memory_servers(), 1);
  const pid_t youngest = (*fresh)[2]->pid();
  EXPECT_EQ((*cluster)->RemoveComputeServers(2)->size(), 2u);
  EXPECT_EQ(kill(youngest, 0), -1);
  EXPECT_EQ((*cluster)->processes().back()->name(), "compute server 3");
  // Names are not reused, because logs are named after them.
  EXPECT_EQ((*cluster)->AddComputeServers(1, -1).value()[0]->name(), "compute server 6");
  std::vector<pid_t> pids;
  for (const Process* process : (*cluster)->processes()) pids.push_back(process->pid());
  EXPECT_TRUE((*cluster)->Stop().ok());
  for (const pid_t pid : pids) EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(LocalClusterTest, OneComputeServerStays) {
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Process* const youngest = (*cluster)->processes().back();
  for (const int bad : {0, 2, 3, 1000}) {
    const auto refused = (*cluster)->RemoveComputeServers(bad);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("nam down"));
  }
  for (const int bad : {0, 63, 1000})
    EXPECT_EQ((*cluster)->AddComputeServers(bad, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(youngest->running());
  // A dead one does not count as one that stays.
  youngest->Signal(SIGKILL);
  ASSERT_TRUE(youngest->AwaitEnd(60'000));
  EXPECT_EQ((*cluster)->RemoveComputeServers(1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*cluster)->running_compute_servers(), 1);
}

TEST_F(LocalClusterTest, ComputeServersThatDoNotComeLeaveTheClusterAsItWas) {
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const UniqueFd interrupt(eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ((*cluster)->AddComputeServers(2, interrupt.get()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*cluster)->running_compute_servers(), 2);
  EXPECT_EQ((*cluster)->processes().size(), 6u);
  EXPECT_TRUE((*cluster)->AddComputeServers(1, -1).ok());
}

/// Tends until something has happened.
std::string NextEvent(LocalCluster& cluster) {
  while (true) {
    std::vector<pollfd> waits;
    for (const int fd : cluster.wait_fds()) waits.push_back({fd, POLLIN, 0});
    const int64_t left_ms = (cluster.wake().ns - RealClock().NowNs()) / 1'000'000 + 1;
    if (poll(waits.data(), waits.size(), static_cast<int>(std::clamp<int64_t>(left_ms, 0, 30'000))) < 0)
      return "poll";
    const std::vector<std::string> events = cluster.Tend();
    if (!events.empty()) return events[0];
  }
}

TEST_F(LocalClusterTest, ServersThatEndAreStartedAgain) {
  options_.restart.first_delay_ms = 10;
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE((*cluster)->Tend().empty());
  Process* const memory = (*cluster)->processes()[2];
  const pid_t former = memory->pid();
  memory->Signal(SIGKILL);
  EXPECT_EQ(
      NextEvent(**cluster),
      "memory server 7 ended with signal 9 (Killed), and what it held is lost; another is started in 0.0 s");
  EXPECT_EQ((*cluster)->running_memory_servers(), 2);
  EXPECT_THAT(NextEvent(**cluster), HasSubstr("memory server 7 is started again"));  // a child is always 7
  EXPECT_EQ((*cluster)->running_memory_servers(), 3);
  EXPECT_NE((*cluster)->processes()[2]->pid(), former);
  EXPECT_EQ((*cluster)->processes()[2]->name(), "memory server 2");

  (*cluster)->processes()[0]->Signal(SIGKILL);
  EXPECT_THAT(NextEvent(**cluster), HasSubstr("catalog 7 ended with signal 9 (Killed); another is started"));
  EXPECT_THAT(NextEvent(**cluster), HasSubstr("is started again"));
  EXPECT_THAT(CommandLine((*cluster)->processes()[0]->pid()), HasSubstr("--listen=127.0.0.1:4711"));
  EXPECT_THAT(CommandLine((*cluster)->processes()[0]->pid()), HasSubstr("--lease-port=4712"));
  EXPECT_TRUE((*cluster)->Stop().ok());
}

TEST_F(LocalClusterTest, AServerThatCrashesAgainAndAgainIsGivenUp) {
  options_.restart.first_delay_ms = 1;
  options_.restart.delay_max_ms = 4;
  options_.restart.failures_max = 3;
  options_.executable = "tests/localcluster/crashing_compute.sh";
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  int started = 0;
  std::string event;
  do {
    event = NextEvent(**cluster);
    started += event.find("is started again") != std::string::npos ? 1 : 0;
  } while (event.find("is not started again") == std::string::npos);
  EXPECT_THAT(event, HasSubstr("it has failed 4 times in short order"));
  EXPECT_LE(started, 6);  // three for each of two compute servers
  // Scaling reuses its place.
  ASSERT_EQ((*cluster)->processes().size(), 6u);
  EXPECT_FALSE((*cluster)->RemoveComputeServers(1000).ok());
  EXPECT_LT((*cluster)->processes().size(), 6u);
}

/// A stopped process does not end by itself when its membership has ended.
TEST_F(LocalClusterTest, ServersThatAreNoMembersAnyMoreAreKilled) {
  options_.restart.first_delay_ms = 10;
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  absl::StatusOr<proto::Cluster> members = proto::Cluster();
  proto::Member& all = *members->add_members();  // a child is always 7
  all.set_id(7);
  all.set_alive(true);
  BuriedServers buried(**cluster, [&] { return members; });
  const std::vector<Process*> processes = (*cluster)->processes();
  for (Process* process : processes) process->Signal(SIGSTOP);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(buried.Look(), testing::IsEmpty());
  all.set_alive(false);
  EXPECT_THAT(buried.Look(), testing::IsEmpty()) << "it may be ending";
  const proto::Cluster dead = *members;
  members = absl::UnavailableError("restarted");
  EXPECT_THAT(buried.Look(), testing::IsEmpty());
  members = dead;
  EXPECT_THAT(buried.Look(), testing::Contains(HasSubstr("memory server 2 (member 7)")));
  for (Process* process : processes) EXPECT_TRUE(process->AwaitEnd(60'000)) << process->name();
  EXPECT_THAT(NextEvent(**cluster), HasSubstr("ended with signal 9 (Killed)"));
}

/// Without the catalog all memory servers would lose their data.
TEST_F(LocalClusterTest, TheCatalogIsNeverGivenUp) {
  options_.restart.first_delay_ms = 1;
  options_.restart.delay_max_ms = 4;
  options_.restart.failures_max = 3;
  options_.executable = "tests/localcluster/crashing_catalog.sh";
  auto cluster = LocalCluster::Start(options_, -1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  (*cluster)->processes()[0]->Signal(SIGKILL);
  for (int ended = 0; ended < 6;) {
    const std::string event = NextEvent(**cluster);
    ASSERT_THAT(event, HasSubstr("catalog"));
    ASSERT_THAT(event, ::testing::Not(HasSubstr("is not started again")));
    ended += event.find("another is started") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ((*cluster)->running_memory_servers(), 3);
}

TEST_F(LocalClusterTest, BoundsAreChecked) {
  for (const int bad : {0, -1, 1000}) {
    LocalClusterOptions options = options_;
    options.memory_servers = bad;
    EXPECT_EQ(Validate(options).code(), absl::StatusCode::kInvalidArgument);
    options = options_;
    options.compute_servers = bad;
    EXPECT_EQ(Validate(options).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace nam
