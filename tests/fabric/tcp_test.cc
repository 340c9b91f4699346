#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fabric/tcp/busy_poll.h"
#include "fabric/tcp/tcp_fabric.h"
#include "fabric/tcp/wire.h"
#include "tests/fabric/raw_peer.h"

std::atomic<uint64_t> yields = 0;
std::atomic<int64_t> slice_us = 0;  // how long other programs keep a yielded processor

/// Replaces the C library's.
extern "C" int sched_yield() {
  ++yields;
  const nam::Deadline back = nam::RealClock().After(slice_us);
  while (slice_us > 0 && !nam::RealClock().Passed(back)) continue;
  return 0;
}

namespace nam::fabric {
namespace {

using net::RawPeer;

constexpr char kSecret[] = "correct horse battery staple";

std::unique_ptr<Fabric> OpenFabric(int64_t peer_timeout_us = 10'000'000, const std::string& secret = kSecret,
                                   int nic_threads = 2) {
  auto fabric = OpenTcp(
      {.kind = Kind::kTcp, .secret = secret, .nic_threads = nic_threads, .peer_timeout_us = peer_timeout_us});
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return std::move(fabric).value();
}

Deadline Soon() {
  return RealClock().After(20'000'000);
}

/// A server with a region and a client with a region and a connection to it.
class TcpTest : public testing::Test {
 protected:
  void Start(bool passive, int64_t peer_timeout_us = 10'000'000, const QueuePairOptions& options = {}) {
    server_ = OpenFabric(peer_timeout_us);
    client_ = OpenFabric(peer_timeout_us);
    region_ = server_->Allocate(1 << 20, {}).value();
    local_ = client_->Allocate(1 << 20, {}).value();
    listener_ = server_->Listen({.address = "127.0.0.1:0", .passive = passive}).value();
    completions_ = client_->CreateCompletionQueue(1024).value();
    pair_ = Connect(options);
    if (passive) return;
    server_completions_ = server_->CreateCompletionQueue(1024).value();
    auto accepted = listener_->Accept(*server_completions_, options, Soon());
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    server_pair_ = std::move(accepted).value();
  }
  void TearDown() override {
    pair_.reset();
    server_pair_.reset();
  }

  std::unique_ptr<QueuePair> Connect(const QueuePairOptions& options = {}) {
    auto pair = client_->Connect(listener_->address(), *completions_, options, Soon());
    EXPECT_TRUE(pair.ok()) << pair.status();
    return pair.ok() ? std::move(pair).value() : nullptr;
  }
  static Completion Next(CompletionQueue& queue) {
    Completion completion{.status = CompletionStatus::kFlushed};
    EXPECT_EQ(queue.Wait({&completion, 1}, Soon()), 1u);
    return completion;
  }
  CompletionStatus Run(QueuePair& pair, const WorkRequest& request) {
    const absl::Status posted = pair.Post({&request, 1});
    EXPECT_TRUE(posted.ok()) << posted;
    const Completion completion = Next(*completions_);
    EXPECT_EQ(completion.id, request.id);
    return completion.status;
  }
  RemoteAddress At(uint64_t offset) const { return {region_->rkey(), offset}; }

  std::unique_ptr<Fabric> server_, client_;
  std::unique_ptr<MemoryRegion> region_, local_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CompletionQueue> completions_, server_completions_;
  std::unique_ptr<QueuePair> pair_, server_pair_;
};

TEST_F(TcpTest, WritesReadsAndAtomics) {
  Start(true);
  for (const uint32_t bytes : {0u, 1u, 7u, 2048u, 65'536u, 400'001u}) {
    const uint64_t offset = bytes % 5;
    for (uint32_t i = 0; i < bytes; ++i) local_->data()[i] = static_cast<std::byte>(i * 7 + bytes);
    EXPECT_EQ(Run(*pair_, WorkRequest::Write(1, local_->Slice(0, bytes), At(offset))), CompletionStatus::kOk);
    EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(500'000, bytes), At(offset))),
              CompletionStatus::kOk);
    EXPECT_EQ(std::memcmp(local_->data(), local_->data() + 500'000, bytes), 0) << bytes;
  }
  auto* old = reinterpret_cast<uint64_t*>(local_->data());
  const LocalBuffer into = local_->Slice(0, 8);
  const RemoteAddress word = At(900'000);
  EXPECT_EQ(Run(*pair_, WorkRequest::FetchAdd(3, into, word, 5)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 0u);
  EXPECT_EQ(Run(*pair_, WorkRequest::CompareAndSwap(4, into, word, 4, 9)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 5u);
  EXPECT_EQ(Run(*pair_, WorkRequest::CompareAndSwap(5, into, word, 5, 9)), CompletionStatus::kOk);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(6, into, word)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 9u);
  EXPECT_EQ(pair_->View(At(0), 8).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TcpTest, AtomicsAreExactAcrossNicThreads) {
  Start(true);
  constexpr int kThreads = 3;
  constexpr int kAdds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      auto queue = client_->CreateCompletionQueue(512).value();
      auto pair = client_->Connect(listener_->address(), *queue, {}, Soon()).value();
      auto into = client_->Allocate(4096, {}).value();
      for (int i = 0; i < kAdds; i += 50) {
        std::vector<WorkRequest> batch;
        for (int j = 0; j < 50; ++j) {
          batch.push_back(WorkRequest::FetchAdd(j, into->Slice(0, 8), At(64), 1,
                                                j == 49 ? Signal::kSignaled : Signal::kUnsignaled));
        }
        ASSERT_TRUE(pair->Post(batch).ok());
        ASSERT_TRUE(Next(*queue).ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), At(64))), CompletionStatus::kOk);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(local_->data()), uint64_t{kThreads} * kAdds);
}

TEST_F(TcpTest, WordsAreNeverTorn) {
  Start(true);
  auto other = Connect();
  // One queue pair writes all zeroes and all ones in turn while the other, on the other NIC thread, reads.
  constexpr uint32_t kBytes = 64 << 10;
  std::memset(local_->data(), 0xff, kBytes);
  std::memset(local_->data() + kBytes, 0, kBytes);
  std::array<Completion, 8> done;
  for (int round = 0; round < 100; ++round) {
    const std::array writes = {WorkRequest::Write(1, local_->Slice(0, kBytes), At(0)),
                               WorkRequest::Write(1, local_->Slice(kBytes, kBytes), At(0))};
    const std::array reads = {WorkRequest::Read(2, local_->Slice(2 * kBytes, kBytes), At(0)),
                              WorkRequest::Read(2, local_->Slice(3 * kBytes, kBytes), At(0))};
    ASSERT_TRUE(pair_->Post(writes).ok());
    ASSERT_TRUE(other->Post(reads).ok());
    for (size_t taken = 0; taken < 4;) {
      const size_t now = completions_->Wait(done, Soon());
      ASSERT_GT(now, 0u);
      for (size_t i = 0; i < now; ++i) ASSERT_TRUE(done[i].ok());
      taken += now;
    }
    const auto* words = reinterpret_cast<const uint64_t*>(local_->data() + 2 * kBytes);
    for (size_t i = 0; i < 2 * kBytes / 8; ++i) ASSERT_TRUE(words[i] == 0 || words[i] == ~0ull) << words[i];
  }
}

TEST_F(TcpTest, ErrorsChangeNothingAndFlushWhatFollows) {
  const auto expect = [this](const WorkRequest& bad, CompletionStatus status) {
    auto pair = Connect();
    std::memset(local_->data(), 0x5a, 64);
    std::array batch = {WorkRequest::Read(1, local_->Slice(512, 8), At(0)), bad,
                        WorkRequest::Write(3, local_->Slice(0, 8), At(0), Signal::kUnsignaled)};
    batch[1].id = 2;
    batch[1].signal = Signal::kUnsignaled;
    ASSERT_TRUE(pair->Post(batch).ok());
    EXPECT_EQ(Next(*completions_).status, CompletionStatus::kOk);
    const Completion failed = Next(*completions_);
    EXPECT_EQ(failed.id, 2u);
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(pair->state(), QueuePairState::kError);
    EXPECT_EQ(Next(*completions_).status, CompletionStatus::kFlushed);
    EXPECT_EQ(Run(*pair, WorkRequest::Read(4, local_->Slice(512, 8), At(0))), CompletionStatus::kFlushed);
    ASSERT_EQ(Run(*pair_, WorkRequest::Read(5, local_->Slice(512, 8), At(0))), CompletionStatus::kOk);
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(local_->data() + 512), 0u);
  };
  Start(true);
  const LocalBuffer eight = local_->Slice(0, 8);
  const auto read_only = server_->Allocate(4096, {.access = Access::kRead}).value();
  expect(WorkRequest::Write(0, eight, At((1 << 20) - 7)), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Read(0, eight, At(~0ull - 3)), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Read(0, eight, {{0x12345678}, 0}), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Write(0, eight, {read_only->rkey(), 0}), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::FetchAdd(0, eight, {read_only->rkey(), 0}, 1), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::FetchAdd(0, eight, At(4), 1), CompletionStatus::kRemoteInvalidRequest);
  expect(WorkRequest::Send(0, eight),
         CompletionStatus::kRemoteInvalidRequest);  // a passive peer has no receives
  expect(WorkRequest::Read(0, {local_->data(), 8, {77}}, At(0)), CompletionStatus::kLocalError);
  expect(WorkRequest::Read(0, {local_->data() + (1 << 20) - 4, 8, local_->lkey()}, At(0)),
         CompletionStatus::kLocalError);
}

TEST_F(TcpTest, DeregisteredRegionIsRefused) {
  Start(true);
  auto gone = server_->Allocate(4096, {}).value();
  const RemoteAddress at{gone->rkey(), 0};
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), at)), CompletionStatus::kOk);
  gone.reset();
  const auto next = server_->Allocate(4096, {}).value();
  EXPECT_NE(next->rkey(), at.rkey);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(0, 8), at)), CompletionStatus::kRemoteAccessError);
}

TEST_F(TcpTest, PostTakesAllOrNone) {
  Start(true, 10'000'000, {.send_depth = 4, .receive_depth = 4, .inline_bytes_max = 16});
  const WorkRequest read = WorkRequest::Read(1, local_->Slice(0, 8), At(0), Signal::kUnsignaled);
  EXPECT_EQ(pair_->Post(std::vector(5, read)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pair_->Post(std::vector(3, read)).ok());
  EXPECT_EQ(pair_->Post(std::vector(2, read)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
  EXPECT_TRUE(pair_->Post(std::vector(4, read)).ok());
  EXPECT_EQ(completions_->Wait({}, Soon()), 0u);

  WorkRequest too_long = WorkRequest::Write(3, local_->Slice(0, 17), At(0));
  too_long.inlined = true;
  EXPECT_EQ(pair_->Post({&too_long, 1}).code(), absl::StatusCode::kInvalidArgument);
  const WorkRequest narrow = WorkRequest::FetchAdd(4, local_->Slice(0, 4), At(0), 1);
  EXPECT_EQ(pair_->Post({&narrow, 1}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TcpTest, SendsMeetReceivesInBothDirections) {
  Start(false);
  const auto incoming = server_->Allocate(4096, {}).value();
  std::memcpy(local_->data(), "hello", 5);
  const std::array batch = {
      WorkRequest::Send(1, local_->Slice(0, 5)),
      WorkRequest::WriteWithImmediate(2, local_->Slice(0, 5), At(100), 4711),
  };
  // Posted before any receive: both wait.
  ASSERT_TRUE(pair_->Post(batch).ok());
  Completion none;
  EXPECT_EQ(completions_->Poll({&none, 1}), 0u);
  const std::array receives = {ReceiveRequest{10, incoming->Slice(0, 64)}, ReceiveRequest{11, {}}};
  ASSERT_TRUE(server_pair_->PostReceive(receives).ok());
  const Completion first = Next(*server_completions_);
  EXPECT_EQ(first.id, 10u);
  EXPECT_TRUE(first.ok() && first.bytes == 5 && !first.has_immediate && first.opcode == Opcode::kReceive);
  EXPECT_EQ(std::memcmp(incoming->data(), "hello", 5), 0);
  const Completion second = Next(*server_completions_);
  EXPECT_EQ(second.id, 11u);
  EXPECT_TRUE(second.ok() && second.has_immediate && second.immediate == 4711);
  EXPECT_EQ(std::memcmp(region_->data() + 100, "hello", 5), 0);
  EXPECT_EQ(Next(*completions_).id, 1u);
  EXPECT_EQ(Next(*completions_).id, 2u);

  const ReceiveRequest back{20, local_->Slice(64, 64)};
  ASSERT_TRUE(pair_->PostReceive({&back, 1}).ok());
  WorkRequest answer = WorkRequest::Send(21, incoming->Slice(0, 5));
  answer.inlined = true;
  ASSERT_TRUE(server_pair_->Post({&answer, 1}).ok());
  std::memset(incoming->data(), 0, 5);
  EXPECT_EQ(Next(*completions_).id, 20u);
  EXPECT_EQ(std::memcmp(local_->data() + 64, "hello", 5), 0);
  EXPECT_TRUE(Next(*server_completions_).ok());
}

TEST_F(TcpTest, MessageLongerThanTheReceiveFailsBothSides) {
  Start(false);
  const auto incoming = server_->Allocate(4096, {}).value();
  const ReceiveRequest receive{10, incoming->Slice(0, 4)};
  ASSERT_TRUE(server_pair_->PostReceive({&receive, 1}).ok());
  EXPECT_EQ(Run(*pair_, WorkRequest::Send(1, local_->Slice(0, 5))), CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(Next(*server_completions_).status, CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(server_pair_->state(), QueuePairState::kError);
}

// Many more bytes than all socket buffers hold wait for receives, longer than the peer timeout.
TEST_F(TcpTest, WaitingMessagesPushBackAndNothingTimesOut) {
  Start(false, 150'000, {.send_depth = 256, .receive_depth = 256});
  const auto incoming = server_->Allocate(kMaxSendBytes, {}).value();
  const std::vector<WorkRequest> sends(256, WorkRequest::Send(1, local_->Slice(0, kMaxSendBytes)));
  ASSERT_TRUE(pair_->Post(sends).ok());
  std::array<Completion, 256> done;
  EXPECT_EQ(completions_->Wait(done, RealClock().After(600'000)), 0u);
  EXPECT_EQ(pair_->state(), QueuePairState::kReady);
  const std::vector<ReceiveRequest> receives(256, ReceiveRequest{2, incoming->Slice(0, kMaxSendBytes)});
  ASSERT_TRUE(server_pair_->PostReceive(receives).ok());
  for (size_t taken = 0; taken < 256;) {
    const size_t now = completions_->Wait(done, Soon());
    ASSERT_GT(now, 0u);
    for (size_t i = 0; i < now; ++i) ASSERT_TRUE(done[i].ok());
    taken += now;
  }
}

TEST_F(TcpTest, WakeEndsAWait) {
  Start(true);
  Completion none;
  std::thread waker([&] { completions_->Wake(); });
  EXPECT_EQ(completions_->Wait({&none, 1}, Soon()), 0u);
  waker.join();
}

TEST_F(TcpTest, PeerDeathCompletesWhatIsPending) {
  Start(false);
  const ReceiveRequest receive{9, local_->Slice(0, 64)};
  ASSERT_TRUE(pair_->PostReceive({&receive, 1}).ok());
  const std::array sends = {WorkRequest::Send(1, local_->Slice(0, 8), Signal::kUnsignaled),
                            WorkRequest::Send(2, local_->Slice(0, 8))};
  ASSERT_TRUE(pair_->Post(sends).ok());
  server_pair_.reset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Next(*completions_).status, CompletionStatus::kPeerLost) << i;
  EXPECT_EQ(pair_->state(), QueuePairState::kError);
  EXPECT_EQ(Run(*pair_, WorkRequest::Send(3, local_->Slice(0, 8))), CompletionStatus::kFlushed);
}

TEST_F(TcpTest, DestroyedServerIsLost) {
  Start(true);
  listener_.reset();
  region_.reset();
  server_.reset();
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), {{1}, 0})), CompletionStatus::kPeerLost);
}

TEST_F(TcpTest, CompletionQueueBoundsItsQueuePairs) {
  Start(true);
  auto small = client_->CreateCompletionQueue(100).value();
  const auto pair =
      client_->Connect(listener_->address(), *small, {.send_depth = 60, .receive_depth = 41}, Soon());
  EXPECT_EQ(pair.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(TcpTest, ConnectErrorsSayWhatIsWrong) {
  Start(true);
  const std::string address = listener_->address();
  const auto connect = [&](Fabric& fabric, const std::string& to, int64_t timeout_us) {
    return fabric.Connect(to, *completions_, {}, RealClock().After(timeout_us)).status();
  };
  const auto stranger = OpenFabric(10'000'000, "another secret");
  auto queue = stranger->CreateCompletionQueue(1024).value();
  EXPECT_EQ(connect(*stranger, address, 20'000'000).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(connect(*client_, "127.0.0.1", 1'000'000).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(connect(*client_, "127.0.0.1:99999", 1'000'000).code(), absl::StatusCode::kInvalidArgument);
  listener_.reset();
  const absl::Status refused = connect(*client_, address, 20'000'000);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(refused.message().find("nothing listens there"), absl::string_view::npos) << refused;
  EXPECT_EQ(OpenTcp({.kind = Kind::kTcp}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TcpTest, SilentServerRunsIntoTheDeadline) {
  Start(true);
  // A socket that the kernel accepts for, and that is never read.
  const UniqueFd silent(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  ASSERT_EQ(listen(silent.get(), 4), 0);
  socklen_t length = sizeof(at);
  getsockname(silent.get(), reinterpret_cast<sockaddr*>(&at), &length);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  EXPECT_EQ(client_->Connect(address, *completions_, {}, RealClock().After(50'000)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// -- Misbehaving peers ----------------------------------------------------------------

TEST_F(TcpTest, HandshakeRefusesGarbageAndOtherVersions) {
  Start(true);
  RawPeer garbage(listener_->address());
  ASSERT_TRUE(garbage.SendFrame(std::array<char, 64>{'G', 'E', 'T', ' ', '/'}));
  EXPECT_TRUE(garbage.ClosedByPeer());

  RawPeer old(listener_->address());
  ASSERT_TRUE(old.SendFrame(net::ClientHello{.version = 99}));
  const auto challenge = old.ReceiveFrame<net::ServerChallenge>();
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->status, net::HandshakeStatus::kWrongVersion);
  EXPECT_TRUE(old.ClosedByPeer());

  RawPeer wrong(listener_->address());
  const auto verdict = wrong.Authenticate("guess");
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status, net::HandshakeStatus::kWrongSecret);
  EXPECT_TRUE(wrong.ClosedByPeer());

  RawPeer unasked(listener_->address());
  const auto unknown = unasked.Authenticate(kSecret, {.role = net::Role::kReverse, .token = 12345});
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->status, net::HandshakeStatus::kUnknownToken);
}

TEST_F(TcpTest, RequestsBeforeTheProofAreNotExecuted) {
  Start(true);
  RawPeer peer(listener_->address());
  ASSERT_TRUE(peer.SendFrame(net::ClientHello{}));
  ASSERT_TRUE(peer.ReceiveFrame<net::ServerChallenge>());
  const tcp::RequestHeader add{
      .opcode = Opcode::kFetchAdd, .rkey = region_->rkey().value, .bytes = 8, .swap_or_add = 1};
  ASSERT_TRUE(peer.SendFrame(add));
  EXPECT_TRUE(peer.ClosedByPeer());
  ASSERT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(local_->data()), 0u);
}

TEST_F(TcpTest, StalledHandshakesEndAndKeepNobodyOut) {
  Start(true, 300'000);
  std::vector<std::unique_ptr<RawPeer>> stalled;
  for (int i = 0; i < 100; ++i) {
    stalled.push_back(std::make_unique<RawPeer>(listener_->address()));
    const std::byte some[5] = {};
    stalled.back()->Send(some);
  }
  auto honest = Connect();
  EXPECT_EQ(Run(*honest, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
  for (auto& peer : stalled) EXPECT_TRUE(peer->ClosedByPeer());
}

TEST_F(TcpTest, BadFramesCloseTheirConnectionOnly) {
  Start(true);
  const tcp::RequestHeader good{.opcode = Opcode::kWrite, .rkey = region_->rkey().value, .bytes = 8};
  std::vector<tcp::RequestHeader> bad(6, good);
  bad[0].magic = 0;
  bad[1].opcode = Opcode::kReceive;
  bad[2].sequence = 7;
  bad[3].bytes = kMaxMessageBytes + 1;
  bad[4].opcode = Opcode::kFetchAdd, bad[4].bytes = 16;
  bad[5].opcode = Opcode::kSend, bad[5].bytes = kMaxSendBytes + 1;
  for (const auto& header : bad) {
    RawPeer peer(listener_->address());
    ASSERT_TRUE(peer.Authenticate(kSecret));
    ASSERT_TRUE(peer.SendFrame(header));
    EXPECT_TRUE(peer.ClosedByPeer());
  }
  {
    // Ends in the middle of a payload.
    RawPeer peer(listener_->address());
    ASSERT_TRUE(peer.Authenticate(kSecret));
    ASSERT_TRUE(peer.SendFrame(good));
    ASSERT_TRUE(peer.SendFrame(uint32_t{5}));
  }
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
}

// Stalled inside a payload, with the connection open: others continue, and the region can go meanwhile.
TEST_F(TcpTest, APeerStalledInAPayloadHoldsNobodyUp) {
  Start(true);
  auto victim = server_->Allocate(4096, {}).value();
  RawPeer stalled(listener_->address());
  ASSERT_TRUE(stalled.Authenticate(kSecret));
  ASSERT_TRUE(stalled.SendFrame(
      tcp::RequestHeader{.opcode = Opcode::kWrite, .rkey = victim->rkey().value, .bytes = 4096}));
  ASSERT_TRUE(stalled.Send(std::vector<std::byte>(1000, std::byte{0x5a})));
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
  victim.reset();
  const auto reply = stalled.ReceiveFrame<tcp::ReplyHeader>();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, CompletionStatus::kRemoteAccessError);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
}

// Authenticated peers send requests with corrupted bytes: the server survives any of them.
TEST_F(TcpTest, RandomFramesDisturbNobody) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Start(true);
  const auto victim = server_->Allocate(4096, {}).value();
  for (int round = 0; round < 60; ++round) {
    RawPeer peer(listener_->address());
    ASSERT_TRUE(peer.Authenticate(kSecret));
    for (uint32_t sequence = 0; sequence < 8; ++sequence) {
      tcp::RequestHeader header{.opcode = static_cast<Opcode>(random() % 6),
                                .sequence = sequence,
                                .rkey = victim->rkey().value,
                                .bytes = static_cast<uint32_t>(random() % 5000),
                                .offset = random() % 5000};
      auto* bytes = reinterpret_cast<std::byte*>(&header);
      if (random() % 4 == 0) bytes[random() % sizeof(header)] = static_cast<std::byte>(random());
      if (!peer.SendFrame(header)) break;
      const std::vector<std::byte> payload(random() % 5000);
      if (!peer.Send(payload)) break;
    }
  }
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 4096), At(0))), CompletionStatus::kOk);
  for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(local_->data()[i], std::byte{0});
}

// One NIC thread; a peer asks for far more than socket buffers hold, reads nothing for longer than the
// peer timeout, and later reads it all.
TEST(TcpSlowReader, DisturbsNobodyAndLosesNothing) {
  const auto server = OpenFabric(200'000, kSecret, 1);
  auto region = server->Allocate(1 << 20, {}).value();
  std::memset(region->data(), 0x42, region->bytes());
  const auto small = server->Allocate(4096, {}).value();
  const auto listener = server->Listen({.address = "127.0.0.1:0", .passive = true}).value();
  constexpr uint32_t kReads = 64;
  RawPeer slow(listener->address(), 64 << 10);
  ASSERT_TRUE(slow.Authenticate(kSecret));
  for (uint32_t i = 0; i < kReads; ++i) {
    ASSERT_TRUE(slow.SendFrame(tcp::RequestHeader{
        .opcode = Opcode::kRead, .sequence = i, .rkey = region->rkey().value, .bytes = 1 << 20}));
  }
  const auto client = OpenFabric();
  const auto local = client->Allocate(4096, {}).value();
  auto queue = client->CreateCompletionQueue(256).value();
  auto pair = client->Connect(listener->address(), *queue, {}, Soon()).value();
  const Deadline stalled_until = RealClock().After(700'000);
  while (!RealClock().Passed(stalled_until)) {
    const WorkRequest read = WorkRequest::Read(1, local->Slice(0, 2048), {small->rkey(), 0});
    ASSERT_TRUE(pair->Post({&read, 1}).ok());
    Completion completion;
    ASSERT_EQ(queue->Wait({&completion, 1}, Soon()), 1u);
    ASSERT_TRUE(completion.ok());
  }
  // Deregistering does not wait for the slow peer; the READ that had begun succeeds from a snapshot.
  region.reset();
  std::vector<std::byte> payload(1 << 20);
  uint32_t succeeded = 0;
  for (uint32_t i = 0; i < kReads; ++i) {
    const auto reply = slow.ReceiveFrame<tcp::ReplyHeader>();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->sequence, i);
    if (reply->status != CompletionStatus::kOk) {
      EXPECT_EQ(reply->status, CompletionStatus::kRemoteAccessError);
      break;
    }
    ASSERT_TRUE(slow.Receive(payload));
    for (const std::byte b : payload) ASSERT_EQ(b, std::byte{0x42});
    ++succeeded;
  }
  EXPECT_GT(succeeded, 0u);
  EXPECT_LT(succeeded, kReads);
  pair.reset();
}

// A server that does not know the secret but welcomes the client.
TEST_F(TcpTest, AServerWithoutTheSecretIsNotBelieved) {
  Start(true);
  const UniqueFd rogue(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(rogue.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  ASSERT_EQ(listen(rogue.get(), 1), 0);
  socklen_t length = sizeof(at);
  getsockname(rogue.get(), reinterpret_cast<sockaddr*>(&at), &length);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  for (const bool reflect : {false, true}) {
    std::thread server([&] {
      const UniqueFd fd(accept(rogue.get(), nullptr, nullptr));
      net::ClientHello hello;
      net::ClientProof proof;
      ASSERT_EQ(recv(fd.get(), &hello, sizeof(hello), MSG_WAITALL), ssize_t{sizeof(hello)});
      const net::ServerChallenge challenge;
      send(fd.get(), &challenge, sizeof(challenge), MSG_NOSIGNAL);
      ASSERT_EQ(recv(fd.get(), &proof, sizeof(proof), MSG_WAITALL), ssize_t{sizeof(proof)});
      const net::Mac lie = reflect ? proof.mac : net::ProveServer("guess", hello, challenge, {});
      const net::ServerProof answer{{}, lie};
      send(fd.get(), &answer, sizeof(answer), MSG_NOSIGNAL);
      char byte;
      recv(fd.get(), &byte, 1, 0);
    });
    const auto pair = client_->Connect(address, *completions_, {}, Soon());
    EXPECT_EQ(pair.status().code(), absl::StatusCode::kUnauthenticated) << pair.status();
    server.join();
  }
}

// A server that takes requests and never answers them.
TEST_F(TcpTest, ServerThatStopsAnsweringIsLost) {
  Start(true, 200'000);
  const UniqueFd fake(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fake.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  ASSERT_EQ(listen(fake.get(), 1), 0);
  socklen_t length = sizeof(at);
  getsockname(fake.get(), reinterpret_cast<sockaddr*>(&at), &length);
  UniqueFd accepted;
  std::thread server([&] {
    accepted.reset(accept(fake.get(), nullptr, nullptr));
    net::ClientHello hello;
    net::ClientProof proof;
    ASSERT_EQ(recv(accepted.get(), &hello, sizeof(hello), MSG_WAITALL), ssize_t{sizeof(hello)});
    const net::ServerChallenge challenge;
    send(accepted.get(), &challenge, sizeof(challenge), MSG_NOSIGNAL);
    ASSERT_EQ(recv(accepted.get(), &proof, sizeof(proof), MSG_WAITALL), ssize_t{sizeof(proof)});
    const net::ServerProof answer{{}, net::ProveServer(kSecret, hello, challenge, {})};
    send(accepted.get(), &answer, sizeof(answer), MSG_NOSIGNAL);
  });
  auto pair = client_->Connect("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), *completions_, {}, Soon());
  server.join();
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(Run(**pair, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kPeerLost);
}

/// Both sides poll for a while before they sleep, but not for the whole wait.
TEST_F(TcpTest, WhoWaitsLongSleeps) {
  Start(/*passive=*/true);
  EXPECT_EQ(
      Run(*pair_,
          {.id = 1, .opcode = Opcode::kRead, .local = {local_->data(), 8, local_->lkey()}, .remote = At(0)}),
      CompletionStatus::kOk);
  const uint64_t before = yields;
  Completion completion;
  EXPECT_EQ(completions_->Wait({&completion, 1}, RealClock().After(300'000)), 0u);
  EXPECT_LT(yields - before,
            5'000u);  // each follows a poll, which takes more than a tenth of a microsecond
}

/// Another program computes: the waiting thread sleeps, and runs first when it is woken.
TEST_F(TcpTest, WhoGetsTheProcessorBackLateSleeps) {
  Start(/*passive=*/true);
  slice_us = 2 * tcp::BusyPoll::kSliceNs / 1'000;
  const uint64_t before = yields;
  const int64_t began_ns = RealClock().NowNs();
  for (uint64_t id = 1; id <= 50; ++id) {
    EXPECT_EQ(Run(*pair_, {.id = id,
                           .opcode = Opcode::kRead,
                           .local = {local_->data(), 8, local_->lkey()},
                           .remote = At(0)}),
              CompletionStatus::kOk);
  }
  const int64_t asleep_ns = tcp::BusyPoll::kContended * slice_us * 1'000;  // after each yield, at least
  slice_us = 0;
  const auto times = static_cast<uint64_t>((RealClock().NowNs() - began_ns) / asleep_ns + 1);
  EXPECT_LE(yields - before, 2 * times) << "of two threads, each once in a time";
}

}  // namespace
}  // namespace nam::fabric
