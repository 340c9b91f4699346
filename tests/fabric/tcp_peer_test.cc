#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fabric/tcp/wire.h"
#include "tests/fabric/raw_peer.h"
#include "tests/fabric/tcp_connection.h"

/// Peers that stall, lie, or do not speak the protocol.
namespace nam::fabric {
namespace {

using net::RawListener;
using net::RawPeer;
using TcpPeerTest = TcpTest;

TEST_F(TcpPeerTest, SilentServerRunsIntoTheDeadline) {
  Start(true);
  const RawListener silent;  // is never read
  EXPECT_EQ(client_->Connect(silent.address(), *completions_, {}, RealClock().After(50'000)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TcpPeerTest, HandshakeRefusesGarbageAndOtherVersions) {
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

TEST_F(TcpPeerTest, RequestsBeforeTheProofAreNotExecuted) {
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

TEST_F(TcpPeerTest, StalledHandshakesEndAndKeepNobodyOut) {
  Start(true, 2'000'000);
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

TEST_F(TcpPeerTest, BadFramesCloseTheirConnectionOnly) {
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
TEST_F(TcpPeerTest, APeerStalledInAPayloadHoldsNobodyUp) {
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
TEST_F(TcpPeerTest, RandomFramesDisturbNobody) {
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
  constexpr int64_t kPeerTimeoutUs = 1'000'000;
  const auto server = OpenFabric(kPeerTimeoutUs, kSecret, 1);
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
  const Deadline stalled_until = RealClock().After(2 * kPeerTimeoutUs + kPeerTimeoutUs / 2);
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
TEST_F(TcpPeerTest, AServerWithoutTheSecretIsNotBelieved) {
  Start(true);
  const RawListener rogue;
  for (const bool reflect : {false, true}) {
    std::thread server([&] {
      const UniqueFd fd = rogue.Accept();
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
    const auto pair = client_->Connect(rogue.address(), *completions_, {}, Soon());
    EXPECT_EQ(pair.status().code(), absl::StatusCode::kUnauthenticated) << pair.status();
    server.join();
  }
}

// A server that takes requests and never answers them.
TEST_F(TcpPeerTest, ServerThatStopsAnsweringIsLost) {
  Start(true, 1'000'000);
  const RawListener fake;
  UniqueFd accepted;
  std::thread server([&] {
    accepted = fake.Accept();
    net::ClientHello hello;
    net::ClientProof proof;
    ASSERT_EQ(recv(accepted.get(), &hello, sizeof(hello), MSG_WAITALL), ssize_t{sizeof(hello)});
    const net::ServerChallenge challenge;
    send(accepted.get(), &challenge, sizeof(challenge), MSG_NOSIGNAL);
    ASSERT_EQ(recv(accepted.get(), &proof, sizeof(proof), MSG_WAITALL), ssize_t{sizeof(proof)});
    const net::ServerProof answer{{}, net::ProveServer(kSecret, hello, challenge, {})};
    send(accepted.get(), &answer, sizeof(answer), MSG_NOSIGNAL);
  });
  auto pair = client_->Connect(fake.address(), *completions_, {}, Soon());
  server.join();
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(Run(**pair, WorkRequest::Read(1, local_->Slice(0, 8), At(0))), CompletionStatus::kPeerLost);
}

}  // namespace
}  // namespace nam::fabric
