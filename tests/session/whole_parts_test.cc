#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {
namespace {

/// Groups that lie by parts in scratch memory, as build sides that every server reads as a whole.
class WholePartsTest : public ::testing::Test {
 protected:
  static constexpr int kOrders = 120'000, kLinesOfAnOrder = 3;

  WholePartsTest() : cluster_({.compute_servers = 2, .always_by_parts = true}) {
    SmallTable orders{
        {"orders", {{"o_key", Type::Integer()}, {"o_day", Type::Integer()}}, {{"o_key", 8}}, ""}, {}};
    SmallTable lines{{"lines", {{"l_key", Type::Integer()}, {"l_sum", Type::Integer()}}, {{"l_key", 8}}, ""},
                     {}};
    for (int o = 0; o < kOrders; ++o) {
      orders.rows.push_back({Value::Integer(o), Value::Integer(o % 7)});
      for (int l = 0; l < kLinesOfAnOrder; ++l)
        lines.rows.push_back({Value::Integer(o), Value::Integer(o % 1000 + l)});
    }
    for (const SmallTable* table : {&orders, &lines})
      EXPECT_TRUE(Load(cluster_.attachment(), *table, {.block_bytes = 8192}).ok());
    Run("set nam.aggregate = rdma");
  }

  TextRows Run(const std::string& sql) {
    auto result = cluster_.session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? ToText(*result) : TextRows();
  }
  /// Whether a build side of the query is made of parts by a further stage.
  bool BuildsOverParts(const std::string& sql) {
    bool parts = false;
    for (const std::vector<std::string>& line : Run("explain analyze " + sql)) {
      if (parts && absl::StrContains(line[0], "build on")) return true;
      if (absl::StrContains(line[0], "P")) parts = absl::StrContains(line[0], " parts of P");
    }
    return false;
  }

  InProcessCluster cluster_;
};

std::string GroupsOver(int sum) {
  return absl::StrCat("(select l_key from lines group by l_key having sum(l_sum) > ", sum, ")");
}

/// The groups whose sum is above 3 * 989 + 3: o_key % 1000 is in 990 … 999, of each thousand.
TEST_F(WholePartsTest, FewGroupsAreLookedUpWhereTheOtherSideIsScanned) {
  const std::string semi =
      "select count(*), sum(l_sum) from orders, lines where o_key = l_key and o_key in " +
      GroupsOver(3 * 989 + 3);
  EXPECT_TRUE(BuildsOverParts(semi));
  EXPECT_EQ(Run(semi), (TextRows{{"3600", std::to_string(120 * (3 * 9945 + 30))}}));
  const std::string anti =
      "select count(*) from orders, lines where o_key = l_key and not exists (select 1 "
      "from " +
      GroupsOver(3 * 989 + 3) + " g where g.l_key = o_key)";
  EXPECT_TRUE(BuildsOverParts(anti));
  EXPECT_EQ(Run(anti), (TextRows{{"356400"}}));
  const std::string inner =
      "select count(*), sum(s) from orders, (select l_key, sum(l_sum) as s from lines group by l_key having "
      "sum(l_sum) > 2970) g where g.l_key = o_key";
  EXPECT_TRUE(BuildsOverParts(inner));
  EXPECT_EQ(Run(inner), (TextRows{{"1200", std::to_string(120 * (3 * 9945 + 30))}}));
}

TEST_F(WholePartsTest, NoGroupIsLeft) {
  EXPECT_EQ(Run("select count(*) from orders, lines where o_key = l_key and o_key in " + GroupsOver(5000)),
            (TextRows{{"0"}}));
}

/// All groups are left, which the estimate of HAVING does not expect: they exceed what a server may build.
TEST_F(WholePartsTest, MoreGroupsThanAServerMayBuildAreJoinedByParts) {
  Run("set nam.build_mib_max = 1");
  const std::string semi =
      "select count(*) from orders, lines where o_key = l_key and o_key in " + GroupsOver(-1);
  EXPECT_EQ(Run(semi), (TextRows{{"360000"}}));
  std::string plan;
  for (const std::vector<std::string>& line : Run("explain analyze " + semi))
    absl::StrAppend(&plan, line[0], "\n");
  EXPECT_TRUE(absl::StrContains(plan, "Planned anew: a build side was larger")) << plan;
}

}  // namespace
}  // namespace nam::testing
