#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalog/chain_groups.h"
#include "tests/session/file_session.h"

/// CREATE TABLE AS, INSERT into columnar tables, COPY into tables with rows, TRUNCATE and VACUUM.
namespace nam::testing {
namespace {

class AppendTest : public FileSession {
 protected:
  std::string StateOf(const std::string& sql) { return ErrorOf(sql).sqlstate; }
  std::shared_ptr<const proto::Table> Table(const std::string& name) {
    return *cluster_.attachment().catalog().GetTable(name);
  }
};

TEST_F(AppendTest, AppendsMakeGroups) {
  Command("create table t (a int, b text) with (storage = columnar, partition_by = 'a:4')");
  Command("insert into t values (1, 'one'), (2, null)");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u) << "an empty table has no group to keep";
  Command("insert into t (a) values (1000000), (-1000000)");
  Command("insert into t values (4, 'a new text')");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 3u);
  EXPECT_EQ(Table("t")->partitions_size(), 12);
  EXPECT_EQ(Table("t")->rows(), 5u);
  EXPECT_EQ(StateOf("insert into t values (5, 'x'), (1 / 0, 'c')"), "22012");
  Command("insert into t select a, b from t where false");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 3u);
  Command("vacuum t");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  Command("truncate t");
  EXPECT_EQ(Table("t")->partitions_size(), 4);
}

/// Groups whose numbers have other widths, and whose texts have a dictionary in one and none in the other.
TEST_F(AppendTest, GroupsHaveTheirOwnEncodings) {
  Command("create table t (id int, name text, n bigint) with (partition_by = 'id:8', sort_by = 'n')");
  Command("insert into t select i, 'few ' || i % 5, i from generate_series(1, 1000) g (i)");
  Command("insert into t select i, 'name ' || i, i * 5000000000 from generate_series(1001, 71000) g (i)");
  const auto table = Table("t");
  EXPECT_FALSE(catalog::GroupColumnOf(*table, 0, 1).encoding().plain());
  EXPECT_TRUE(catalog::GroupColumnOf(*table, 1, 1).encoding().plain());
  EXPECT_NE(catalog::GroupColumnOf(*table, 0, 2).encoding().width(),
            catalog::GroupColumnOf(*table, 1, 2).encoding().width());
}

TEST_F(AppendTest, StatisticsAreThoseOfAllGroups) {
  Command("create table t (a int not null, b int) with (storage = columnar)");
  Command("insert into t select i, i % 10 from generate_series(1, 1000) g (i)");
  EXPECT_TRUE(Table("t")->columns(0).unique());
  Command("insert into t select i, null from generate_series(2001, 3000) g (i)");
  auto a = Table("t")->columns(0), b = Table("t")->columns(1);
  EXPECT_TRUE(a.unique()) << "their ranges lie apart";
  EXPECT_EQ(a.min(), 1);
  EXPECT_EQ(a.max(), 3000);
  EXPECT_EQ(a.distinct(), 2000u);
  EXPECT_EQ(b.distinct(), 10u);
  EXPECT_EQ(b.nulls(), 1000u);
  Command("insert into t values (5, 77)");
  a = Table("t")->columns(0);
  EXPECT_FALSE(a.unique());
  EXPECT_EQ(Table("t")->columns(1).max(), 77);
  EXPECT_EQ(Rows("select count(*) from t x join t y on x.a = y.a"), (TextRows{{"2003"}}))
      << "a join that took 5 for unique would lose rows";
}

/// What is computed over the table's columns is what is computed over the query's.
TEST_F(AppendTest, ATableOfAQueryHasTheTypesOfTheQuery) {
  Command(
      "create table r (id int primary key, n numeric, d decimal(10,2), s smallint, b bigint, v varchar(3)) "
      "with (storage = record)");
  Command("insert into r values (1, 1.50, 2.50, 3, 9000000000, 'abc'), (2, 0.125, null, -3, null, null)");
  Command("create table t as select *, d * 2 as e, sum(b) over () as x, 1.50 as one from r");
  EXPECT_EQ(Rows("select id, n, d, s, b, v, e, x, one from t order by id"),
            (TextRows{{"1", "1.50", "2.50", "3", "9000000000", "abc", "5.00", "9000000000", "1.50"},
                      {"2", "0.125", "NULL", "-3", "NULL", "NULL", "NULL", "9000000000", "1.50"}}));
  // The same of the query.
  Command("select sum(id) / 2, sum(x) / 4, sum(n) / 3, max(x) / 4 from t");
  Command(
      "select sum(id) / 2, sum(x) / 4, sum(n) / 3, max(x) / 4 from (select id, n, sum(b) over () as x from "
      "r) q");
  EXPECT_EQ(Rows("select pg_typeof(id), pg_typeof(n), pg_typeof(s), pg_typeof(b), pg_typeof(v), pg_typeof(x) "
                 "from t limit 1"),
            (TextRows{{"integer", "numeric", "smallint", "bigint", "character varying", "numeric"}}));
  // Of text and varchar the first decides: ELSE in a CASE, and a literal that DISTINCT has compared is text.
  EXPECT_EQ(
      Rows("select pg_typeof(case when id > 1 then v else 'x'::text end), pg_typeof(coalesce(v, 'x'::text)), "
           "pg_typeof(case when id > 1 then 'x'::text else v end), pg_typeof(case when id > 1 then v end) "
           "from r limit 1"),
      (TextRows{{"text", "character varying", "character varying", "character varying"}}));
  EXPECT_EQ(Rows("select pg_typeof(a), count(*) from (select distinct 'x' as a union all select v from r) q "
                 "group by 1"),
            (TextRows{{"text", "3"}}));
  EXPECT_EQ(
      Rows("select pg_typeof(a), count(*) from (select 'x' as a union all select v from r) q group by 1"),
      (TextRows{{"character varying", "3"}}));
  EXPECT_EQ(StateOf("create table u as select id + 2147483647 as a from r"), "22003");
  EXPECT_EQ(StateOf("insert into t (id) values (2147483648)"), "22003");
  Command("insert into t (id, n, x) select id + 2, n * 2, x + 0.5 from t");
  EXPECT_EQ(Rows("select n, x from t where id > 2 order by id"),
            (TextRows{{"3.00", "9000000000.5"}, {"0.250", "9000000000.5"}}));
}

TEST_F(AppendTest, ALimitReturnsTheFirstRowsOfTheLoadedFile) {
  std::string text = "n,s\n";
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&text, i, ",a text of some length\n");
  const std::string path = Write("order.csv", text);
  Command(absl::StrCat("create table made as from '", path, "'"));
  Command("create table copied (n int, s text) with (storage = columnar)");
  Command(absl::StrCat("copy copied from '", path, "' (format csv, header)"));
  Command("insert into copied values (-1, 'later')");
  for (const char* const table : {"made", "copied"}) {
    EXPECT_EQ(Rows(absl::StrCat("select n from ", table, " limit 3")), (TextRows{{"0"}, {"1"}, {"2"}}));
    EXPECT_EQ(Rows(absl::StrCat("select n + 1 from ", table, " limit 2 offset 99990")),
              (TextRows{{"99991"}, {"99992"}}));
    EXPECT_EQ(Rows(absl::StrCat("select count(*), count(distinct n) from (select n from ", table,
                                " limit 300001) l")),
              absl::string_view(table) == "made" ? (TextRows{{"300000", "300000"}})
                                                 : (TextRows{{"300001", "300001"}}));
  }
  EXPECT_EQ(Rows("select n from copied where n < 0 limit 1"), (TextRows{{"-1"}})) << "not in the first chain";
}

TEST_F(AppendTest, ATableMayBeMadeOfAFile) {
  const std::string people = Write("people.csv", "ID;Name;born;balance\n1;Ada;1815-12-10;1.5\n2;;;\n");
  EXPECT_EQ(Command(absl::StrCat("create table people as select * from read_csv('", people, "')")),
            "SELECT 2");
  EXPECT_EQ(Rows("select id, name, born, balance from people order by id"),
            (TextRows{{"1", "Ada", "1815-12-10", "1.5"}, {"2", "NULL", "NULL", "NULL"}}));
  EXPECT_EQ(Rows("select id + 1 from people where born < date '1900-01-01'"), (TextRows{{"2"}}));
  Write("part-1.csv", "1,a\n");
  Write("part-2.csv", "2,b\n");
  EXPECT_EQ(Command(absl::StrCat(
                "create table parts (x, y) with (partition_by = 'x:2') as select * from read_csv('",
                folder_.File("part-*.csv"), "', header => false, delimiter => ',')")),
            "SELECT 2");
  EXPECT_EQ(Rows("select x, y from parts order by x"), (TextRows{{"1", "a"}, {"2", "b"}}));
  const auto later =
      Run(absl::StrCat("create table bad as select * from read_csv('",
                       Write("bad.csv", absl::StrCat("a,b\n", std::string(), "1,2\n3,x\n")), "')"));
  EXPECT_TRUE(later.ok()) << "x makes a text of the column";
  EXPECT_EQ(StateOf("create table t as select * from read_csv('/nowhere/a.csv')"), "58P01");
  EXPECT_EQ(StateOf("create table t as select * from read_csv()"), "22023");
  EXPECT_EQ(StateOf(absl::StrCat("create table t as select * from read_csv('", people, "', speed => 'x')")),
            "22023");
  // The row lies beyond the rows that were sniffed: it is named, and no table is made.
  std::string text = "a\n";
  for (int i = 0; i < 400'000; ++i) absl::StrAppend(&text, i, "\n");
  const auto failed =
      Run(absl::StrCat("create table t as select * from read_csv('", Write("late.csv", text + "x\n"), "')"));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(SqlErrorOf(failed.status())->sqlstate, "22P02");
  EXPECT_TRUE(absl::StrContains(SqlErrorOf(failed.status())->message, "late.csv:400002: column a"))
      << SqlErrorOf(failed.status())->message;
  EXPECT_EQ(StateOf("select * from t"), "42P01");
}

TEST_F(AppendTest, StatementsWithoutRowsLeaveNothing) {
  Command("create table t (a int, b text) with (storage = columnar)");
  Command("insert into t values (1, 'a')");
  const uint64_t version = Table("t")->version();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Command("insert into t select * from t where a > 1"), "INSERT 0 0");
  EXPECT_EQ(Table("t")->version(), version);
  // A load under way would keep the table's name: the catalog has none.
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE");
}

TEST_F(AppendTest, CopyAppends) {
  Command("create table t (a int, b text) with (storage = columnar)");
  EXPECT_EQ(Command(absl::StrCat("copy t from '", Write("a.csv", "1,a\n2,b\n"), "'")), "COPY 2");
  EXPECT_EQ(Command(absl::StrCat("copy t from '", Write("b.csv", "3,c\n"), "'")), "COPY 1");
  EXPECT_EQ(StateOf(absl::StrCat("copy t from '", Write("c.csv", "4,d\nx,e\n"), "'")), "22P02");
  EXPECT_EQ(Rows("select a, b from t order by a"), (TextRows{{"1", "a"}, {"2", "b"}, {"3", "c"}}));
}

/// Sessions that append at the same time do not meet, and a reader sees each append whole.
TEST_F(AppendTest, ManySessionsAppendAtOnce) {
  constexpr int kSessions = 3, kAppends = 8, kRows = 50;
  Command("create table t (session int, turn int, n int) with (partition_by = 'n:4')");
  std::atomic<int> left = kSessions;
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([&, s] {
      const auto session = cluster_.NewSession();
      for (int turn = 0; turn < kAppends; ++turn) {
        const auto done = session->Execute(absl::StrCat("insert into t select ", s, ", ", turn,
                                                        ", i from generate_series(1, ", kRows, ") g (i)"));
        EXPECT_TRUE(done.ok()) << done.status();
      }
      --left;
    });
  }
  while (left > 0) {
    const TextRows odd =
        Rows(absl::StrCat("select session, turn from t group by session, turn having count(*) <> ", kRows));
    EXPECT_EQ(odd, TextRows());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Rows("select count(*), sum(n) from t"),
            (TextRows{{absl::StrCat(kSessions * kAppends * kRows),
                       absl::StrCat(kSessions * kAppends * kRows * (kRows + 1) / 2)}}));
}

}  // namespace
}  // namespace nam::testing
