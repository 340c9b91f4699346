#include "catalog/grpc_control_plane.h"

#include <grpc/support/time.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "catalog/address.h"
#include "catalog/certificates.h"
#include "catalog/methods.h"
#include "tests/catalog/own_certificates.h"

namespace nam::catalog {
namespace {

constexpr int64_t kCallHangUs = 60'000'000;  // a hang guard

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

TEST(Addresses, LoopbackIsNotToldToOtherHosts) {
  const std::string here = "127.0.0.1:4700", there = "10.0.0.1:4700";
  for (const char* own : {"127.0.0.1:5", "127.1.2.3:5", "localhost:5", "[::1]:5"}) {
    EXPECT_TRUE(CheckAdvertised(here, {own, own}).ok()) << own;
    EXPECT_TRUE(CheckAdvertised("[::1]:4700", {own}).ok()) << own;
    const absl::Status refused = CheckAdvertised(there, {"10.0.0.2:5", own});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << own;
    EXPECT_NE(std::string(refused.message()).find("--advertised-host"), std::string::npos) << refused;
  }
  for (const char* wildcard : {"0.0.0.0:5", "[::]:5"}) {
    EXPECT_FALSE(CheckAdvertised(here, {wildcard}).ok()) << wildcard;
    EXPECT_FALSE(CheckAdvertised(there, {wildcard}).ok()) << wildcard;
  }
  EXPECT_TRUE(CheckAdvertised(there, {"10.0.0.2:5", "db1:6", "@no address of a network"}).ok());
}

class GrpcControlPlaneTest : public testing::Test {
 protected:
  // A catalog whose only working method is GetCluster.
  std::unique_ptr<ControlServer> Serve(
      const std::function<absl::StatusOr<proto::Cluster>(const IncomingCall&)>& get_cluster,
      ControlPlane& control_plane = GrpcControlPlane()) {
    handlers_ = std::make_unique<Handlers>("nam.proto.Catalog");
    const auto unused = [&](const auto& method) { AddUnused(method); };
    unused(kJoin), unused(kLeave), unused(kBury), unused(kListTables), unused(kGetTable), unused(kGetTables);
    unused(kBeginLoad), unused(kCommitLoad), unused(kAbortLoad), unused(kDropTable);
    unused(kAllocateGroups), unused(kReleaseGroups), unused(kBeginExtend), unused(kCommitExtend),
        unused(kChangePart), unused(kChangeCatalog), unused(kQuiet), unused(kCalibrate);
    handlers_->Add(kGetCluster, [get_cluster](const proto::GetClusterRequest&, const IncomingCall& call) {
      return get_cluster(call);
    });
    auto server =
        control_plane.Serve({.address = "127.0.0.1:0", .secret = "secret", .handlers = handlers_.get()});
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
  std::atomic<bool> fail = false;
  const auto server = Serve([&](const IncomingCall&) -> absl::StatusOr<proto::Cluster> {
    proto::Cluster cluster;
    cluster.set_name(std::string(3 << 20, 'n'));  // several slices
    if (!fail) return cluster;
    absl::Status status = absl::OutOfRangeError("too far");
    status.SetPayload("nam/test", absl::Cord("payload"));
    return status;
  });
  const Peer peer = PeerOf(*server);
  EXPECT_EQ(peer.Call(kGetCluster, {}, kCallHangUs)->name(), std::string(3 << 20, 'n'));
  fail = true;
  const absl::Status status = peer.Call(kGetCluster, {}, kCallHangUs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(std::string(status.message()), "the server: too far");
  EXPECT_EQ(MessageOfService(status), "too far");
  EXPECT_TRUE(status.GetPayload("nam/test").has_value());
}

/// Access control: all processes in these tests know the address.
class StrangersTest : public GrpcControlPlaneTest {
 protected:
  using Certificates = std::vector<grpc::experimental::IdentityKeyCertPair>;

  StrangersTest() {
    server_ = Serve([this](const IncomingCall&) {
      ++calls_;
      return absl::StatusOr<proto::Cluster>(proto::Cluster());
    });
  }
  /// Calls every method of the service with a client's own TLS settings; returns gRPC's status of the last
  /// call.
  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials, const std::string& name) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, name);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(grpc::CreateCustomChannel(server_->address(), credentials, arguments));
    grpc::Status status;
    const auto* service = proto::Member::descriptor()->file()->FindServiceByName("Catalog");
    for (int i = 0; i < service->method_count(); ++i) {
      grpc::ClientContext context;
      const grpc::ByteBuffer empty(nullptr, 0);
      grpc::ByteBuffer reply;
      grpc::CompletionQueue queue;
      const auto call =
          stub.PrepareUnaryCall(&context, "/nam.proto.Catalog/" + service->method(i)->name(), empty, &queue);
      void* tag = nullptr;
      bool ok = false;
      call->StartCall();
      call->Finish(&reply, &status, nullptr);
      EXPECT_TRUE(queue.Next(&tag, &ok));
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      EXPECT_EQ(status.error_details(), "") << "a handler answered";
    }
    return status;
  }
  static std::shared_ptr<grpc::ChannelCredentials> Tls(const Certificates& certificates) {
    grpc::experimental::TlsChannelCredentialsOptions options;
    if (!certificates.empty()) {
      options.set_certificate_provider(
          std::make_shared<grpc::experimental::StaticDataCertificateProvider>(certificates));
      options.watch_identity_key_cert_pairs();
    }
    options.set_verify_server_certs(false);
    options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    options.set_check_call_host(false);
    return grpc::experimental::TlsCredentials(options);
  }

  std::atomic<int> calls_ = 0;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(StrangersTest, AnotherSecretIsRefusedInPlainWords) {
  const Peer peer("the server", GrpcControlPlane().Open(server_->address(), "guess"));
  const absl::Status status = peer.Call(kGetCluster, {}, kCallHangUs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(std::string(status.message()),
            "the server refuses us: the secret is not that of this cluster; use the secret of its cluster");
  EXPECT_TRUE(Unanswered(status));
  EXPECT_EQ(MessageOfService(status), std::string(status.message()));
  EXPECT_EQ(calls_, 0);
}

TEST_F(StrangersTest, WhoKnowsTheNameAloneReachesNoHandler) {
  const std::string name = KnockName("secret");
  Call(grpc::InsecureChannelCredentials(), name);
  Call(Tls({}), name);  // no certificate
  const Identity other = MakeIdentity("guess");
  Call(Tls({{other.key, other.certificate}}), name);
  const TempFolder folder;
  EXPECT_EQ(calls_, 0);
  // With a certificate of the cluster the same client is admitted: only that was missing.
  const Identity right = MakeIdentity("secret");
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, name);
  const auto channel =
      grpc::CreateCustomChannel(server_->address(), Tls({{right.key, right.certificate}}), arguments);
  EXPECT_TRUE(channel->WaitForConnected(gpr_time_from_seconds(60, GPR_TIMESPAN)));
}

TEST_F(StrangersTest, AServerOfAnotherSecretIsNotTrusted) {
  // A rogue that overheard the name, at the address of a server that is gone.
  const Identity rogue = MakeIdentity("guess");
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          Certificates{{rogue.key, rogue.certificate}}));
  options.watch_identity_key_cert_pairs();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::experimental::TlsServerCredentials(options), &port);
  grpc::AsyncGenericService service;
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  const Peer peer("the server", GrpcControlPlane().Open("127.0.0.1:" + std::to_string(port), "secret"));
  const absl::Status status = peer.Call(kGetCluster, {}, kCallHangUs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  EXPECT_NE(std::string(status.message()).find("the server is not trusted: its TLS certificate"),
            std::string::npos)
      << status;
  server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

TEST_F(GrpcControlPlaneTest, AnOperatorsCertificatesTakeThePlaceOfTheSecrets) {
  const TempFolder folder;
  const TlsFiles server_files = SelfSigned(folder, "server"), client_files = SelfSigned(folder, "client");
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string both =
      WriteText(folder, "both", read(server_files.certificate) + read(client_files.certificate));
  const auto plane_of = [](TlsFiles files, const std::string& authority) {
    files.authority = authority;
    auto plane = MakeGrpcControlPlane(files);
    EXPECT_TRUE(plane.ok()) << plane.status();
    return *std::move(plane);
  };
  const auto server_plane = plane_of(server_files, both), client_plane = plane_of(client_files, both);
  const auto blind_plane = plane_of(client_files, client_files.certificate);
  const auto server = Serve(
      [](const IncomingCall&) { return absl::StatusOr<proto::Cluster>(proto::Cluster()); }, *server_plane);
  const auto call = [&](ControlPlane& plane, const std::string& secret) {
    return Peer("the server", plane.Open(server->address(), secret))
        .Call(kGetCluster, {}, kCallHangUs)
        .status();
  };
  EXPECT_TRUE(call(*client_plane, "secret").ok()) << call(*client_plane, "secret");
  EXPECT_NE(std::string(call(*client_plane, "guess").message()).find("the secret is not that"),
            std::string::npos);
  EXPECT_NE(std::string(call(*blind_plane, "secret").message()).find("is not trusted"), std::string::npos);
  // With certificates of the secret neither side trusts the other.
  EXPECT_EQ(call(GrpcControlPlane(), "secret").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(MakeGrpcControlPlane(SelfSigned(folder, "old", -1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(GrpcControlPlaneTest, CertificatesThatTurnBadAreInTheLog) {
  const TempFolder folder;
  const TlsFiles files = SelfSigned(folder, "server");
  const auto plane = MakeGrpcControlPlane(files, /*refresh_s=*/1);
  ASSERT_TRUE(plane.ok()) << plane.status();
  StartLog(LogLevel::kInfo, "test");
  int log[2];
  ASSERT_EQ(::pipe(log), 0);
  const UniqueFd from(log[0]), to(log[1]), stderr_before(::dup(STDERR_FILENO));
  ::dup2(to.get(), STDERR_FILENO);
  WriteText(folder, "server.crt", "");
  char text[4'096];
  const ssize_t bytes = ::read(from.get(), text, sizeof(text));
  ::dup2(stderr_before.get(), STDERR_FILENO);
  EXPECT_NE(std::string(text, std::max<ssize_t>(bytes, 0)).find(files.certificate), std::string::npos);
}

TEST_F(GrpcControlPlaneTest, CancellationReachesTheHandler) {
  CallCancellation cancellation;
  bool seen = false;
  auto server = Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::Cluster> {
    cancellation.Cancel();
    const Deadline deadline = RealClock().After(kCallHangUs);
    while (!call.Cancelled() && !RealClock().Passed(deadline)) {
    }
    seen = call.Cancelled();
    return absl::CancelledError("cancelled");
  });
  const Peer peer = PeerOf(*server);
  EXPECT_EQ(peer.Call(kGetCluster, {}, kCallHangUs, &cancellation).status().code(),
            absl::StatusCode::kCancelled);
  server.reset();  // waits for the handler
  EXPECT_TRUE(seen);
  // Cancelled before it began: never sent.
  EXPECT_EQ(peer.Call(kGetCluster, {}, kCallHangUs, &cancellation).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(GrpcControlPlaneTest, AnInterruptionOfTheThreadEndsItsCall) {
  std::atomic<bool> interrupted = false;
  const auto server = Serve([&](const IncomingCall& call) -> absl::StatusOr<proto::Cluster> {
    interrupted = true;
    const Deadline deadline = RealClock().After(kCallHangUs);
    while (!call.Cancelled() && !RealClock().Passed(deadline)) {
    }
    return proto::Cluster();
  });
  const Peer peer = PeerOf(*server);
  const Interruption interruption(&interrupted);
  EXPECT_EQ(peer.Call(kGetCluster, {}, kCallHangUs).status().code(), absl::StatusCode::kCancelled);
  {
    const Interruption none(nullptr);
    interrupted = false;
    EXPECT_FALSE(absl::IsCancelled(peer.Call(kGetCluster, {}, 500'000).status())) << "not where it is masked";
  }
}

}  // namespace
}  // namespace nam::catalog
