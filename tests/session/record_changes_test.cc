#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/match.h"
#include "tests/session/record_session.h"

namespace nam::session {
namespace {

class RecordChangesTest : public RecordSessionTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run("create table t (id int primary key, n int, s varchar(10)) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, null, 'c')"), "INSERT 0 3");
    ASSERT_EQ(Run("create table u (t_id int, k int, v decimal(8,2), primary key (t_id, k)) with (storage = "
                  "record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into u values (1, 1, 1.5), (1, 2, 2.5), (2, 1, 9)"), "INSERT 0 3");
  }

  /// The error's message and hint.
  std::string Why(const std::string& text) {
    const auto result = Execute(text);
    const auto error = SqlErrorOf(result.status());
    return error.has_value() ? absl::StrCat(error->sqlstate, ": ", error->message, " (", error->hint, ")")
                             : result.status().ToString();
  }
};

TEST_F(RecordChangesTest, InsertOfAQueryReadsWhatWasThereBefore) {
  EXPECT_EQ(Run("insert into t select id + 3, n, s from t"), "INSERT 0 3");
  EXPECT_EQ(Run("insert into t (s, id) select 'x', id + 10 from t where n > 10"), "INSERT 0 2");
  EXPECT_EQ(Run("select id, n, s from t where id > 3 order by id"),
            "SELECT 5 | 4,10,a | 5,20,b | 6,NULL,c | 12,NULL,x | 15,NULL,x");
  EXPECT_EQ(Run("insert into u select t.id, sum(u.k), avg(u.v) from t join u on t.id = u.t_id group by t.id "
                "having count(*) > 1"),
            "INSERT 0 1");
  EXPECT_EQ(Run("select * from u order by t_id, k"), "SELECT 4 | 1,1,1.50 | 1,2,2.50 | 1,3,2.00 | 2,1,9.00");
  EXPECT_EQ(Run("insert into t select 100, null, 'y' union all select 101, 7, '2026' order by 1 limit 5"),
            "INSERT 0 2");
  EXPECT_EQ(Run("insert into t (id) values (200), (201) order by 1"), "INSERT 0 2");
  EXPECT_EQ(Run("insert into t with w as (select max(id) as m from t) select m + 1, m from w"), "INSERT 0 1");
  EXPECT_EQ(Run("select * from t where id > 99 order by id"),
            "SELECT 5 | 100,NULL,y | 101,7,2026 | 200,NULL,NULL | 201,NULL,NULL | 202,201,NULL");
}

TEST_F(RecordChangesTest, InsertConvertsAsOnAssignment) {
  EXPECT_EQ(Run("insert into t select 7, 1.5, date '2026-01-02'"), "INSERT 0 1");
  EXPECT_EQ(Run("select * from t where id = 7"), "SELECT 1 | 7,2,2026-01-02");
  EXPECT_EQ(Run("insert into t select 8, 'x', 'y'"), "22P02");
  EXPECT_EQ(Run("insert into t select 8, true, 'y'"), "42804");
  EXPECT_EQ(Run("insert into t select 8, 1, 'longer than ten'"), "22001");
  EXPECT_EQ(Run("insert into t select 8, 3000000000, 'y'"), "22003");
  EXPECT_EQ(Run("insert into t select null, 1, 'y'"), "23502");
  EXPECT_EQ(Run("insert into t select id, 1, 'y' from t"), "23505");
  EXPECT_EQ(Run("insert into t (id, n) select id from t"), "42601");
  EXPECT_EQ(Run("insert into t select id, n, s, 1 from t"), "42601");
  EXPECT_EQ(Run("select count(*) from t"), "SELECT 1 | 4");
}

TEST_F(RecordChangesTest, AnErrorInTheMiddleLeavesNothing) {
  EXPECT_EQ(Run("insert into t select id + 10, 100 / (id - 2), 'x' from t"), "22012");
  EXPECT_EQ(Run("select count(*) from t"), "SELECT 1 | 3");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("insert into t values (9, 9, 'i')"), "INSERT 0 1");
  EXPECT_EQ(Run("insert into t select id + 10, 100 / (id - 2), 'x' from t"), "22012");
  EXPECT_EQ(Run("select count(*) from t"), "25P02");
  EXPECT_EQ(Run("commit"), "ROLLBACK");
  EXPECT_EQ(Run("select count(*) from t"), "SELECT 1 | 3");
  EXPECT_EQ(Run("insert into t select u.t_id * 1000 + a.id * 10 + b.id, 1, 'x' from u, t a, t b, u u2, u u3"),
            "23505");
}

// Rows are inserted some hundred at a time; the error is that of the first row that cannot be.
TEST_F(RecordChangesTest, TheFirstRowThatFailsIsTheError) {
  ASSERT_EQ(Run("create table w (id int primary key, n int check (n < 1000)) with (storage = record)"),
            "CREATE TABLE");
  std::string rows = "(0, 0)";
  for (int i = 1; i < 700; ++i) rows += absl::StrCat(", (", i, ", ", i, ")");
  EXPECT_EQ(Run("insert into w values " + rows), "INSERT 0 700");
  EXPECT_EQ(Run("select count(*), sum(n), min(id), max(id) from w"), "SELECT 1 | 700,244650,0,699");
  const std::string there =
      "23505: duplicate key value violates unique constraint \"w_pkey\" (key (id)=(5) already exists)";
  EXPECT_EQ(Why("insert into w values (701, 1), (5, 1), (702, 1000)"), there);
  EXPECT_EQ(Run("insert into w values (701, 1), (702, 1000), (5, 1)"), "23514");
  const std::string twice =
      "23505: duplicate key value violates unique constraint \"w_pkey\" (key (id)=(703) already exists)";
  EXPECT_EQ(Why("insert into w values (703, 1), (704, 1), (703, 2), (705, 1000)"), twice);
  EXPECT_EQ(
      Why("insert into w select id + 690, n from w"),
      "23505: duplicate key value violates unique constraint \"w_pkey\" (key (id)=(690) already exists)");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("insert into w values (800, 1)"), "INSERT 0 1");
  EXPECT_EQ(Run("savepoint s"), "SAVEPOINT");
  EXPECT_EQ(
      Run("insert into w select id + 801, 1 from w where id < 300 union all select 699, 1 order by 1 desc"),
      "23505");
  EXPECT_EQ(Run("rollback to s"), "ROLLBACK");
  EXPECT_EQ(Run("insert into w select id + 801, 1 from w where id < 300"), "INSERT 0 300");
  EXPECT_EQ(Run("commit"), "COMMIT");
  EXPECT_EQ(Run("select count(*) from w"), "SELECT 1 | 1001");
}

TEST_F(RecordChangesTest, Defaults) {
  ASSERT_EQ(Run("create table d (id int primary key, n int default 1 + 2 not null, s varchar(20) default "
                "'a, (b)' /* c */, at timestamp default now(), day date default current_date, x numeric(5,2) "
                "default round(2.345, 2) check (x > 0), b boolean default (1 < 2)) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into d (id) values (1)"), "INSERT 0 1");
  now_us_ += 86'400'000'000;
  EXPECT_EQ(Run("insert into d (id, s, n) values (2, default, 5), (3, 'z', default)"), "INSERT 0 2");
  EXPECT_EQ(Run("select * from d order by id"),
            "SELECT 3 | 1,3,a, (b),2026-09-21 14:13:20,2026-09-21,2.35,t | 2,5,a, (b),2026-09-22 "
            "14:13:20,2026-09-22,2.35,t | 3,3,z,2026-09-22 14:13:20,2026-09-22,2.35,t");
  EXPECT_EQ(Run("update d set n = default, s = 'q', at = default where id = 2"), "UPDATE 1");
  EXPECT_EQ(Run("select n, s from d where id = 2"), "SELECT 1 | 3,q");
  EXPECT_EQ(Run("insert into d (id, n) values (4, null)"), "23502");
  EXPECT_EQ(Run("insert into d default values"), "23502");
  ASSERT_EQ(Run("create table e (id int default 7 primary key, n int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into e default values returning *"), "INSERT 0 1 | 7,NULL");
  EXPECT_EQ(Run("insert into e values (default, 1)"), "23505");
  EXPECT_EQ(Run("insert into e (id, n) select 8, n from t where id = 1"), "INSERT 0 1");
  EXPECT_EQ(Run("create table f (id int primary key, n int default id) with (storage = record)"), "0A000");
  EXPECT_EQ(Run("create table f (id int primary key, n int default (select 1)) with (storage = record)"),
            "0A000");
  EXPECT_EQ(Run("create table f (id int primary key, n int default true) with (storage = record)"), "42804");
  EXPECT_EQ(Run("create table f (id int primary key, n int default 1 default 2) with (storage = record)"),
            "42601");
}

TEST_F(RecordChangesTest, Returning) {
  EXPECT_EQ(Run("insert into t values (4, 40, 'd'), (5, 50, 'e') returning id, n * 2 as twice, upper(s)"),
            "INSERT 0 2 | 4,80,D | 5,100,E");
  EXPECT_EQ(Run("update t set n = n + 1 where id > 3 returning *"), "UPDATE 2 | 4,41,d | 5,51,e");
  EXPECT_EQ(Run("update t as x set id = 14 where x.id = 4 returning x.id, t_id"), "42703");
  EXPECT_EQ(Run("update t as x set id = 14 where x.id = 4 returning x.*, 'gone'"), "UPDATE 1 | 14,41,d,gone");
  EXPECT_EQ(Run("delete from t where id > 3 returning s, id is null"), "DELETE 2 | e,f | d,f");
  EXPECT_EQ(Run("delete from t where id > 30 returning s"), "DELETE 0");
  EXPECT_EQ(Run("insert into t values (9, 0, 'z') returning 1 / n"), "22012");
  EXPECT_EQ(Run("select count(*) from t where id = 9"), "SELECT 1 | 0");
  EXPECT_EQ(Run("insert into t values (9, 0, 'z') returning count(*)"), "42803");
  const auto result = Execute("insert into t select 20, 1, 'q' returning id as key, n + 1");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->columns.at(0).name, "key");
  EXPECT_EQ(result->columns.at(1).name, "?column?");
}

TEST_F(RecordChangesTest, OnConflict) {
  EXPECT_EQ(Run("insert into t values (1, 5, 'x'), (7, 7, 'g') on conflict do nothing returning id"),
            "INSERT 0 1 | 7");
  EXPECT_EQ(Run("insert into t values (1, 5, 'x'), (8, 8, 'h') on conflict (id) do update set n = t.n + "
                "excluded.n, s = excluded.s where t.n < 100 returning *"),
            "INSERT 0 2 | 1,15,x | 8,8,h");
  EXPECT_EQ(Run("insert into t as old values (1, 500, 'y') on conflict (id) do update set n = excluded.n "
                "where old.n > 100"),
            "INSERT 0 0");
  EXPECT_EQ(
      Run("insert into t values (1, 500, 'y') on conflict on constraint t_pkey do update set n = default"),
      "INSERT 0 1");
  EXPECT_EQ(Run("select * from t where id in (1, 7, 8) order by id"), "SELECT 3 | 1,NULL,x | 7,7,g | 8,8,h");
  // The same key occurs twice: the second row is skipped, or an error if it is to be changed.
  EXPECT_EQ(Run("insert into t values (11, 1, 'x'), (11, 2, 'y') on conflict (id) do nothing"), "INSERT 0 1");
  EXPECT_EQ(Run("insert into t values (12, 1, 'x'), (12, 2, 'y') on conflict (id) do update set n = 3"),
            "21000");
  EXPECT_EQ(Run("select n from t where id > 10"), "SELECT 1 | 1");
  EXPECT_EQ(Run("insert into t values (1, 1, 'x') on conflict (n) do nothing"), "42P10");
  EXPECT_EQ(Run("insert into t values (1, 1, 'x') on conflict (id) do update set n = n + 1"), "42702");
  EXPECT_EQ(Run("insert into t values (1, 1, 'x') on conflict do update set n = 1"), "42601");
  EXPECT_EQ(Run("insert into t values (1, 1, 'x') on conflict on constraint no do nothing"), "42704");
  EXPECT_EQ(Run("insert into t values (1, 1, 'x') on conflict (id) do update set id = 30, n = 30"),
            "INSERT 0 1");
  EXPECT_EQ(Run("select id from t where id in (1, 30)"), "SELECT 1 | 30");
}

TEST_F(RecordChangesTest, UpdateFromOtherTables) {
  EXPECT_EQ(
      Run("update t set n = u.k * 100, s = x.s || '!' from u, t as x where u.t_id = t.id and u.k = 2 and "
          "x.id = 3 returning t.id, t.n, t.s, u.v, x.id"),
      "UPDATE 1 | 1,200,c!,2.50,3");
  // Row 1 matches twice and is changed once.
  EXPECT_EQ(Run("update t set n = t.n + 1 from u where u.t_id = t.id"), "UPDATE 2");
  EXPECT_EQ(Run("select id, n from t order by id"), "SELECT 3 | 1,201 | 2,21 | 3,NULL");
  EXPECT_EQ(
      Run("update t set n = sums.total from (select t_id, sum(v) as total from u group by t_id) as sums "
          "where sums.t_id = t.id"),
      "UPDATE 2");
  EXPECT_EQ(Run("update t set n = 0 from t where id = 1"), "42712");
  EXPECT_EQ(Run("update t set n = 0 from u where k = 1 and id = t_id and s = 'nobody'"), "UPDATE 0");
  EXPECT_EQ(Run("select id, n from t order by id"), "SELECT 3 | 1,4 | 2,9 | 3,NULL");
}

TEST_F(RecordChangesTest, DeleteUsingOtherTables) {
  EXPECT_EQ(Run("delete from u using t where t.id = u.t_id and t.s = 'a' returning u.*, t.s"),
            "DELETE 2 | 1,1,1.50,a | 1,2,2.50,a");
  EXPECT_EQ(Run("delete from t using u where u.k > 0"), "DELETE 3");
  EXPECT_EQ(Run("select count(*) from t"), "SELECT 1 | 0");
}

TEST_F(RecordChangesTest, Subqueries) {
  EXPECT_EQ(Run("update t set n = (select max(k) from u where u.t_id = t.id)"), "UPDATE 3");
  EXPECT_EQ(Run("select id, n from t order by id"), "SELECT 3 | 1,2 | 2,1 | 3,NULL");
  EXPECT_EQ(Run("update t set (n, s) = (select count(*), 'x' from u where u.t_id = t.id) where id in (select "
                "t_id from u)"),
            "UPDATE 2");
  EXPECT_EQ(Run("update t set (s, n) = ('y', 5) where not exists (select 1 from u where u.t_id = t.id)"),
            "UPDATE 1");
  EXPECT_EQ(Run("select * from t order by id"), "SELECT 3 | 1,2,x | 2,1,x | 3,5,y");
  EXPECT_EQ(Run("update t set n = (select k from u where u.t_id = t.id)"), "21000");
  EXPECT_EQ(Run("update t set (n, s) = (select k, 'x' from u where u.t_id = t.id)"), "21000");
  EXPECT_EQ(Run("update t set (n, s) = (select 1)"), "42601");
  EXPECT_EQ(Run("update t set (n, s) = (1, 'x', 3)"), "42601");
  EXPECT_EQ(Run("update t set n = 1, n = 2"), "42601");
  EXPECT_EQ(Run("update t set n = sum(n)"), "42803");
  EXPECT_EQ(Run("delete from t where n = (select max(n) from t) or id not in (select t_id from u)"),
            "DELETE 1");
  EXPECT_EQ(
      Run("insert into t values (50, (select count(*) from t), 'q'), (51, default, (select 'z')), ((select "
          "52), 1 + (select max(n) from t), null)"),
      "INSERT 0 3");
  EXPECT_EQ(Run("select * from t where id >= 50 order by id"), "SELECT 3 | 50,2,q | 51,NULL,z | 52,3,NULL");
}

TEST_F(RecordChangesTest, UniqueConstraints) {
  ASSERT_EQ(
      Run("create table v (id int primary key, a int unique, b varchar(5), c int, constraint bc unique (b, "
          "c), unique (a)) with (storage = record)"),
      "CREATE TABLE");
  EXPECT_EQ(
      Run("insert into v values (1, 1, 'x', 1), (2, 2, 'x', 2), (3, null, 'x', null), (4, null, 'x', null)"),
      "INSERT 0 4");
  EXPECT_EQ(Why("insert into v values (5, 2, 'y', 1)"),
            "23505: duplicate key value violates unique constraint \"v_a_key\" (key (a)=(2) already exists)");
  EXPECT_EQ(
      Why("insert into v values (5, 5, 'x', 2)"),
      "23505: duplicate key value violates unique constraint \"bc\" (key (b, c)=(x, 2) already exists)");
  EXPECT_EQ(Why("insert into v values (1, 5, 'z', 2)"),
            "23505: duplicate key value violates unique constraint \"v_pkey\" (key (id)=(1) already exists)");
  EXPECT_EQ(Run("insert into v values (5, 7, 'y', 1), (6, 7, 'y', 2)"), "23505");
  EXPECT_EQ(Run("update v set a = 1 where id = 2"), "23505");
  EXPECT_EQ(Run("update v set a = 3 - a where id < 3"), "UPDATE 2");
  EXPECT_EQ(Run("update v set a = a where id < 3"), "UPDATE 2");
  EXPECT_EQ(Run("insert into v values (1, 1, 'x', 1) on conflict do nothing"), "INSERT 0 0");
  EXPECT_EQ(
      Run("insert into v values (9, 1, 'q', 1) on conflict (a) do update set b = 'new' returning id, b"),
      "INSERT 0 1 | 2,new");
  EXPECT_EQ(
      Run("insert into v values (2, 1, 'q', 1) on conflict (a) do update set b = 'old' returning id, b"),
      "INSERT 0 1 | 2,old");
  EXPECT_EQ(Run("insert into v values (2, 50, 'q', 1) on conflict (a) do nothing"), "23505");
  EXPECT_EQ(Run("select id, a, b from v order by id"), "SELECT 4 | 1,2,x | 2,1,old | 3,NULL,x | 4,NULL,x");
  EXPECT_EQ(Run("drop index v_a_key"), "2BP01");
  EXPECT_EQ(Run("create table w (a int, a2 int unique, unique (a, a)) with (storage = record)"), "42701");
}

/// Its creator may die before it has made the indexes.
TEST_F(RecordChangesTest, ATableIsWholeBeforeItIsChanged) {
  ASSERT_EQ(Run("create table v (id int primary key, a int unique) with (storage = record)"), "CREATE TABLE");
  access_.tables["v"].mutable_record()->mutable_parts(0)->set_usable_from(0);
  EXPECT_EQ(Run("insert into v values (1, 1)"), "55000");
  EXPECT_EQ(Run("delete from v"), "55000");
  EXPECT_EQ(Run("select count(*) from v"), "SELECT 1 | 0");
  access_.tables["v"].mutable_record()->mutable_parts(0)->set_usable_from(1);
  EXPECT_EQ(Run("insert into v values (1, 1)"), "INSERT 0 1");
}

TEST_F(RecordChangesTest, NumberedColumns) {
  ASSERT_EQ(Run("create table s (id serial primary key, n smallserial, b bigint generated always as identity "
                "(start "
                "with 100 increment by -10), x int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into s (x) values (1), (2) returning *"), "INSERT 0 2 | 1,1,100,1 | 2,2,90,2");
  EXPECT_EQ(Run("insert into s select 10, 20, 30, 40"), "428C9");
  EXPECT_EQ(Run("insert into s (id, x) select id + 10, x from s order by id"), "INSERT 0 2");
  EXPECT_EQ(Run("insert into s values (20, default, default, 3), (21, default, default, 4)"), "INSERT 0 2");
  EXPECT_EQ(
      Why("insert into s values (30, 1, 5, 3)"),
      "428C9: cannot insert a non-DEFAULT value into column \"b\" (use OVERRIDING SYSTEM VALUE to override)");
  EXPECT_EQ(Run("insert into s overriding system value values (30, 1, 5, 3) returning b"), "INSERT 0 1 | 5");
  EXPECT_EQ(Run("insert into s overriding user value values (31, 1, 5, 3) returning id, b"),
            "INSERT 0 1 | 3,40");
  EXPECT_EQ(Run("update s set b = 7"), "428C9");
  EXPECT_EQ(Run("update s set b = default where id = 1 returning b"), "UPDATE 1 | 30");
  EXPECT_EQ(Run("insert into s (id) values (null)"), "23502");
  EXPECT_EQ(
      Run("select id, n, b, x from s order by id"),
      "SELECT 8 | 1,1,30,1 | 2,2,90,2 | 3,7,40,3 | 11,3,80,1 | 12,4,70,2 | 20,5,60,3 | 21,6,50,4 | 30,1,5,3");
  access_.numbers["s"][1] = 32767;
  EXPECT_EQ(Why("insert into s (x) values (1)"),
            "2200H: nextval: reached maximum value of sequence \"s_n_seq\" (32767) (its column has no larger "
            "numbers: give them in INSERT, or make another table)");
  EXPECT_EQ(Run("create table s2 (id serial default 1) with (storage = record)"), "42601");
  EXPECT_EQ(Run("create table s2 (id text generated always as identity) with (storage = record)"), "22023");
}

TEST_F(RecordChangesTest, TablesWithoutAKey) {
  ASSERT_EQ(Run("create table k (a int, b text) with (storage = record)"), "CREATE TABLE");
  EXPECT_EQ(Run("insert into k values (1, 'x'), (1, 'x'), (2, 'y') returning *"),
            "INSERT 0 3 | 1,x | 1,x | 2,y");
  EXPECT_EQ(Run("insert into k values (1, 'x', 5)"), "42601");
  EXPECT_EQ(Run("insert into k select a + 1, b from k"), "INSERT 0 3");
  EXPECT_EQ(Run("select * from k order by a, b"), "SELECT 6 | 1,x | 1,x | 2,x | 2,x | 2,y | 3,y");
  EXPECT_EQ(Run("update k set a = 9 where b = 'y' and a = 3 returning k.*"), "UPDATE 1 | 9,y");
  EXPECT_EQ(Run("update k set b = t.s from t where t.id = k.a and t.id = 1"), "UPDATE 2");
  EXPECT_EQ(Run("select count(*), max(b) from k where a = 1"), "SELECT 1 | 2,a");
  EXPECT_EQ(Run("delete from k where a in (select a from k group by a having count(*) > 2)"), "DELETE 3");
  EXPECT_EQ(Run("select a.* from k a join k b on a.a = b.a order by 1"),
            "SELECT 5 | 1,a | 1,a | 1,a | 1,a | 9,y");
  EXPECT_EQ(Run("select \"nam.row\" from k"), "42703");
  EXPECT_EQ(Run("insert into k (\"nam.row\") values (1)"), "42703");
  EXPECT_EQ(Run("insert into k values (1, 'x') on conflict do nothing"), "INSERT 0 1");
}

TEST_F(RecordChangesTest, MoreTypes) {
  ASSERT_EQ(
      Run("create table y (d double precision primary key, r real, i interval, x text unique) with (storage "
          "= record)"),
      "CREATE TABLE");
  EXPECT_EQ(
      Run("insert into y values (1.5, 2.25, '1 day 02:00', 'abc'), ('-1e300', null, null, null), (0, 1, "
          "interval '-3 months', '')"),
      "INSERT 0 3");
  EXPECT_EQ(Run("select * from y order by d"),
            "SELECT 3 | -1e+300,NULL,NULL,NULL | 0,1,-3 mons, | 1.5,2.25,1 day 02:00:00,abc");
  EXPECT_EQ(Run("select x from y where d = 1.5"), "SELECT 1 | abc");
  EXPECT_EQ(Run("select d from y where d < 0.5 and d > -5"), "SELECT 1 | 0");
  EXPECT_EQ(Run("update y set i = i + interval '1 hour', x = x || x where x > ''"), "UPDATE 1");
  EXPECT_EQ(Run("select i, x from y where x = 'abcabc'"), "SELECT 1 | 1 day 03:00:00,abcabc");
  EXPECT_EQ(Run("insert into y (d, x) values (7, '" + std::string(1000, 'x') + "')"), "INSERT 0 1");
  EXPECT_EQ(Run("insert into y (d, x) values (8, '" + std::string(1000, 'x') + "')"), "23505");
  EXPECT_EQ(Run("insert into y (d, x) values (9, '" + std::string(1001, 'x') + "')"), "54000");
  EXPECT_EQ(Run("create table y2 (i interval primary key) with (storage = record)"), "0A000");
  EXPECT_EQ(Run("create index on y (i)"), "0A000");
}

}  // namespace
}  // namespace nam::session
