#include "storage/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <string>

#include "base/random.h"
#include "storage/row_pages.h"
#include "storage/scratch_streams.h"
#include "tests/storage/chains.h"

namespace nam::storage {
namespace {

constexpr uint32_t kMostBytes = 16 << 10;

/// Slabs without memory, and the requests for them.
struct FakeServers {
  std::map<uint16_t, uint64_t> room;
  std::map<uint16_t, absl::Status> broken;
  std::vector<std::pair<uint16_t, uint64_t>> asked;
  size_t cancel_after = 0;  // number of requests
  std::atomic<bool> cancel = false;

  ScratchSpace Space(uint32_t first = 0) {
    std::vector<MemoryServerId> servers;
    for (const auto& [id, bytes] : room) servers.emplace_back(id);
    return ScratchSpace([servers] { return servers; }, first,
                        [this](MemoryServerId server, uint64_t bytes,
                               const std::atomic<bool>&) -> absl::StatusOr<ScratchSlab> {
                          const uint16_t id = server.value();
                          asked.emplace_back(id, bytes);
                          if (asked.size() == cancel_after) cancel = true;
                          if (broken.contains(id)) return broken.at(id);
                          if (bytes > room[id]) return absl::ResourceExhaustedError("its share is full");
                          room[id] -= bytes;
                          return ScratchSlab{{server, 4096}, bytes, {}};
                        });
  }
};

TEST(ScratchSpaceTest, ServersAreAskedInTurn) {
  FakeServers servers;
  servers.room = {{1, 1 << 30}, {2, 1 << 30}, {3, 1 << 30}};
  ScratchSpace space = servers.Space(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(space.NextSlab(1 << 20, 4096, servers.cancel).ok());
  const std::vector<std::pair<uint16_t, uint64_t>> wanted = {
      {2, 1 << 20}, {3, 1 << 20}, {1, 1 << 20}, {2, 1 << 20}};
  EXPECT_EQ(servers.asked, wanted);
  EXPECT_EQ(space.slab_bytes(), 4u << 20);
}

TEST(ScratchSpaceTest, WhatIsLeftIsUsedUpInSmallerSlabs) {
  FakeServers servers;
  servers.room = {{1, 3 << 20}, {2, 1 << 20}};
  ScratchSpace space = servers.Space();
  uint64_t bytes = 0;
  absl::StatusOr<ScratchSlab> slab;
  while ((slab = space.NextSlab(64 << 20, 64 << 10, servers.cancel)).ok()) bytes += slab->bytes;
  EXPECT_EQ(slab.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(slab.status().message(), "scratch memory is full");
  EXPECT_EQ(bytes, 4u << 20);
}

/// Pages may be short: the rest of servers' memory is used, but not as one slab per page.
TEST(ScratchSpaceTest, SlabsHaveALeastSize) {
  FakeServers servers;
  servers.room = {{1, 1 << 20}, {2, (1 << 20) + ScratchSpace::kLeastSlabBytes / 2}};
  ScratchSpace space = servers.Space();
  uint64_t bytes = 0;
  absl::StatusOr<ScratchSlab> slab;
  while ((slab = space.NextSlab(64 << 20, 192, servers.cancel)).ok()) {
    EXPECT_GE(slab->bytes, ScratchSpace::kLeastSlabBytes);
    bytes += slab->bytes;
  }
  EXPECT_EQ(slab.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bytes, 2u << 20);
}

TEST(ScratchSpaceTest, AServerThatIsGoneIsPassedOver) {
  FakeServers servers;
  servers.room = {{1, 1 << 20}, {2, 1 << 20}};
  servers.broken = {{1, absl::UnavailableError("gone")}};
  ScratchSpace space = servers.Space();
  for (int i = 0; i < 2; ++i) {
    const auto slab = space.NextSlab(256 << 10, 4096, servers.cancel);
    ASSERT_TRUE(slab.ok()) << slab.status();
    EXPECT_EQ(slab->begin.server(), MemoryServerId(2));
  }
  servers.broken[2] = absl::UnavailableError("gone, too");
  EXPECT_EQ(space.NextSlab(4096, 4096, servers.cancel).status().code(), absl::StatusCode::kUnavailable);
  servers.broken[2] = absl::FailedPreconditionError("the allocation is over");
  EXPECT_EQ(space.NextSlab(4096, 4096, servers.cancel).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ScratchSpaceTest, NobodyIsAskedForACancelledQuery) {
  FakeServers servers;
  servers.room = {{1, 64 << 10}, {2, 64 << 10}, {3, 64 << 10}};
  servers.cancel_after = 2;
  ScratchSpace space = servers.Space();
  EXPECT_TRUE(absl::IsCancelled(space.NextSlab(64 << 20, 32 << 10, servers.cancel).status()));
  EXPECT_EQ(servers.asked.size(), 2u) << "of three, for smaller and smaller slabs";
}

class ScratchTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  ScratchTest() : servers_(GetParam()), client_(OpenFabric(GetParam())) {}

  std::unique_ptr<Channel> NewChannel() {
    return *Channel::Open(*client_, servers_, {.buffer_bytes = 8 * kMostBytes});
  }
  ScratchSpace Space() {
    return ScratchSpace(
        [] {
          return std::vector{MemoryServerId(1), MemoryServerId(2)};
        },
        0,
        [this](MemoryServerId server, uint64_t bytes, const std::atomic<bool>&) {
          return Slab(server, bytes);
        });
  }
  absl::StatusOr<ScratchSlab> Slab(MemoryServerId server, uint64_t bytes_asked) {
    constexpr uint64_t kSlabBytes = 5 * kMostBytes;  // whatever is requested
    asked_.push_back(bytes_asked);
    uint64_t& used = used_[server];
    if (used + kSlabBytes > TwoServers::kBytes) return absl::ResourceExhaustedError("full");
    const ScratchSlab slab{{server, 4096 + used}, kSlabBytes, servers_.grant()};
    used += kSlabBytes;
    return slab;
  }
  /// A page of its own number.
  static std::vector<std::byte> PageOf(uint64_t number, RandomStream& random) {
    std::vector<std::byte> page(8 + random.Below(kMostBytes - 8));
    for (std::byte& b : page) b = static_cast<std::byte>(random.Below(256));
    std::memcpy(page.data(), &number, sizeof(number));
    return page;
  }

  TwoServers servers_;
  std::unique_ptr<fabric::Fabric> client_;
  std::map<MemoryServerId, uint64_t> used_;
  std::vector<uint64_t> asked_;  // bytes of slabs
  std::atomic<bool> cancel_ = false;
};
INSTANTIATE_TEST_SUITE_P(Fabrics, ScratchTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

TEST_P(ScratchTest, PagesComeBackAsTheyWereInTheirOrder) {
  RandomStream random(5);
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> writing = NewChannel(), reading = NewChannel();
  ScratchWriter writer(space, *writing, kMostBytes, cancel_);
  std::vector<std::vector<std::byte>> pages;
  std::vector<ScratchPage> places;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    pages.push_back(PageOf(i, random));
    std::vector<std::byte> given = pages.back();
    const auto place = writer.Write(given);
    ASSERT_TRUE(place.ok()) << place.status();
    std::fill(given.begin(), given.end(), std::byte{0xdb});  // the caller's memory is free at once
    places.push_back(*place);
    bytes += given.size();
  }
  ASSERT_TRUE(writer.Flush().ok());
  EXPECT_EQ(writer.pages(), 300u);
  EXPECT_EQ(writer.bytes(), bytes);
  for (size_t i = 0; i < pages.size(); ++i)
    ASSERT_EQ(std::memcmp(servers_.at(places[i].at), pages[i].data(), pages[i].size()), 0) << i;

  ScratchReader reader(*reading, kMostBytes, 4, cancel_);
  for (const size_t first : {size_t{0}, size_t{120}, pages.size()}) {
    reader.Start({places.begin() + static_cast<ptrdiff_t>(first), places.end()});
    for (size_t i = first; i < pages.size(); ++i) {
      const auto page = reader.Next();
      ASSERT_TRUE(page.ok()) << page.status();
      ASSERT_TRUE(std::equal(page->begin(), page->end(), pages[i].begin(), pages[i].end())) << i;
    }
    EXPECT_TRUE(reader.Next()->empty());
  }
  EXPECT_EQ(reader.pages(), 480u);
}

/// With any order of lists and one or two of their pages in use; more lists than READs may be in flight.
/// Rows of one size that a session leaves for servers: whole ones in each page, and nothing else is taken for
/// them.
TEST_P(ScratchTest, RowsOfOneSizeComeBackAsTheyWere) {
  for (const uint32_t row_bytes : {1u, 40u, 30'000u}) {
    SCOPED_TRACE(row_bytes);
    RandomStream random(row_bytes);
    ScratchSpace space = Space();
    const auto open = [&] { return *Channel::Open(*client_, servers_, {}); };
    const std::unique_ptr<Channel> writing = open(), reading = open();
    ScratchWriter writer(space, *writing, kRowPageBytes, cancel_);
    RowPageWriter rows(writer, row_bytes);
    std::vector<std::string> given(row_bytes == 30'000 ? 7 : 5'000);
    for (std::string& row : given) {
      for (uint32_t i = 0; i < row_bytes; ++i) row.push_back(static_cast<char>(random.Below(256)));
      ASSERT_TRUE(rows.Add(row).ok());
    }
    const RowPages pages = *rows.Finish();
    ASSERT_TRUE(writer.Flush().ok());
    EXPECT_EQ(pages.rows, given.size());
    EXPECT_EQ(pages.pages.size(), row_bytes == 1 ? 1u : 4u);
    ScratchReader reader(*reading, kRowPageBytes, 4, cancel_);
    std::vector<std::string> read = {"before"};
    ASSERT_TRUE(ReadRowPages(reader, pages, row_bytes, read).ok());
    EXPECT_EQ(read[0], "before");
    EXPECT_TRUE(std::equal(read.begin() + 1, read.end(), given.begin(), given.end()));
    RowPages wrong = pages;
    ++wrong.rows;
    EXPECT_TRUE(absl::IsDataLoss(ReadRowPages(reader, wrong, row_bytes, read))) << "a row is missing";
    servers_.at(pages.pages.back().at)[9] ^= std::byte{1};
    ScratchReader again(*reading, kRowPageBytes, 4, cancel_);
    EXPECT_TRUE(absl::IsDataLoss(ReadRowPages(again, pages, row_bytes, read))) << "another row";
  }
}

TEST_P(ScratchTest, ListsComeBackEachInItsOrder) {
  RandomStream random(6);
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> writing = NewChannel();
  ScratchWriter writer(space, *writing, kMostBytes, cancel_);
  constexpr uint32_t kLists = 9;
  std::vector<std::vector<std::vector<std::byte>>> pages(kLists);
  std::vector<std::vector<ScratchPage>> places(kLists);
  for (uint64_t i = 0; i < 300; ++i) {
    const size_t list = random.Below(kLists - 1);  // one stays empty
    pages[list].push_back(PageOf(i, random));
    places[list].push_back(writer.Write(pages[list].back()).value());
  }
  ASSERT_TRUE(writer.Flush().ok());
  const auto reading = *Channel::Open(
      *client_, servers_,
      {.queue_depth = 5, .buffer_bytes = uint64_t{ScratchStreams::kPagesOfAList} * kLists * kMostBytes});
  ScratchStreams streams(*reading, kMostBytes, places, cancel_);
  ASSERT_TRUE(streams.Prefetch().ok());
  std::vector<std::vector<uint32_t>> held(kLists);  // slots
  std::vector<size_t> released(kLists);
  const auto expect_held = [&](uint32_t list) {
    for (size_t i = 0; i < held[list].size(); ++i) {
      const std::vector<std::byte>& page = pages[list][released[list] + i];
      ASSERT_EQ(streams.bytes(held[list][i]), page.size());
      ASSERT_TRUE(std::equal(page.begin(), page.end(), streams.Slot(held[list][i]).begin())) << list;
    }
  };
  for (size_t left = 300; left > 0;) {
    const auto list = static_cast<uint32_t>(random.Below(kLists));
    const bool has_room = held[list].size() < ScratchStreams::kPagesOfAList;
    ASSERT_EQ(streams.HasRoom(list), has_room);
    if (has_room && streams.pages_left(list) > 0) {
      const auto slot = streams.Next(list);
      ASSERT_TRUE(slot.ok()) << slot.status();
      held[list].push_back(*slot);
      --left;
    } else if (!held[list].empty()) {
      expect_held(list);
      ASSERT_TRUE(streams.Release(list).ok());
      held[list].erase(held[list].begin());
      ++released[list];
    }
    expect_held(list);
  }
  for (uint32_t list = 0; list < kLists; ++list) EXPECT_EQ(streams.pages_left(list), 0u);
}

TEST_P(ScratchTest, StreamsThatEndInTheMiddleLeaveTheChannelAsItWas) {
  RandomStream random(7);
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> channel = NewChannel();
  std::vector<ScratchPage> places;
  std::vector<std::vector<std::byte>> pages;
  {
    ScratchWriter writer(space, *channel, kMostBytes, cancel_);
    for (uint64_t i = 0; i < 40; ++i) {
      pages.push_back(PageOf(i, random));
      places.push_back(writer.Write(pages.back()).value());
    }
    ASSERT_TRUE(writer.Flush().ok());
  }
  for (int i = 0; i < 20; ++i) {
    ScratchStreams streams(*channel, kMostBytes, {places, places}, cancel_);
    ASSERT_TRUE(streams.Prefetch().ok());
    const auto slot = streams.Next(1);
    ASSERT_TRUE(slot.ok()) << slot.status();
    EXPECT_TRUE(std::equal(pages[0].begin(), pages[0].end(), streams.Slot(*slot).begin()));
  }
  EXPECT_FALSE(channel->broken());
}

TEST_P(ScratchTest, WhatAWriterLeavesIsUsedByTheNext) {
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> channel = NewChannel();
  const std::vector<std::byte> page(kMostBytes, std::byte{7});
  std::vector<ScratchPage> places;
  for (int i = 0; i < 10; ++i) {
    ScratchWriter writer(space, *channel, kMostBytes, cancel_);
    places.push_back(*writer.Write(page));
    ASSERT_TRUE(writer.Flush().ok());
  }
  EXPECT_EQ(asked_.size(), 2u) << "slabs of five pages";
  std::sort(places.begin(), places.end(),
            [](const ScratchPage& a, const ScratchPage& b) { return a.at < b.at; });
  for (size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(places[i].at.raw(), places[i - 1].at.raw() + kMostBytes) << "pages lie apart";
}

/// However small its slabs are.
TEST_P(ScratchTest, AWriterAsksForNoLargerSlabThanItHasWritten) {
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> channel = NewChannel();
  ScratchWriter writer(space, *channel, kMostBytes, cancel_);
  const std::vector<std::byte> page(kMostBytes, std::byte{7});
  while (writer.bytes() < (3 << 20)) {
    const uint64_t before = writer.bytes();
    const size_t slabs = asked_.size();
    ASSERT_TRUE(writer.Write(page).ok());
    if (asked_.size() > slabs) {
      EXPECT_LE(asked_.back(), std::max(before, ScratchSpace::kFirstSlabBytes)) << before;
    }
  }
  EXPECT_EQ(asked_.front(), ScratchSpace::kFirstSlabBytes);
  EXPECT_EQ(asked_.back(), 2u << 20) << "and a larger one for much";
  ASSERT_TRUE(writer.Flush().ok());
}

TEST_P(ScratchTest, PlacesThatAreNoneAreErrors) {
  const std::unique_ptr<Channel> channel = NewChannel();
  const auto read = [&](ScratchPage page) {
    ScratchReader reader(*channel, kMostBytes, 4, cancel_);
    reader.Start({page});
    return reader.Next().status().code();
  };
  const RemotePtr<void> place(MemoryServerId(1), 4096);
  EXPECT_EQ(read({place, 64}), absl::StatusCode::kOk);
  EXPECT_EQ(read({place, 0}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(read({place, kMostBytes + 1}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(read({place.Plus(TwoServers::kBytes - 32), 64}), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(read({place, 64}), absl::StatusCode::kOk) << "the channel is as good as before";
}

TEST_P(ScratchTest, AWriterStopsWhenItsSlabsAreGone) {
  ScratchSpace space = Space();
  const std::unique_ptr<Channel> channel = NewChannel();
  ScratchWriter writer(space, *channel, kMostBytes, cancel_);
  const std::vector<std::byte> page(kMostBytes);
  absl::Status status;
  size_t written = 0;
  for (; status.ok(); ++written) status = writer.Write(page).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(written, 2 * TwoServers::kBytes / kMostBytes - 12);
  EXPECT_TRUE(writer.Flush().ok());
}

TEST_P(ScratchTest, AWriterGetsNoSlabOfWhatIsOver) {
  fabric::Grants grants;
  const auto grant = fabric::Grants::Opening(grants, MemoryServerId(1)).Add(AllocationId(1), /*attempt=*/7);
  grants.EndAttempt(AllocationId(1), 7);
  ScratchSpace space([] { return std::vector{MemoryServerId(1)}; }, 0,
                     [&](MemoryServerId server, uint64_t bytes, const std::atomic<bool>&) {
                       return ScratchSlab{{server, 4096}, bytes, grant};
                     });
  const std::unique_ptr<Channel> channel = NewChannel();
  ScratchWriter writer(space, *channel, kMostBytes, cancel_);
  EXPECT_TRUE(absl::IsPermissionDenied(writer.Write(std::vector<std::byte>(kMostBytes)).status()));
}

}  // namespace
}  // namespace nam::storage
