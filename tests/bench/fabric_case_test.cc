#include "bench/fabric_case.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/perftest_bound.h"
#include "bench/scatter.h"

namespace nam::bench {
namespace {

TEST(FabricCaseTest, OperationsAreFoundByTheirNames) {
  for (const Operation operation : kOperations) EXPECT_EQ(*ParseOperation(Name(operation)), operation);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseOperation("reed").status()));
}

TEST(FabricCaseTest, AGridIsSortedAndRefusedOutOfRange) {
  const auto grid = ParseGrid({"send", "read"}, {"64KiB", "8", "8"}, {16, 1}, {1});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->operations, (std::vector{Operation::kRead, Operation::kSend}));
  EXPECT_EQ(grid->sizes, (std::vector<uint32_t>{8, 65536}));
  EXPECT_EQ(grid->in_flight, (std::vector<uint32_t>{1, 16}));
  for (const std::string size : {"0", "7", "12", "2MiB", "many"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseGrid({"read"}, {size}, {1}, {1}).status())) << size;
  EXPECT_FALSE(ParseGrid({"read"}, {"8"}, {}, {1}).ok());
  EXPECT_FALSE(ParseGrid({"read"}, {"8"}, {1}, {}).ok());
}

TEST(FabricCaseTest, CasesThatCannotBeAreLeftOut) {
  const auto grid = ParseGrid({"read", "cas", "send", "multicast"}, {"8", "64KiB", "1MiB"}, {1, 16}, {1, 2});
  ASSERT_TRUE(grid.ok()) << grid.status();
  size_t reads = 0, atomics = 0, sends = 0, multicasts = 0;
  for (const FabricCaseGroup& group : Groups(*grid)) {
    ASSERT_EQ(group.size(), 2u) << "one case for each number in flight";
    for (const FabricCase& each : group) {
      EXPECT_LE(each.bytes, BytesMax(each.operation));
      EXPECT_EQ(each.bytes, group.front().bytes);
      EXPECT_EQ(each.threads, group.front().threads);
      reads += each.operation == Operation::kRead;
      atomics += each.operation == Operation::kCompareAndSwap;
      sends += each.operation == Operation::kSend;
      multicasts += each.operation == Operation::kMulticast;
    }
  }
  EXPECT_EQ(reads, 12u);
  EXPECT_EQ(atomics, 4u) << "of 8 bytes only";
  EXPECT_EQ(sends, 8u) << "at most 64 KiB";
  EXPECT_EQ(multicasts, 2u) << "at most 4 KiB, one thread";
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

TEST(PerftestTest, TheMessageRateIsFound) {
  const std::string output =
      " local address: LID 0000 QPN 0x0011 PSN 0x2\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      "Conflicting CPU frequency values detected: 2600.000000 != 2500.000000. CPU Frequency is not max.\n"
      " 65536      1000             1893.11            1822.47\t\t   0.029159\n"
      "---------------------------------------------------------------------------------------\n";
  const auto rate = ParsePerftest(output);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_NEAR(*rate, 29'159, 1);
  EXPECT_FALSE(ParsePerftest("").ok());
  EXPECT_FALSE(ParsePerftest("Couldn't connect to 127.0.0.1:18515\n").ok());
}

TEST(PerftestTest, DevicesAreNamedAsOurs) {
  EXPECT_TRUE(PerftestDevice("").empty());
  EXPECT_EQ(PerftestDevice("rxe1"), (std::vector<std::string>{"-d", "rxe1", "-x", "1"}));
  EXPECT_EQ(PerftestDevice("mlx5_0:2,gid=3"),
            (std::vector<std::string>{"-d", "mlx5_0", "-i", "2", "-x", "3"}));
}

}  // namespace
}  // namespace nam::bench
