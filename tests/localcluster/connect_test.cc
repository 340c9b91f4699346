#include "localcluster/connect.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "catalog/server.h"
#include "localcluster/process.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"

namespace nam {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The state directory of a local cluster whose catalog has ended. This process is its supervisor.
class ConnectTest : public testing::Test {
 protected:
  ConnectTest() : directory_(*StateDirectory::Open(path_)) {
    EXPECT_TRUE(directory_.WriteFreshSecret().ok());
    // Bound, and so nobody else's; nobody listens.
    port_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(port_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::getsockname(port_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(at.sin_port));
    Save(*IdentityOf(getpid()));
  }
  ~ConnectTest() override { RemoveTree(path_); }

  void Save(const ProcessIdentity& supervisor) {
    ASSERT_TRUE(directory_
                    .SaveState({.catalog_address = address_,
                                .fabric = "shm",
                                .data_directory = "",
                                .supervisor = {"supervisor", supervisor},
                                .servers = {}})
                    .ok());
  }
  absl::Status Refused(int64_t restart_wait_us) {
    return AttachToCluster({.state_dir = path_, .restart_wait_us = restart_wait_us}).status();
  }
  /// What the user reads.
  static std::string Report(const absl::Status& status) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(ReportNoConnection(status), kExitCannotConnect);
    return testing::internal::GetCapturedStderr();
  }

  const std::string path_ = CreateTemporaryDirectory("nam-test-").value();
  const StateDirectory directory_;
  UniqueFd port_;
  std::string address_;
};

TEST_F(ConnectTest, NobodyIsToldToStartAClusterWhoseSupervisorRuns) {
  const absl::Status refused = Refused(50'000);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(Report(refused), HasSubstr(absl::StrCat("supervisor (pid ", getpid(), ")")));
  EXPECT_THAT(Report(refused), HasSubstr(path_ + "/supervisor.log"));
  EXPECT_THAT(Report(refused), Not(HasSubstr("nam up")));
}

TEST_F(ConnectTest, AClusterWhoseSupervisorHasEndedIsNotAwaited) {
  ProcessIdentity former = *IdentityOf(getpid());
  ++former.start_time;
  Save(former);
  const absl::Status refused = Refused(INT64_MAX / 2'000);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(Report(refused), HasSubstr("start one with `nam up`"));
  EXPECT_THAT(Report(refused), Not(HasSubstr("supervisor")));
}

TEST_F(ConnectTest, ACatalogThatIsStartedAgainIsAwaited) {
  std::unique_ptr<catalog::CatalogServer> catalog;
  std::thread restart([&] {
    port_.reset();
    auto started = catalog::CatalogServer::Start({.listen_address = address_,
                                                  .store_path = path_ + "/catalog.db",
                                                  .fabric = fabric::Kind::kShm,
                                                  .secret = *directory_.ReadSecret()});
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) catalog = *std::move(started);
  });
  const auto attachment = AttachToCluster({.state_dir = path_, .restart_wait_us = 60'000'000});
  restart.join();
  EXPECT_TRUE(attachment.ok()) << attachment.status();
}

}  // namespace
}  // namespace nam
