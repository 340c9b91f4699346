#include "txn/rsi/record_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/txn/record_cluster.h"

namespace nam::txn {
namespace {

/// A table of two extents, on two memory servers.
class RecordAllocatorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kExtentBytes = 256 << 10;
  RecordAllocatorTest() : member_(cluster_, cluster_.client(), 1) {
    cluster_.AddTable("rows", {.extent_bytes = kExtentBytes, .extents_max = 2});
    table_ = *member_.Find("rows");
    EXPECT_TRUE(table_.records->Grow(1).ok());
    channel_ = *storage::Channel::Open(member_.fabric(), member_.directory(), {});
    batch_.emplace(*channel_);
    space_.emplace(*ExtentSpace::Open(*channel_, table_.records, kExtentBytes));
  }
  RecordAllocator Of(uint32_t client) { return RecordAllocator(*space_, layout_, client); }

  RecordCluster cluster_{{}};
  RecordCluster::Member member_;
  TableDescription table_;
  const RecordLayout layout_ = RecordLayout::Of(storage::RecordGeometry::Of(64, 1), kExtentBytes);
  std::unique_ptr<storage::Channel> channel_;
  std::optional<storage::VerbBatch> batch_;
  std::optional<ExtentSpace> space_;
};

TEST_F(RecordAllocatorTest, ClientsBeginInDifferentExtents) {
  std::set<uint64_t> extents;
  for (const uint32_t client : {1, 2}) {
    RecordAllocator allocator = Of(client);
    extents.insert(layout_.ExtentOf(*allocator.Allocate(*batch_)));
  }
  EXPECT_EQ(extents.size(), 2u);
}

TEST_F(RecordAllocatorTest, OneClientGetsEveryBlockOnce) {
  RecordAllocator allocator = Of(1);
  std::set<uint64_t> records;
  absl::StatusOr<uint64_t> record = allocator.Allocate(*batch_);
  for (; record.ok(); record = allocator.Allocate(*batch_)) {
    EXPECT_TRUE(records.insert(*record).second) << *record << " twice";
    ASSERT_TRUE(batch_->Execute().ok());
    batch_->Reset();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(record.status())) << record.status();
  EXPECT_EQ(records.size(), 2 * layout_.records_per_extent);
}

TEST_F(RecordAllocatorTest, AShortExtentHasFewerBlocks) {
  cluster_.AddTable("small", {.extent_bytes = kExtentBytes, .extents_max = 3, .small = true});
  const TableDescription small = *member_.Find("small");
  ExtentSpace space = *ExtentSpace::Open(*channel_, small.records, kExtentBytes);
  RecordAllocator one(space, layout_, 1), other(space, layout_, 2);
  std::map<uint64_t, uint64_t> records_of;  // by extent
  std::set<uint64_t> records;
  absl::StatusOr<uint64_t> record = one.Allocate(*batch_);
  for (int turn = 0; record.ok(); record = (++turn % 2 == 0 ? one : other).Allocate(*batch_)) {
    EXPECT_TRUE(records.insert(*record).second) << *record << " twice";
    ++records_of[layout_.ExtentOf(*record)];
    const uint64_t end = layout_.BlockPosition(*record) % kExtentBytes + layout_.block_bytes;
    EXPECT_LE(end, space.BytesOf(layout_.ExtentOf(*record)));
    ASSERT_TRUE(batch_->Execute().ok());
    batch_->Reset();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(record.status())) << record.status();
  EXPECT_EQ(records_of[0], kChunkRecords);
  EXPECT_EQ(records_of[1], 3 * kChunkRecords);
  EXPECT_GT(records_of[2], layout_.records_per_extent - kChunkRecords) << "a client may have some left";
  EXPECT_TRUE(one.GiveBackOf(*batch_, 2).ok());
}

/// The words of a large table's chunks exceed a session's scratch memory.
TEST_F(RecordAllocatorTest, ExtentsAreLookedThroughInLittleScratchMemory) {
  constexpr size_t kExtents = 100;
  cluster_.AddTable("large", {.extent_bytes = kExtentBytes, .extents_max = kExtents});
  const TableDescription large = *member_.Find("large");
  for (size_t known = 1; known < kExtents; ++known) ASSERT_TRUE(large.records->Grow(known).ok());
  const auto channel =
      *storage::Channel::Open(member_.fabric(), member_.directory(), {.buffer_bytes = 4'096});
  storage::VerbBatch batch(*channel);
  ExtentSpace space = *ExtentSpace::Open(*channel, large.records, kExtentBytes);
  RecordAllocator allocator(space, layout_, 1);
  absl::StatusOr<uint64_t> record = allocator.Allocate(batch);
  for (; record.ok(); record = allocator.Allocate(batch)) {
    ASSERT_TRUE(batch.Execute().ok());
    batch.Reset();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(record.status())) << record.status();
  batch.Reset();
  EXPECT_TRUE(allocator.GiveBackOf(batch, 1).ok());
  EXPECT_TRUE(RecordAllocator(space, layout_, 2).Allocate(batch).ok());
}

/// However often rows of a chunk are deleted, it gets no other owner by that.
TEST(ChunkWord, WhatIsFreedDoesNotReachTheOwner) {
  constexpr uint32_t kClient = 77;
  uint64_t word = ChunkWord::OwnedBy(kClient).word() + (uint64_t{1} << 40);
  EXPECT_EQ(ChunkWord(word).owner(), kClient);
  EXPECT_EQ(ChunkWord(word).freed(), uint64_t{1} << 40);
  word += ChunkWord::GiveBackAddend(kClient, 3);
  EXPECT_EQ(ChunkWord(word).owner(), 0u);
  EXPECT_TRUE(ChunkWord(word).had());
  EXPECT_EQ(ChunkWord(word).freed(), (uint64_t{1} << 40) + 3);
}

}  // namespace
}  // namespace nam::txn
