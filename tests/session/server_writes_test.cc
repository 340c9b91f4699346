#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "catalog/chain_groups.h"
#include "tests/session/file_session.h"

/// INSERT … SELECT and CREATE TABLE … AS whose rows compute servers write themselves.
namespace nam::testing {
namespace {

constexpr int kSourceRows = 12'000;

class ServerWritesTest : public FileSession {
 protected:
  void SetUp() override {
    Command(absl::StrCat(
        "create table src (i, s, t, d, w, b, day, at, span, u, x, c) with (partition_by = 'i:8') as select "
        "i, "
        "(i % 100)::smallint, case when i % 7 > 0 then 'text ' || i % 50 end, (i * 1.25)::decimal(12,2), "
        "i::decimal(38) * 1000000000000000000000000, i % 3 = 0, date '2000-01-01' + i % 1000, "
        "timestamp '2001-02-03 04:05:06' + i * interval '1 minute', i * interval '1 hour', "
        "('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, i / 4.0::double precision, "
        "(chr(97 + i % 26) || ' ')::char(4) from generate_series(1, ",
        kSourceRows, ") g (i)"));
    Command("set nam.server_writes = on");
  }
  std::shared_ptr<const proto::Table> Table(const std::string& name) {
    return *cluster_.attachment().catalog().GetTable(name);
  }
  std::string StateOf(const std::string& sql) { return ErrorOf(sql).sqlstate; }
  /// Both tables have the same rows.
  void ExpectSame(const std::string& a, const std::string& b) {
    EXPECT_EQ(Rows(absl::StrCat("select * from ", a, " except all select * from ", b)), TextRows());
    EXPECT_EQ(Rows(absl::StrCat("select * from ", b, " except all select * from ", a)), TextRows());
  }
  static std::set<uint64_t> Allocations(const proto::Table& table) {
    std::set<uint64_t> allocations;
    for (uint32_t g = 0; g < catalog::GroupCount(table); ++g)
      allocations.insert(catalog::GroupAllocation(table, g));
    return allocations;
  }
};

TEST_F(ServerWritesTest, ValuesOfAllTypesAreThoseThatTheSessionWrites) {
  EXPECT_EQ(
      Command("create table by_servers with (partition_by = 'i:4', sort_by = 'day') as select * from src"),
      absl::StrCat("SELECT ", kSourceRows));
  EXPECT_EQ(Allocations(*Table("by_servers")).size(), 2u) << "a group of each server";
  EXPECT_EQ(Table("by_servers")->rows(), static_cast<uint64_t>(kSourceRows));
  EXPECT_EQ(Table("by_servers")->partitions_size(), 8);
  ExpectSame("by_servers", "src");
  Command("set nam.server_writes = off");
  Command("create table by_session as select * from src");
  EXPECT_EQ(Allocations(*Table("by_session")).size(), 1u);
  ExpectSame("by_session", "by_servers");
  EXPECT_EQ(Rows("select count(*) from by_servers x join by_session y on x.u = y.u and x.t is not distinct "
                 "from y.t"),
            (TextRows{{absl::StrCat(kSourceRows)}}));
}

TEST_F(ServerWritesTest, RowsAreAddedBehindThoseThatAreThere) {
  Command("create table t (n int, c char(3), d decimal(9,1)) with (partition_by = 'n:2')");
  Command("alter table t add column name text default 'none'");
  EXPECT_EQ(Command("insert into t values (0, 'a', 1, 'first')"), "INSERT 0 1");
  EXPECT_EQ(Command("insert into t (d, n, c) select d, i, c from src where i % 2 = 0"),
            absl::StrCat("INSERT 0 ", kSourceRows / 2));
  EXPECT_EQ(Allocations(*Table("t")).size(), 3u);
  EXPECT_EQ(Command("insert into t (n) select i from src where i < 0"), "INSERT 0 0");
  EXPECT_EQ(Allocations(*Table("t")).size(), 3u) << "who has no row leaves no group";
  EXPECT_EQ(Rows("select count(*), count(distinct name), min(name), max(n), sum(d) from t where n > 0"),
            (TextRows{{absl::StrCat(kSourceRows / 2), "1", "none", absl::StrCat(kSourceRows), "45007500.0"}}))
      << "rounded, as the column has it";
  EXPECT_EQ(Rows("select c || '|' from t where n = 2"), (TextRows{{"c|"}}));
  EXPECT_EQ(Command("vacuum t"), "VACUUM");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{absl::StrCat(kSourceRows / 2 + 1)}}));
}

TEST_F(ServerWritesTest, WhatColumnsDoNotTakeIsTheSameError) {
  Command("create table t (a smallint not null, b varchar(6), c decimal(5,2)) with (storage = columnar)");
  const std::vector<std::string> sources = {
      "select i + 30000, 'x', 1 from src",       "select case when i <> 77 then 1 end, 'x', 1 from src",
      "select 1, 'text ' || i, 1 from src",      "select 1, 'x', i from src",
      "select 1, 'x', 500 / (i - 500) from src", "select 1, 'x', i * 1e30 from src"};
  for (const std::string& source : sources) {
    Command("set nam.server_writes = off");
    const SqlError by_session = ErrorOf("insert into t " + source);
    Command("set nam.server_writes = on");
    const SqlError by_servers = ErrorOf("insert into t " + source);
    EXPECT_NE(by_session.sqlstate, "") << source;
    EXPECT_EQ(by_servers.sqlstate, by_session.sqlstate) << source;
    EXPECT_EQ(by_servers.message, by_session.message) << source;
    EXPECT_EQ(by_servers.hint, by_session.hint) << source;
  }
  EXPECT_EQ(Table("t")->rows(), 0u);
  EXPECT_EQ(Command("insert into t select 1, 'text      ', 999.99 from src"),
            absl::StrCat("INSERT 0 ", kSourceRows))
      << "blanks that are too much are cut off";
  EXPECT_EQ(Rows("select distinct b || '|' from t"), (TextRows{{"text  |"}}));
  EXPECT_EQ(StateOf("insert into t (b) select 'x' from src"), "23502")
      << "the default of a column without one";
  EXPECT_EQ(StateOf("create table u as select 1000 / (i - 500) as x from src"), "22012");
  EXPECT_EQ(StateOf("select * from u"), "42P01");
}

/// What servers make of rows for the session, and what the session alone has, come together.
TEST_F(ServerWritesTest, AllBranchesOfAUnionAreThere) {
  Command("create table r (id int primary key) with (storage = record)");
  Command("insert into r values (1), (2)");
  EXPECT_EQ(
      Command(
          "create table t as select i, t from src union all select -id, 'record' from r union all select 0, "
          "'value' union all select i + 100000, upper(t) from src where i <= 100"),
      absl::StrCat("SELECT ", kSourceRows + 103));
  EXPECT_EQ(Rows("select i, t from t where i <= 1 order by i"),
            (TextRows{{"-2", "record"}, {"-1", "record"}, {"0", "value"}, {"1", "text 1"}}));
  EXPECT_EQ(Rows("select count(*), min(t) from t where i > 100000 and t is not null"),
            (TextRows{{"86", "TEXT 0"}}));
}

TEST_F(ServerWritesTest, SessionsWriteWhatTheyHaveToMakeThemselves) {
  const std::vector<std::pair<std::string, int>> queries = {
      {"select i, t from src order by i desc limit 7", 7},
      {"select t, count(*) as n from src group by t", 51},
      {"select count(*) as n from src", 1},
      {"select i, row_number() over (order by i) as n from src where i < 50", 49},
      {"select i from src where i <= 10 offset 3", 7},
      {"select distinct s from src", 100},
      {"select a.i, b.t from src a join src b on a.i = b.i + 1", kSourceRows - 1},
      {"select i, g from src, generate_series(1, 2) g where i <= 10", 20},
      {"select max(i) as m from src having max(i) > 0", 1}};
  for (const auto& [query, rows] : queries) {
    EXPECT_EQ(Command("create table t as " + query), absl::StrCat("SELECT ", rows)) << query;
    EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{absl::StrCat(rows)}})) << query;
    Command("drop table t");
  }
  for (const char* join : {"rrj", "ghj", "ghj_bloom", "rdma_ghj"}) {
    Command(absl::StrCat("set nam.join = '", join, "'"));
    EXPECT_EQ(Command("create table t as select a.i, b.t from src a join src b on a.i = b.i + 1"),
              absl::StrCat("SELECT ", kSourceRows - 1))
        << join;
    EXPECT_EQ(Rows("select count(distinct i), sum(i) from t"),
              (TextRows{{absl::StrCat(kSourceRows - 1),
                         absl::StrCat(int64_t{kSourceRows} * (kSourceRows + 1) / 2 - 1)}}))
        << join;
    Command("drop table t");
  }
}

/// Groups of one allocation have dictionaries of their own, and are merged together.
TEST_F(ServerWritesTest, ServersWithLittleMemoryWriteManyGroups) {
  Command("set nam.result_mib_max = 1");
  EXPECT_EQ(
      Command(
          "create table t as select a.i, 'text ' || b.i % 17 as t, repeat('x', 30) as long from src a, src b "
          "where b.i <= 17"),
      absl::StrCat("SELECT ", 17 * kSourceRows));
  const auto table = Table("t");
  const std::set<uint64_t> allocations = Allocations(*table);
  EXPECT_LE(allocations.size(), 4u);
  EXPECT_GT(catalog::GroupCount(*table), 3 * allocations.size()) << "half a megabyte each";
  std::set<uint64_t> ids;
  for (uint32_t g = 0; g < catalog::GroupCount(*table); ++g) ids.insert(catalog::GroupId(*table, g));
  EXPECT_EQ(ids.size(), catalog::GroupCount(*table));
  const TextRows expected = Rows(
      "select t, count(*), sum(i) from (select a.i, 'text ' || b.i % 17 as t from src a, src "
      "b where b.i <= 17) q group by t order by t");
  EXPECT_EQ(Rows("select t, count(*), sum(i) from t group by t order by t"), expected);
  Command("insert into t values (1, 'text 0', 'y')");
  Command("vacuum t");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  EXPECT_EQ(Rows("select t, count(*), sum(i) from t where long <> 'y' group by t order by t"), expected);
}

/// The first chunk is a quarter of a group, and the second one does not fit beside it.
TEST_F(ServerWritesTest, AChunkLargerThanTheRestOfAGroupBeginsAnother) {
  Command(
      "create table rows with (sort_by = 'i') as select i, repeat('x', case when i <= 1024 then 130 else 440 "
      "end) as x from generate_series(1, 2048) g (i)");
  Command("set nam.result_mib_max = 1");
  EXPECT_EQ(Command("create table t as select i, x from rows"), "SELECT 2048");
  EXPECT_EQ(Rows("select count(*), sum(length(x)) from t"), (TextRows{{"2048", "583680"}}));
}

/// Each attempt's group has a chain for every partition.
TEST_F(ServerWritesTest, TheSessionWritesWhatWouldBeTooManyGroups) {
  Command("create table parted with (partition_by = 'i:40000') as select i from src");
  EXPECT_EQ(Allocations(*Table("parted")).size(), 1u);
  EXPECT_EQ(
      Rows("select count(*), sum(i) from parted"),
      (TextRows{{absl::StrCat(kSourceRows), absl::StrCat(int64_t{kSourceRows} * (kSourceRows + 1) / 2)}}));
  Command("set nam.result_mib_max = 1");
  Command(
      "create table many as select a.i, b.i as j, a.s from src a, src b where b.i <= 8000 and a.i + b.i < 9");
  EXPECT_EQ(Allocations(*Table("many")).size(), 1u) << "many rows were expected";
  Command("create table few as select i, i as j, s from src");
  EXPECT_EQ(Allocations(*Table("few")).size(), 2u);
}

TEST_F(ServerWritesTest, FewRowsComeToTheSession) {
  Command("set nam.server_writes = auto");
  Command("create table t (n int) with (storage = columnar)");
  EXPECT_EQ(Command("insert into t select i from src"), absl::StrCat("INSERT 0 ", kSourceRows));
  EXPECT_EQ(Allocations(*Table("t")).size(), 1u);
  EXPECT_EQ(Command("insert into t select a.i from src a, src b where b.i <= 20"),
            absl::StrCat("INSERT 0 ", 20 * kSourceRows));
  EXPECT_EQ(Allocations(*Table("t")).size(), 3u) << "many are written by both servers";
}

TEST_F(ServerWritesTest, AlteredTablesAreWrittenByServersToo) {
  Command("create table t as select i, t from src");
  EXPECT_EQ(Command("alter table t add column extra int default 5"), "ALTER TABLE");
  EXPECT_EQ(Rows("select count(*), sum(i), min(extra), max(extra) from t"),
            (TextRows{{absl::StrCat(kSourceRows), absl::StrCat(int64_t{kSourceRows} * (kSourceRows + 1) / 2),
                       "5", "5"}}));
}

TEST_F(ServerWritesTest, ManySessionsWriteAtOnce) {
  constexpr int kSessions = 3, kTurns = 3;
  Command("create table t (session int, turn int, i int) with (partition_by = 'i:4')");
  std::atomic<int> left = kSessions;
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([&, s] {
      const auto session = cluster_.NewSession();
      EXPECT_TRUE(session->Execute("set nam.server_writes = on").ok());
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto done =
            session->Execute(absl::StrCat("insert into t select ", s, ", ", turn, ", i from src"));
        EXPECT_TRUE(done.ok()) << done.status();
      }
      --left;
    });
  }
  while (left > 0) {
    EXPECT_EQ(Rows(absl::StrCat("select session, turn from t group by session, turn having count(*) <> ",
                                kSourceRows)),
              TextRows())
        << "half an append";
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{absl::StrCat(kSessions * kTurns * kSourceRows)}}));
}

TEST_F(ServerWritesTest, MemoryOfWhatFailsIsGivenBack) {
  Command("create table t (a smallint) with (storage = columnar)");
  const uint64_t before = cluster_.UsedBytes();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(StateOf("insert into t select i + 30000 from src"), "22003");
  EXPECT_LE(cluster_.AwaitUsedBytes(before), before);
}

/// What memory servers lack is not the compute server's memory: the error says so, and nothing is done twice.
TEST(ServerWritesToFullServersTest, TheErrorNamesTheMemoryServers) {
  InProcessCluster cluster({.fabric = fabric::Kind::kShm, .memory_bytes = uint64_t{24} << 20});
  const auto run = [&](const std::string& sql) { return cluster.session().Execute(sql); };
  ASSERT_TRUE(run("create table src (i) as select i from generate_series(1, 10000) g (i)").ok());
  ASSERT_TRUE(run("create table t (a bigint, b bigint) with (storage = columnar)").ok());
  ASSERT_TRUE(run("set nam.server_writes = on").ok());
  const uint64_t before = cluster.UsedBytes();
  const auto full = run(
      "insert into t select a.i * 1000000000000 + b.i, b.i * 1000000000000 + a.i from src a, src b where b.i "
      "<= 400");
  ASSERT_FALSE(full.ok());
  const auto error = SqlErrorOf(full.status());
  ASSERT_TRUE(error.has_value()) << full.status();
  EXPECT_EQ(error->sqlstate, "53200");
  EXPECT_THAT(error->message, ::testing::HasSubstr("memory server"));
  const auto rows = run("select count(*) from t");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(ToText(*rows), (TextRows{{"0"}}));
  EXPECT_LE(cluster.AwaitUsedBytes(before), before);
}

}  // namespace
}  // namespace nam::testing
