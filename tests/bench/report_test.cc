#include "bench/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace nam::bench {
namespace {

TEST(ReportTest, ATableHasAColumnForEveryKey) {
  const auto table = TableOf({{{"operation", "read"}, {"bytes", 8}, {"p50_us", 1.25}},
                              {{"operation", "send"}, {"over_limit", 0.5}}});
  std::vector<std::string> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  EXPECT_EQ(names, (std::vector<std::string>{"operation", "bytes", "p50_us", "over_limit"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][2].ToString(), "1.250");
  EXPECT_TRUE(table.rows[0][3].null);
  EXPECT_TRUE(table.rows[1][1].null);
}

TEST(ReportTest, MedianOfOddAndEvenNumbersOfValues) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 7}), 6);
}

TEST(ReportTest, GeometricMean) {
  EXPECT_DOUBLE_EQ(*GeometricMean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(*GeometricMean({1, 10, 100}), 10);
  EXPECT_FALSE(GeometricMean({}).has_value());
  EXPECT_TRUE(std::isfinite(*GeometricMean({0, 1})));
}

}  // namespace
}  // namespace nam::bench
