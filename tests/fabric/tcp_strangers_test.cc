#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/strangers.h"
#include "fabric/tcp/tcp_fabric.h"
#include "tests/fabric/raw_peer.h"
#include "tests/fabric/tcp_connection.h"

/// Unauthenticated peers cost others nothing, however many come.
namespace nam::fabric {
namespace {

using net::RawPeer;

constexpr char kCrowdsHost[] = "127.0.0.2";
constexpr int64_t kForEverUs = 600'000'000;
constexpr int kHangMs = 60'000;  // a hang guard

class TcpStrangersTest : public testing::Test {
 protected:
  /// The timeout is far behind every wait's end: nothing is closed because of its age.
  void Start(int64_t peer_timeout_us = kForEverUs) {
    server_ = Open(peer_timeout_us);
    client_ = Open(kForEverUs);
    listener_ = server_->Listen({.address = "127.0.0.1:0", .passive = true}).value();
  }
  static std::unique_ptr<Fabric> Open(int64_t peer_timeout_us) {
    return OpenTcp({.kind = Kind::kTcp, .secret = kSecret, .peer_timeout_us = peer_timeout_us}).value();
  }
  sockaddr_in ServerAddress() const {
    const std::string address = listener_->address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    return to;
  }
  static UniqueFd NewSocket(const char* host = "127.0.0.1") {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{};
    from.sin_family = AF_INET;
    inet_pton(AF_INET, host, &from.sin_addr);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
    // A reset instead of a port that stays taken.
    const linger at_once{1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return fd;
  }
  void Connect(const UniqueFd& fd) const {
    const sockaddr_in to = ServerAddress();
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  /// Silent connections; returns when all have been accepted, and some closed in favour of others.
  void Crowd(size_t count, size_t closed, const char* host = "127.0.0.1") {
    const size_t before = crowd_.size();
    for (size_t i = 0; i < count; ++i) {
      crowd_.push_back(NewSocket(host));
      Connect(crowd_.back());
    }
    std::vector<pollfd> ends;
    for (const UniqueFd& fd : crowd_) ends.push_back({fd.get(), POLLIN, 0});
    const Deadline soon = RealClock().After(int64_t{kHangMs} * 1'000);
    for (size_t gone = 0; gone < closed;) {
      ASSERT_FALSE(RealClock().Passed(soon)) << gone << " of " << closed << " after " << before;
      ASSERT_GT(poll(ends.data(), ends.size(), kHangMs), 0);
      for (pollfd& end : ends) {
        if (end.fd < 0 || end.revents == 0) continue;
        end.fd = -1;
        ++gone;
      }
    }
  }
  static std::optional<net::ServerVerdict> Prove(RawPeer& peer, const net::ClientHello& hello,
                                                 const net::ServerChallenge& challenge) {
    if (!peer.SendFrame(net::ClientProof{net::ProveClient(kSecret, hello, challenge)})) return std::nullopt;
    const auto proof = peer.ReceiveFrame<net::ServerProof>();
    if (!proof) return std::nullopt;
    return proof->verdict;
  }

  std::unique_ptr<Fabric> server_, client_;
  std::unique_ptr<Listener> listener_;
  std::vector<UniqueFd> crowd_;
};

TEST_F(TcpStrangersTest, ACrowdFromAnotherHostPushesNobodyOut) {
  Start();
  RawPeer honest(listener_->address());
  const net::ClientHello hello;
  ASSERT_TRUE(honest.SendFrame(hello));
  const auto challenge = honest.ReceiveFrame<net::ServerChallenge>();
  ASSERT_TRUE(challenge);
  const size_t places = StrangersMax();
  Crowd(2 * places, places + 1, kCrowdsHost);
  const auto verdict = Prove(honest, hello, *challenge);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status, net::HandshakeStatus::kOk);
}

TEST_F(TcpStrangersTest, AHandshakeIsSafeUntilHalfThePlacesWereTakenAfterIt) {
  Start();
  const size_t places = StrangersMax();
  Crowd(places, 0);
  RawPeer honest(listener_->address());
  const net::ClientHello hello;
  ASSERT_TRUE(honest.SendFrame(hello));
  const auto challenge = honest.ReceiveFrame<net::ServerChallenge>();
  ASSERT_TRUE(challenge);
  Crowd(places / 2 - 1, places / 2);
  const auto verdict = Prove(honest, hello, *challenge);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status, net::HandshakeStatus::kOk);
}

TEST_F(TcpStrangersTest, MembersConnectThroughAFlood) {
  Start();
  std::atomic<bool> over = false;
  std::vector<std::thread> flood;
  for (int i = 0; i < 2; ++i) {
    flood.emplace_back([&] {
      std::vector<UniqueFd> last(100);
      for (int connected = 0; connected < 10'000 && !over; ++connected) {
        UniqueFd& fd = last[static_cast<size_t>(connected) % last.size()];
        fd = NewSocket();
        Connect(fd);
      }
    });
  }
  const auto queue = client_->CreateCompletionQueue(1024).value();
  for (int i = 0; i < 20; ++i) {
    const auto pair =
        client_->Connect(listener_->address(), *queue, {}, RealClock().After(int64_t{kHangMs} * 1'000));
    EXPECT_TRUE(pair.ok()) << pair.status();
  }
  over = true;
  for (std::thread& thread : flood) thread.join();
}

TEST_F(TcpStrangersTest, OutOfDescriptorsStrangersGiveTheirsBack) {
  Start();
  // First all sockets of this side: only the server needs more from then on.
  constexpr int kLeft = 6;
  for (int i = 0; i < 10 * kLeft; ++i) crowd_.push_back(NewSocket());
  const UniqueFd honest = NewSocket();
  UniqueFd next(dup(honest.get()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next.get() + kLeft);
  next.reset();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (const UniqueFd& fd : crowd_) Connect(fd);
  Connect(honest);
  const net::ClientHello hello;
  EXPECT_EQ(send(honest.get(), &hello, sizeof(hello), MSG_NOSIGNAL), ssize_t{sizeof(hello)});
  pollfd answered{honest.get(), POLLIN, 0};
  EXPECT_EQ(poll(&answered, 1, kHangMs), 1);
  net::ServerChallenge challenge{.status = net::HandshakeStatus::kBusy};
  EXPECT_EQ(recv(honest.get(), &challenge, sizeof(challenge), MSG_DONTWAIT), ssize_t{sizeof(challenge)});
  EXPECT_EQ(challenge.status, net::HandshakeStatus::kOk);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// Answers, that no member lives, once it is told to.
class LateOwner final : public MemberKeys {
 public:
  absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) override {
    told_.wait(false);
    return std::vector<std::optional<MemberKey>>(members.size(), std::nullopt);
  }
  void Tell() {
    told_ = true;
    told_.notify_all();
  }

 private:
  std::atomic<bool> told_ = false;
};

/// While it lives, this process gets no descriptors from `limit` on.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = limit;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~DescriptorLimit() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

class TcpArrivalsTest : public TcpStrangersTest {
 protected:
  ~TcpArrivalsTest() override {
    owner_.Tell();
    listener_.reset();
  }
  /// With few places.
  void StartWithMembers() {
    server_ = Open(kForEverUs);
    const DescriptorLimit few(8 * kPlaces);
    ASSERT_EQ(StrangersMax(), kPlaces);
    listener_ = server_->Listen({.address = "127.0.0.1:0", .passive = true, .member_keys = &owner_}).value();
  }
  /// Proves the secret as a member, about whom the owner is asked; the verdict comes later.
  std::unique_ptr<RawPeer> Arrive() {
    auto peer = std::make_unique<RawPeer>(listener_->address());
    const net::ClientHello hello{.member = 7};
    EXPECT_TRUE(peer->SendFrame(hello));
    const auto challenge = peer->ReceiveFrame<net::ServerChallenge>();
    EXPECT_TRUE(challenge && peer->SendFrame(net::ClientProof{net::ProveClient(kSecret, hello, *challenge)}));
    return peer;
  }
  static net::HandshakeStatus VerdictOf(RawPeer& peer) {
    const auto proof = peer.ReceiveFrame<net::ServerProof>();
    return proof ? proof->verdict.status : net::HandshakeStatus::kBusy;  // kBusy: closed
  }

  static constexpr size_t kPlaces = 16;
  LateOwner owner_;
};

TEST_F(TcpArrivalsTest, AProvedArrivalKeepsThePlaceThatAStrangerWants) {
  StartWithMembers();
  std::vector<std::unique_ptr<RawPeer>> arrived;
  for (size_t i = 0; i < kPlaces; ++i) arrived.push_back(Arrive());
  RawPeer newcomer(listener_->address());
  EXPECT_TRUE(newcomer.ClosedByPeer());
  owner_.Tell();
  for (const auto& peer : arrived) EXPECT_EQ(VerdictOf(*peer), net::HandshakeStatus::kNoSuchMember);
}

TEST_F(TcpArrivalsTest, OutOfDescriptorsNoHandshakeEndsThatProvedTheSecret) {
  StartWithMembers();
  const std::unique_ptr<RawPeer> arrived = Arrive();
  const UniqueFd newcomer = NewSocket();
  pollfd ends[] = {{newcomer.get(), POLLIN, 0}, {arrived->fd(), POLLIN, 0}};
  {
    UniqueFd next(dup(newcomer.get()));
    const DescriptorLimit none(static_cast<rlim_t>(next.get()));
    next.reset();
    Connect(newcomer);
    const net::ClientHello hello;
    EXPECT_EQ(send(newcomer.get(), &hello, sizeof(hello), MSG_NOSIGNAL), ssize_t{sizeof(hello)});
    // Nothing tells of an accept that failed: time for several.
    EXPECT_EQ(poll(ends, 2, 500), 0);
  }
  EXPECT_EQ(poll(ends, 1, kHangMs), 1) << "accepting goes on";
  owner_.Tell();
  EXPECT_EQ(VerdictOf(*arrived), net::HandshakeStatus::kNoSuchMember);
}

TEST_F(TcpStrangersTest, AConnectionThatNoAcceptTakesIsClosed) {
  server_ = Open(2'000'000);
  listener_ = server_->Listen({.address = "127.0.0.1:0", .passive = false}).value();
  const auto queue = server_->CreateCompletionQueue(1024).value();
  RawPeer forward(listener_->address()), reverse(listener_->address());
  const auto paired = forward.Authenticate(kSecret);
  ASSERT_TRUE(paired);
  const auto verdict = reverse.Authenticate(kSecret, {.role = net::Role::kReverse, .token = paired->token});
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->status, net::HandshakeStatus::kOk);
  EXPECT_TRUE(forward.ClosedByPeer());
  EXPECT_TRUE(reverse.ClosedByPeer());
  const auto accepted = listener_->Accept(*queue, {}, RealClock().After(0));
  EXPECT_TRUE(absl::IsDeadlineExceeded(accepted.status())) << accepted.status();
}

TEST_F(TcpStrangersTest, TheDeadlineIsForTheWholeHandshake) {
  Start(300'000);
  const int64_t start_ns = RealClock().NowNs();
  RawPeer slow(listener_->address());
  const net::ClientHello hello;
  const auto* byte = reinterpret_cast<const std::byte*>(&hello);
  pollfd end{slow.fd(), POLLIN, 0};
  // A byte each 100 ms would need 5.6 s for the hello alone.
  for (size_t sent = 0; poll(&end, 1, 100) == 0; ++sent) {
    ASSERT_LT(sent, sizeof(hello)) << "the server has not ended it";
    slow.Send({byte + sent, 1});
  }
  EXPECT_TRUE(slow.ClosedByPeer());
  EXPECT_GE(RealClock().NowNs() - start_ns, 300'000'000);
}

}  // namespace
}  // namespace nam::fabric
