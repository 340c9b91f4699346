#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/session/tree_query.h"

/// Queries that lack memory, and what they leave of scratch memory.
namespace nam::testing {
namespace {

using TreeQueryMemoryTest = TreeQueryByPartsTest;

TEST_F(TreeQueryMemoryTest, ScratchMemoryIsGivenBackBehindEachQuery) {
  const LogicalResults results = LogicalResults::Read("tests/sql/logical_results.txt");
  Load(results, "");
  session::Session& session = cluster_.session();
  const uint64_t used = cluster_.UsedBytes();
  const std::string query = "explain analyze select a, count(*) from t group by a";
  const auto report = session.Execute(query);
  ASSERT_TRUE(report.ok()) << report.status();
  std::string lines;
  for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
  EXPECT_NE(lines.find("claimed by compute servers"), std::string::npos) << lines;
  EXPECT_EQ(UsedAtLast(used), used) << "after a query";
  EXPECT_FALSE(session.Execute("select a, sum(1 / (a - a)) from t group by a").ok());
  EXPECT_EQ(UsedAtLast(used), used) << "after an error";
}

/// More queries than compute servers have memory for.
class CrowdedTest : public TreeQueryTest {
 protected:
  static constexpr int kQueries = 40;
  explicit CrowdedTest(uint64_t scratch_bytes = uint64_t{768} << 20)
      : TreeQueryTest({.compute_servers = 2,
                       .memory_bytes = uint64_t{1} << 30,
                       .lease_ms = 60'000,
                       .scratch_bytes = scratch_bytes,
                       .compute_memory_bytes = uint64_t{8} << 20,
                       .first_memory_bytes = uint64_t{1} << 20,
                       .always_by_parts = true}) {}

  /// Forty sessions run a query each, all at once, half of them with the least budgets. Returns how many are
  /// right; the others fail with `state`.
  int RunForty(const std::string& state) {
    constexpr int kRows = 20'000;
    SmallTable table{{"keys", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"k", 8}}, ""}, {}};
    for (int i = 0; i < kRows; ++i) table.rows.push_back({Value::Integer(i), Value::Integer(i % 10'000)});
    EXPECT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 8192}).ok());
    std::vector<std::unique_ptr<session::Session>> sessions;
    for (int q = 0; q < kQueries; ++q) {
      sessions.push_back(cluster_.NewSession());
      std::vector<std::string> statements = {"set nam.aggregate = rdma"};
      if (q % 2 == 0)
        statements.insert(statements.end(), {"set nam.result_mib_max = 1", "set nam.build_mib_max = 1"});
      // Connects to all servers: handshakes are not tested here.
      statements.emplace_back("select count(*) from keys");
      for (const std::string& statement : statements) {
        const auto result = sessions.back()->Execute(statement);
        EXPECT_TRUE(result.ok()) << statement << "\n" << result.status();
      }
    }
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int q = 0; q < kQueries; ++q) {
      threads.emplace_back([&, q] {
        const auto result = sessions[static_cast<size_t>(q)]->Execute(
            "select count(*), sum(n) from (select v, count(*) as n from keys group by v) g");
        if (result.ok()) {
          EXPECT_EQ(ToText(*result), (TextRows{{"10000", "20000"}}));
          ++right;
        } else {
          EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, state) << result.status();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // Steals that are not wanted any more end soon.
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    for (const auto& server : cluster_.compute()) {
      while (!server->load().idle() && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
      EXPECT_TRUE(server->load().idle());
    }
    return right;
  }
};

/// No query waits for another one while it holds resources.
TEST_F(CrowdedTest, FortyQueriesAtATimeAllEnd) {
  EXPECT_EQ(RunForty("none"), kQueries);
}

class CrowdedWithoutScratchTest : public CrowdedTest {
 protected:
  CrowdedWithoutScratchTest() : CrowdedTest(uint64_t{512} << 10) {}
};

TEST_F(CrowdedWithoutScratchTest, FortyQueriesAtATimeEndOrAreOutOfMemory) {
  EXPECT_LT(RunForty("53200"), kQueries);
}

/// A build side of more than four times what servers may hold of it.
TEST_F(TreeQueryMemoryTest, BuildSidesBeyondTheBudgetAreJoinedByParts) {
  constexpr int kRows = 200'000, kSmallRows = 1'000;
  SmallTable table{
      {"big", {{"k", Type::Integer()}, {"p", Type::Integer()}, {"v", Type::Integer(), true}}, {{"k", 8}}, ""},
      {}};
  for (int i = 0; i < kRows; ++i) {
    table.rows.push_back({Value::Integer(i), Value::Integer((i * 7 + 3) % (2 * kRows)),
                          i % 10 == 0 ? Value::Null(Type::Integer()) : Value::Integer(i % 1000)});
  }
  SmallTable small{{"small", {{"id", Type::Integer()}, {"n", Type::Integer()}}, {{"id", 2}}, ""}, {}};
  for (int i = 0; i < kSmallRows; ++i) small.rows.push_back({Value::Integer(i), Value::Integer(i % 7)});
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 16384}).ok());
  ASSERT_TRUE(testing::Load(cluster_.attachment(), small, {.block_bytes = 16384}).ok());
  session::Session& session = cluster_.session();
  ASSERT_TRUE(session.Execute("set nam.aggregate = auto").ok());
  const uint64_t used = cluster_.UsedBytes();
  // About half of the keys p have a partner k; each of both is there once.
  int64_t pairs = 0, with_v = 0, sum_k = 0, sum_v = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t p = (i * 7 + 3) % (2 * kRows);
    if (p >= kRows) continue;
    ++pairs;
    with_v += p % 10 != 0;
    sum_k += p;
    sum_v += p % 10 == 0 ? 0 : p % 1000;
  }
  const std::vector<std::pair<std::string, TextRows>> queries = {
      {"select count(*), sum(b.k), sum(b.v) from big a join big b on a.p = b.k",
       {{absl::StrCat(pairs), absl::StrCat(sum_k), absl::StrCat(sum_v)}}},
      {"select count(*), count(b.k), sum(b.k) from big a left join big b on a.p = b.k",
       {{absl::StrCat(kRows), absl::StrCat(pairs), absl::StrCat(sum_k)}}},
      {"select count(*), count(a.k), count(b.k) from big a full join big b on a.p = b.k",
       {{absl::StrCat(2 * kRows - pairs), absl::StrCat(kRows), absl::StrCat(kRows)}}},
      {"select count(*) from big a where exists (select * from big b where a.p = b.k)",
       {{absl::StrCat(pairs)}}},
      {"select count(*) from big a where not exists (select * from big b where a.p = b.k)",
       {{absl::StrCat(kRows - pairs)}}},
      // Facts about the whole build side are in no part of it. Some p is 10, and some 350003.
      {"select count(*) from big a where a.p = -1 or a.p in (select k from big)", {{absl::StrCat(pairs)}}},
      {"select count(*), count(m) from (select a.p in (select nullif(k, 10) from big) as m from big a) q",
       {{absl::StrCat(kRows), absl::StrCat(pairs - 1)}}},
      {"select count(*), count(m) from (select nullif(a.p, 10) in (select k from big) as m from big a) q",
       {{absl::StrCat(kRows), absl::StrCat(kRows - 1)}}},
      {"select count(*) from big a where nullif(a.p, 350003) not in (select k from big)",
       {{absl::StrCat(kRows - pairs - 1)}}},
      {"select count(*) from big a where a.p not in (select nullif(k, 10) from big)", {{"0"}}},
      {"select count(*) from big a join big b on a.p = b.k join small on b.v = id where n < 8",
       {{absl::StrCat(with_v)}}}};
  const auto execute = [&](const std::string& statement) {
    absl::StatusOr<ResultSet> result = session.Execute(statement);
    EXPECT_EQ(UsedAtLast(used), used) << "scratch memory is left behind " << statement;
    return result;
  };
  ASSERT_TRUE(session.Execute("set nam.build_mib_max = 1").ok());
  for (const auto& [query, expected] : queries) {
    SCOPED_TRACE(query);
    const auto result = execute(query);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), expected);
    const auto report = execute("explain analyze " + query);
    ASSERT_TRUE(report.ok()) << report.status();
    std::string lines;
    for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
    EXPECT_NE(lines.find(" parts of ("), std::string::npos) << lines;
  }
  // It is not known before that all rows meet these conditions.
  const std::string larger = absl::StrCat(
      "select count(*), count(b.k) from big a left join (select * from big where ",
      "k + 0 >= 0 and k + 1 > 0 and k + 2 > 0 and k + 3 > 0 and k + 4 > 0 and k + 5 > 0", ") b on a.p = b.k");
  const auto anew = execute("explain analyze " + larger);
  ASSERT_TRUE(anew.ok()) << anew.status();
  std::string report;
  for (const auto& row : anew->rows) absl::StrAppend(&report, row[0].text, "\n");
  EXPECT_NE(report.find("Planned anew: a build side was larger"), std::string::npos) << report;
  const auto counts = execute(larger);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(ToText(*counts), (TextRows{{absl::StrCat(kRows), absl::StrCat(pairs)}}));
  ASSERT_TRUE(session.Execute("set nam.join = pipelined").ok());
  const auto refused = execute(queries[1].first);
  ASSERT_FALSE(refused.ok()) << "the build sides do fit";
}

/// The build side takes more than a MiB on a server, which is not known before. One thread writes all scratch
/// memory, so that it takes the same slabs each time.
class TreeQueryBeginsAnewTest : public TreeQueryByPartsTest {
 protected:
  static constexpr int kRows = 100'000;
  TreeQueryBeginsAnewTest()
      : TreeQueryByPartsTest({.compute_servers = 1, .threads = 1, .always_by_parts = true}) {
    SmallTable table{{"big", {{"k", Type::Integer()}, {"p", Type::Integer()}}, {{"k", 8}}, ""}, {}};
    for (int i = 0; i < kRows; ++i) table.rows.push_back({Value::Integer(i), Value::Integer(i / 2)});
    EXPECT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 16384}).ok());
    EXPECT_TRUE(cluster_.session().Execute("set nam.build_mib_max = 1").ok());
  }
  std::string Report(const std::string& query) {
    const auto report = cluster_.session().Execute("explain analyze " + query);
    EXPECT_TRUE(report.ok()) << report.status();
    std::string lines;
    for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
    return lines;
  }
  static constexpr const char* kAnew = "Planned anew: a build side was larger";
  static constexpr const char* kLarge =
      "(select * from big where k + 0 >= 0 and k + 1 > 0 and k + 2 > 0 and k + 3 > 0 and k + 4 > 0 and k + 5 "
      "> 0) b";
};

TEST_F(TreeQueryBeginsAnewTest, WithoutTheScratchMemoryThatItHadWritten) {
  struct Receiver final : session::RowReceiver {
    explicit Receiver(std::function<void()> begin) : begin(std::move(begin)) {}
    absl::Status Begin(const std::vector<ResultSet::Column>&) override {
      begin();
      return absl::OkStatus();
    }
    absl::Status Add(const session::ResultBatch&) override { return absl::OkStatus(); }
    std::function<void()> begin;
  };
  const uint64_t before = UsedAtLast(cluster_.UsedBytes());
  const std::string query = absl::StrCat(
      "select count(*), count(b.k) from (select k, count(*) as n from big group by k) g left join ", kLarge,
      " on g.k = b.p");
  EXPECT_NE(Report(query).find(kAnew), std::string::npos) << Report(query);
  // The method of the join made anew, which is not chosen at first, since few rows are expected.
  ASSERT_TRUE(cluster_.session().Execute("set nam.join = rdma_ghj").ok());
  uint64_t at_once = 0, anew = 0;
  Receiver receiver([&] { at_once = cluster_.UsedBytes() - before; });
  ASSERT_TRUE(cluster_.session().Execute(query, receiver).ok());
  ASSERT_GT(at_once, uint64_t{2} << 20);
  UsedAtLast(before);
  ASSERT_TRUE(cluster_.session().Execute("set nam.join = auto").ok());
  receiver.begin = [&] { anew = UsedAtLast(before + at_once) - before; };
  const auto result = cluster_.session().Execute(query, receiver);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(anew, at_once) << "what was written at first is still there";
  EXPECT_EQ(UsedAtLast(before), before);
}

/// The build side takes nearly all memory of a server: the bounds are the servers', not those of the
/// settings.
class TreeQueryLittleMemoryTest : public TreeQueryTest {
 protected:
  TreeQueryLittleMemoryTest()
      : TreeQueryTest({.compute_servers = 2,
                       .compute_memory_bytes = uint64_t{3} << 19,
                       .first_memory_bytes = uint64_t{1} << 19}) {}
};

TEST_F(TreeQueryLittleMemoryTest, BuildSidesBeyondTheServersMemoryAreJoinedByParts) {
  constexpr int kRows = 60'000;
  SmallTable table{
      {"big",
       {{"k", Type::Integer()}, {"p", Type::Integer()}, {"v", Type::Integer()}, {"w", Type::Integer()}},
       {{"k", 8}},
       ""},
      {}};
  constexpr int64_t kHigh = int64_t{1} << 60;
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t p = (i * 7 + 3) % kRows;
    table.rows.push_back({Value::Integer(i), Value::Integer(p), Value::Integer(i % 2 * kHigh + i),
                          Value::Integer(i % 3 * kHigh)});
  }
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 16384}).ok());
  ASSERT_TRUE(cluster_.session().Execute("set nam.aggregate = rdma").ok());
  const std::string query =
      "select count(*), count(m), max(n) from (select a.k as g, max(b.v) as m, max(b.w) as n from big a "
      "left join big b on a.p = b.k group by a.k) q";
  const auto report = cluster_.session().Execute("explain analyze " + query);
  ASSERT_TRUE(report.ok()) << report.status();
  std::string lines;
  for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
  EXPECT_NE(lines.find("Planned anew: a build side was larger"), std::string::npos) << lines;
  const auto result = cluster_.session().Execute(query);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(ToText(*result), (TextRows{{absl::StrCat(kRows), absl::StrCat(kRows), absl::StrCat(2 * kHigh)}}));
}

}  // namespace
}  // namespace nam::testing
