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

TEST_F(AppendTest, RowsAreAddedInGroupsOfTheirOwn) {
  Command("create table t (a int, b text, c decimal(9,2)) with (storage = columnar, partition_by = 'a:4')");
  EXPECT_EQ(Command("insert into t values (1, 'one', 1.5), (2, null, -2), (3, 'three', 0.01)"), "INSERT 0 3");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u) << "an empty table has no group to keep";
  EXPECT_EQ(Command("insert into t (c, a) values (100000, 1000000), (7, -1000000)"), "INSERT 0 2");
  EXPECT_EQ(Command("insert into t values (4, 'a new text', 0)"), "INSERT 0 1");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 3u);
  EXPECT_EQ(Table("t")->partitions_size(), 12);
  EXPECT_EQ(Table("t")->rows(), 6u);
  EXPECT_EQ(Rows("select a, b, c from t order by a"), (TextRows{{"-1000000", "NULL", "7.00"},
                                                                {"1", "one", "1.50"},
                                                                {"2", "NULL", "-2.00"},
                                                                {"3", "three", "0.01"},
                                                                {"4", "a new text", "0.00"},
                                                                {"1000000", "NULL", "100000.00"}}));
  EXPECT_EQ(Rows("select count(*), count(b), min(a), max(a), sum(c), min(b), max(b) from t"),
            (TextRows{{"6", "3", "-1000000", "1000000", "100006.51", "a new text", "three"}}));
  EXPECT_EQ(Rows("select a from t where b = 'a new text' or a = 1000000 order by a"),
            (TextRows{{"4"}, {"1000000"}}));
  EXPECT_EQ(Rows("select b, count(*) from t group by b order by b"),
            (TextRows{{"a new text", "1"}, {"one", "1"}, {"three", "1"}, {"NULL", "3"}}));
  EXPECT_EQ(Rows("select x.a, y.a from t x join t y on x.b = y.b order by 1"),
            (TextRows{{"1", "1"}, {"3", "3"}, {"4", "4"}}));
  EXPECT_EQ(Rows("select x.a, y.b from t x join t y on x.a = y.a and x.c < 1 order by 1"),
            (TextRows{{"2", "NULL"}, {"3", "three"}, {"4", "a new text"}}));
}

/// Groups whose numbers have other widths, and whose texts have a dictionary in one and none in the other.
TEST_F(AppendTest, GroupsMayBeEncodedEachInItsWay) {
  constexpr int kRows = 70'000;
  Command("create table t (id int, name text, n bigint) with (partition_by = 'id:8', sort_by = 'n')");
  EXPECT_EQ(Command("insert into t select i, 'few ' || i % 5, i from generate_series(1, 1000) g (i)"),
            "INSERT 0 1000");
  EXPECT_EQ(Command(absl::StrCat("insert into t select i + 1000, 'name ' || i, i * 5000000000 from "
                                 "generate_series(1, ",
                                 kRows, ") g (i)")),
            absl::StrCat("INSERT 0 ", kRows));
  const auto table = Table("t");
  EXPECT_FALSE(catalog::GroupColumnOf(*table, 0, 1).encoding().plain());
  EXPECT_TRUE(catalog::GroupColumnOf(*table, 1, 1).encoding().plain());
  EXPECT_NE(catalog::GroupColumnOf(*table, 0, 2).encoding().width(),
            catalog::GroupColumnOf(*table, 1, 2).encoding().width());
  EXPECT_EQ(Rows("select count(*), count(distinct name), max(n), sum(id) from t"),
            (TextRows{{"71000", "70005", "350000000000000", "2520535500"}}));
  EXPECT_EQ(Rows("select id from t where n between 999 and 5000000000 order by n"),
            (TextRows{{"999"}, {"1000"}, {"1001"}}));
  EXPECT_EQ(Rows("select id, n from t where name = 'name 69999'"), (TextRows{{"70999", "349995000000000"}}));
  EXPECT_EQ(
      Rows("select name, count(*) from t where name like 'few%' or id > 70999 group by name order by 1"),
      (TextRows{{"few 0", "200"},
                {"few 1", "200"},
                {"few 2", "200"},
                {"few 3", "200"},
                {"few 4", "200"},
                {"name 70000", "1"}}));
  EXPECT_EQ(Rows("select count(*) from t x join t y on x.id = y.id and x.name = y.name"),
            (TextRows{{"71000"}}));
  EXPECT_EQ(Rows("select count(*) from t x join t y on x.id = y.n"), (TextRows{{"1000"}}));
  EXPECT_EQ(Command("vacuum t"), "VACUUM");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  EXPECT_EQ(Rows("select count(*), count(distinct name), max(n), sum(id) from t"),
            (TextRows{{"71000", "70005", "350000000000000", "2520535500"}}));
  EXPECT_EQ(Command("vacuum t"), "VACUUM") << "nothing is left to do";
}

/// The results of an expression over a text are kept by its code, for each dictionary.
TEST_F(AppendTest, CodesMeanTheirOwnGroupsTexts) {
  // Each thread meets partitions of both groups.
  Command("create table t (n int, b text) with (partition_by = 'n:16')");
  Command("insert into t select i, 'a' || i % 3 from generate_series(1, 6000) g (i)");
  Command("insert into t select i, 'b' || i % 3 from generate_series(1, 6000) g (i)");
  EXPECT_EQ(
      Rows("select upper(b), count(*) from t group by upper(b) order by 1"),
      (TextRows{
          {"A0", "2000"}, {"A1", "2000"}, {"A2", "2000"}, {"B0", "2000"}, {"B1", "2000"}, {"B2", "2000"}}));
  EXPECT_EQ(Rows("select count(*) from t where length(b || b) = 4 and upper(b) > 'A2'"),
            (TextRows{{"6000"}}));
}

/// The build side's keys are numbers of 64 bits, the probe side's are used as stored.
TEST_F(AppendTest, WideKeysMeetNarrowOnes) {
  Command(
      "create table k as select i::decimal(30) as h, 'k' || i as name from generate_series(1, 3000) g (i)");
  Command("create table w (h decimal(30)) with (storage = columnar)");
  Command("insert into w select i::decimal(30) * 1000 from generate_series(1, 9000) g (i)");
  Command("insert into w values (1000000000000000000000000001), (7)");
  EXPECT_EQ(Rows("select k.name from w join k on w.h = k.h order by 1"),
            (TextRows{{"k1000"}, {"k2000"}, {"k3000"}, {"k7"}}));
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

TEST_F(AppendTest, NothingIsAddedByAStatementThatFails) {
  Command("create table t (a smallint not null, b varchar(3)) with (storage = columnar)");
  Command("insert into t values (1, 'a')");
  EXPECT_EQ(StateOf("insert into t values (2, 'b'), (40000, 'c')"), "22003");
  EXPECT_EQ(StateOf("insert into t values (2, 'b'), (3, 'abcd')"), "22001");
  EXPECT_EQ(StateOf("insert into t values (2, 'b'), (null, 'c')"), "23502");
  EXPECT_EQ(StateOf("insert into t (b) values ('b')"), "23502");
  EXPECT_EQ(StateOf("insert into t select 1 / (i - 3), 'x' from generate_series(1, 5) g (i)"), "22012");
  EXPECT_EQ(StateOf("insert into t values (1, 'a') returning a"), "0A000");
  EXPECT_EQ(StateOf("insert into t values (1, 'a') on conflict do nothing"), "0A000");
  EXPECT_EQ(StateOf("explain insert into t values (1, 'a')"), "0A000");
  EXPECT_EQ(StateOf("delete from t"), "0A000");
  EXPECT_EQ(StateOf("update t set a = 2"), "0A000");
  EXPECT_EQ(Rows("select a, b from t"), (TextRows{{"1", "a"}}));
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  EXPECT_EQ(Command("insert into t select a, b from t where false"), "INSERT 0 0");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  Command("begin");
  EXPECT_EQ(StateOf("insert into t values (2, 'b')"), "25001") << "it would not be rolled back";
  Command("rollback");
}

/// Its group has no codes, since 64 bits would leave none for NULL; the groups beside it have.
TEST_F(AppendTest, ANullableColumnHoldsTheLeastBigint) {
  Command("create table t (k int not null, a bigint) with (partition_by = 'k:2', sort_by = 'a')");
  Command("create table u (a bigint, b bigint not null) with (storage = columnar)");
  Command("insert into t values (1, 7), (2, null), (3, -1)");
  Command(
      "insert into t values (4, -9223372036854775808), (5, null), (6, 9223372036854775807), (7, 7), (8, -1)");
  Command("insert into t values (9, -9223372036854775808)");
  Command("insert into u values (-9223372036854775808, -9223372036854775808), (7, 9223372036854775807)");
  for (const bool merged : {false, true}) {
    if (merged) Command("vacuum t");
    EXPECT_EQ(catalog::GroupCount(*Table("t")), merged ? 1u : 3u);
    EXPECT_EQ(Rows("select a, count(*), min(k) from t group by a order by a"),
              (TextRows{{"-9223372036854775808", "2", "4"},
                        {"-1", "2", "3"},
                        {"7", "2", "1"},
                        {"9223372036854775807", "1", "6"},
                        {"NULL", "2", "2"}}));
    EXPECT_EQ(Rows("select k from t where a < 0 order by k"), (TextRows{{"3"}, {"4"}, {"8"}, {"9"}}));
    EXPECT_EQ(Rows("select k from t where a = -9223372036854775808 order by k"), (TextRows{{"4"}, {"9"}}));
    EXPECT_EQ(Rows("select k from t where a in (7, 9223372036854775807) or a is null order by k"),
              (TextRows{{"1"}, {"2"}, {"5"}, {"6"}, {"7"}}));
    EXPECT_EQ(
        Rows("select count(*), count(a), min(a), max(a), sum(a), count(distinct a) from t"),
        (TextRows{{"9", "7", "-9223372036854775808", "9223372036854775807", "-9223372036854775797", "4"}}));
    EXPECT_EQ(Rows("select t.k, u.b from t join u on t.a = u.a order by 1"),
              (TextRows{{"1", "9223372036854775807"},
                        {"4", "-9223372036854775808"},
                        {"7", "9223372036854775807"},
                        {"9", "-9223372036854775808"}}));
    EXPECT_EQ(Rows("select u.a, t.k from u left join t on t.a = u.b order by 1, 2"),
              (TextRows{{"-9223372036854775808", "4"}, {"-9223372036854775808", "9"}, {"7", "6"}}));
  }
}

TEST_F(AppendTest, ANullableDecimalHoldsTheLeastNumberOf64Bits) {
  Command("create table t (a decimal(19), b decimal(20,1)) with (storage = columnar)");
  Command("insert into t values (-9223372036854775808, -922337203685477580.8), (null, null), (3, 0.5)");
  EXPECT_EQ(Rows("select a, b from t order by a"),
            (TextRows{{"-9223372036854775808", "-922337203685477580.8"}, {"3", "0.5"}, {"NULL", "NULL"}}));
}

TEST_F(AppendTest, ATableMayBeMadeOfAQuery) {
  Command("create table r (id int primary key, name text, at timestamp) with (storage = record)");
  Command("insert into r values (1, 'a', '2020-01-01'), (2, null, null), (3, 'c', '2021-01-01 10:00')");
  EXPECT_EQ(Command("create table t as select id, name, at, id * 1.5 as more from r"), "SELECT 3");
  EXPECT_FALSE(Table("t")->has_record());
  EXPECT_EQ(Rows("select * from t order by id"), (TextRows{{"1", "a", "2020-01-01 00:00:00", "1.5"},
                                                           {"2", "NULL", "NULL", "3.0"},
                                                           {"3", "c", "2021-01-01 10:00:00", "4.5"}}));
  EXPECT_EQ(
      Command("create table u (x, y) with (partition_by = 'x:2') as select id, sum(more) from t group by id"),
      "SELECT 3");
  EXPECT_EQ(Rows("select x, y from u order by x"), (TextRows{{"1", "1.5"}, {"2", "3.0"}, {"3", "4.5"}}));
  EXPECT_EQ(StateOf("create table u as select 1 as a"), "42P07");
  EXPECT_EQ(Command("create table if not exists u as select 1 as a"), "CREATE TABLE AS");
  EXPECT_EQ(Command("create table v as select id, name from t with no data"), "CREATE TABLE AS");
  EXPECT_EQ(Rows("select count(*) from v"), (TextRows{{"0"}}));
  EXPECT_EQ(StateOf("create table w as select id, id from t"), "42701");
  EXPECT_EQ(StateOf("create table w (a, b) as select 1 as x"), "42601");
  EXPECT_EQ(StateOf("create table w with (storage = record) as select 1 as x"), "0A000");
  EXPECT_EQ(StateOf("create table w as select 1 / (id - 2) as x from t"), "22012");
  EXPECT_EQ(StateOf("select * from w"), "42P01") << "half a table";
  EXPECT_EQ(Command("create table w as select true as a, 'x' as b, null as c, 1.5::double precision as d, "
                    "interval '1 day' as e, 123456789012345678901234567890 as f"),
            "SELECT 1");
  EXPECT_EQ(Rows("select a, b, c, d, e, f from w"),
            (TextRows{{"1", "x", "NULL", "1.5", "1 day", "123456789012345678901234567890"}}));
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
  EXPECT_EQ(Rows("select sum(id) / 2, sum(x) / 4, sum(n) / 3, max(x) / 4 from t"), Rows(R"(
      select sum(id) / 2, sum(x) / 4, sum(n) / 3, max(x) / 4 from (select id, n, sum(b) over () as x from r) q)"));
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

TEST_F(AppendTest, TruncateLeavesAnEmptyTable) {
  Command("create table t (a int, b text) with (partition_by = 'a:2')");
  Command("insert into t values (1, 'a')");
  Command("insert into t values (2, 'b')");
  EXPECT_EQ(Command("truncate table t"), "TRUNCATE TABLE");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
  EXPECT_EQ(Table("t")->partitions_size(), 2);
  Command("insert into t values (3, 'c')");
  EXPECT_EQ(Rows("select a, b from t"), (TextRows{{"3", "c"}}));
  Command("create table r (id int primary key) with (storage = record)");
  Command("insert into r values (1), (2)");
  EXPECT_EQ(Command("truncate r"), "TRUNCATE TABLE");
  EXPECT_EQ(Rows("select count(*) from r"), (TextRows{{"0"}}));
  EXPECT_EQ(StateOf("truncate t, r"), "0A000");
  EXPECT_EQ(StateOf("truncate nothing"), "42P01");
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
