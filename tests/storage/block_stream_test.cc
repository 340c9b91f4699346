#include "storage/block_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/fabric.h"
#include "tests/storage/chains.h"

namespace nam::storage {
namespace {

struct Case {
  fabric::Kind kind;
  uint32_t blocks, group, window;
  bool in_place;
};

/// A chain in two servers, and a channel to them.
class BlockStreamTest : public ::testing::TestWithParam<Case>, protected Chains {
 protected:
  TwoServers servers_{GetParam().kind};
  std::unique_ptr<fabric::Fabric> fabric_ = *fabric::Open({.kind = GetParam().kind, .secret = "s"});
  std::unique_ptr<Channel> channel_ = *Channel::Open(*fabric_, servers_, {});
  const ChainStart chain_ = WriteChain(*channel_, servers_, GetParam().blocks, GetParam().group);
};
class BlockStreamFaults : public ::testing::Test, protected Chains {};

TEST_P(BlockStreamTest, YieldsEveryRowInOrder) {
  const Case& c = GetParam();
  int chains = 3;  // the same chain three times: prefetching goes on over a chain's end
  BlockStream stream(
      *channel_, {9, c.group, widths_, {0, 3}}, {.window = c.window, .in_place = c.in_place},
      [&]() -> std::optional<ChainStart> { return chains-- > 0 ? std::optional(chain_) : std::nullopt; });
  BlockView block;
  uint64_t rows = 0;
  while (true) {
    const auto more = stream.Next(block);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    for (uint32_t r = 0; r < block.rows(); ++r, ++rows) {
      const auto expected = static_cast<uint32_t>(rows % (uint64_t{c.blocks} * kRows));
      ASSERT_EQ(reinterpret_cast<const uint32_t*>(block.page(0))[r], expected);
      ASSERT_EQ(reinterpret_cast<const uint16_t*>(block.page(3))[r], static_cast<uint16_t>(expected * 3));
    }
  }
  EXPECT_EQ(rows, uint64_t{3} * c.blocks * kRows);
  EXPECT_EQ(stream.counters().blocks, uint64_t{3} * c.blocks);
  EXPECT_EQ(stream.counters().bytes.size(), std::min(c.blocks, 2u));
}

TEST_P(BlockStreamTest, SystemCallsAreShared) {
  const Case& c = GetParam();
  const fabric::Capabilities can = channel_->fabric().capabilities();
  int chains = 20;
  BlockStream stream(
      *channel_, {9, c.group, widths_, {0}}, {.window = c.window, .in_place = c.in_place},
      [&]() -> std::optional<ChainStart> { return chains-- > 0 ? std::optional(chain_) : std::nullopt; });
  BlockView block;
  for (auto more = stream.Next(block); more.ok() && *more; more = stream.Next(block)) continue;
  const uint64_t blocks = stream.counters().blocks, posts = stream.counters().posts;
  ASSERT_EQ(blocks, uint64_t{20} * c.blocks);
  if (c.in_place && can.in_place) {
    EXPECT_EQ(posts, 0u);
  } else if (can.posts_are_calls && c.window > 1 && c.blocks > c.window) {
    EXPECT_LE(3 * posts, 2 * blocks) << "a batch for each of two servers, of what is known to be next";
  } else {
    EXPECT_LE(posts, blocks);
  }
}

/// Also with many chains of one wanted block each, and without waits.
TEST_P(BlockStreamTest, SystemCallsAreSharedByShortChains) {
  const Case& c = GetParam();
  const fabric::Capabilities can = channel_->fabric().capabilities();
  if (!can.posts_are_calls || c.window < 64) return;
  constexpr uint64_t kChains = 400;
  uint64_t taken = 0;
  ChainStart first_block = chain_;
  first_block.end = 1;
  BlockStream stream(*channel_, {9, c.group, widths_, {0}}, {.window = c.window, .slow_start = true},
                     [&]() -> std::optional<ChainStart> {
                       return taken < kChains ? ++taken, std::optional(first_block) : std::nullopt;
                     });
  Clock& clock = fabric_->clock();
  BlockView block;
  for (auto more = stream.Next(block); more.ok() && *more; more = stream.Next(block)) {
    const Deadline worked = clock.After(100);
    while (!clock.Passed(worked)) continue;
  }
  ASSERT_EQ(stream.counters().blocks, kChains);
  EXPECT_LE(stream.counters().posts, kChains / 3);
}

/// On shm no block is awaited, so no more chains are claimed than at first, however large the window.
TEST_P(BlockStreamTest, TakesFewChainsBeforeTheirTurn) {
  const Case& c = GetParam();
  if (c.kind != fabric::Kind::kShm) return;
  uint64_t taken = 0, blocks = 0;
  BlockStream stream(*channel_, {9, c.group, widths_, {0}}, {.window = 64, .in_place = c.in_place},
                     [&]() -> std::optional<ChainStart> {
                       return taken < 100 ? ++taken, std::optional(chain_) : std::nullopt;
                     });
  BlockView block;
  for (auto more = stream.Next(block); more.ok() && *more; more = stream.Next(block)) {
    EXPECT_LE(taken, blocks / c.blocks + 10) << "chains, when " << blocks << " blocks had come";
    ++blocks;
  }
  EXPECT_EQ(blocks, uint64_t{100} * c.blocks);
}

/// The previous user's completions may still arrive there.
TEST_P(BlockStreamTest, ABrokenChannelIsNotUsed) {
  const Case& c = GetParam();
  channel_->Break();
  bool first = true;
  BlockStream stream(*channel_, {9, c.group, widths_, {0}}, {.window = c.window, .in_place = c.in_place},
                     [&]() -> std::optional<ChainStart> {
                       return std::exchange(first, false) ? std::optional(chain_) : std::nullopt;
                     });
  BlockView block;
  EXPECT_EQ(stream.Next(block).status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(BlockStreamTest, AtASlowStartOthersGetTheirChains) {
  const Case& c = GetParam();
  uint64_t taken = 0, blocks = 0;
  BlockStream stream(*channel_, {9, c.group, widths_, {0}},
                     {.window = 64, .in_place = c.in_place, .slow_start = true},
                     [&]() -> std::optional<ChainStart> {
                       return taken < 20 ? ++taken, std::optional(chain_) : std::nullopt;
                     });
  BlockView block;
  for (auto more = stream.Next(block); more.ok() && *more; more = stream.Next(block)) {
    EXPECT_LE(taken, 1 + 2 * blocks) << "chains, when " << blocks << " blocks had come";
    ++blocks;
  }
  EXPECT_EQ(blocks, uint64_t{20} * c.blocks);
}

/// A leader that must be READ is in flight when the next one could be skipped: pointers stay in order.
TEST_P(BlockStreamTest, ALeaderThatIsLeftOutDoesNotOvertakeOneUnderWay) {
  const Case& c = GetParam();
  if (c.blocks <= 3 * c.group) return;
  const std::vector<uint32_t> blocks(chain_.partition + 1, c.blocks);
  KnownBlocks all(blocks), without_first(blocks);
  const auto run = [&](KnownBlocks& known, uint64_t low) {
    bool first = true;
    StreamOptions options{.window = c.window, .in_place = c.in_place, .known = &known, .sort_column = 0};
    options.sort_min = low;
    BlockStream stream(*channel_, {9, c.group, widths_, {0}}, options, [&]() -> std::optional<ChainStart> {
      return std::exchange(first, false) ? std::optional(chain_) : std::nullopt;
    });
    BlockView block;
    std::vector<uint32_t> seen;
    for (auto more = stream.Next(block); more.ok() && *more; more = stream.Next(block))
      seen.push_back(block.index());
    return seen;
  };
  EXPECT_EQ(run(all, 0).size(), c.blocks);
  for (uint32_t b = 0; b < c.blocks; ++b) {
    without_first.LearnPointer(chain_.partition, b, all.Pointer(chain_.partition, b));
    if (b > 0) without_first.LearnSortZone(chain_.partition, b, *all.SortZone(chain_.partition, b));
  }
  const uint32_t wanted = 2 * c.group + 1;
  std::vector<uint32_t> expected{0};
  for (uint32_t b = wanted; b < c.blocks; ++b) expected.push_back(b);
  EXPECT_EQ(run(without_first, uint64_t{wanted} * kRows), expected);
}

/// Some blocks in the middle of a chain, whether or not their addresses are known.
TEST_P(BlockStreamTest, YieldsTheBlocksThatAreWanted) {
  const Case& c = GetParam();
  const std::vector<uint32_t> blocks(chain_.partition + 1, c.blocks);
  KnownBlocks learned(blocks);
  for (const uint32_t first :
       {0u, 1u, c.group - 1, c.group, c.group + 1, c.blocks / 2, c.blocks - 1, c.blocks}) {
    for (const uint32_t count : {0u, 1u, c.group, c.blocks}) {
      KnownBlocks fresh(blocks);
      for (KnownBlocks* known : {static_cast<KnownBlocks*>(nullptr), &fresh, &learned, &learned}) {
        SCOPED_TRACE(absl::StrCat(count, " blocks from ", first, known == &learned ? ", known ones" : ""));
        int pieces = 2;
        ChainStart piece = chain_;
        piece.first = first;
        piece.end = first + count;
        BlockStream stream(*channel_, {9, c.group, widths_, {0, 3}},
                           {.window = c.window,
                            .in_place = c.in_place,
                            .known = known,
                            .sort_column = known != nullptr ? 0 : -1},
                           [&]() -> std::optional<ChainStart> {
                             return pieces-- > 0 ? std::optional(piece) : std::nullopt;
                           });
        BlockView block;
        std::vector<uint32_t> seen, expected;
        while (true) {
          const auto more = stream.Next(block);
          ASSERT_TRUE(more.ok()) << more.status();
          if (!*more) break;
          seen.push_back(block.index());
          ASSERT_EQ(reinterpret_cast<const uint32_t*>(block.page(0))[0], block.index() * kRows);
        }
        for (int round = 0; round < 2; ++round) {
          for (uint32_t b = first; b < std::min(first + count, c.blocks); ++b) expected.push_back(b);
        }
        ASSERT_EQ(seen, expected);
        EXPECT_EQ(stream.counters().blocks, expected.size());
        EXPECT_EQ(stream.counters().skipped_blocks, 0u);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, BlockStreamTest,
    ::testing::Values(Case{fabric::Kind::kShm, 1, 4, 1, false}, Case{fabric::Kind::kShm, 4, 4, 10, false},
                      Case{fabric::Kind::kShm, 5, 4, 10, false}, Case{fabric::Kind::kShm, 101, 4, 64, false},
                      Case{fabric::Kind::kShm, 101, 4, 64, true}, Case{fabric::Kind::kShm, 64, 32, 1, true},
                      Case{fabric::Kind::kTcp, 1, 4, 1, false}, Case{fabric::Kind::kTcp, 101, 4, 10, false},
                      Case{fabric::Kind::kTcp, 101, 32, 64, true},
                      Case{fabric::Kind::kTcp, 30, 32, 10, false}));

/// The second stream skips blocks by the first one's knowledge, including leaders of pointer groups.
TEST_P(BlockStreamTest, LeavesOutBlocksThatAreKnownNotToBeWanted) {
  const Case& c = GetParam();
  const std::vector<uint32_t> blocks(chain_.partition + 1, c.blocks);
  KnownBlocks known(blocks);
  const auto run = [&](uint64_t low, uint64_t high) {
    int chains = 2;
    StreamOptions options{.window = c.window, .in_place = c.in_place, .known = &known, .sort_column = 0};
    options.sort_min = low;
    options.sort_max = high;
    BlockStream stream(*channel_, {9, c.group, widths_, {0}}, options, [&]() -> std::optional<ChainStart> {
      return chains-- > 0 ? std::optional(chain_) : std::nullopt;
    });
    BlockView block;
    std::vector<uint32_t> seen;
    while (*stream.Next(block)) seen.push_back(block.index());
    EXPECT_EQ(stream.counters().blocks, seen.size());
    EXPECT_EQ(stream.counters().blocks + stream.counters().skipped_blocks, uint64_t{2} * c.blocks);
    return seen;
  };
  EXPECT_EQ(run(0, UINT64_MAX).size(), 2 * c.blocks);
  const uint32_t first = c.blocks / 3, last = c.blocks / 2;
  std::vector<uint32_t> expected;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t b = first; b <= last; ++b) expected.push_back(b);
  }
  EXPECT_EQ(run(uint64_t{first} * kRows, uint64_t{last} * kRows), expected);
  EXPECT_TRUE(run(uint64_t{c.blocks} * kRows, UINT64_MAX).empty());
}

TEST_F(BlockStreamFaults, DamageIsAnErrorAndNotAnAnswer) {
  TwoServers servers(fabric::Kind::kShm);
  auto fabric = *fabric::Open({.kind = fabric::Kind::kShm, .secret = "s"});
  auto channel = *Channel::Open(*fabric, servers, {});
  const ChainStart chain = WriteChain(*channel, servers, 8, 4);
  const BlockLayout layout(widths_, kRows, 4);
  servers.at(RemotePtr<void>::FromRaw(chain.head[2]))[layout.page_offset(3) + 5] ^= std::byte{1};
  bool first = true;
  BlockStream stream(*channel, {9, 4, widths_, {3}}, {.window = 4}, [&]() -> std::optional<ChainStart> {
    return std::exchange(first, false) ? std::optional(chain) : std::nullopt;
  });
  BlockView block;
  EXPECT_TRUE(stream.Next(block).ok());
  EXPECT_TRUE(stream.Next(block).ok());
  const auto damaged = stream.Next(block);
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss) << damaged.status();
}

/// A cancelled stream's READs in flight must not land in the channel's next stream.
TEST_F(BlockStreamFaults, ACancelledStreamLeavesNothingBehind) {
  TwoServers servers(fabric::Kind::kTcp);
  auto fabric = *fabric::Open({.kind = fabric::Kind::kTcp, .secret = "s"});
  auto channel = *Channel::Open(*fabric, servers, {});
  const ChainStart chain = WriteChain(*channel, servers, 101, 64);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> cancel = false;
    const auto run = [&](uint32_t column) -> absl::Status {
      bool first = true;
      BlockStream stream(*channel, {9, 64, widths_, {column}}, {.window = 64, .cancel = &cancel},
                         [&]() -> std::optional<ChainStart> {
                           return std::exchange(first, false) ? std::optional(chain) : std::nullopt;
                         });
      BlockView block;
      for (uint32_t blocks = 0;; ++blocks) {
        const auto more = stream.Next(block);
        if (!more.ok()) return more.status();
        if (!*more) return blocks == 101 ? absl::OkStatus() : absl::DataLossError("too few blocks");
        if (blocks == 0 && column == 3) cancel = true;
      }
    };
    EXPECT_EQ(run(3).code(), absl::StatusCode::kCancelled);
    cancel = false;
    if (channel->broken()) channel = *Channel::Open(*fabric, servers, {});
    const absl::Status after = run(0);
    ASSERT_TRUE(after.ok()) << after;
  }
}

TEST_F(BlockStreamFaults, ALostServerIsNamed) {
  for (const fabric::Kind kind : {fabric::Kind::kShm, fabric::Kind::kTcp}) {
    TwoServers servers(kind);
    auto fabric = *fabric::Open({.kind = kind, .secret = "s"});
    auto channel = *Channel::Open(*fabric, servers, {});
    const ChainStart chain = WriteChain(*channel, servers, 8, 4);
    servers.Kill(2);
    BlockStream stream(*channel, {9, 4, widths_, {0}}, {.window = 2},
                       [&]() -> std::optional<ChainStart> { return chain; });
    BlockView block;
    absl::StatusOr<bool> more = true;
    while (more.ok()) more = stream.Next(block);
    EXPECT_NE(more.status().message().find("memory server 2"), absl::string_view::npos) << more.status();
  }
}

}  // namespace
}  // namespace nam::storage
