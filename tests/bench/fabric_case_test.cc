#include "bench/fabric_case.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/fabric_lane.h"

namespace nam::bench {
namespace {

TEST(FabricCaseTest, OperationsAreFoundByTheirNames) {
  for (const Operation operation : kOperations) EXPECT_EQ(OperationOf(Name(operation)), operation);
}

TEST(FabricCaseTest, AGridIsSortedAndRefusedOutOfRange) {
  const auto grid = ParseGrid({"send", "read"}, {"64KiB", "8", "8"}, {16, 1}, {1});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->operations, (std::vector{Operation::kRead, Operation::kSend}));
  EXPECT_EQ(grid->sizes, (std::vector<uint32_t>{8, 65536}));
  EXPECT_EQ(grid->in_flight, (std::vector<uint32_t>{1, 16}));
  for (const std::string size : {"0", "7", "12", "2MiB", "many"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseGrid({"read"}, {size}, {1}, {1}).status())) << size;
}

TEST(FabricCaseTest, CasesThatCannotBeAreLeftOut) {
  const auto grid = ParseGrid({"read", "cas", "send"}, {"8", "64KiB", "1MiB"}, {1, 16}, {1, 2});
  ASSERT_TRUE(grid.ok()) << grid.status();
  size_t reads = 0, atomics = 0, sends = 0;
  for (const FabricCaseGroup& group : Groups(*grid)) {
    ASSERT_EQ(group.size(), 2u) << "one case for each number in flight";
    for (const FabricCase& each : group) {
      EXPECT_LE(each.bytes, BytesMax(each.operation));
      EXPECT_EQ(each.bytes, group.front().bytes);
      EXPECT_EQ(each.threads, group.front().threads);
      reads += each.operation == Operation::kRead;
      atomics += each.operation == Operation::kCompareAndSwap;
      sends += each.operation == Operation::kSend;
    }
  }
  EXPECT_EQ(reads, 12u);
  EXPECT_EQ(atomics, 4u) << "of 8 bytes only";
  EXPECT_EQ(sends, 8u) << "at most 64 KiB";
}

TEST(ScatterTest, PlacesLieInTheSpanAndVisitMostOfIt) {
  Scatter scatter(1 << 20, 2048);
  std::set<uint64_t> places;
  for (int i = 0; i < 4096; ++i) {
    const uint64_t at = scatter.Next();
    ASSERT_EQ(at % 2048, 0u);
    ASSERT_LE(at + 2048, uint64_t{1} << 20);
    places.insert(at);
  }
  EXPECT_GT(places.size(), 500u) << "of 512";
}

}  // namespace
}  // namespace nam::bench
