#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plan/expression.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/sql/logical_results.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// Queries of any form, by the session of a cluster whose compute servers have the tables.
namespace nam::testing {
namespace {

using session::ResultSet;
using sql::LogicalResults;

class TreeQueryTest : public ::testing::Test {
 protected:
  explicit TreeQueryTest(const InProcessCluster::Options& options = {.compute_servers = 2})
      : cluster_(options) {}

  void Load(const LogicalResults& results, const std::string& of_records) {
    for (const auto& [name, table] : results.tables) {
      if (name == of_records) continue;
      SmallTable small{{name, {}, {}, ""}, results.contents.at(name)};
      for (const proto::Column& column : table->columns())
        small.schema.columns.push_back({column.name(), ColumnTypeOf(column.type()), column.nullable()});
      if (!table->columns(0).nullable()) small.schema.partitioning.push_back({table->columns(0).name(), 4});
      const absl::Status loaded =
          testing::Load(cluster_.attachment(), small, {.block_bytes = 2048, .pointer_group = 4});
      ASSERT_TRUE(loaded.ok()) << name << ": " << loaded;
    }
  }

  /// Table u, as transactions write it.
  void WriteRecords(const LogicalResults& results) {
    std::string rows;
    for (const auto& row : results.contents.at("u")) {
      absl::StrAppend(&rows, rows.empty() ? "(" : ", (");
      for (size_t i = 0; i < row.size(); ++i) {
        const bool text = row[i].type.kind == TypeKind::kString;
        const std::string value = row[i].null ? "null" : text ? "'" + row[i].text + "'" : row[i].ToString();
        absl::StrAppend(&rows, i == 0 ? "" : ", ", value);
      }
      rows += ")";
    }
    for (const std::string& statement :
         {std::string(
              "create table u (id int primary key, t_id int, a int, v numeric(10, 2), s varchar(10)) with "
              "(storage = record)"),
          "insert into u values " + rows}) {
      const auto result = cluster_.session().Execute(statement);
      ASSERT_TRUE(result.ok()) << statement << "\n" << result.status();
    }
  }

  void Compare(const std::string& file, bool with_records = false) {
    const LogicalResults results = LogicalResults::Read("tests/sql/" + file);
    Load(results, with_records ? "u" : "");
    if (with_records) WriteRecords(results);
    size_t refused = 0;  // of those that were generated at random
    for (const LogicalResults::Query& query : results.queries) {
      // It is open which of several equal rows an OFFSET leaves out.
      if (other_ties_ && absl::StrContains(query.text, "with ties")) continue;
      SCOPED_TRACE(query.text);
      const auto result = cluster_.session().Execute(query.text);
      if (!result.ok()) {
        const auto error = SqlErrorOf(result.status());
        const std::string state = error.has_value() ? error->sqlstate : "";
        if (state == "0A000" && query.mark != '!') ++refused;
        if (state == "0A000") continue;
        EXPECT_EQ(state, query.error) << result.status();
        continue;
      }
      EXPECT_EQ(query.error, "");
      std::vector<plan::logical::Column> columns;
      for (const ResultSet::Column& column : result->columns)
        columns.push_back({.ref = {}, .name = column.name, .type = column.type});
      EXPECT_EQ(sql::Difference(query, columns, result->rows), "");
    }
    EXPECT_LE(refused * 40, results.queries.size());
  }

  InProcessCluster cluster_;
  bool other_ties_ = false;  // equal rows come in another order than in the results
};

/// They are equal as spans; one value has many forms.
TEST_F(TreeQueryTest, EqualIntervalsAreOneKey) {
  const std::string from =
      " from (values (1, interval '1 day'), (2, interval '24 hours'), (3, '25:00')) v (n, i)";
  const std::vector<std::pair<std::string, size_t>> rows = {
      {"select i, count(*)" + from + " group by i", 2},
      {"select distinct i" + from, 2},
      {"select i" + from + " union select i" + from, 2},
      {"select distinct on (i) n" + from, 2},
      {"select n" + from + " order by i", 3},
  };
  for (const auto& [query, count] : rows) {
    const auto result = cluster_.session().Execute(query);
    ASSERT_TRUE(result.ok()) << query << result.status();
    EXPECT_EQ(result->rows.size(), count) << query;
  }
  const auto joined =
      cluster_.session().Execute("select count(*)" + from + " join (select *" + from + ") w on v.i = w.i");
  EXPECT_EQ(ToText(joined.value()), (TextRows{{"5"}}));
}

TEST_F(TreeQueryTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

/// Cases that tests/oracle found.
TEST_F(TreeQueryTest, QueriesOfTheOracleAreThoseOfPostgreSql) {
  Compare("oracle_results.txt");
}

/// Floating point in record tables, read in every way.
TEST_F(TreeQueryTest, RecordsHoldFloatingPoint) {
  for (const char* const statement :
       {"create table x (id int primary key, r double precision, f real, k int) with (storage = record)",
        "insert into x values (1, 1.5, 0.25, 1), (2, '-1e300', null, 1), (3, 'NaN', 'Infinity', 2), (4, "
        "null, "
        "-2, 2)"}) {
    const auto result = cluster_.session().Execute(statement);
    ASSERT_TRUE(result.ok()) << statement << result.status();
  }
  for (const auto& [query, expected] : std::vector<std::pair<std::string, std::string>>{
           {"select r from x where id = 1", "1.5"},
           {"select max(f) from x", "Infinity"},
           {"select count(*) from x a join x b on a.r = b.r", "3"},
           {"select q.s from (select k, sum(f) as s from x group by k) q where q.k = 1", "0.25"},
           {"select min(r) from x where f is null", "-1e+300"}}) {
    const auto result = cluster_.session().Execute(query);
    ASSERT_TRUE(result.ok()) << query << result.status();
    ASSERT_EQ(result->rows.size(), 1u) << query;
    EXPECT_EQ(result->rows[0][0].ToString(), expected) << query;
  }
}

/// One of the tables is of records.
TEST_F(TreeQueryTest, ResultsOverRecordsAreThoseOfPostgreSql) {
  Compare("logical_results.txt", true);
}

TEST_F(TreeQueryTest, RandomResultsOverRecordsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt", true);
}

TEST_F(TreeQueryTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

/// One server has many groups, the other few: the latter are of any part.
TEST_F(TreeQueryTest, FewGroupsBesideManyAreMergedWithThem) {
  constexpr int kRows = 80'000;
  SmallTable table{{"skewed", {{"part", Type::Integer()}, {"v", Type::Integer()}}, {{"part", 2}}, ""}, {}};
  for (int i = 0; i < kRows; ++i) {
    const bool many = i % 2 == 0;
    table.rows.push_back({Value::Integer(many ? 0 : 1), Value::Integer(many ? i : i % 1000)});
  }
  const absl::Status loaded = testing::Load(cluster_.attachment(), table, {.block_bytes = 16384});
  ASSERT_TRUE(loaded.ok()) << loaded;
  for (const char* setting : {"aggregate = rdma", "work_queue = off", "compute_servers = 2"})
    ASSERT_TRUE(cluster_.session().Execute(absl::StrCat("set nam.", setting)).ok());
  const std::string query =
      "select count(*), sum(n), sum(v) from (select v, count(*) as n from skewed group by v) g";
  const auto result = cluster_.session().Execute(query);
  ASSERT_TRUE(result.ok()) << result.status();
  // 0, 2, …, 79998 and 1, 3, …, 999.
  int64_t groups = kRows / 2 + 500, values = 0;
  for (int64_t v = 0; v < kRows; v += 2) values += v;
  for (int64_t v = 1; v < 1000; v += 2) values += v;
  EXPECT_EQ(ToText(*result), (TextRows{{absl::StrCat(groups), absl::StrCat(kRows), absl::StrCat(values)}}));
  // The frequency of values is not known before: once, or eighty times.
  const auto report = cluster_.session().Execute(
      "explain analyze select n, count(*) from (select v, count(*) as n from skewed group by v) g group by "
      "n");
  ASSERT_TRUE(report.ok()) << report.status();
  std::string lines;
  for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
  EXPECT_NE(lines.find("Stage 1: "), std::string::npos) << lines;
  EXPECT_NE(lines.find("Planned anew behind stage 1: "), std::string::npos) << lines;
}

/// Groups of columnar tables go by parts to a further stage even if they are few.
class TreeQueryByPartsTest : public TreeQueryTest {
 protected:
  explicit TreeQueryByPartsTest(const InProcessCluster::Options& options = {.compute_servers = 2,
                                                                            .few_by_parts = true})
      : TreeQueryTest(options) {
    EXPECT_TRUE(cluster_.session().Execute("set nam.aggregate = rdma").ok());
  }
  /// The memory that memory servers hold once it is `wanted`, or after some seconds: memory that a peer may
  /// still be writing to is freed a little later.
  uint64_t UsedAtLast(uint64_t wanted) {
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(10'000'000);
    while (cluster_.UsedBytes() != wanted && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
    return cluster_.UsedBytes();
  }
};

TEST_F(TreeQueryByPartsTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

TEST_F(TreeQueryByPartsTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

TEST_F(TreeQueryByPartsTest, ResultsOfThreeServersWithAWorkQueueAreThoseOfPostgreSql) {
  cluster_.AddComputeServer();
  ASSERT_TRUE(cluster_.session().Execute("set nam.work_queue = on").ok());
  Compare("logical_results.txt");
}

/// Sorted rows go to scratch memory as runs even if they are few.
TEST_F(TreeQueryByPartsTest, ResultsOfSortedRunsAreThoseOfPostgreSql) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.sorts_by_runs = on").ok());
  other_ties_ = true;
  Compare("logical_results.txt");
}

TEST_F(TreeQueryByPartsTest, RandomResultsOfSortedRunsAreThoseOfPostgreSql) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.sorts_by_runs = on").ok());
  other_ties_ = true;
  Compare("logical_random_results.txt");
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
                       .few_by_parts = true}) {}

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
    const Deadline deadline = clock.After(10'000'000);
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

/// There are three barriers. At the first two the rows were about as many as expected, in another order; at
/// the third they are far off. The plan that is made then must have the stages that have run.
TEST_F(TreeQueryByPartsTest, PlansOfLaterBarriersKeepTheStagesThatHaveRun) {
  constexpr int kRows = 6'000;
  SmallTable table{{"pairs", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"k", 8}}, ""}, {}};
  for (int i = 0; i < kRows; ++i) table.rows.push_back({Value::Integer(i), Value::Integer(i % 10)});
  ASSERT_TRUE(testing::Load(cluster_.attachment(), table, {.block_bytes = 8192}).ok());
  ASSERT_TRUE(cluster_.session().Execute("set nam.aggregate = rdma").ok());
  // (v + 0) * 2 has only a guessed estimate: one side has more rows than the other, and is expected to have
  // fewer.
  for (const char* const sides : {"(v + 0) * 2 <> 2|(v + 0) * 2 < 14", "(v + 0) * 2 < 14|(v + 0) * 2 <> 2",
                                  "(v + 0) * 2 < 4|(v + 0) * 2 > 2", "(v + 0) * 2 > 2|(v + 0) * 2 < 4"}) {
    const std::vector<std::string> of = absl::StrSplit(sides, '|');
    const auto result = cluster_.session().Execute(absl::StrCat(
        "select count(*), sum(a.c), sum(b.c) from (select k, count(*) as c from pairs where ", of[0],
        " group by k having count(*) > 1000) a right join (select k, count(*) as c from pairs where ", of[1],
        " group by k having count(*) < 1000) b on a.k = b.k"));
    ASSERT_TRUE(result.ok()) << sides << ": " << result.status();
    const auto rows = cluster_.session().Execute(absl::StrCat("select count(*) from pairs where ", of[1]));
    ASSERT_TRUE(rows.ok()) << rows.status();
    const std::string count = ToText(*rows)[0][0];
    EXPECT_EQ(ToText(*result), (TextRows{{count, "NULL", count}})) << sides;
  }
}

TEST_F(TreeQueryByPartsTest, ScratchMemoryIsGivenBackBehindEachQuery) {
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

/// Sides of joins of columnar tables go by parts, too, even if they are small.
class TreeQueryJoinsByPartsTest : public TreeQueryByPartsTest {
 protected:
  TreeQueryJoinsByPartsTest() { EXPECT_TRUE(cluster_.session().Execute("set nam.join = rrj").ok()); }
};

TEST_F(TreeQueryJoinsByPartsTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

TEST_F(TreeQueryJoinsByPartsTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

TEST_F(TreeQueryJoinsByPartsTest, QueriesOfTheOracleAreThoseOfPostgreSql) {
  Compare("oracle_results.txt");
}

TEST_F(TreeQueryJoinsByPartsTest, ResultsOverRecordsAreThoseOfPostgreSql) {
  Compare("logical_results.txt", true);
}

/// Both sides of joins of columnar tables are streamed.
class TreeQueryJoinsByExchangeTest : public TreeQueryTest {
 protected:
  TreeQueryJoinsByExchangeTest() { EXPECT_TRUE(cluster_.session().Execute("set nam.join = 'ghj'").ok()); }
};

TEST_F(TreeQueryJoinsByExchangeTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

TEST_F(TreeQueryJoinsByExchangeTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

TEST_F(TreeQueryJoinsByExchangeTest, QueriesOfTheOracleAreThoseOfPostgreSql) {
  Compare("oracle_results.txt");
}

TEST_F(TreeQueryJoinsByExchangeTest, ResultsOverSocketsAreThoseOfPostgreSql) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.exchange = sockets").ok());
  Compare("logical_results.txt");
}

TEST_F(TreeQueryJoinsByExchangeTest, ResultsWithBloomFiltersAreThoseOfPostgreSql) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.join = 'ghj_bloom'").ok());
  Compare("logical_results.txt");
}

/// Parts are those of the compared values: of one scale, and without insignificant blanks.
TEST_F(TreeQueryJoinsByPartsTest, KeysOfOtherTypesMeetInOnePart) {
  SmallTable a{{"a", {{"c", plan::CharType(5), true}, {"n", Type::Integer()}}, {}, ""}, {}};
  SmallTable b{{"b", {{"v", Type::String(8), true}, {"d", Type::Decimal(2)}}, {}, ""}, {}};
  for (int i = 0; i < 100; ++i) {
    const std::string text = absl::StrCat("t", i);
    a.rows.push_back({i == 7 ? Value::Null(plan::CharType(5)) : Value::String(text), Value::Integer(i)});
    a.rows.back()[0].type = plan::CharType(5);
    b.rows.push_back({i == 9 ? Value::Null(Type::String(8)) : Value::String(text + (i % 2 == 0 ? "  " : "")),
                      Value::Decimal(100 * i, 2)});
    b.rows.back()[0].type = Type::String(8);
  }
  for (const SmallTable& table : {a, b}) {
    const absl::Status loaded = testing::Load(cluster_.attachment(), table, {.block_bytes = 2048});
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  for (const auto& [query, expected] : std::vector<std::pair<std::string, std::string>>{
           {"select count(*) from a join b on c = v", "98"},
           {"select count(*) from b join a on v = c", "98"},
           {"select count(*) from a left join b on c = v", "100"},
           {"select count(*) from a full join b on c = v", "102"},
           {"select count(*) from a join b on n = d", "100"},
           {"select count(*) from a full join b on n = d and c = v", "102"},
           {"select count(*) from a where c in (select v from b) or n < 0", "98"},
           {"select count(*) from a where c not in (select v from b)", "0"},
           {"select count(*) from a where c not in (select v from b where v is not null)", "1"},
           {"select count(*) from a where c not in (select v from b where d < 0)", "100"},
           {"select count(m) from (select c in (select v from b) as m from a) q", "98"},
           {"select count(m) from (select c in (select v from b where d = 9) as m from a) q", "0"},
           {"select count(m) from (select c in (select v from b where d < 0) as m from a) q", "100"}}) {
    const auto result = cluster_.session().Execute(query);
    ASSERT_TRUE(result.ok()) << query << result.status();
    EXPECT_EQ(result->rows[0][0].ToString(), expected) << query;
  }
}

/// Rows with a NULL as their key are counted and not written. A build side of only such rows has parts
/// without rows, and is not empty.
TEST_F(TreeQueryJoinsByPartsTest, BuildSidesOfNothingButNullsAreNotEmpty) {
  SmallTable a{{"a", {{"k", Type::Integer()}, {"v", Type::Integer(), true}}, {{"k", 4}}, ""}, {}};
  SmallTable b{{"b", {{"k", Type::Integer()}, {"v", Type::Integer(), true}}, {{"k", 4}}, ""}, {}};
  SmallTable c{{"c", {{"k", Type::Integer()}, {"v", Type::Integer(), true}}, {{"k", 4}}, ""}, {}};
  for (int i = 0; i < 100; ++i) {
    const Value null = Value::Null(Type::Integer());
    a.rows.push_back({Value::Integer(i), i % 10 == 0 ? null : Value::Integer(i)});
    b.rows.push_back({Value::Integer(i), null});
  }
  for (const SmallTable& table : {a, b, c}) {
    const absl::Status loaded = testing::Load(cluster_.attachment(), table, {.block_bytes = 2048});
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  for (const auto& [query, expected] : std::vector<std::pair<std::string, std::string>>{
           {"select count(*) from a where v not in (select v from b)", "0"},
           {"select count(*) from a where v not in (select v from b where k < 0)", "100"},
           {"select count(*) from a where v not in (select v from c)", "100"},
           {"select count(*) from c where v not in (select v from b)", "0"},
           {"select count(*) from a where v in (select v from b) is null", "100"},
           {"select count(*) from a where v in (select v from c) is null", "0"},
           {"select count(*) from a where (v, k) not in (select v, k from b)", "0"},
           {"select count(*) from a where (v, k) not in (select v, k + 1000 from b)", "100"},
           {"select count(*) from a where v not in (select b.v from b where b.k = a.k)", "0"},
           {"select count(*) from a where v not in (select b.v from b where b.k = a.k + 50)", "50"},
           {"select count(*) from a where not exists (select * from b where a.v = b.v)", "100"},
           {"select count(*) from a where exists (select * from b where a.v = b.v)", "0"},
           {"select count(*) from a left join b on a.v = b.v where b.k is null", "100"},
           {"select count(*) from a full join b on a.v = b.v", "200"}}) {
    SCOPED_TRACE(query);
    const auto result = cluster_.session().Execute(query);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows[0][0].ToString(), expected);
  }
}

/// A build side of more than four times what servers may hold of it.
TEST_F(TreeQueryByPartsTest, BuildSidesBeyondTheBudgetAreJoinedByParts) {
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
      : TreeQueryByPartsTest({.compute_servers = 1, .threads = 1, .few_by_parts = true}) {
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
