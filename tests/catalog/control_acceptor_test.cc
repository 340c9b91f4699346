#include "catalog/control_acceptor.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/method_handler.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "catalog/address.h"
#include "catalog/certificates.h"
#include "catalog/grpc_control_plane.h"
#include "tests/catalog/raw_socket.h"
#include "tests/catalog/tls_hello.h"

namespace nam::catalog {
namespace {

constexpr char kName[] = "knock.nam";
constexpr int64_t kHangS = 60;  // a hang guard

class ControlAcceptorTest : public testing::Test {
 protected:
  void Start(const AcceptBounds& bounds) {
    auto acceptor = ControlAcceptor::Listen("127.0.0.1:0", kName, bounds);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    acceptor_->Start([this](int fd) {
      const MutexLock lock(mutex_);
      given_.emplace_back(fd);
      changed_.NotifyAll();
    });
  }
  UniqueFd Connect(const std::string& bytes = "") {
    UniqueFd fd = ConnectTo(SplitAddress(acceptor_->address())->second);
    Send(fd, bytes);
    return fd;
  }
  static void Send(const UniqueFd& fd, const std::string& bytes) {
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Everything until the end, which comes within kHangS.
  static std::string ReadToEnd(const UniqueFd& fd) {
    const timeval patience{kHangS, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    std::string all;
    char bytes[1'000];
    while (true) {
      const ssize_t got = ::recv(fd.get(), bytes, sizeof(bytes), 0);
      if (got < 0 && errno == EAGAIN) return all + " and no end";
      if (got <= 0) return all;
      all.append(bytes, static_cast<size_t>(got));
    }
  }
  bool AwaitGiven(size_t count) {
    const MutexLock lock(mutex_);
    const Deadline deadline = RealClock().After(kHangS * 1'000'000);
    while (given_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return given_.size() >= count;
  }
  template <typename Condition>
  bool Await(Condition condition) {
    const Deadline deadline = RealClock().After(kHangS * 1'000'000);
    while (!condition(acceptor_->counts())) {
      if (RealClock().Passed(deadline)) return false;
      RealClock().SleepUntil(RealClock().After(1'000));
    }
    return true;
  }
  static std::string PeerOf(const UniqueFd& fd) {
    sockaddr_in mine{};
    socklen_t bytes = sizeof(mine);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&mine), &bytes);
    return "ipv4:127.0.0.1:" + std::to_string(ntohs(mine.sin_port));
  }

  Mutex mutex_;  // guards given_
  ConditionVariable changed_;
  std::vector<UniqueFd> given_;
  std::unique_ptr<ControlAcceptor> acceptor_;  // last: its thread ends first
};

TEST_F(ControlAcceptorTest, WhoSaysTheNameIsHandedOnWithAllBytes) {
  Start({});
  const std::string hello = TlsHello(kName);
  const UniqueFd at_once = Connect(hello), in_pieces = Connect();
  for (const char byte : hello) Send(in_pieces, std::string(1, byte));
  ASSERT_TRUE(AwaitGiven(2));
  for (const UniqueFd& given : given_) {
    std::string bytes(hello.size(), '\0');
    ASSERT_EQ(::recv(given.get(), bytes.data(), bytes.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(hello.size()));
    EXPECT_EQ(bytes, hello);
  }
  EXPECT_EQ(acceptor_->counts().guests, 2);
  acceptor_->Called(PeerOf(at_once));
  EXPECT_EQ(acceptor_->counts().guests, 1);
  EXPECT_EQ(acceptor_->counts().members, 1);
}

TEST_F(ControlAcceptorTest, StrangersAreCutOffUnheard) {
  Start({.hello_timeout_us = 600'000'000});
  // The alert says that the name is another one: fatal, unrecognized_name.
  EXPECT_EQ(ReadToEnd(Connect(TlsHello("other.nam"))), std::string("\x15\x03\x03\x00\x02\x02\x70", 7));
  EXPECT_EQ(ReadToEnd(Connect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(100'000, '\4'))), "");
  EXPECT_EQ(ReadToEnd(Connect(std::string("\x16\x03\x01\x3f\xff\x01", 6) + std::string(9'000, 'x'))), "");
  EXPECT_TRUE(Await([](const auto& counts) { return counts.strangers == 0; }));
  EXPECT_EQ(acceptor_->counts().handed_over, 0u);
  Start({.hello_timeout_us = 50'000});
  EXPECT_EQ(ReadToEnd(Connect(TlsHello(kName).substr(0, 40))), "") << "half a hello, late";
  EXPECT_EQ(ReadToEnd(Connect()), "") << "silent";
  EXPECT_TRUE(Await([](const auto& counts) { return counts.strangers == 0; }));
  EXPECT_EQ(acceptor_->counts().handed_over, 0u);
}

TEST_F(ControlAcceptorTest, ManySilentStrangersKeepNobodyOut) {
  Start({.strangers = 8, .hello_timeout_us = 600'000'000});
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Connect());
  ASSERT_TRUE(Await([](const auto& counts) { return counts.accepted == 100; }));
  EXPECT_EQ(acceptor_->counts().strangers, 8);
  const UniqueFd honest = Connect(TlsHello(kName));
  ASSERT_TRUE(AwaitGiven(1));
  // A closed connection is forgotten at once.
  silent.clear();
  EXPECT_TRUE(Await([](const auto& counts) { return counts.strangers == 0; }));
}

TEST_F(ControlAcceptorTest, GuestsThatDoNotCallMakeRoomAndMembersStay) {
  Start({.guests = 4});
  const UniqueFd member = Connect(TlsHello(kName));
  ASSERT_TRUE(AwaitGiven(1));
  acceptor_->Called(PeerOf(member));
  std::vector<UniqueFd> guests;
  for (size_t i = 0; i < 10; ++i) {
    guests.push_back(Connect(TlsHello(kName)));
    ASSERT_TRUE(AwaitGiven(2 + i));
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(ReadToEnd(guests[i]), "") << i;
  EXPECT_EQ(acceptor_->counts().guests, 4);
  EXPECT_EQ(acceptor_->counts().members, 1);
  char byte;
  EXPECT_EQ(::recv(member.get(), &byte, 1, MSG_DONTWAIT), -1) << "still there";
}

TEST_F(ControlAcceptorTest, ConnectionsAreBounded) {
  Start({.connections = 3});
  std::vector<UniqueFd> members;
  for (size_t i = 0; i < 3; ++i) {
    members.push_back(Connect(TlsHello(kName)));
    ASSERT_TRUE(AwaitGiven(1 + i));
    acceptor_->Called(PeerOf(members.back()));
  }
  EXPECT_EQ(ReadToEnd(Connect(TlsHello(kName))), "") << "a fourth";
  {
    const MutexLock lock(mutex_);
    for (const UniqueFd& given : given_) ::shutdown(given.get(), SHUT_RDWR);
  }
  ASSERT_TRUE(Await([](const auto& counts) { return counts.members == 0; }));
  const UniqueFd next = Connect(TlsHello(kName));
  EXPECT_TRUE(AwaitGiven(4));
}

TEST_F(ControlAcceptorTest, HandshakesHaveARateAndOthersAreCutOff) {
  Start({.handshakes_per_s = 5});
  const int64_t start_ns = RealClock().NowNs();
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(Connect(TlsHello(kName)));
  ASSERT_TRUE(Await([](const auto& counts) { return counts.accepted == 100 && counts.strangers == 0; }));
  const double seconds = static_cast<double>(RealClock().NowNs() - start_ns) / 1e9;
  EXPECT_LE(static_cast<double>(acceptor_->counts().handed_over), 6 + 5 * seconds);
}

TEST_F(ControlAcceptorTest, AcceptsHaveARateAndOthersWaitTheirTurn) {
  Start({.accepts_per_s = 20});
  const int64_t start_ns = RealClock().NowNs();
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 30; ++i) crowd.push_back(Connect("GET / HTTP/1.1\r\n"));
  const UniqueFd honest = Connect(TlsHello(kName));
  ASSERT_TRUE(AwaitGiven(1));
  EXPECT_GT(RealClock().NowNs() - start_ns, 400'000'000) << "20 at once, 11 more at 20 a second";
}

TEST_F(ControlAcceptorTest, AStoppedOneGivesItsPortBack) {
  Start({});
  const std::string address = acceptor_->address();
  const auto second = ControlAcceptor::Listen(address, kName, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(second.status().message()).find("the port is in use"), std::string::npos);
  const UniqueFd guest = Connect(TlsHello(kName));
  ASSERT_TRUE(AwaitGiven(1));
  acceptor_->Stop();
  EXPECT_TRUE(ControlAcceptor::Listen(address, kName, {}).ok());
  EXPECT_EQ(ControlAcceptor::Listen("no-such-host.invalid:1", kName, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

// gRPC's name of a peer is the acceptor's, over both families of addresses.
TEST(ControlAcceptorGrpcTest, AFirstCallMakesAMember) {
  class EchoService final : public grpc::Service {
   public:
    explicit EchoService(ControlAcceptor& acceptor) {
      using Handler = grpc::internal::RpcMethodHandler<EchoService, grpc::ByteBuffer, grpc::ByteBuffer>;
      AddMethod(new grpc::internal::RpcServiceMethod(
          "/echo", grpc::internal::RpcMethod::NORMAL_RPC,
          new Handler(
              [&acceptor](EchoService*, grpc::ServerContext* context, const grpc::ByteBuffer* request,
                          grpc::ByteBuffer* reply) {
                acceptor.Called(context->peer());
                *reply = *request;
                return grpc::Status::OK;
              },
              this)));
    }
  };
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    auto acceptor = ControlAcceptor::Listen(host + ":0", KnockName("secret"), {});
    if (!acceptor.ok() && host == "[::1]") GTEST_SKIP() << "no IPv6 here";
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    EchoService service(**acceptor);
    const Identity identity = MakeIdentity("secret");
    grpc::experimental::TlsServerCredentialsOptions options(
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
            std::vector<grpc::experimental::IdentityKeyCertPair>{{identity.key, identity.certificate}}));
    options.watch_identity_key_cert_pairs();
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    const auto external = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::experimental::TlsServerCredentials(options));
    const auto server = builder.BuildAndStart();
    (*acceptor)->Start([&](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      external->HandleNewConnection(&connection);
    });
    auto channel = GrpcControlPlane().Open((*acceptor)->address(), "secret");
    const auto outcome = channel->Call("/echo", "hello", kHangS * 1'000'000, nullptr);
    EXPECT_EQ(outcome.reply, "hello") << outcome.status;
    EXPECT_EQ((*acceptor)->counts().members, 1) << host;
    // A connection that gRPC ends is forgotten.
    channel.reset();
    const Deadline deadline = RealClock().After(kHangS * 1'000'000);
    while ((*acceptor)->counts().members != 0 && !RealClock().Passed(deadline))
      RealClock().SleepUntil(RealClock().After(1'000));
    EXPECT_EQ((*acceptor)->counts().members, 0);
    server->Shutdown();
    (*acceptor)->Stop();
  }
}

}  // namespace
}  // namespace nam::catalog
