#include <gtest/gtest.h>

#include <iostream>

#include "tests/cluster/tested_cluster.h"
#include "tests/random_joins/random_cases.h"

namespace nam::testing {
namespace {

/// Some cases of one seed. Many of any seed: ./run test joins.
class RandomJoinsTest : public ::testing::TestWithParam<fabric::Kind> {};

TEST_P(RandomJoinsTest, AgreeWithSqlite) {
  constexpr uint64_t kCases = 120;
  const RandomCasesResult result =
      RunRandomCases({.seed = 17, .cases = kCases, .cases_of_a_set = 30, .fabrics = {GetParam()}}, std::cerr);
  std::cerr << result.Summary() << "\n";
  EXPECT_EQ(result.failures, 0u);
  EXPECT_EQ(result.cases, kCases);
  // A run that compares nothing finds nothing.
  EXPECT_LT(result.empty, kCases / 4);
  EXPECT_LT(result.not_understood, kCases / 20);
  uint64_t refused = 0;
  for (const auto& [state, cases] : result.refused) refused += cases;
  EXPECT_LT(refused, kCases / 20);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, RandomJoinsTest, ::testing::ValuesIn(FabricsHere()),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::testing
