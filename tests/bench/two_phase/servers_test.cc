#include <gtest/gtest.h>

#include <random>

#include "bench/two_phase/wire.h"
#include "tests/bench/two_phase/two_phase_cluster.h"

/// Servers whose peers break the protocol, vanish, or stop.
namespace nam::bench::two_phase {
namespace {

/// Talks to servers without a session.
class Stranger final : public FrameSink {
 public:
  explicit Stranger(TwoPhaseCluster& cluster, bool listens = false) : cluster_(cluster) {
    TransportOptions options = cluster.transport();
    if (!listens) options.host.clear();
    auto transport = OpenTransport(cluster.client(), options);
    EXPECT_TRUE(transport.ok()) << transport.status();
    transport_ = *std::move(transport);
  }
  void Connect(const std::string& address) {
    const auto connection = transport_->Connect(address, cluster_.Soon());
    ASSERT_TRUE(connection.ok()) << connection.status();
    connection_ = *connection;
    lost_ = false;
  }
  const std::string& address() const { return transport_->address(); }
  std::vector<std::byte>& output() { return transport_->Output(connection_); }
  void Say(const MessageHead& head) { FrameWriter(output(), head); }
  /// Answers all peers that have sent `type` about `id`, or the one of them that `only` names.
  void Answer(MessageType type, MessageHead head, int only = -1) {
    int number = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].type != type || answers[i].id != head.id) continue;
      if (only < 0 || only == number) FrameWriter(transport_->Output(from[i]), head);
      ++number;
    }
    EXPECT_EQ(number, 2);
    transport_->Receive(*this, cluster_.client().clock().After(0));
  }
  void AwaitAnswers(size_t count) {
    const Deadline deadline = cluster_.Soon();
    while (!lost_ && answers.size() < count && !cluster_.client().clock().Passed(deadline)) {
      transport_->Receive(*this, deadline);
    }
    ASSERT_EQ(answers.size(), count);
  }
  bool IsLost() {
    const Deadline deadline = cluster_.Soon();
    while (!lost_ && !cluster_.client().clock().Passed(deadline)) transport_->Receive(*this, deadline);
    return lost_;
  }
  /// Sends the queued messages, and ends.
  void SendAndGo() {
    transport_->Receive(*this, cluster_.client().clock().After(0));
    transport_.reset();
  }

  std::vector<MessageHead> answers;
  std::vector<ConnectionId> from;

 private:
  void OnFrame(ConnectionId connection, std::span<const std::byte> frame) override {
    MessageHead head;
    EXPECT_TRUE(FrameReader(frame).Read(&head));
    answers.push_back(head);
    from.push_back(connection);
  }
  void OnLost(ConnectionId) override { lost_ = true; }

  TwoPhaseCluster& cluster_;
  std::unique_ptr<Transport> transport_;
  ConnectionId connection_;
  bool lost_ = false;
};

void PutWrite(FrameWriter& writer, WriteKind kind, const txn::Account& row) {
  writer.Put(uint16_t{0});
  writer.Put(kind);
  writer.PutBytes(txn::Bytes(row));
}

uint32_t OwnerOf(uint64_t key) {
  return PartitionOf(txn::Bytes(key), 3);
}

class TwoPhaseServersTest : public ::testing::TestWithParam<Setting> {
 protected:
  TwoPhaseServersTest() : cluster_(GetParam()) {}
  const std::string& ParticipantOf(uint64_t key) {
    return cluster_.cluster().layout().participants[OwnerOf(key)];
  }
  const std::string& Coordinator() { return cluster_.cluster().layout().coordinators[0]; }
  TwoPhaseCluster cluster_;
};

TEST_P(TwoPhaseServersTest, NonsenseClosesTheConnectionAndNothingElse) {
  Teller teller(cluster_);
  teller.Create(1, 10);
  const auto refused = [&](const std::string& address, const auto& put) {
    Stranger stranger(cluster_);
    stranger.Connect(address);
    put(stranger.output());
    EXPECT_TRUE(stranger.IsLost());
  };
  for (const std::string& address : {ParticipantOf(1), Coordinator()}) {
    for (const uint32_t length : {0u, 31u, kFrameBytesMax + 1, ~0u}) {
      refused(address, [&](std::vector<std::byte>& output) {
        const auto bytes = txn::Bytes(length);
        output.insert(output.end(), bytes.begin(), bytes.end());
      });
    }
    for (int type = 0; type < 12; ++type) {
      refused(address, [&](std::vector<std::byte>& output) {
        FrameWriter writer(
            output,
            {.type = static_cast<MessageType>(type), .count = ~0u, .id = 5, .timestamp = ~uint64_t{0}});
        writer.Put(uint64_t{0x0123456789abcdef});
      });
    }
  }
  // A table and a kind of write that do not exist, half a row, and a row that was locked before it.
  for (int broken = 0; broken < 3; ++broken) {
    refused(ParticipantOf(1), [&](std::vector<std::byte>& output) {
      FrameWriter writer(output, {.type = MessageType::kPrepare, .id = 1, .snapshot = ~uint64_t{0} >> 1});
      PutWrite(writer, WriteKind::kUpdate, {1, 11});
      writer.Put(static_cast<uint16_t>(broken == 0));
      writer.Put(static_cast<uint8_t>(broken == 1 ? 77 : 0));
      writer.PutBytes(std::as_bytes(std::span("half a row", 11)));
    });
  }
  // The same participant twice; one that does not exist; none.
  for (const std::vector<uint16_t>& parts : {std::vector<uint16_t>{0, 0}, {3}, {}}) {
    refused(Coordinator(), [&](std::vector<std::byte>& output) {
      FrameWriter writer(output,
                         {.type = MessageType::kCommit, .count = static_cast<uint32_t>(parts.size())});
      for (const uint16_t part : parts) {
        writer.Put(part);
        writer.Put(uint32_t{0});
      }
    });
  }
  teller.Set(1, 12);
  EXPECT_EQ(teller.BalanceOf(1), 12);
}

TEST_P(TwoPhaseServersTest, RandomFramesAreSurvived) {
  Teller teller(cluster_);
  teller.Create(1, 10);
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 60; ++i) {
    Stranger stranger(cluster_);
    // These are not the coordinator's commits: well-formed nonsense is a commit like any other.
    stranger.Connect(ParticipantOf(random() % 3));
    for (int frame = 0; frame < 4; ++frame) {
      const MessageType types[] = {MessageType::kRead, MessageType::kPrepare, MessageType::kDecide};
      FrameWriter writer(stranger.output(), {.type = types[random() % 3],
                                             .count = static_cast<uint32_t>(random() % 4),
                                             .id = random() % 2,
                                             .timestamp = 0});
      for (uint64_t bytes = random() % 90; bytes > 0; --bytes) {
        writer.Put(static_cast<uint8_t>(random() % 4 == 0 ? random() : 0));
      }
    }
    stranger.SendAndGo();
  }
  teller.Set(1, 12);
  EXPECT_EQ(teller.BalanceOf(1), 12);
}

TEST_P(TwoPhaseServersTest, AClientThatGoesLeavesNoLock) {
  Teller teller(cluster_);
  uint64_t other = 2;
  while (OwnerOf(other) == OwnerOf(1)) ++other;
  teller.Create(1, 10);
  teller.Create(other, 10);
  Stranger stranger(cluster_);
  stranger.Connect(Coordinator());
  {
    FrameWriter writer(stranger.output(), {.type = MessageType::kCommit, .count = 2, .id = 1, .snapshot = 2});
    for (uint16_t participant = 0; participant < 3; ++participant) {
      const uint64_t key = participant == OwnerOf(1) ? 1 : participant == OwnerOf(other) ? other : 0;
      if (key == 0) continue;
      writer.Put(participant);
      writer.Put(static_cast<uint32_t>(sizeof(uint16_t) + sizeof(WriteKind) + sizeof(txn::Account)));
      PutWrite(writer, WriteKind::kUpdate, {key, 99});
    }
  }
  stranger.SendAndGo();
  // The commit happens completely or not at all, and then the rows are free.
  const Deadline deadline = cluster_.Soon();
  bool free = false;
  while (!free && !cluster_.client().clock().Passed(deadline)) {
    ASSERT_TRUE(teller.session->Begin().ok());
    const auto a = teller.Read(1), b = teller.Read(other);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ((*a)->balance, (*b)->balance);
    absl::Status status = teller.Update(1, 50);
    if (status.ok()) status = teller.Update(other, 50);
    if (status.ok()) status = teller.session->Commit().status();
    free = status.ok();
    ASSERT_TRUE(free || txn::AbortReasonOf(status) == txn::AbortReason::kWriteWrite) << status;
  }
  EXPECT_TRUE(free);
}

TEST_P(TwoPhaseServersTest, LocksEndWithTheirCoordinator) {
  Teller teller(cluster_);
  teller.Create(1, 10);
  Stranger stranger(cluster_);
  stranger.Connect(ParticipantOf(1));
  {
    FrameWriter writer(stranger.output(), {.type = MessageType::kPrepare, .id = 1, .snapshot = 1});
    PutWrite(writer, WriteKind::kUpdate, {1, 99});
  }
  stranger.AwaitAnswers(1);
  EXPECT_EQ(stranger.answers[0].flag, static_cast<uint8_t>(Outcome::kYes));
  ASSERT_TRUE(teller.session->Begin().ok());
  ASSERT_EQ((*teller.Read(1))->balance, 10) << "readers do not mind locks";
  ASSERT_EQ(txn::AbortReasonOf(teller.Update(1, 20)), txn::AbortReason::kWriteWrite);
  stranger.SendAndGo();
  const Deadline deadline = cluster_.Soon();
  absl::Status status = absl::AbortedError("");
  while (!status.ok() && !cluster_.client().clock().Passed(deadline)) {
    ASSERT_TRUE(teller.session->Begin().ok());
    ASSERT_TRUE(teller.Read(1).ok());
    status = teller.Update(1, 20);
  }
  ASSERT_TRUE(status.ok()) << status;
  teller.Commits();
}

TEST_P(TwoPhaseServersTest, WithoutAParticipantNothingIsAvailable) {
  Teller a(cluster_), b(cluster_), c(cluster_);
  for (uint64_t key = 0; key < 6; ++key) a.Create(key, 10);
  uint64_t elsewhere = 0;
  while (OwnerOf(elsewhere) == 1) ++elsewhere;
  ASSERT_TRUE(a.session->Begin().ok() && b.session->Begin().ok());
  ASSERT_TRUE(b.Read(elsewhere).ok() && b.Update(elsewhere, 1).ok());
  cluster_.cluster().StopParticipant(1);
  const auto reads_all = [&] {
    for (uint64_t key = 0; key < 6; ++key) {
      if (const absl::Status status = a.Read(key).status(); !status.ok()) return status;
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(reads_all().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(a.session->Begin().code(), absl::StatusCode::kUnavailable) << "and stays so";
  EXPECT_EQ(b.session->Commit().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(c.session->Begin().code(), absl::StatusCode::kUnavailable);
}

TEST_P(TwoPhaseServersTest, WithoutTheCoordinatorNothingCommits) {
  Teller a(cluster_), b(cluster_);
  a.Create(1, 10);
  ASSERT_TRUE(a.session->Begin().ok() && a.Read(1).ok() && a.Update(1, 11).ok());
  cluster_.cluster().StopCoordinator(0);
  EXPECT_EQ(a.session->Commit().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(b.session->Begin().code(), absl::StatusCode::kUnavailable);
}

/// Two participants that answer on request, a coordinator, and a client.
TEST(TwoPhaseCoordinatorTest, ASnapshotHoldsNothingThatIsNotInstalled) {
  TwoPhaseCluster cluster({TransportOptions::Kind::kSocket, fabric::Kind::kShm});
  Stranger participants(cluster, true), client(cluster);
  TimestampService timestamps;
  TransportOptions transport = cluster.transport();
  const auto coordinator = StartCoordinator(cluster.client(), transport,
                                            {participants.address(), participants.address()}, timestamps);
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  client.Connect((*coordinator)->address());
  const auto commit = [&](uint8_t when_visible) {
    FrameWriter writer(client.output(),
                       {.type = MessageType::kCommit, .flag = when_visible, .count = 2, .id = 7});
    for (uint16_t participant = 0; participant < 2; ++participant) {
      writer.Put(participant);
      writer.Put(uint32_t{0});
    }
  };
  const auto snapshot = [&](uint64_t at_least) {
    const size_t count = client.answers.size() + 1;
    client.Say({.type = MessageType::kAsk, .id = 8, .timestamp = at_least});
    client.AwaitAnswers(count);
    EXPECT_EQ(client.answers.back().type, MessageType::kSnapshot);
    return client.answers.back().snapshot;
  };
  commit(0);
  EXPECT_EQ(snapshot(0), 0);
  participants.AwaitAnswers(2);  // prepares
  participants.Answer(MessageType::kPrepare, {.type = MessageType::kVote, .id = 1});
  client.AwaitAnswers(2);
  EXPECT_EQ(client.answers[1].timestamp, 1) << "told as soon as it is decided";
  EXPECT_EQ(snapshot(0), 0);
  commit(1);
  EXPECT_EQ(snapshot(0), 0);
  participants.AwaitAnswers(6);  // decides, prepares
  participants.Answer(MessageType::kPrepare, {.type = MessageType::kVote, .id = 2});
  participants.AwaitAnswers(8);  // decides
  participants.Answer(MessageType::kDecide, {.type = MessageType::kDone, .id = 2});
  participants.Answer(MessageType::kDecide, {.type = MessageType::kDone, .id = 1}, 0);
  EXPECT_EQ(snapshot(0), 0) << "the second is installed, the first is half";
  participants.Answer(MessageType::kDecide, {.type = MessageType::kDone, .id = 1}, 1);
  client.AwaitAnswers(6);
  EXPECT_EQ(client.answers[5].type, MessageType::kOutcome);
  EXPECT_EQ(client.answers[5].snapshot, 2) << "the second's client was told now";
  EXPECT_EQ(snapshot(2), 2);
}

INSTANTIATE_TEST_SUITE_P(Settings, TwoPhaseServersTest,
                         ::testing::Values(Setting{TransportOptions::Kind::kSocket, fabric::Kind::kShm},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kShm},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kTcp},
                                           Setting{TransportOptions::Kind::kSend, fabric::Kind::kSim}),
                         NameOf);

TEST(TwoPhaseModelTest, MessagesCostWhatTheyAreSaidTo) {
  const auto nanoseconds = [](const TransportOptions& transport) {
    TwoPhaseCluster cluster({TransportOptions::Kind::kSend, fabric::Kind::kSim}, {.transport = transport});
    Teller teller(cluster);
    teller.Create(1, 10);
    const int64_t start = cluster.client().clock().NowNs();
    for (int i = 0; i < 20; ++i) teller.Set(1, i);
    return (cluster.client().clock().NowNs() - start) / 20;
  };
  const int64_t bare = nanoseconds({});
  // Begin and Read are a round trip each, a commit at one participant is two in a row: 8 messages, each
  // sent and received.
  EXPECT_NEAR(static_cast<double>(nanoseconds({.message_cpu_ns = 10'000}) - bare), 8 * 2 * 10'000, 16'000);
  EXPECT_NEAR(static_cast<double>(nanoseconds({.extra_latency_ns = 30'000}) - bare), 8 * 30'000, 24'000);
  EXPECT_NEAR(static_cast<double>(nanoseconds({.coalesce = false})), static_cast<double>(bare), 2'000);
}

TEST(TwoPhaseModelTest, SocketsAreNotSimulated) {
  fabric::sim::World world({});
  const auto fabric = *world.OpenFabric("host", {});
  EXPECT_EQ(OpenTransport(*fabric, {.kind = TransportOptions::Kind::kSocket}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace nam::bench::two_phase
