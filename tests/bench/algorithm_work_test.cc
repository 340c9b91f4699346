// Algorithms, as settings, take turns on a cluster in the test's process.
#include "bench/algorithm_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/algorithm_case.h"
#include "bench/algorithm_command.h"
#include "tests/cluster/in_process_cluster.h"

namespace nam::bench {
namespace {

using testing::InProcessCluster;

const Algorithm kByParts = {"by_parts", {{"nam.\"join\"", "rrj"}, {"nam.aggregate", "rdma"}}};
const Algorithm kWhole = {"whole", {{"nam.\"join\"", "pipelined"}, {"nam.aggregate", "dist"}}};
const Algorithm kNoSetting = {"no_setting", {{"nam.\"join_order\"", "rrj"}}};

std::vector<std::string> Names(const CaseFigures& with) {
  std::vector<std::string> names;
  for (const ContenderTimes& times : with.contenders) names.push_back(times.name);
  return names;
}

std::vector<AlgorithmCase> JoinCases(const std::vector<JoinCase>& with) {
  std::vector<AlgorithmCase> cases;
  for (const JoinCase& each : with) cases.push_back(CaseOf(each, /*seed=*/1, /*threads=*/2));
  return cases;
}

std::vector<AlgorithmCase> GroupCases(const std::vector<AggregateCase>& with) {
  std::vector<AlgorithmCase> cases;
  for (const AggregateCase& each : with) cases.push_back(CaseOf(each, /*seed=*/1, /*threads=*/2));
  return cases;
}

TEST(AlgorithmWork, JoinsGiveTheExpectedAnswersAndLeaveNoTables) {
  InProcessCluster cluster({});
  bench::Run run("test");
  AlgorithmWork work(run, JoinCases({{100'000, 1, 0}, {70'000, 0.25, 0}, {50'000, 0.5, 1}, {1, 1, 0}}),
                     {.algorithms = {kByParts, kWhole}, .repeat = 2, .query_mib_max = 5000});
  const absl::Status status = work.RunOn(cluster.attachment());
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(work.figures().size(), 4u);
  for (const CaseFigures& with : work.figures()) {
    EXPECT_EQ(Names(with), (std::vector<std::string>{"by_parts", "whole"}));
    EXPECT_TRUE(with.equal()) << with.title;
    for (const ContenderTimes& times : with.contenders) EXPECT_EQ(times.times_ms.size(), 2u);
  }
  EXPECT_TRUE(work.skipped().empty());
  for (const char* table : {"r", "s"})
    EXPECT_FALSE(cluster.session().Execute(std::string("SELECT count(*) FROM ") + table).ok()) << table;
}

TEST(AlgorithmWork, GroupsGiveTheExpectedAnswers) {
  InProcessCluster cluster({});
  bench::Run run("test");
  AlgorithmWork work(run, GroupCases({{50'000, 1}, {50'000, 1024}, {50'000, 30'000}, {65'536, 65'536}}),
                     {.algorithms = {kByParts, kWhole}, .repeat = 1});
  const absl::Status status = work.RunOn(cluster.attachment());
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(work.figures().size(), 4u);
  for (const CaseFigures& with : work.figures()) {
    EXPECT_EQ(Names(with), (std::vector<std::string>{"by_parts", "whole"}));
    EXPECT_TRUE(with.equal()) << with.title;
  }
}

TEST(AlgorithmWork, NothingRunsInPlaceOfWhatIsRefused) {
  InProcessCluster cluster({});
  bench::Run run("test");
  AlgorithmWork work(run, GroupCases({{1000, 10}}), {.algorithms = {kWhole, kNoSetting}});
  const absl::Status status = work.RunOn(cluster.attachment());
  EXPECT_NE(status.message().find("no_setting: unrecognized configuration parameter \"nam.join_order\""),
            std::string::npos)
      << status;
  EXPECT_TRUE(work.figures().empty());
}

TEST(AlgorithmWork, DifferencesAreSeen) {
  InProcessCluster cluster({});
  bench::Run run("test");
  std::vector<AlgorithmCase> cases = JoinCases({{1000, 1, 0}});
  cases[0].make = [make = cases[0].make] {
    CaseData data = make();
    ++data.expected[0][0].number;
    return data;
  };
  AlgorithmWork work(run, cases, {.algorithms = {kWhole}, .repeat = 1, .threads = 1});
  ASSERT_TRUE(work.RunOn(cluster.attachment()).ok());
  ASSERT_EQ(work.figures().size(), 1u);
  for (const ContenderTimes& times : work.figures()[0].contenders) EXPECT_FALSE(times.equal) << times.name;
}

TEST(AggregateCase, GroupsAreAsManyAndAsLargeAsTold) {
  for (const auto& [tuples, groups] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 1}, {10'000, 1}, {10'000, 7}, {65'536, 1024}, {65'536, 65'536}}) {
    const CaseData data = CaseOf(AggregateCase{tuples, groups}, /*seed=*/5, /*threads=*/3).make();
    std::map<uint32_t, uint64_t> sizes;
    __int128 sum = 0;
    for (const JoinTuple& tuple : data.tables[0].tuples) {
      ++sizes[tuple.key];
      sum += tuple.payload;
      ASSERT_LT(tuple.key, 1u << 31);
      ASSERT_LT(tuple.payload, 1u << 31);
    }
    uint64_t most = 0;
    for (const auto& [key, size] : sizes) {
      most = std::max(most, size);
      EXPECT_GE(size, tuples / groups);
    }
    EXPECT_EQ(sizes.size(), groups);
    const Rows& expected = data.expected;
    ASSERT_EQ(expected.size(), 1u);
    EXPECT_TRUE(expected[0][0].number == groups && expected[0][1].number == sum &&
                expected[0][2].number == most);
  }
}

TEST(AggregateCase, DoesNotDependOnThreads) {
  std::vector<std::vector<uint32_t>> made;
  for (const int threads : {1, 3}) {
    const CaseData data = CaseOf(AggregateCase{10'000, 100}, /*seed=*/1, threads).make();
    std::vector<uint32_t>& numbers = made.emplace_back();
    for (const JoinTuple& tuple : data.tables[0].tuples) {
      numbers.push_back(tuple.key);
      numbers.push_back(tuple.payload);
    }
  }
  EXPECT_EQ(made[0], made[1]);
}

TEST(Algorithms, AreWhatTheirNamesSay) {
  const std::vector<Algorithm> named = Named(JoinAlgorithms(), {"ghj", "auto"});
  EXPECT_EQ(NamesOf(named), (std::vector<std::string>{"ghj", "auto"}));
  EXPECT_EQ(named[0].settings, (std::vector<std::pair<std::string, std::string>>{
                                   {"nam.\"join\"", "ghj"}, {"nam.exchange", "sockets"}}));
  EXPECT_EQ(NamesOf(AggregateAlgorithms()), (std::vector<std::string>{"rdma", "dist", "auto"}));
}

TEST(MemoryNeed, IsComparedWithWhatIsLeft) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const MemoryNeed need{.table_bytes = 2 * kGiB, .scratch_bytes = 3 * kGiB, .peer_bytes = kGiB};
  const MemoryLimit host = {.name = "the host", .limit_bytes = 64 * kGiB, .available_bytes = 6 * kGiB};
  EXPECT_TRUE(CheckNeed(need, {host}).ok());
  const MemoryLimit group = {.name = "a group", .limit_bytes = 5 * kGiB, .available_bytes = 4 * kGiB};
  const absl::Status refused = CheckNeed(need, {host, group});
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  for (const char* part : {"6 GiB", "scratch 3 GiB", "a group has 4 GiB", "--tuples"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused;
}

}  // namespace
}  // namespace nam::bench
