#include "memserver/memory_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/exhausted.h"
#include "tests/catalog/fake_fabric.h"

namespace nam::memserver {
namespace {

constexpr uint64_t kKiB = 1'024;
constexpr uint64_t kRegionBytes = 64 * kKiB;

// Records the memory behind keys, to look at it like the fabric's peers.
class RecordingFabric final : public fabric::FakeFabric {
 public:
  std::map<uint32_t, std::byte*> regions;  // by rkey
  std::set<fabric::Access> rights;
  int regions_left = 1'000'000;

  absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> Allocate(
      size_t bytes, const fabric::AllocateOptions& options) override {
    if (regions_left == 0) return absl::ResourceExhaustedError("no more keys");
    --regions_left;
    rights.insert(options.access);
    auto region = FakeFabric::Allocate(bytes, options);
    if (region.ok()) regions[(*region)->rkey().value] = (*region)->data();
    return region;
  }
};

constexpr MemberId kMember(7), kOther(8);

class MemoryPoolTest : public testing::Test {
 protected:
  void Create(uint64_t memory_bytes, uint64_t scratch_bytes = 0) {
    auto pool = MemoryPool::Create(fabric_, {memory_bytes, kRegionBytes, scratch_bytes});
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  std::byte* At(uint64_t offset) {
    for (const MemoryPool::Region& listed : pool_->Regions()) {
      if (offset < listed.offset || offset >= listed.offset + listed.bytes) continue;
      const auto region = fabric_.regions.find(listed.rkey.value);
      if (region != fabric_.regions.end()) return region->second + (offset - listed.offset);
    }
    ADD_FAILURE() << "no region at " << offset;
    return nullptr;
  }

  /// For a member that closes it at once.
  absl::StatusOr<std::vector<Extent>> Allocate(AllocationId allocation, uint64_t bytes,
                                               MemoryPool::Pieces pieces = MemoryPool::Pieces::kAny,
                                               MemoryPool::Use use = MemoryPool::Use::kData,
                                               uint64_t attempt = 0) {
    auto extents = pool_->Allocate(allocation, bytes, kMember, pieces, use, attempt);
    pool_->Close(allocation, attempt, kMember);
    return extents;
  }

  RecordingFabric fabric_;
  std::unique_ptr<MemoryPool> pool_;
};

TEST_F(MemoryPoolTest, ARegionHasOneKeyForEverything) {
  Create(4 * kRegionBytes);
  ASSERT_TRUE(Allocate(AllocationId(1), kKiB).ok());
  ASSERT_TRUE(Allocate(AllocationId(2), kKiB).ok());
  EXPECT_EQ(fabric_.regions.size(), 1u);
  EXPECT_EQ(fabric_.rights, std::set{fabric::Access::kAll});
}

TEST_F(MemoryPoolTest, MemoryThatAMemberHasOpenIsNotHandedOutAgain) {
  Create(2 * kRegionBytes);
  const uint64_t whole = pool_->capacity_bytes();
  ASSERT_TRUE(pool_->Allocate(AllocationId(1), whole, kMember).ok());
  ASSERT_EQ(pool_->Open(AllocationId(1), kOther)->size(), 2u);
  EXPECT_EQ(pool_->Openers(), (std::vector{kMember, kOther}));
  for (int i = 0; i < 2; ++i) {
    const MemoryPool::Released released = pool_->Release(AllocationId(1));
    EXPECT_EQ(released.freed_bytes, 0u);
    EXPECT_EQ(released.leaving_bytes, whole);
  }
  const auto refused = [&] { return Allocate(AllocationId(2), kKiB).status().code(); };
  EXPECT_EQ(refused(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool_->WillHave(kKiB, MemoryPool::Use::kData));
  EXPECT_FALSE(pool_->WillHave(kKiB, MemoryPool::Use::kScratch));
  EXPECT_FALSE(pool_->WillHave(whole + 1, MemoryPool::Use::kData));
  EXPECT_EQ(pool_->used_bytes(), whole);
  EXPECT_EQ(pool_->leaving_bytes(), whole);
  EXPECT_EQ(pool_->Held(), std::vector<AllocationId>{AllocationId(1)}) << "so that renewals come back to it";
  EXPECT_TRUE(absl::IsNotFound(pool_->Open(AllocationId(1), kMember).status()))
      << "an allocation that is over cannot be opened";

  pool_->Close(AllocationId(1), /*attempt=*/0, kMember);
  EXPECT_EQ(refused(), absl::StatusCode::kResourceExhausted) << "the other has not closed it";
  pool_->Close(AllocationId(1), /*attempt=*/9, kOther);
  EXPECT_EQ(refused(), absl::StatusCode::kResourceExhausted) << "what it has of an attempt is something else";
  pool_->Close(AllocationId(1), /*attempt=*/0, kOther);
  EXPECT_EQ(pool_->used_bytes(), 0u);
  EXPECT_FALSE(pool_->WillHave(kKiB, MemoryPool::Use::kData));
  EXPECT_TRUE(Allocate(AllocationId(2), kKiB).ok());
  EXPECT_TRUE(pool_->Openers().empty());
}

TEST_F(MemoryPoolTest, AFencedMemberHasClosedEverything) {
  Create(2 * kRegionBytes, 32 * kKiB);
  ASSERT_TRUE(pool_->Allocate(AllocationId(1), 8 * kKiB, kMember).ok());
  ASSERT_TRUE(pool_->Open(AllocationId(1), kOther).ok());
  using Pieces = MemoryPool::Pieces;
  using Use = MemoryPool::Use;
  ASSERT_TRUE(pool_->Allocate(AllocationId(2), 8 * kKiB, kMember, Pieces::kOne, Use::kScratch, 5).ok());
  EXPECT_EQ(pool_->ReleaseAttempt(AllocationId(2), 5).leaving_bytes, 8 * kKiB);
  pool_->Release(AllocationId(1));
  pool_->Fenced(kMember);
  EXPECT_EQ(pool_->scratch_used_bytes(), 0u);
  EXPECT_EQ(pool_->used_bytes(), 8 * kKiB) << "the other lives";
  pool_->Fenced(kOther);
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

// The request is overtaken by the news that its sender has given up.
TEST_F(MemoryPoolTest, AnOpeningThatIsOverOpensNothing) {
  Create(2 * kRegionBytes, 32 * kKiB);
  const auto allocate = [&](AllocationId allocation, uint64_t opening, MemberId member = kMember) {
    return pool_
        ->Allocate(allocation, kKiB, member, MemoryPool::Pieces::kOne, MemoryPool::Use::kScratch,
                   /*attempt=*/3, opening)
        .status();
  };
  ASSERT_TRUE(allocate(AllocationId(1), 5).ok());
  pool_->RefuseOpenings(kMember, 7);
  pool_->RefuseOpenings(kMember, 6);  // has come late
  pool_->Close(AllocationId(1), /*attempt=*/3, kMember);
  const uint64_t used_bytes = pool_->used_bytes();
  EXPECT_TRUE(absl::IsCancelled(allocate(AllocationId(1), 6)));
  EXPECT_TRUE(absl::IsCancelled(allocate(AllocationId(2), 6)));
  EXPECT_TRUE(absl::IsCancelled(pool_->Open(AllocationId(1), kMember, 6).status()));
  EXPECT_EQ(pool_->used_bytes(), used_bytes);
  EXPECT_EQ(pool_->Held(), std::vector<AllocationId>{AllocationId(1)});
  pool_->Release(AllocationId(1));
  EXPECT_EQ(pool_->used_bytes(), 0u);
  EXPECT_TRUE(allocate(AllocationId(2), 7).ok());
  EXPECT_TRUE(pool_->Open(AllocationId(2), kMember, 7).ok());
  EXPECT_TRUE(allocate(AllocationId(2), 1, kOther).ok()) << "of its own numbers";
  pool_->Release(AllocationId(2));
  pool_->Close(AllocationId(2), /*attempt=*/3, kMember);
  pool_->Close(AllocationId(2), /*attempt=*/0, kMember);
  EXPECT_EQ(pool_->Openers(), (std::vector{kMember, kOther})) << "until it is fenced";
  pool_->Fenced(kMember);
  EXPECT_EQ(pool_->Openers(), std::vector{kOther});
}

TEST_F(MemoryPoolTest, WhatIsClosedBeforeItIsOverIsFreeAtOnce) {
  Create(2 * kRegionBytes);
  ASSERT_TRUE(pool_->Allocate(AllocationId(1), 8 * kKiB, kMember).ok());
  pool_->Close(AllocationId(1), /*attempt=*/0, kMember);
  EXPECT_EQ(pool_->used_bytes(), 8 * kKiB) << "it is a table";
  EXPECT_EQ(pool_->Release(AllocationId(1)).freed_bytes, 8 * kKiB);
}

TEST_F(MemoryPoolTest, AnAllocationThatIsOverGetsNothingMore) {
  Create(4 * kRegionBytes);
  ASSERT_TRUE(pool_->Allocate(AllocationId(1), kKiB, kMember).ok());
  pool_->Release(AllocationId(1));
  EXPECT_EQ(Allocate(AllocationId(1), kKiB).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pool_->used_bytes(), 0u) << "it has closed what it had, and what was refused is free again";
}

TEST_F(MemoryPoolTest, RegionsAreMadeWhenNeededAndKept) {
  Create(4 * kRegionBytes);
  EXPECT_TRUE(pool_->Regions().empty());
  ASSERT_TRUE(Allocate(AllocationId(1), kKiB).ok());
  EXPECT_EQ(pool_->Regions().size(), 1u);
  const auto large = Allocate(AllocationId(2), 2 * kRegionBytes + kKiB);
  ASSERT_TRUE(large.ok());
  for (const Extent& extent : *large) {
    EXPECT_EQ(extent.offset / kRegionBytes, (extent.offset + extent.bytes - 1) / kRegionBytes);
  }
  const auto regions = pool_->Regions();
  EXPECT_EQ(regions.size(), 3u);
  for (const MemoryPool::Region& region : regions) EXPECT_EQ(region.offset % kRegionBytes, 0u);
  EXPECT_EQ(pool_->Release(AllocationId(2)).freed_bytes, 2 * kRegionBytes + 4 * kKiB);
  EXPECT_EQ(pool_->Release(AllocationId(2)).freed_bytes, 0u);
  const auto after = pool_->Regions();
  ASSERT_EQ(after.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after[i].rkey, regions[i].rkey);
}

TEST_F(MemoryPoolTest, ExhaustionSaysWhatIsNeededAndFree) {
  Create(2 * kRegionBytes);
  ASSERT_TRUE(Allocate(AllocationId(1), 100 * kKiB).ok());
  const auto refused = Allocate(AllocationId(2), 30 * kKiB);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(refused.status().message()),
            "out of memory: 30.0 KiB are needed, 24.0 KiB of 124.0 KiB are free; drop tables or add memory "
            "servers");
  EXPECT_EQ(refused.status().GetPayload(kExhaustedPayload), "memory");  // what SQL makes 53200 of
  EXPECT_EQ(pool_->used_bytes(), 100 * kKiB);
  EXPECT_EQ(pool_->Held(), std::vector<AllocationId>{AllocationId(1)});
  EXPECT_TRUE(Allocate(AllocationId(2), 24 * kKiB).ok());
}

TEST_F(MemoryPoolTest, WhatIsNeededAndWhatIsFreeNeverReadAlike) {
  constexpr uint64_t kBytes = 64 * 1'024 * kKiB;
  Create(kBytes);
  EXPECT_EQ(
      std::string(Allocate(AllocationId(1), kBytes).status().message()),
      "out of memory: 67108864 bytes are needed, 67104768 bytes of 64.0 MiB are free; drop tables or add "
      "memory servers");
}

TEST_F(MemoryPoolTest, WithoutOnePieceTheLargestIsTold) {
  Create(2 * kRegionBytes);
  const auto one_piece = [&] {
    return Allocate(AllocationId(1), 40 * kKiB, MemoryPool::Pieces::kOne).status();
  };
  ASSERT_TRUE(one_piece().ok());
  ASSERT_TRUE(one_piece().ok());
  EXPECT_EQ(
      std::string(one_piece().message()),
      "out of memory in one piece: 40.0 KiB are needed, and of the 44.0 KiB that are free the largest piece "
      "has 24.0 KiB; drop tables, add memory servers, or choose larger regions");
}

TEST_F(MemoryPoolTest, ScratchMemoryAndTheRestTakeNothingOfEachOther) {
  Create(2 * kRegionBytes, 32 * kKiB);
  const auto allocate = [&](uint64_t allocation, uint64_t kib, MemoryPool::Use use) {
    return Allocate(AllocationId(allocation), kib * kKiB, MemoryPool::Pieces::kAny, use).status();
  };
  using Use = MemoryPool::Use;
  EXPECT_EQ(std::string(allocate(1, 36, Use::kScratch).message()),
            "scratch memory is full: 36.0 KiB are needed, 32.0 KiB of 32.0 KiB are free; choose a larger "
            "--scratch");
  EXPECT_EQ(std::string(allocate(1, 96, Use::kData).message()),
            "out of memory: 96.0 KiB are needed, 92.0 KiB of 92.0 KiB are free; drop tables or add memory "
            "servers");
  ASSERT_TRUE(allocate(1, 92, Use::kData).ok());
  EXPECT_EQ(allocate(2, 4, Use::kData).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(allocate(2, 20, Use::kScratch).ok());
  ASSERT_TRUE(allocate(3, 12, Use::kScratch).ok());
  EXPECT_EQ(allocate(3, 4, Use::kScratch).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool_->scratch_used_bytes(), 32 * kKiB);
  EXPECT_EQ(pool_->used_bytes(), 124 * kKiB);
  // Freed memory returns to its share.
  pool_->Release(AllocationId(1));
  EXPECT_EQ(allocate(3, 4, Use::kScratch).code(), absl::StatusCode::kResourceExhausted);
  pool_->Release(AllocationId(2));
  EXPECT_EQ(pool_->scratch_used_bytes(), 12 * kKiB);
  EXPECT_EQ(pool_->scratch_highest_bytes(), 32 * kKiB) << "what it was once";
  EXPECT_EQ(pool_->scratch_bytes(), 32 * kKiB);
  EXPECT_TRUE(allocate(4, 20, Use::kScratch).ok());
  EXPECT_TRUE(allocate(5, 92, Use::kData).ok());
}

TEST_F(MemoryPoolTest, ScratchMemoryThatIsNotGivenCountsNowhere) {
  Create(2 * kRegionBytes, 32 * kKiB);
  fabric_.regions_left = 0;
  const auto scratch = [&] {
    return Allocate(AllocationId(1), 32 * kKiB, MemoryPool::Pieces::kOne, MemoryPool::Use::kScratch);
  };
  EXPECT_FALSE(scratch().ok());
  EXPECT_EQ(pool_->scratch_used_bytes(), 0u);
  EXPECT_EQ(pool_->scratch_highest_bytes(), 0u);
  fabric_.regions_left = 100;
  EXPECT_TRUE(scratch().ok());
}

TEST_F(MemoryPoolTest, AnAttemptsScratchMemoryComesBackAlone) {
  Create(2 * kRegionBytes, 32 * kKiB);
  const auto slab = [&](uint64_t attempt) {
    return Allocate(AllocationId(1), 8 * kKiB, MemoryPool::Pieces::kOne, MemoryPool::Use::kScratch, attempt)
        .status();
  };
  ASSERT_TRUE(Allocate(AllocationId(1), 4 * kKiB).ok()) << "no scratch memory, of no attempt";
  ASSERT_TRUE(slab(7).ok());
  ASSERT_TRUE(slab(7).ok());
  ASSERT_TRUE(slab(8).ok());
  ASSERT_TRUE(slab(9).ok());
  EXPECT_EQ(slab(9).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool_->ReleaseAttempt(AllocationId(1), 0).freed_bytes, 0u) << "attempt 0 is none";

  EXPECT_EQ(pool_->ReleaseAttempt(AllocationId(1), 7).freed_bytes, 16 * kKiB);
  EXPECT_TRUE(slab(9).ok());
  EXPECT_EQ(pool_->scratch_used_bytes(), 24 * kKiB);
  EXPECT_EQ(slab(7).code(), absl::StatusCode::kFailedPrecondition) << "the attempt is over";
  EXPECT_EQ(pool_->ReleaseAttempt(AllocationId(1), 10).freed_bytes, 0u);
  EXPECT_EQ(slab(10).code(), absl::StatusCode::kFailedPrecondition) << "it had nothing yet";
  EXPECT_TRUE(slab(8).ok()) << "others go on";
  EXPECT_EQ(pool_->Release(AllocationId(1)).freed_bytes, 36 * kKiB);
  EXPECT_EQ(pool_->used_bytes(), 0u);
  // For an allocation without memory this is recorded until the allocation is over.
  pool_->ReleaseAttempt(AllocationId(2), 1);
  EXPECT_EQ(pool_->Held(), std::vector<AllocationId>{AllocationId(2)});
  pool_->Release(AllocationId(2));
  EXPECT_TRUE(pool_->Held().empty());
}

TEST_F(MemoryPoolTest, BytesAreZeroAfterTheyWereScratchMemory) {
  Create(2 * kRegionBytes, 40 * kKiB);
  const auto scratch =
      Allocate(AllocationId(1), 40 * kKiB, MemoryPool::Pieces::kOne, MemoryPool::Use::kScratch);
  ASSERT_TRUE(scratch.ok());
  const uint64_t offset = (*scratch)[0].offset;
  std::memset(At(offset), 0xAB, 40 * kKiB);
  pool_->Release(AllocationId(1));
  ASSERT_TRUE(Allocate(AllocationId(2), 40 * kKiB, MemoryPool::Pieces::kOne, MemoryPool::Use::kScratch).ok());
  EXPECT_EQ(*At(offset), std::byte{0xAB}) << "scratch memory is not zeroed";
  pool_->Release(AllocationId(2));
  const auto data = Allocate(AllocationId(3), 40 * kKiB);
  ASSERT_TRUE(data.ok());
  ASSERT_EQ((*data)[0].offset, offset) << "the same place";
  EXPECT_TRUE(std::all_of(At(offset), At(offset) + 40 * kKiB, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(MemoryPoolTest, AFabricThatHasNoMoreGivesNothingAway) {
  Create(4 * kRegionBytes);
  fabric_.memory_bytes_max = 2 * kRegionBytes;
  const absl::Status refused = Allocate(AllocationId(1), 3 * kRegionBytes).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.GetPayload(kExhaustedPayload), "memory");
  EXPECT_EQ(pool_->used_bytes(), 0u);
  EXPECT_TRUE(pool_->Held().empty());
  EXPECT_TRUE(Allocate(AllocationId(1), kRegionBytes).ok());
  fabric_.memory_bytes_max = UINT64_MAX;
  EXPECT_TRUE(Allocate(AllocationId(1), 2 * kRegionBytes).ok());
}

TEST_F(MemoryPoolTest, BytesAreZeroWhenHandedOutAgain) {
  Create(2 * kRegionBytes);
  for (uint64_t round = 1; round <= 3; ++round) {
    const auto extents = Allocate(AllocationId(round), (30 * round) * kKiB);
    ASSERT_TRUE(extents.ok());
    for (const Extent& extent : *extents) {
      const std::byte* begin = At(extent.offset);
      EXPECT_TRUE(std::all_of(begin, begin + extent.bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::memset(At(extent.offset), 0xAB, extent.bytes);
    }
    pool_->Release(AllocationId(round));
  }
}

// Memory beyond a smaller allocation is unchanged.
TEST_F(MemoryPoolTest, BytesAreZeroAlsoBehindAShorterAllocation) {
  Create(2 * kRegionBytes);
  uint64_t round = 0;
  for (const uint64_t kib : {60, 8, 40}) {
    const auto extents = Allocate(AllocationId(++round), kib * kKiB);
    ASSERT_TRUE(extents.ok());
    ASSERT_EQ(extents->size(), 1u);
    ASSERT_EQ((*extents)[0].offset, 4 * kKiB) << "the same place";
    std::byte* begin = At((*extents)[0].offset);
    EXPECT_TRUE(std::all_of(begin, begin + kib * kKiB, [](std::byte b) { return b == std::byte{0}; })) << kib;
    std::memset(begin, 0xAB, kib * kKiB);
    pool_->Release(AllocationId(round));
  }
}

TEST_F(MemoryPoolTest, AnAllocationGrowsAndIsReleasedWhole) {
  Create(4 * kRegionBytes);
  ASSERT_TRUE(Allocate(AllocationId(7), 10 * kKiB).ok());
  ASSERT_TRUE(Allocate(AllocationId(7), 100 * kKiB).ok());
  EXPECT_EQ(pool_->Release(AllocationId(7)).freed_bytes, 112 * kKiB);
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

TEST_F(MemoryPoolTest, BadRequestsAndOptionsAreRefused) {
  Create(2 * kRegionBytes);
  EXPECT_EQ(Allocate(AllocationId(0), 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Allocate(AllocationId(1), 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Allocate(AllocationId(1), UINT64_MAX).status().code(), absl::StatusCode::kResourceExhausted);
  const auto refused = [&](uint64_t memory, uint64_t region) {
    return MemoryPool::Create(fabric_, {memory, region}).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(0, kRegionBytes));
  EXPECT_TRUE(refused(4'096, kRegionBytes));
  EXPECT_TRUE(refused(10'000, kRegionBytes));
  EXPECT_TRUE(refused(kRegionBytes, 0));
  EXPECT_TRUE(refused(kRegionBytes, 100));
  EXPECT_TRUE(refused(uint64_t{1} << 60, kRegionBytes));
  EXPECT_TRUE(refused(uint64_t{1} << 48, 4'096));
  for (const uint64_t scratch : {uint64_t{100}, kRegionBytes, UINT64_MAX / 4'096 * 4'096}) {
    EXPECT_EQ(MemoryPool::Create(fabric_, {kRegionBytes, kRegionBytes, scratch}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(MemoryPoolTest, ThreadsNeverShareBytes) {
  Create(16 * kRegionBytes);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (uint64_t i = 1; i <= 50; ++i) {
        const AllocationId id(t * 1'000 + i);
        const auto extents = Allocate(id, (i % 7 + 1) * 5 * kKiB);
        if (extents.ok() && i % 3 != 0) {
          EXPECT_GT(pool_->Release(id).freed_bytes, 0u);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const AllocationId id : pool_->Held()) EXPECT_GT(pool_->Release(id).freed_bytes, 0u);
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

TEST(ReadableBytesTest, PicksAUnit) {
  EXPECT_EQ(ReadableBytes(0), "0 bytes");
  EXPECT_EQ(ReadableBytes(1'023), "1023 bytes");
  EXPECT_EQ(ReadableBytes(1'536), "1.5 KiB");
  EXPECT_EQ(ReadableBytes(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(ReadableBytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace nam::memserver
