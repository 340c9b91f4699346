#include "storage/multicast_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "fabric/fabric.h"
#include "storage/block_stream.h"
#include "storage/chain_pointers.h"
#include "storage/multicast_sender.h"
#include "tests/storage/chains.h"
#include "tests/storage/faulty_fabric.h"

namespace nam::storage {
namespace {

using fabric::Kind;

/// The results of one member: every block once, with the right values, or an error.
struct Received {
  absl::Status status;
  uint64_t blocks = 0, wrong = 0;
  MulticastCounters counters;
};

/// Two memory servers, each with a sender of its half of a table of two chains, and members.
class MulticastTest : public ::testing::TestWithParam<Kind>, protected Chains {
 protected:
  static constexpr uint32_t kGroup = 4;
  static constexpr int64_t kHangUs = 60'000'000;  // a hang guard
  /// A datagram that its sender has sent may be this late: where datagrams are counted, and none is lost, a
  /// thread that does not run for some milliseconds must not make it a lost one.
  static constexpr int64_t kLateUs = 100'000;

  void SetUp() override {
    seed_ = std::random_device()();
    RecordProperty("seed", std::to_string(seed_));
    servers_ = std::make_unique<TwoServers>(GetParam());
    client_ = OpenFabric(GetParam());
  }
  ::testing::AssertionResult Failed(const std::string& what) {
    return ::testing::AssertionFailure() << what << ", seed " << seed_;
  }

  /// Chains of `blocks` and 3 blocks, each of `rows` rows.
  void Load(uint32_t blocks, uint32_t rows) {
    blocks_ = blocks + 3, rows_ = rows;
    const BlockLayout layout(widths_, rows, kGroup);
    const uint64_t second = 4096 + (blocks + 1) / 2 * ((layout.bytes() + 2047) / 2048 * 2048);
    auto channel = *Channel::Open(*client_, *servers_, {});
    table_.table = {9, kGroup, widths_, {0, 3}};
    for (const ChainStart& chain : {WriteChain(*channel, *servers_, blocks, kGroup, rows),
                                    WriteChain(*channel, *servers_, 3, kGroup, rows, 1, second)}) {
      auto pointers = PointersOf(*channel, table_.table, chain);
      ASSERT_TRUE(pointers.ok()) << pointers.status();
      table_.chains.push_back({chain.partition, rows, *std::move(pointers)});
    }
  }

  /// Senders that wait for all members, however slow these are.
  static MulticastSenderOptions Patient(uint32_t members) {
    return {.members = members,
            .join_timeout_us = kHangUs,
            .member_timeout_us = kHangUs,
            .stream_timeout_us = 2 * kHangUs};
  }
  absl::Status OpenSenders(const DatagramFaults& faults, MulticastSenderOptions options) {
    const auto blocks = *MulticastBlocks::Number({table_}, {MemoryServerId(1), MemoryServerId(2)});
    for (uint16_t id = 1; id <= 2; ++id) {
      faulty_.push_back(std::make_unique<FaultyFabric>(servers_->fabric(id), faults, seed_ + id));
      options.server = MemoryServerId(id);
      options.group = id;
      auto sender = MulticastSender::Open(
          *faulty_.back(), [this](RemotePtr<void> block, uint64_t) { return servers_->at(block); },
          blocks.ExtentsOf(id - 1u), options);
      if (!sender.ok()) return sender.status();
      addresses_.push_back((*sender)->address());
      senders_.push_back(*std::move(sender));
    }
    return absl::OkStatus();
  }
  void RunSenders() {
    sender_status_.resize(senders_.size());
    for (size_t s = 0; s < senders_.size(); ++s) {
      sending_.push_back(faulty_[s]->StartThread(
          "sender", [this, s] { sender_status_[s] = senders_[s]->Run(cancel_senders_); }));
    }
  }

  Received Receive(Channel& channel, MulticastStreamOptions options,
                   const std::function<void(uint64_t)>& after_block = nullptr) {
    Received received;
    auto stream = MulticastStream::Open(channel, addresses_, {table_}, options);
    received.status = stream.status();
    if (!stream.ok()) return received;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    BlockView block;
    while (true) {
      const auto more = (*stream)->Next(block);
      received.status = more.status();
      if (!more.ok() || !*more) break;
      ++received.blocks;
      received.wrong += !seen.emplace(block.partition(), block.index()).second || !Right(block);
      if (after_block) after_block(received.blocks);
    }
    received.counters = (*stream)->counters(0);
    return received;
  }
  bool Right(const BlockView& block) const {
    for (uint32_t r = 0; r < block.rows(); ++r) {
      const uint32_t value = block.index() * rows_ + r;
      if (reinterpret_cast<const uint32_t*>(block.page(0))[r] != value) return false;
      if (reinterpret_cast<const uint16_t*>(block.page(3))[r] != static_cast<uint16_t>(value * 3))
        return false;
    }
    return block.rows() == rows_;
  }

  /// Runs `members` receivers concurrently, each on its own thread.
  std::vector<Received> RunAll(uint32_t members,
                               int64_t silence_timeout_us = MulticastStreamOptions().silence_timeout_us) {
    std::vector<Received> received(members);
    {
      std::vector<std::unique_ptr<fabric::Thread>> threads;
      for (uint32_t m = 0; m < members; ++m) {
        threads.push_back(client_->StartThread("member", [this, m, silence_timeout_us, &received] {
          auto channel = *Channel::Open(*client_, *servers_, {});
          received[m] = Receive(*channel, {.member = m, .silence_timeout_us = silence_timeout_us});
        }));
      }
      RunSenders();
    }
    sending_.clear();
    return received;
  }
  void ExpectComplete(const Received& received) {
    ASSERT_TRUE(received.status.ok()) << received.status << ", seed " << seed_;
    EXPECT_EQ(received.blocks, blocks_) << "seed " << seed_;
    EXPECT_EQ(received.wrong, 0u) << "seed " << seed_;
    EXPECT_EQ(received.counters.multicast_blocks + received.counters.repaired_blocks, blocks_);
  }

  uint32_t seed_ = 0;
  uint32_t blocks_ = 0, rows_ = 0;
  std::unique_ptr<TwoServers> servers_;
  std::unique_ptr<fabric::Fabric> client_;
  MulticastTable table_;
  std::vector<std::unique_ptr<FaultyFabric>> faulty_;
  std::vector<std::unique_ptr<MulticastSender>> senders_;
  std::vector<MulticastAddress> addresses_;
  std::vector<absl::Status> sender_status_;
  std::atomic<bool> cancel_senders_ = false;
  std::vector<std::unique_ptr<fabric::Thread>> sending_;
};

TEST_P(MulticastTest, SmallBlocksReachEveryMember) {
  Load(500, 20);
  ASSERT_TRUE(OpenSenders({}, Patient(3)).ok());
  for (const Received& received : RunAll(3, kLateUs)) {
    ExpectComplete(received);
    EXPECT_GT(received.counters.multicast_blocks, blocks_ / 2);
  }
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_TRUE(sender_status_[s].ok()) << sender_status_[s];
    EXPECT_EQ(senders_[s]->counters().members_left_behind, 0u);
  }
  EXPECT_EQ(senders_[0]->counters().blocks + senders_[1]->counters().blocks, blocks_);
}

TEST_P(MulticastTest, ThreadsOfAMemberReceiveAPartOfTheSendersEach) {
  Load(500, 20);
  ASSERT_TRUE(OpenSenders({}, Patient(2)).ok());
  Received parts[2][2];  // by member and part
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (uint32_t m = 0; m < 2; ++m) {
      for (uint32_t part = 0; part < 2; ++part) {
        threads.push_back(client_->StartThread("part", [this, m, part, &parts] {
          auto channel = *Channel::Open(*client_, *servers_, {});
          parts[m][part] = Receive(*channel, {.member = m, .part = part, .parts = 2});
        }));
      }
    }
    RunSenders();
  }
  sending_.clear();
  for (const auto& member : parts) {
    for (size_t part = 0; part < 2; ++part) {
      ASSERT_TRUE(member[part].status.ok()) << member[part].status << ", seed " << seed_;
      EXPECT_EQ(member[part].wrong, 0u) << "seed " << seed_;
      EXPECT_EQ(member[part].blocks, senders_[part]->counters().blocks) << "seed " << seed_;
      EXPECT_EQ(member[part].counters.stream.bytes.size(), 1u);
    }
    EXPECT_EQ(member[0].blocks + member[1].blocks, blocks_);
  }
  auto channel = *Channel::Open(*client_, *servers_, {});
  EXPECT_FALSE(Receive(*channel, {.part = 2, .parts = 2}).status.ok());
  EXPECT_FALSE(Receive(*channel, {.part = 0, .parts = 3}).status.ok());
}

TEST_P(MulticastTest, LargeBlocksAreCutIntoFragments) {
  Load(40, 8000);  // pages of 32,000 and 16,000 bytes are sent, 64,000 and 8,000 bytes are not
  ASSERT_TRUE(OpenSenders({}, Patient(2)).ok());
  for (const Received& received : RunAll(2, kLateUs)) {
    ExpectComplete(received);
    EXPECT_GT(received.counters.multicast_blocks, blocks_ / 2);
    EXPECT_GT(senders_[0]->counters().datagrams, 10 * senders_[0]->counters().blocks);
  }
}

TEST_P(MulticastTest, LostDoubledReorderedAndDamagedDatagramsChangeNothing) {
  Load(300, 1000);
  ASSERT_TRUE(
      OpenSenders({.lost = 0.05, .duplicated = 0.1, .reordered = 0.2, .damaged = 0.01}, {.members = 2}).ok());
  for (const Received& received : RunAll(2)) {
    ExpectComplete(received);
    EXPECT_GT(received.counters.multicast_blocks, 0u);
    EXPECT_GT(received.counters.repaired_blocks, 0u);
    EXPECT_GT(received.counters.duplicates, 0u);
  }
}

// A fragment that came twice must not stand for one that has not come; with checksums such a block would be
// READ.
TEST_P(MulticastTest, AFragmentThatComesTwiceCountsOnceWithoutChecksumsToo) {
  Load(10, 8000);
  ASSERT_TRUE(OpenSenders({.duplicated = 1}, Patient(1)).ok());
  auto channel = *Channel::Open(*client_, *servers_, {});
  RunSenders();
  const Received received = Receive(*channel, {.verify = false, .silence_timeout_us = kLateUs});
  sending_.clear();
  ExpectComplete(received);
  EXPECT_GT(received.counters.multicast_blocks, 0u);
  EXPECT_GT(received.counters.duplicates, 0u);
}

TEST_P(MulticastTest, ReorderedDatagramsAloneNeedNoRepair) {
  Load(300, 20);
  ASSERT_TRUE(OpenSenders({.reordered = 0.5}, Patient(1)).ok());
  const Received received = RunAll(1, kLateUs)[0];
  ExpectComplete(received);
  EXPECT_LT(received.counters.repaired_blocks, blocks_ / 10);
}

TEST_P(MulticastTest, IfNothingArrivesEverythingIsRead) {
  Load(300, 1000);
  ASSERT_TRUE(OpenSenders({.lost = 1}, {.members = 2}).ok());
  for (const Received& received : RunAll(2)) {
    ExpectComplete(received);
    EXPECT_EQ(received.counters.repaired_blocks, blocks_);
  }
}

TEST_P(MulticastTest, AMemberThatNeverComesHoldsNobodyUp) {
  Load(300, 20);
  ASSERT_TRUE(
      OpenSenders({}, {.members = 3, .join_timeout_us = 2'000'000, .member_timeout_us = kHangUs}).ok());
  for (const Received& received : RunAll(2)) ExpectComplete(received);
  EXPECT_EQ(senders_[0]->counters().members_left_behind, 1u);
}

TEST_P(MulticastTest, AMemberThatStandsStillIsLeftBehindAndRepairs) {
  Load(1000, 1000);  // 9 KB each: more than a member's receives take
  ASSERT_TRUE(OpenSenders({}, {.members = 2, .member_timeout_us = 100'000}).ok());
  auto others_done = client_->CreateEvent();
  Received slow;
  {
    auto thread = client_->StartThread("slow", [&] {
      auto channel = *Channel::Open(*client_, *servers_, {.buffer_bytes = 1u << 20});
      slow = Receive(*channel, {.member = 1}, [&](uint64_t blocks) {
        if (blocks > 1) return;
        EXPECT_TRUE(others_done->Wait(client_->clock().After(kHangUs)));
      });
    });
    ExpectComplete(RunAll(1)[0]);
    others_done->Set();
  }
  ExpectComplete(slow);
  EXPECT_GT(slow.counters.repaired_blocks, 0u);
  EXPECT_GE(senders_[0]->counters().members_left_behind, 1u);
}

TEST_P(MulticastTest, AMemberThatLeavesReleasesTheSender) {
  Load(1000, 1000);
  ASSERT_TRUE(OpenSenders({}, {.members = 1, .join_timeout_us = kHangUs, .member_timeout_us = kHangUs}).ok());
  RunSenders();
  auto channel = *Channel::Open(*client_, *servers_, {});
  std::atomic<bool> cancel = false;
  const Received received = Receive(*channel, {.cancel = &cancel}, [&](uint64_t) { cancel = true; });
  EXPECT_EQ(received.status.code(), absl::StatusCode::kCancelled) << received.status;
  sending_.clear();  // would wait for a minute
  EXPECT_LT(senders_[0]->counters().blocks, 1000u);
  // The channel is as good as before.
  ASSERT_FALSE(channel->broken());
  bool first = true;
  const ChainStart chain{.partition = 0,
                         .blocks = blocks_ - 3,
                         .block_rows = rows_,
                         .head = {table_.chains[0].pointers[0], table_.chains[0].pointers[1],
                                  table_.chains[0].pointers[2], table_.chains[0].pointers[3]}};
  BlockStream stream(*channel, table_.table, {.window = 16}, [&]() -> std::optional<ChainStart> {
    return std::exchange(first, false) ? std::optional(chain) : std::nullopt;
  });
  BlockView block;
  uint64_t blocks = 0;
  while (*stream.Next(block)) blocks += Right(block);
  EXPECT_EQ(blocks, blocks_ - 3);
}

TEST_P(MulticastTest, IfASenderStopsTheRestIsRead) {
  Load(1000, 1000);
  ASSERT_TRUE(OpenSenders({}, Patient(1)).ok());
  RunSenders();
  auto channel = *Channel::Open(*client_, *servers_, {});
  const Received received = Receive(*channel, {.silence_timeout_us = kLateUs}, [&](uint64_t blocks) {
    if (blocks == 10) cancel_senders_ = true;
    if (blocks == 11) sending_.clear();
  });
  ExpectComplete(received);
  EXPECT_GE(received.counters.multicast_blocks, 10u);
  EXPECT_GT(received.counters.repaired_blocks, 0u);
}

TEST_P(MulticastTest, ALostServerIsNamed) {
  Load(1000, 1000);
  ASSERT_TRUE(OpenSenders({}, Patient(1)).ok());
  RunSenders();
  auto channel = *Channel::Open(*client_, *servers_, {});
  const Received received = Receive(*channel, {}, [&](uint64_t blocks) {
    if (blocks != 10) return;
    cancel_senders_ = true;
    sending_.clear();
    senders_.pop_back();
    servers_->Kill(2);
  });
  EXPECT_FALSE(received.status.ok());
  EXPECT_NE(received.status.message().find("memory server 2"), absl::string_view::npos) << received.status;
}

TEST_P(MulticastTest, WhereMulticastDoesNotWorkTheReasonIsGiven) {
  Load(10, 20);
  const absl::Status status = OpenSenders({.no_multicast = "no multicast on this network"}, {.members = 1});
  EXPECT_EQ(status.message(), "no multicast on this network");
}

TEST_P(MulticastTest, AStreamOfOtherBlocksIsIgnoredAndRead) {
  Load(100, 20);
  ASSERT_TRUE(OpenSenders({}, {.members = 1}).ok());
  RunSenders();
  addresses_[0].stream ^= 1;  // that of an earlier query in the same group
  auto channel = *Channel::Open(*client_, *servers_, {});
  const Received received = Receive(*channel, {});
  ExpectComplete(received);
  EXPECT_GE(received.counters.repaired_blocks, blocks_ / 2);
  sending_.clear();
}

INSTANTIATE_TEST_SUITE_P(Fabrics, MulticastTest, ::testing::Values(Kind::kShm, Kind::kTcp, Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::storage
