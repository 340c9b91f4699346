#include "catalog/grpc_control_plane.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "catalog/address.h"
#include "catalog/methods.h"
#include "catalog/token.h"

namespace nam::catalog {
namespace {

TEST(RpcStatusTest, EveryCodeTravelsBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why not");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(RpcStatusTest, PayloadsTravelWhole) {
  absl::Status status = absl::InvalidArgumentError("bad statement");
  status.SetPayload("nam/sql", absl::Cord(std::string("\0\xFFposition 7", 12)));
  status.SetPayload("nam/other", absl::Cord("x"));
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
}

TEST(RpcStatusTest, SizesAreBounded) {
  absl::Status status = absl::InternalError(std::string(1 << 20, 'm'));
  status.SetPayload("nam/large", absl::Cord(std::string(1 << 20, 'p')));
  const grpc::Status sent = ToGrpcStatus(status);
  EXPECT_LT(sent.error_message().size() + sent.error_details().size(), 32u << 10);
  EXPECT_EQ(FromGrpcStatus(sent).code(), absl::StatusCode::kInternal);
}

TEST(RpcStatusTest, GarbageInDetailsIsIgnored) {
  const grpc::Status garbage(grpc::StatusCode::NOT_FOUND, "gone", std::string("\xFF\xFF\xFF\x01\x02", 5));
  EXPECT_EQ(FromGrpcStatus(garbage), absl::NotFoundError("gone"));
}

TEST(ControlTokenTest, DependsOnTheSecretAndHidesIt) {
  EXPECT_EQ(ControlToken("secret"), ControlToken("secret"));
  EXPECT_NE(ControlToken("secret"), ControlToken("Secret"));
  EXPECT_EQ(ControlToken("secret").find("secret"), std::string::npos);
  EXPECT_EQ(ControlToken("secret").size(), 64u);
  EXPECT_TRUE(SameToken("abc", "abc"));
  EXPECT_FALSE(SameToken("abc", "abd"));
  EXPECT_FALSE(SameToken("abc", "abcd"));
  EXPECT_FALSE(SameToken("", "a"));
}

TEST(AddressTest, SplitsAndAdvertises) {
  EXPECT_EQ(SplitAddress("127.0.0.1:4700")->first, "127.0.0.1");
  EXPECT_EQ(SplitAddress("127.0.0.1:4700")->second, 4'700);
  EXPECT_EQ(SplitAddress("[::1]:0")->first, "[::1]");
  for (const char* bad : {"", "host", ":1", "host:", "host:70000", "host:x", "::1:5", "host:-1"}) {
    EXPECT_FALSE(SplitAddress(bad).ok()) << bad;
  }
  EXPECT_EQ(AdvertisedAddress("127.0.0.1:5", "", "here"), "127.0.0.1:5");
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:5", "", "here"), "here:5");
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:5", "db1", "here"), "db1:5");
}

class GrpcControlPlaneTest : public testing::Test {
 protected:
  // A catalog whose only working method is GetCluster.
  std::unique_ptr<ControlServer> Serve(
      const std::function<absl::StatusOr<proto::Cluster>(const IncomingCall&)>& get_cluster) {
    handlers_ = std::make_unique<Handlers>("nam.proto.Catalog");
    const auto unused = [&](const auto& method) { AddUnused(method); };
    unused(kJoin), unused(kRenew), unused(kLeave), unused(kBury), unused(kListTables), unused(kGetTable);
    unused(kBeginLoad), unused(kCommitLoad), unused(kAbortLoad), unused(kDropTable);
    unused(kAllocateGroups), unused(kReleaseGroups), unused(kBeginExtend), unused(kCommitExtend),
        unused(kChangePart);
    handlers_->Add(kGetCluster, [get_cluster](const proto::GetClusterRequest&, const IncomingCall& call) {
      return get_cluster(call);
    });
    auto server =
        GrpcControlPlane().Serve({.address = "127.0.0.1:0", .secret = "secret", .handlers = handlers_.get()});
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  static Peer PeerOf(const ControlServer& server) {
    return Peer("the server", GrpcControlPlane().Open(server.address(), "secret"));
  }

 private:
  template <typename Request, typename Reply>
  void AddUnused(const Method<Request, Reply>& method) {
    handlers_->Add(method, [](const Request&, const IncomingCall&) -> absl::StatusOr<Reply> {
      return absl::UnimplementedError("unused");
    });
  }
  std::unique_ptr<Handlers> handlers_;
};

TEST_F(GrpcControlPlaneTest, AnIncompleteServiceIsNotServed) {
  Handlers handlers("nam.proto.Catalog");
  EXPECT_DEATH(GrpcControlPlane().Serve({.address = "127.0.0.1:0", .handlers = &handlers}).IgnoreError(),
               "has no handler");
}

TEST_F(GrpcControlPlaneTest, RequestsRepliesAndStatusesArriveWhole) {
  bool fail = false;
  const auto server = Serve([&](const IncomingCall&) -> absl::StatusOr<proto::Cluster> {
    proto::Cluster cluster;
    cluster.set_name(std::string(3 << 20, 'n'));  // several slices
    if (!fail) return cluster;
    absl::Status status = absl::OutOfRangeError("too far");
    status.SetPayload("nam/test", absl::Cord("payload"));
    return status;
  });
  const Peer peer = PeerOf(*server);
  EXPECT_EQ(peer.Call(kGetCluster, {}, 5'000'000)->name(), std::string(3 << 20, 'n'));
  fail = true;
  const absl::Status status = peer.Call(kGetCluster, {}, 5'000'000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(std::string(status.message()), "the server: too far");
  EXPECT_TRUE(status.GetPayload("nam/test").has_value());
}

TEST_F(GrpcControlPlaneTest, CancellationReachesTheHandler) {
  CallCancellation cancellation;
  bool seen = false;
  auto server = Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::Cluster> {
    cancellation.Cancel();
    const Deadline deadline = RealClock().After(10'000'000);
    while (!call.Cancelled() && !RealClock().Passed(deadline)) {
    }
    seen = call.Cancelled();
    return absl::CancelledError("cancelled");
  });
  const Peer peer = PeerOf(*server);
  EXPECT_EQ(peer.Call(kGetCluster, {}, 30'000'000, &cancellation).status().code(),
            absl::StatusCode::kCancelled);
  server.reset();  // waits for the handler
  EXPECT_TRUE(seen);
  // Cancelled before it began: never sent.
  EXPECT_EQ(peer.Call(kGetCluster, {}, 30'000'000, &cancellation).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace nam::catalog
