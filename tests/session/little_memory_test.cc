// Queries over more rows than the session and its servers have memory for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {
namespace {

class LittleMemoryTest : public ::testing::Test {
 protected:
  LittleMemoryTest() : cluster_({.compute_servers = 2}) {
    for (const char* const setting : {"set nam.build_mib_max = 1", "set nam.result_mib_max = 1"})
      EXPECT_TRUE(cluster_.session().Execute(setting).ok());
  }
  /// The memory that memory servers hold once it is `wanted`, or after a minute: memory that a peer may
  /// still be writing to is freed a little later.
  uint64_t UsedAtLast(uint64_t wanted) {
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (cluster_.UsedBytes() != wanted && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
    return cluster_.UsedBytes();
  }

  InProcessCluster cluster_;
};

/// Each thread needs pages of its own, which together exceed the least result.
TEST(ManyThreadsTest, TheLeastResultHasRoomForAllThreads) {
  constexpr int64_t kRows = 20'000;
  InProcessCluster cluster({.compute_servers = 2, .threads = 24});
  SmallTable table{{"big", {{"k", Type::Integer()}, {"t", Type::String(80)}}, {{"k", 64}}, ""}, {}};
  for (int64_t k = 0; k < kRows; ++k)
    table.rows.push_back({Value::Integer(k), Value::String(absl::StrCat(std::string(70, 'x'), k))});
  ASSERT_TRUE(testing::Load(cluster.attachment(), table, {.block_bytes = 2048}).ok());
  ASSERT_TRUE(cluster.session().Execute("set nam.result_mib_max = 1").ok());
  for (const auto& [query, expected] : std::vector<std::pair<std::string, std::string>>{
           {"select count(*) from (select t || '.' as u, count(*) as n from big group by 1) q", "20000"},
           {"select count(*) from (select k % 10 as u, max(t) as n from big group by 1) q", "10"},

           {"select count(*) from (select t from big order by t limit 100) q", "100"},
           {"select count(distinct t) from big", "20000"},
           {"select count(*) from big a join big b on a.t = b.t", "20000"}}) {
    const auto result = cluster.session().Execute(query);
    ASSERT_TRUE(result.ok()) << query << result.status();
    EXPECT_EQ(result->rows[0][0].ToString(), expected) << query;
  }
  struct Counter final : session::RowReceiver {
    absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
    absl::Status Add(const session::ResultBatch& batch) override {
      rows += batch.rows();
      return absl::OkStatus();
    }
    uint64_t rows = 0;
  };
  for (const char* const query : {"select * from big", "select * from big order by t"}) {
    Counter counter;
    const auto result = cluster.session().Execute(query, counter);
    ASSERT_TRUE(result.ok()) << query << result.status();
    EXPECT_EQ(counter.rows, static_cast<uint64_t>(kRows)) << query;
  }
}

/// Keys, and the texts that aggregates keep, take far more memory than their number suggests. Those of
/// columns are codes until the groups leave.
TEST_F(LittleMemoryTest, GroupsOfLongTextsGoByParts) {
  constexpr int64_t kRows = 48'000, kHalf = kRows / 2, kBytes = 1'000;
  SmallTable table{
      {"big",
       {{"k", Type::Integer()}, {"t", Type::String(kBytes + 10)}, {"u", Type::String(kBytes + 10)}},
       {{"k", 8}},
       ""},
      {}};
  for (int64_t k = 0; k < kRows; ++k) {
    table.rows.push_back({Value::Integer(k), Value::String(absl::StrCat(k, std::string(kBytes, 'x'))),
                          Value::String(absl::StrCat(k % kHalf, std::string(kBytes, 'y')))});
  }
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 65536}).ok());
  struct Query {
    int mib;
    int64_t groups;
    std::string text;
  };
  // Results of expressions over 1,024 rows for each thread are in the budget, too.
  for (const Query& query : std::vector<Query>{
           {16, kHalf,
            absl::StrCat("(select t, u, count(*) as n from big where k < ", kHalf, " group by t, u) q")},
           {24, kRows, "(select t || 'y' as v, count(*) as n from big group by 1) q"},
           {24, kRows,
            "(select k + 0 as v, max(t || 'y') as m, count(*) as n from big group by 1) q where m > ''"}}) {
    SCOPED_TRACE(query.text);
    ASSERT_TRUE(cluster_.session().Execute(absl::StrCat("set nam.result_mib_max = ", query.mib)).ok());
    const auto result = cluster_.session().Execute("select count(*), sum(n) from " + query.text);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), (TextRows{{absl::StrCat(query.groups), absl::StrCat(query.groups)}}));
  }
}

/// Values of several arguments, which are many together, and beside them aggregates that ignore repeats.
TEST_F(LittleMemoryTest, DistinctValuesOfSeveralArgumentsGoByParts) {
  constexpr int64_t kRows = 60'000;
  SmallTable table{{"big",
                    {{"k", Type::Integer()},
                     {"g", Type::Integer(), true},
                     {"a", Type::Integer(), true},
                     {"b", Type::Integer(), true},
                     {"t", Type::String(12), true}},
                    {{"k", 8}},
                    ""},
                   {}};
  struct Group {
    std::set<int64_t> a, b;
    std::set<std::string> t;
    int64_t most = -1;
  };
  std::map<int64_t, Group> groups;  // -1: of all
  const auto null = Value::Null(Type::Integer());
  for (int64_t k = 0; k < kRows; ++k) {
    const int64_t g = k % 11, a = k / 2, b = k * 7919 % kRows;
    const std::string t = absl::StrCat("t", k % 20'000);
    const bool no_a = k % 5 == 0 || g == 3, no_b = k % 3 == 0 || g == 3, no_t = k % 7 == 0 || g == 3;
    table.rows.push_back({Value::Integer(k), g == 10 ? null : Value::Integer(g),
                          no_a ? null : Value::Integer(a), no_b ? null : Value::Integer(b),
                          no_t ? Value::Null(Type::String(12)) : Value::String(t)});
    for (const int64_t of : {g, int64_t{-1}}) {
      Group& group = groups[of];
      if (!no_a) group.a.insert(a);
      if (!no_b) group.b.insert(b);
      if (!no_t) group.t.insert(t);
      group.most = std::max(group.most, k);
    }
  }
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 16384}).ok());
  TextRows expected, of_all;
  for (const auto& [g, group] : groups) {
    std::vector<std::string> row;
    if (g >= 0) row.push_back(g == 10 ? "NULL" : absl::StrCat(g));
    const int64_t sum = std::accumulate(group.b.begin(), group.b.end(), int64_t{0});
    row.insert(row.end(), {absl::StrCat(group.a.size()), group.b.empty() ? "NULL" : absl::StrCat(sum),
                           absl::StrCat(group.t.size()), absl::StrCat(group.most),
                           group.a.empty() ? "NULL" : absl::StrCat(*group.a.rbegin())});
    (g >= 0 ? expected : of_all).push_back(std::move(row));
  }
  const std::string calls = "count(distinct a), sum(distinct b), count(distinct t), max(k), max(a) from big";
  for (const auto& [query, rows] :
       {std::pair(absl::StrCat("select g, ", calls, " group by g order by g"), expected),
        std::pair(absl::StrCat("select ", calls), of_all)}) {
    SCOPED_TRACE(query);
    const auto result = cluster_.session().Execute(query);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), rows);
  }
}

/// The rows that two consumers read go to scratch memory: the session has too little memory for them.
TEST_F(LittleMemoryTest, CommonTablesBeyondTheSessionsMemoryAreReadByParts) {
  constexpr int64_t kRows = 200'000;
  SmallTable table{
      {"big", {{"k", Type::Integer()}, {"p", Type::Integer()}, {"v", Type::Integer(), true}}, {{"k", 8}}, ""},
      {}};
  // Every tenth v is NULL; each p that is below kRows is some k.
  const auto p_of = [](int64_t k) { return (k * 7 + 3) % (2 * kRows); };
  int64_t pairs = 0, above = 0, with_v = 0, last_digits = 0;
  for (int64_t k = 0; k < kRows; ++k) {
    const int64_t p = p_of(k);
    table.rows.push_back({Value::Integer(k), Value::Integer(p),
                          k % 10 == 0 ? Value::Null(Type::Integer()) : Value::Integer(k % 1000)});
    pairs += p < kRows;
    above += p < kRows && k % 10 != 0 && p % 10 != 0 && k % 1000 > p % 1000;
    with_v += k % 10 != 0;
    last_digits += p < kRows ? p % 10 : 0;
  }
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 16384}).ok());
  session::Session& session = cluster_.session();
  const uint64_t used = UsedAtLast(cluster_.UsedBytes());
  const std::string with = "with w as (select k, p, v from big) ";
  const std::vector<std::pair<std::string, TextRows>> queries = {
      {"select count(*) from w a join w b on a.p = b.k where a.v > b.v", {{absl::StrCat(above)}}},
      {"select count(*), count(b.k), sum(b.k % 10) from w a left join w b on a.p = b.k",
       {{absl::StrCat(kRows), absl::StrCat(pairs), absl::StrCat(last_digits)}}},
      {"select count(*) from w where p not in (select k from w where v is not null or k >= 0)",
       {{absl::StrCat(kRows - pairs)}}},
      {"select count(*) from w a join (select v, count(*) as n from w group by v) g on a.v = g.v",
       {{absl::StrCat(with_v)}}},
      {"select (select count(v) from w), (select max(p) from w), count(*) from w a where exists (select * "
       "from w b where a.p = b.k)",
       {{absl::StrCat(with_v), absl::StrCat(2 * kRows - 1), absl::StrCat(pairs)}}}};
  for (const auto& [query, expected] : queries) {
    SCOPED_TRACE(query);
    const auto result = session.Execute(with + query);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), expected);
    EXPECT_EQ(UsedAtLast(used), used) << "scratch memory is left behind";
  }
  ASSERT_TRUE(session.Execute("set nam.join = pipelined").ok());
  EXPECT_FALSE(session.Execute(with + queries[0].first).ok()) << "the session has the memory";
}

}  // namespace
}  // namespace nam::testing
