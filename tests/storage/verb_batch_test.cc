#include "storage/verb_batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/storage/chains.h"

namespace nam::storage {
namespace {

class VerbBatchTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  VerbBatchTest()
      : servers_(GetParam()),
        client_(OpenFabric(GetParam())),
        channel_(*Channel::Open(*client_, servers_, {.buffer_bytes = 64 << 10})),
        batch_(*channel_) {}

  static RemotePtr<void> Place(uint16_t server, uint64_t offset) {
    return {MemoryServerId(server), 4096 + offset};
  }
  Channel::Target At(uint16_t server, uint64_t offset) {
    return *channel_->Resolve(Place(server, offset), 8);
  }
  uint64_t Remote(uint16_t server, uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, servers_.at(Place(server, offset)), sizeof(word));
    return word;
  }
  uint64_t* Word(uint64_t value = 0) {
    auto* const word = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
    *word = value;
    return word;
  }
  static const std::byte* Bytes(const uint64_t* word) { return reinterpret_cast<const std::byte*>(word); }

  TwoServers servers_;
  std::unique_ptr<fabric::Fabric> client_;
  std::unique_ptr<Channel> channel_;
  VerbBatch batch_;
};
INSTANTIATE_TEST_SUITE_P(Fabrics, VerbBatchTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

TEST_P(VerbBatchTest, TakesEffectInTheOrderAdded) {
  for (const uint16_t server : {1, 2}) {
    uint64_t *const swapped = Word(), *const refused = Word(), *const added = Word(), *const read = Word();
    batch_.Write(Bytes(Word(5)), 8, At(server, 64));
    batch_.CompareAndSwap(At(server, 64), 5, 6, swapped);
    batch_.CompareAndSwap(At(server, 64), 5, 7, refused);
    batch_.FetchAdd(At(server, 64), 10, added);
    batch_.Read(At(server, 64), reinterpret_cast<std::byte*>(read), 8);
    ASSERT_TRUE(batch_.Execute().ok());
    EXPECT_EQ(*swapped, 5u);
    EXPECT_EQ(*refused, 6u);
    EXPECT_EQ(*added, 6u);
    EXPECT_EQ(*read, 16u);
    EXPECT_EQ(Remote(server, 64), 16u);
  }
  EXPECT_EQ(batch_.requests_added(), 10u);
  EXPECT_TRUE(batch_.idle());
}

TEST_P(VerbBatchTest, WhatWasPostedIsCompletedByTheNextExecute) {
  batch_.Write(Bytes(Word(3)), 8, At(1, 0));
  ASSERT_TRUE(batch_.Post().ok());
  uint64_t* const read = Word();
  batch_.Read(At(1, 0), reinterpret_cast<std::byte*>(read), 8);
  ASSERT_TRUE(batch_.Execute().ok());
  EXPECT_EQ(*read, 3u);
  batch_.Reset();
  EXPECT_EQ(batch_.scratch_used(), 0u);
}

TEST_P(VerbBatchTest, MemoryInItsPlaceIsShownWhereAReadWouldSucceed) {
  const std::byte* const shown = batch_.InPlace(At(1, 128), 8);
  if (GetParam() != fabric::Kind::kShm) {
    EXPECT_EQ(shown, nullptr);
    return;
  }
  ASSERT_NE(shown, nullptr);
  batch_.Write(Bytes(Word(11)), 8, At(1, 128));
  ASSERT_TRUE(batch_.Execute().ok());
  uint64_t copied = 0;
  VerbBatch::Copy(shown, &copied, 8);
  EXPECT_EQ(copied, 11u);
  Channel::Target beyond = At(1, 128);
  beyond.address.offset = TwoServers::kBytes - 4;
  EXPECT_EQ(batch_.InPlace(beyond, 8), nullptr);
  EXPECT_FALSE(channel_->broken()) << "a look in place requests nothing";
}

TEST_P(VerbBatchTest, BehindAnErrorNothingOfTheServerIsExecuted) {
  Channel::Target beyond = At(2, 0);
  beyond.address.offset = TwoServers::kBytes;
  batch_.Write(Bytes(Word(1)), 8, At(2, 0));
  batch_.Write(Bytes(Word(2)), 8, beyond);
  batch_.Write(Bytes(Word(3)), 8, At(2, 8));
  batch_.FetchAdd(At(2, 16), 1, Word());
  const absl::Status status = batch_.Execute();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("memory server 2"), std::string::npos) << status;
  EXPECT_TRUE(channel_->broken());
  EXPECT_EQ(Remote(2, 0), 1u);
  EXPECT_EQ(Remote(2, 8), 0u);
  EXPECT_EQ(Remote(2, 16), 0u);
  // And it stays so.
  batch_.Write(Bytes(Word(4)), 8, At(2, 24));
  EXPECT_FALSE(batch_.Execute().ok());
  EXPECT_EQ(Remote(2, 24), 0u);
}

TEST_P(VerbBatchTest, AServerThatIsGoneIsAnError) {
  uint64_t* const read = Word();
  batch_.Read(At(1, 0), reinterpret_cast<std::byte*>(read), 8);
  ASSERT_TRUE(batch_.Execute().ok());
  const Channel::Target at = At(1, 0);
  servers_.Kill(1);
  batch_.Read(at, reinterpret_cast<std::byte*>(read), 8);
  EXPECT_FALSE(batch_.Execute().ok());
  EXPECT_TRUE(channel_->broken());
}

TEST_P(VerbBatchTest, ABuriedServerIsRefusedThoughItsMemoryAnswers) {
  for (const uint16_t server : {1, 2}) batch_.Write(Bytes(Word(5)), 8, At(server, 64));
  ASSERT_TRUE(batch_.Execute().ok());
  const auto other = *Channel::Open(*client_, servers_, {.buffer_bytes = 64 << 10});
  VerbBatch of_other(*other);
  servers_.Bury(2);
  batch_.Write(Bytes(Word(6)), 8, At(1, 64));
  const absl::Status refused = batch_.Execute();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_NE(std::string(refused.message()).find("memory server 2"), std::string::npos) << refused;
  EXPECT_TRUE(channel_->broken());
  // A client without requests there continues.
  of_other.Write(of_other.Scratch(8), 8, *other->Resolve(Place(1, 64), 8));
  EXPECT_TRUE(of_other.Execute().ok());
}

// A check for burials covers only servers that the channel is connected to.
TEST_P(VerbBatchTest, AServerThatIsBuriedBeforeTheFirstConnectionIsRefused) {
  servers_.Bury(2);
  batch_.Write(Bytes(Word(5)), 8, At(1, 64));
  ASSERT_TRUE(batch_.Execute().ok());
  EXPECT_EQ(channel_->QueuePairOf(MemoryServerId(2)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ChannelBurialTest, APowerlessServerNeedNotConfirmTheEndOnceItIsBuried) {
  TwoServers servers(fabric::Kind::kSim);
  const auto client = OpenFabric(fabric::Kind::kSim);
  const auto channel = *Channel::Open(*client, servers, {.buffer_bytes = 64 << 10});
  for (const uint16_t server : {1, 2}) ASSERT_TRUE(channel->QueuePairOf(MemoryServerId(server)).ok());
  fabric::sim::World& world = SimulatedWorld();
  world.KillHost(world.HostOf(world.ProcessOf(servers.fabric(2))));
  channel->Break();
  const auto disconnect = [&] { return channel->Disconnect(client->clock().After(500'000)); };
  EXPECT_EQ(disconnect().code(), absl::StatusCode::kUnavailable) << "perhaps it is only slow";
  servers.Bury(2);
  EXPECT_TRUE(disconnect().ok());
}

/// A thread ends the connections of a lost client, and waits for a silent server; the client is destroyed
/// meanwhile. In flight: 0 nothing, 1 requests that wait in its section, 2 parked requests.
TEST(ChannelSharedTest, ABatchThatWasGivenUpLeavesTheGateToOthers) {
  for (const int in_flight : {0, 1, 2}) {
    SCOPED_TRACE(in_flight);
    TwoServers servers(fabric::Kind::kSim);
    const auto client = OpenFabric(fabric::Kind::kSim);
    const std::shared_ptr<Channel> channel = *Channel::Open(*client, servers, {.buffer_bytes = 64 << 10});
    auto batch = std::make_unique<VerbBatch>(*channel);
    const Channel::Target target = *channel->Resolve({MemoryServerId(2), 4096}, 8);
    fabric::sim::World& world = SimulatedWorld();
    world.KillHost(world.HostOf(world.ProcessOf(servers.fabric(2))));
    if (in_flight > 0) batch->FetchAdd(target, 1, batch->Word());
    if (in_flight == 2) {
      ASSERT_TRUE(batch->Post().ok());
    }
    channel->Break();
    batch->GiveUp();
    Clock& clock = client->clock();
    const auto settler =
        client->StartThread("settler", [&] { EXPECT_FALSE(channel->Disconnect(clock.After(500'000)).ok()); });
    clock.SleepUntil(clock.After(10'000));
    EXPECT_TRUE(channel->gate().inside()) << "it waits";
    batch.reset();
    EXPECT_TRUE(channel->gate().inside());
  }
}

}  // namespace
}  // namespace nam::storage
