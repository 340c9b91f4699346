#include "catalog/simulated_control_plane.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "catalog/methods.h"

namespace nam::catalog {
namespace {

constexpr int64_t kMs = 1'000'000;

/// A client's and a server's process, each on its own host. The test's thread is the driver.
class SimulatedControlPlaneTest : public testing::Test {
 protected:
  SimulatedControlPlaneTest()
      : world_({.seed = 7}),
        network_(world_),
        client_(Open("client")),
        server_(Open("server")),
        client_plane_(network_.PlaneOf(*client_)),
        server_plane_(network_.PlaneOf(*server_)) {}

  std::unique_ptr<fabric::Fabric> Open(const std::string& host) {
    auto fabric = world_.OpenFabric(host, {.peer_timeout_us = 3'000'000});
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    return *std::move(fabric);
  }

  /// Serves the methods of a memory server; only ListRegions does anything.
  void Serve(const std::function<absl::StatusOr<proto::ListRegionsReply>(const IncomingCall&)>& handler,
             const std::string& address = "localhost:0") {
    handlers_ = std::make_unique<Handlers>("nam.proto.Memory");
    handlers_->Add(
        kAllocate,
        [](const proto::AllocateRequest&, const IncomingCall&) -> absl::StatusOr<proto::AllocateReply> {
          return absl::ResourceExhaustedError("full");
        });
    handlers_->Add(
        kRelease,
        [](const proto::ReleaseRequest&, const IncomingCall&) -> absl::StatusOr<proto::ReleaseReply> {
          return proto::ReleaseReply();
        });
    handlers_->Add(
        kReleaseScratch,
        [](const proto::ReleaseScratchRequest&, const IncomingCall&) -> absl::StatusOr<proto::ReleaseReply> {
          return absl::UnimplementedError("unused");
        });
    handlers_->Add(kStartMulticast,
                   [](const proto::StartMulticastRequest&,
                      const IncomingCall&) -> absl::StatusOr<proto::StartMulticastReply> {
                     return absl::UnimplementedError("unused");
                   });
    handlers_->Add(
        kOpenExtents,
        [](const proto::OpenExtentsRequest&, const IncomingCall&) -> absl::StatusOr<proto::OpenExtentsReply> {
          return absl::UnimplementedError("unused");
        });
    handlers_->Add(kCloseExtents,
                   [](const proto::CloseExtentsRequest&,
                      const IncomingCall&) -> absl::StatusOr<proto::CloseExtentsReply> {
                     return absl::UnimplementedError("unused");
                   });
    handlers_->Add(kSeal,
                   [](const proto::SealRequest&, const IncomingCall&) -> absl::StatusOr<proto::SealReply> {
                     return absl::UnimplementedError("unused");
                   });
    handlers_->Add(kFence,
                   [](const proto::FenceRequest&, const IncomingCall&) -> absl::StatusOr<proto::FenceReply> {
                     return absl::UnimplementedError("unused");
                   });
    handlers_->Add(kEndMulticast,
                   [](const proto::EndMulticastRequest&,
                      const IncomingCall&) -> absl::StatusOr<proto::EndMulticastReply> {
                     return absl::UnimplementedError("unused");
                   });
    handlers_->Add(kListRegions, [handler](const proto::ListRegionsRequest&, const IncomingCall& call) {
      return handler(call);
    });
    auto served = server_plane_->Serve({.address = address, .handlers = handlers_.get()});
    ASSERT_TRUE(served.ok()) << served.status();
    control_server_ = *std::move(served);
  }
  Peer PeerOf(const std::string& address) { return Peer("the server", client_plane_->Open(address, "")); }
  void Sleep(int64_t ns) { world_.clock().SleepUntil({world_.NowNs() + ns}); }
  void KillServer() { world_.KillProcess(world_.ProcessOf(*server_)); }

  fabric::sim::World world_;
  SimulatedControlNetwork network_;
  std::unique_ptr<fabric::Fabric> client_, server_;
  std::unique_ptr<ControlPlane> client_plane_, server_plane_;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<ControlServer> control_server_;
};

TEST_F(SimulatedControlPlaneTest, ACallTakesTimeAndBringsTheReply) {
  Serve([](const IncomingCall&) -> absl::StatusOr<proto::ListRegionsReply> {
    proto::ListRegionsReply reply;
    reply.set_used_bytes(5);
    return reply;
  });
  EXPECT_EQ(control_server_->address().substr(0, 7), "server:");
  const Peer peer = PeerOf(control_server_->address());
  const int64_t before_ns = world_.NowNs();
  EXPECT_EQ(peer.Call(kListRegions, {}, 1'000'000)->used_bytes(), 5u);
  EXPECT_GT(world_.NowNs(), before_ns);
  EXPECT_LT(world_.NowNs(), before_ns + kMs);
  const absl::Status full = peer.Call(kAllocate, {}, 1'000'000).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(full.message()), "the server: full");
}

TEST_F(SimulatedControlPlaneTest, NobodyThereRefuses) {
  const absl::Status status = PeerOf("server:9").Call(kListRegions, {}, 1'000'000).status();
  EXPECT_EQ(std::string(status.message()), "cannot reach the server: connection refused; is it running?");
  Serve([](const IncomingCall&) { return proto::ListRegionsReply(); }, "localhost:9");
  EXPECT_TRUE(PeerOf("server:9").Call(kListRegions, {}, 1'000'000).ok());
  const auto second = server_plane_->Serve({.address = "localhost:9", .handlers = handlers_.get()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  control_server_.reset();
  EXPECT_EQ(PeerOf("server:9").Call(kListRegions, {}, 1'000'000).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SimulatedControlPlaneTest, OnlyAHostThatAnswersRefuses) {
  const auto refused = [&] { return client_plane_->Refused("server:9", 300'000); };
  EXPECT_TRUE(refused());
  Serve([](const IncomingCall&) { return proto::ListRegionsReply(); }, "localhost:9");
  EXPECT_FALSE(refused()) << "a process listens";
  world_.Partition("client", "server");
  EXPECT_FALSE(refused()) << "cut off";
  world_.Heal("client", "server");
  KillServer();
  EXPECT_TRUE(refused()) << "its process has ended";
  world_.KillHost("server");
  EXPECT_FALSE(refused()) << "no power";
  world_.RestartHost("server");
  EXPECT_TRUE(refused()) << "up again, without it";
}

TEST_F(SimulatedControlPlaneTest, TheDeadlinePassesAndTheHandlerHears) {
  bool heard = false;
  Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::ListRegionsReply> {
    Sleep(50 * kMs);
    heard = call.Cancelled();
    return proto::ListRegionsReply();
  });
  const Peer peer = PeerOf(control_server_->address());
  const int64_t before_ns = world_.NowNs();
  EXPECT_EQ(peer.Call(kListRegions, {}, 10'000).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NEAR(static_cast<double>(world_.NowNs() - before_ns), 10.0 * kMs, 1.0 * kMs);
  control_server_->Shutdown(Deadline::Never());
  EXPECT_TRUE(heard);
}

TEST_F(SimulatedControlPlaneTest, CancellationEndsTheCallAndReachesTheHandler) {
  bool heard = false;
  Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::ListRegionsReply> {
    while (!call.Cancelled()) Sleep(kMs);
    heard = true;
    return absl::CancelledError("cancelled");
  });
  const Peer peer = PeerOf(control_server_->address());
  CallCancellation cancellation;
  {
    const auto canceller = client_->StartThread("canceller", [&] {
      Sleep(20 * kMs);
      cancellation.Cancel();
    });
    EXPECT_EQ(peer.Call(kListRegions, {}, 60'000'000, &cancellation).status().code(),
              absl::StatusCode::kCancelled);
  }
  control_server_->Shutdown(Deadline::Never());
  EXPECT_TRUE(heard);
}

TEST_F(SimulatedControlPlaneTest, DeathOfTheServerEndsTheCall) {
  Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::ListRegionsReply> {
    while (!call.Cancelled()) Sleep(kMs);
    return proto::ListRegionsReply();
  });
  const Peer peer = PeerOf(control_server_->address());
  const auto killer = client_->StartThread("killer", [&] {
    Sleep(20 * kMs);
    KillServer();
  });
  const int64_t before_ns = world_.NowNs();
  EXPECT_EQ(peer.Call(kListRegions, {}, 60'000'000).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(world_.NowNs(), before_ns + 100 * kMs);
}

TEST_F(SimulatedControlPlaneTest, ACallOutlivesAShortPartitionAndNoLongOne) {
  int served = 0;
  Serve([&](const IncomingCall&) {
    ++served;
    return proto::ListRegionsReply();
  });
  const Peer peer = PeerOf(control_server_->address());
  for (const int64_t partition_ms : {1'000, 10'000}) {
    world_.Partition("client", "server");
    const auto healer = client_->StartThread("healer", [&] {
      Sleep(partition_ms * kMs);
      world_.Heal("client", "server");
    });
    const auto reply = peer.Call(kListRegions, {}, 60'000'000);
    EXPECT_EQ(reply.ok(), partition_ms < 3'000) << reply.status();
  }
  EXPECT_EQ(served, 1);
}

}  // namespace
}  // namespace nam::catalog
