#include "localcluster/memory_room.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nam {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;

std::vector<MemoryLimit> Host(uint64_t bytes) {
  return {{kHostMemory, bytes, bytes / 2}};
}

TEST(MemoryRoomTest, MoreThanTheHostHasIsRefusedWithTheFigures) {
  EXPECT_TRUE(CheckMemoryRoom(8 * kGiB, 2, Host(16 * kGiB)).ok());
  const absl::Status refused = CheckMemoryRoom(9 * kGiB, 2, Host(16 * kGiB));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "2 memory servers of --memory=9 GiB each: the host has 16 GiB; choose at most --memory=8192MiB");
  EXPECT_THAT(std::string(CheckMemoryRoom(17 * kGiB, 1, Host(16 * kGiB)).message()),
              HasSubstr("--memory=17 GiB: the host has 16 GiB"));
  EXPECT_FALSE(CheckMemoryRoom(UINT64_MAX, 64, Host(16 * kGiB)).ok());
  EXPECT_TRUE(CheckMemoryRoom(kGiB, 2, {}).ok()) << "who knows";
}

TEST(MemoryRoomTest, AControlGroupIsTighter) {
  std::vector<MemoryLimit> limits = Host(16 * kGiB);
  limits.push_back({"control group /box (memory.limit_in_bytes)", 2 * kGiB, kGiB});
  EXPECT_TRUE(CheckMemoryRoom(kGiB, 2, limits).ok());
  EXPECT_THAT(std::string(CheckMemoryRoom(kGiB + kMiB, 2, limits).message()),
              HasSubstr("/box (memory.limit_in_bytes)"));
  EXPECT_EQ(DefaultMemory(2, limits), 320 * kMiB);
}

TEST(MemoryRoomTest, ComputeServersHaveRoomForAQuery) {
  EXPECT_TRUE(CheckComputeMemory(16 * kMiB, Host(16 * kGiB)).ok());
  EXPECT_TRUE(CheckComputeMemory(16 * kGiB, Host(16 * kGiB)).ok());
  for (const uint64_t little : {uint64_t{0}, uint64_t{1}, 16 * kMiB - 1}) {
    const absl::Status refused = CheckComputeMemory(little, Host(16 * kGiB));
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << little;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("a query on a compute server begins with 16 MiB; choose at least --memory=16MiB"));
  }
  EXPECT_EQ(CheckComputeMemory(100 * 1024 * kGiB, Host(16 * kGiB)).message(),
            "--memory=100 TiB: the host has 16 GiB; choose at most --memory=16384MiB");
  std::vector<MemoryLimit> limits = Host(16 * kGiB);
  limits.push_back({"control group /box (memory.max)", 2 * kGiB, kGiB});
  EXPECT_THAT(std::string(CheckComputeMemory(3 * kGiB, limits).message()), HasSubstr("/box (memory.max)"));
  EXPECT_EQ(DefaultComputeMemory(1, limits), kGiB);
  EXPECT_EQ(DefaultComputeMemory(4, Host(16 * kGiB)), 2 * kGiB);
  EXPECT_EQ(DefaultComputeMemory(64, Host(kGiB)), 16 * kMiB);
  EXPECT_TRUE(CheckComputeMemory(DefaultComputeMemory(1, {}), {}).ok());
}

TEST(MemoryRoomTest, ScratchMemoryHoldsASlabAndLeavesSomeForTables) {
  for (const auto fine : {std::optional<uint64_t>(), std::optional<uint64_t>(0),
                          std::optional<uint64_t>(256 << 10), std::optional<uint64_t>(kGiB - 1)}) {
    EXPECT_TRUE(CheckScratch(kGiB, fine).ok());
  }
  EXPECT_EQ(CheckScratch(kGiB, 1).message(),
            "--scratch=1 B: queries ask for 256 KiB of scratch memory at a time; choose at least "
            "--scratch=256KiB, or --scratch=0 for none");
  EXPECT_EQ(CheckScratch(kGiB, (256 << 10) - 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CheckScratch(kGiB, kGiB).message()), HasSubstr("leaves nothing for tables"));
}

TEST(MemoryRoomTest, TheDefaultSuitsTheHost) {
  EXPECT_EQ(DefaultMemory(2, Host(4 * kGiB)), 640 * kMiB);
  EXPECT_EQ(DefaultMemory(2, Host(16 * kGiB)), 2688 * kMiB);
  EXPECT_EQ(DefaultMemory(2, Host(256 * kGiB)), 4 * kGiB);
  EXPECT_EQ(DefaultMemory(64, Host(kGiB)), 64 * kMiB);
  EXPECT_EQ(DefaultMemory(2, {}), kGiB);
}

}  // namespace
}  // namespace nam
