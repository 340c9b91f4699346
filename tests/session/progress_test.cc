#include <gtest/gtest.h>

#include <vector>

#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {
namespace {

/// A join without keys compares many pairs of few rows, so its rows are claimed piece by piece.
TEST(ProgressTest, OfANestedLoopMoves) {
  InProcessCluster cluster({});
  SmallTable pairs{{"pairs", {{"id", Type::Integer()}}, {{"id", 64}}, ""}, {}};
  for (int i = 0; i < 60'000; ++i) pairs.rows.push_back({Value::Integer(i)});
  ASSERT_TRUE(Load(cluster.attachment(), pairs, {.block_bytes = 8192}).ok());
  std::vector<session::QueryProgress> told;
  cluster.session().OnProgress([&](const session::QueryProgress& progress) {
    if (told.size() == 4) return;  // the end takes as long as it takes
    told.push_back(progress);
    if (told.size() == 4) cluster.session().Cancel();
  });
  const auto result = cluster.session().Execute(
      "select count(*) from pairs a, pairs b where a.id + b.id * 7 = 3 and a.id <> b.id");
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status() << ": it is over before it tells";
  ASSERT_EQ(told.size(), 4u);
  uint64_t before = 0;
  for (const session::QueryProgress& progress : told) {
    EXPECT_EQ(progress.rows, 60'000u);
    EXPECT_GE(progress.rows_done, before);
    before = progress.rows_done;
  }
  EXPECT_GT(before, 0u) << "what has been claimed counts";
  EXPECT_LT(before, 60'000u);
}

}  // namespace
}  // namespace nam::testing
