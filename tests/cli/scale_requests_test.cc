#include "cli/scale_requests.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "localcluster/state_directory.h"

namespace nam::cli {
namespace {

using testing::ElementsAre;

class ScaleRequestsTest : public testing::Test {
 protected:
  ScaleRequestsTest() : directory_(CreateTemporaryDirectory("nam-test-").value()) {}
  ~ScaleRequestsTest() override { RemoveTree(directory_); }

  /// A supervisor that answers `count` requests.
  std::thread Serve(int count, std::function<absl::StatusOr<ScaleReply>(const ScaleRequest&)> scale,
                    std::function<absl::Status(const EndRequest&)> end = NotToEnd) {
    auto listener = ScaleListener::Listen(Folder());
    EXPECT_TRUE(listener.ok()) << listener.status();
    RequestHandlers handlers{.scale = std::move(scale), .end = std::move(end)};
    return std::thread([count, handlers = std::move(handlers), listener = std::move(*listener)] {
      for (int i = 0; i < count; ++i) {
        pollfd wait{listener->fd(), POLLIN, 0};
        ASSERT_EQ(poll(&wait, 1, 60'000), 1);
        listener->Serve(handlers);
      }
    });
  }
  static absl::Status NotToEnd(const EndRequest&) {
    ADD_FAILURE() << "no client asked for the end";
    return absl::OkStatus();
  }
  StateDirectory Folder() const { return StateDirectory::Open(directory_).value(); }
  std::string directory_;
};

TEST_F(ScaleRequestsTest, RequestsAndRepliesArrive) {
  // The path is longer than a socket's address may be.
  directory_ += "/" + std::string(120, 'd');
  ASSERT_TRUE(StateDirectory::Create(directory_).ok());
  std::vector<ScaleRequest> seen;
  std::thread supervisor = Serve(2, [&](const ScaleRequest& request) -> absl::StatusOr<ScaleReply> {
    seen.push_back(request);
    if (!request.out) return absl::FailedPreconditionError("one has to \"stay\"\n");
    return ScaleReply{.changed = {"5", "6"}, .compute_servers = 4, .memory_servers = 2};
  });
  const auto out = AskForScale(Folder(), {.out = true, .compute_servers = 2}, 60'000, -1);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(out->changed, ElementsAre("5", "6"));
  EXPECT_EQ(out->compute_servers, 4);
  EXPECT_EQ(out->memory_servers, 2);
  const auto in = AskForScale(Folder(), {.out = false, .compute_servers = 7}, 60'000, -1);
  EXPECT_EQ(in.status(), absl::FailedPreconditionError("one has to \"stay\"\n"));
  supervisor.join();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].out);
  EXPECT_EQ(seen[0].compute_servers, 2);
  EXPECT_FALSE(seen[1].out);
  EXPECT_EQ(seen[1].compute_servers, 7);
}

TEST_F(ScaleRequestsTest, ARequestToEndNamesTheFile) {
  std::vector<uint64_t> seen;
  std::thread supervisor = Serve(
      2, [](const ScaleRequest&) { return ScaleReply(); },
      [&](const EndRequest& request) {
        seen.push_back(request.saved_records);
        EXPECT_EQ(request.closed_by, 5u);
        return request.saved_records == 0 ? absl::AbortedError("a table has come") : absl::OkStatus();
      });
  EXPECT_EQ(AskToEnd(Folder(), {.saved_records = 0, .closed_by = 5}, 60'000),
            absl::AbortedError("a table has come"));
  EXPECT_EQ(AskToEnd(Folder(), {.saved_records = ~uint64_t{0}, .closed_by = 5}, 60'000), absl::OkStatus());
  supervisor.join();
  EXPECT_THAT(seen, ElementsAre(0u, ~uint64_t{0}));
  EXPECT_TRUE(absl::IsUnavailable(AskToEnd(Folder(), {.saved_records = 7}, 60'000)));
}

TEST_F(ScaleRequestsTest, WhoHasGoneDoesNotEndTheCluster) {
  const auto listener = ScaleListener::Listen(Folder());
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(AskToEnd(Folder(), {.saved_records = 7}, 10)));
  (*listener)->Serve({.scale = [](const ScaleRequest&) { return ScaleReply(); }, .end = NotToEnd});
}

TEST_F(ScaleRequestsTest, TheSocketIsItsOwners) {
  const auto listener = ScaleListener::Listen(Folder());
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat file {};
  ASSERT_EQ(stat((directory_ + "/control").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(ScaleRequestsTest, WithoutASupervisorNobodyAnswers) {
  EXPECT_TRUE(absl::IsUnavailable(AskForScale(Folder(), {}, 60'000, -1).status()));
  // A supervisor that was killed leaves its socket behind; the next one takes its place.
  ScaleListener::Listen(Folder()).value().reset();
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/control"));
  EXPECT_TRUE(absl::IsUnavailable(AskForScale(Folder(), {}, 60'000, -1).status()));
  std::thread supervisor = Serve(1, [](const ScaleRequest&) { return ScaleReply(); });
  EXPECT_TRUE(AskForScale(Folder(), {}, 60'000, -1).ok());
  supervisor.join();
}

TEST_F(ScaleRequestsTest, ASupervisorThatEndsMeanwhileIsToldOf) {
  auto listener = ScaleListener::Listen(Folder());
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::thread supervisor([&] {
    pollfd wait{(*listener)->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 60'000), 1);
    listener->reset();
  });
  EXPECT_TRUE(absl::IsUnavailable(AskForScale(Folder(), {}, 60'000, -1).status()));
  supervisor.join();
}

TEST_F(ScaleRequestsTest, WhoAsksMayStopWaiting) {
  const auto listener = ScaleListener::Listen(Folder());
  ASSERT_TRUE(listener.ok()) << listener.status();
  const UniqueFd interrupt(eventfd(1, EFD_CLOEXEC));
  EXPECT_TRUE(absl::IsCancelled(AskForScale(Folder(), {}, 60'000, interrupt.get()).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(AskForScale(Folder(), {}, 10, -1).status()));
  // What the clients asked for is still done, and the answers are lost.
  int asked = 0;
  for (int i = 0; i < 2; ++i) {
    (*listener)->Serve(
        {.scale = [&](const ScaleRequest&) { return ++asked, ScaleReply(); }, .end = NotToEnd});
  }
  EXPECT_EQ(asked, 2);
}

TEST_F(ScaleRequestsTest, OtherBytesAreNoRequest) {
  std::thread supervisor = Serve(4, [](const ScaleRequest&) -> absl::StatusOr<ScaleReply> {
    ADD_FAILURE() << "no client asked for that";
    return ScaleReply();
  });
  for (const std::string text :
       {"", "{}\n", "{\"scale\":\"up\",\"compute\":1}\n", "{\"end\":\"saved\",\"number\":-1}\n"}) {
    const UniqueFd peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {.sun_family = AF_UNIX};
    (directory_ + "/control").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(send(peer.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    shutdown(peer.get(), SHUT_WR);
    char answer[256];
    const ssize_t n = recv(peer.get(), answer, sizeof answer, 0);
    EXPECT_EQ(n > 0, !text.empty()) << text;  // an error, or nothing if the client sent nothing
  }
  supervisor.join();
}

}  // namespace
}  // namespace nam::cli
