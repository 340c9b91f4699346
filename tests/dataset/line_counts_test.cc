#include "dataset/line_counts.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace nam::dataset {
namespace {

TEST(LineCountsTest, LineCountsFromAnywhere) {
  LineCounts all(0);
  std::vector<uint32_t> counts;
  for (int i = 0; i < 1000; ++i) counts.push_back(all.Next());
  for (int first : {0, 1, 2, 63, 999}) {
    LineCounts some(first);
    for (int i = first; i < 1000; ++i) ASSERT_EQ(some.Next(), counts[i]) << first << " " << i;
  }
  for (int orders : {0, 1, 3, 4, 5, 18}) {
    EXPECT_EQ(CountLines(7, orders), std::accumulate(counts.begin() + 7, counts.begin() + 7 + orders, 0u));
  }
}

}  // namespace
}  // namespace nam::dataset
