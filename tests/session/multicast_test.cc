#include <gtest/gtest.h>

#include <map>
#include <string>

#include "dataset/load.h"
#include "ssb/generator.h"
#include "ssb/queries.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {
namespace {

/// SSB on three compute servers; build sides by READ and by multicast must give the same answers.
class MulticastQueryTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  static constexpr uint32_t kFanOut = 2;

  void SetUp() override {
    cluster_ = std::make_unique<InProcessCluster>(InProcessCluster::Options{
        .fabric = GetParam(), .memory_servers = 2, .compute_servers = 3, .threads = 2});
    const ssb::Generator generator({.scale_factor = 0.01});
    for (ssb::Table table : ssb::kAllTables) {
      auto loader = partitioner::BeginLoad(cluster_->attachment(), ssb::Schema(table, kFanOut),
                                           {.block_bytes = 4096, .pointer_group = 4});
      ASSERT_TRUE(loader.ok()) << loader.status();
      const auto rows = dataset::LoadGenerated(
          cluster_->attachment().fabric(), generator, table,
          [&](const partitioner::ColumnBatch& batch) { return (*loader)->Append(batch); }, {.threads = 1});
      ASSERT_TRUE(rows.ok()) << rows.status();
      const auto committed = (*loader)->Commit();
      ASSERT_TRUE(committed.ok()) << committed.status();
    }
    Set("in_place", "off");
  }
  void Set(const std::string& name, const std::string& value) {
    const auto result = cluster_->session().Execute("set nam." + name + " = " + value);
    ASSERT_TRUE(result.ok()) << result.status();
  }
  TextRows Rows(const std::string& sql) {
    auto result = cluster_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? Sorted(ToText(*result)) : TextRows();
  }
  /// The report's lines about the build of `table`.
  std::string BuildReport(const std::string& sql, const std::string& table) {
    auto result = cluster_->session().Execute("explain analyze " + sql);
    EXPECT_TRUE(result.ok()) << result.status();
    std::string lines;
    bool inside = false;
    for (const auto& row : ToText(*result)) {
      if (row[0].starts_with("  P") || row[0].starts_with("  Assignment"))
        inside = row[0].find("scan " + table) != std::string::npos;
      // Lines that go on are joined again.
      const bool goes_on = row[0].starts_with("            ") && !lines.empty();
      if (inside && goes_on) lines.back() = ' ';
      if (inside) lines += (goes_on ? row[0].substr(12) : row[0]) + "\n";
    }
    return lines;
  }
  static size_t Count(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  std::unique_ptr<InProcessCluster> cluster_;
};

TEST_P(MulticastQueryTest, TheBenchmarksAnswersAreTheSame) {
  for (int servers : {1, 2, 3}) {
    Set("compute_servers", std::to_string(servers));
    for (const ssb::Query& query : ssb::Queries()) {
      Set("multicast", "off");
      const TextRows read = Rows(std::string(query.sql));
      Set("multicast", "on");
      EXPECT_EQ(Rows(std::string(query.sql)), read) << query.id << " on " << servers;
    }
  }
}

TEST_P(MulticastQueryTest, ExplainAnalyzeTellsHowEachBuildSideCame) {
  const std::string sql(ssb::FindQuery("Q4.1")->sql);
  Set("multicast", "on");
  // Lineorder is split by the keys of the other dimensions, so date goes to all servers. Where a thread does
  // not run for some milliseconds, its datagrams are late, and all of its few blocks may be READ.
  std::string date = BuildReport(sql, "date");
  for (int again = 0; again < 20 && Count(date, " 0 by multicast, ") > 0; ++again)
    date = BuildReport(sql, "date");
  EXPECT_EQ(Count(date, "\n      multicast\n"), 1u) << date;
  EXPECT_EQ(Count(date, " by multicast, "), 3u) << date;
  EXPECT_EQ(Count(date, " repaired by READ, "), 3u) << date;
  EXPECT_EQ(Count(date, " 0 by multicast, "), 0u) << date;
  Set("multicast", "off");
  EXPECT_NE(BuildReport(sql, "date").find("READ (nam.multicast is off)"), std::string::npos);
  Set("multicast", "auto");
  EXPECT_NE(BuildReport(sql, "date").find("READ (estimated at 0.0"), std::string::npos);
  Set("multicast", "on");
  Set("compute_servers", "1");
  EXPECT_NE(BuildReport(sql, "date").find("READ (one compute server needs it)"), std::string::npos);
}

/// The stages' pipelines are numbered consecutively, and each stage's first ones build its joins.
TEST_P(MulticastQueryTest, BuildSidesOfLaterStagesComeByMulticast) {
  const std::string sql =
      "select a.y, count(*), sum(a.r) from (select d_year as y, lo_custkey as k, lo_revenue as r from "
      "lineorder "
      "join date on lo_orderdate = d_datekey where d_year > 1993) a join (select distinct c_custkey as k, "
      "c_city "
      "as c from customer where c_region = 'ASIA') b on a.k = b.k join (select p_partkey % 7 as y, count(*) "
      "as n "
      "from part group by 1) p on a.y % 7 = p.y group by a.y";
  Set("multicast", "off");
  const TextRows read = Rows(sql);
  EXPECT_FALSE(read.empty());
  for (const char* const groups : {"dist", "rdma"}) {
    Set("aggregate", groups);
    Set("multicast", "on");
    EXPECT_EQ(Rows(sql), read) << groups;
    const std::string date = BuildReport(sql, "date");
    EXPECT_EQ(Count(date, "\n      multicast\n"), 1u) << date;
    EXPECT_GT(Count(date, " by multicast, "), 0u) << date;
  }
}

TEST_P(MulticastQueryTest, ABuildSideBesideOneThatIsNoTableComesByMulticast) {
  const std::string sql =
      "select d_year, count(*), sum(lo_revenue) from lineorder, date, (values (1993), (1995)) as v(year) "
      "where lo_orderdate = d_datekey and d_year = v.year group by d_year";
  const std::string left =
      "select p_brand1, d_year, count(*) from lineorder join date on lo_orderdate = d_datekey "
      "left join part on lo_partkey = p_partkey and p_mfgr = 'MFGR#2' where d_year < 1995 group by 1, 2";
  for (const std::string& query : {sql, left}) {
    Set("multicast", "off");
    const TextRows read = Rows(query);
    Set("multicast", "on");
    EXPECT_EQ(Rows(query), read) << query;
  }
  EXPECT_EQ(Count(BuildReport(left, "date"), "\n      multicast\n"), 1u) << BuildReport(left, "date");
}

TEST_P(MulticastQueryTest, SessionsHaveGroupsOfTheirOwn) {
  const std::string sql(ssb::FindQuery("Q3.1")->sql);
  Set("multicast", "off");
  const TextRows expected = Rows(sql);
  auto other = cluster_->NewSession();
  for (session::Session* session : {other.get(), &cluster_->session()}) {
    ASSERT_TRUE(session->Execute("set nam.multicast = on").ok());
    ASSERT_TRUE(session->Execute("set nam.in_place = off").ok());
  }
  std::vector<TextRows> theirs(5);
  {
    auto thread = cluster_->attachment().fabric().StartThread("other", [&] {
      for (TextRows& rows : theirs) {
        auto result = other->Execute(sql);
        EXPECT_TRUE(result.ok()) << result.status();
        if (result.ok()) rows = Sorted(ToText(*result));
      }
    });
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Rows(sql), expected);
  }
  for (const TextRows& rows : theirs) EXPECT_EQ(rows, expected);
}

TEST_P(MulticastQueryTest, AMemoryServerThatIsLostIsNamed) {
  const std::string sql(ssb::FindQuery("Q4.1")->sql);
  Set("multicast", "on");
  ASSERT_FALSE(Rows(sql).empty());
  cluster_->memory()[1].reset();
  const auto result = cluster_->session().Execute(sql);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("memory server"), absl::string_view::npos) << result.status();
}

INSTANTIATE_TEST_SUITE_P(Fabrics, MulticastQueryTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::testing
