#include <gtest/gtest.h>

#include "tests/session/record_session.h"

/// uuid, bytea and interval in record tables, as keys of all kinds. The results are PostgreSQL 15's.
namespace nam::session {
namespace {

class RecordTypesTest : public RecordSessionTest {};

TEST_F(RecordTypesTest, UuidsAreKeysAndValues) {
  ASSERT_EQ(Run("create table u (id uuid primary key, other uuid, n int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into u values ('80000000-0000-0000-0000-000000000000', "
                "'{7fffffffffffffffffffffffffffffff}', 1), ('00000000-0000-0000-0000-000000000001', null, "
                "2), ('ffffffff-ffff-ffff-ffff-ffffffffffff', '7fffffff-ffff-ffff-ffff-ffffffffffff', 3), "
                "('7fffffff-ffff-ffff-ffff-ffffffffffff', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 4)")
                .substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("create index on u (other)"), "CREATE INDEX");
  EXPECT_EQ(Run("select id, n from u order by id"),
            "SELECT 4 | 00000000-0000-0000-0000-000000000001,2 | 7fffffff-ffff-ffff-ffff-ffffffffffff,4 | "
            "80000000-0000-0000-0000-000000000000,1 | ffffffff-ffff-ffff-ffff-ffffffffffff,3");
  EXPECT_EQ(Run("select n from u where id = '7fffffff-ffff-ffff-ffff-ffffffffffff'"), "SELECT 1 | 4");
  EXPECT_EQ(Run("select n from u where id > '7fffffff-ffff-ffff-ffff-ffffffffffff' order by id desc"),
            "SELECT 2 | 3 | 1");
  EXPECT_EQ(Run("select n from u where other = '7fffffff-ffff-ffff-ffff-ffffffffffff' order by n"),
            "SELECT 2 | 1 | 3");
  EXPECT_EQ(Run("select n from u where other is null"), "SELECT 1 | 2");
  EXPECT_EQ(Run("select n from u where id in ('7fffffff-ffff-ffff-ffff-ffffffffffff', "
                "'00000000-0000-0000-0000-000000000001', '11111111-0000-0000-0000-000000000001') order by n"),
            "SELECT 2 | 2 | 4");
  EXPECT_EQ(
      Run("select other, count(*) from u group by other order by other"),
      "SELECT 3 | 7fffffff-ffff-ffff-ffff-ffffffffffff,2 | ffffffff-ffff-ffff-ffff-ffffffffffff,1 | NULL,1");
  EXPECT_EQ(Run("select a.n, b.n from u a join u b on a.id = b.other order by 1, 2"),
            "SELECT 3 | 3,4 | 4,1 | 4,3");
  EXPECT_EQ(Run("select count(distinct other) from u"), "SELECT 1 | 2");
  EXPECT_EQ(Run("select distinct other from u order by 1 desc"),
            "SELECT 3 | NULL | ffffffff-ffff-ffff-ffff-ffffffffffff | 7fffffff-ffff-ffff-ffff-ffffffffffff");
  EXPECT_EQ(Run("select id::text from u where n = 1"), "SELECT 1 | 80000000-0000-0000-0000-000000000000");
  EXPECT_EQ(Run("select min(id) from u"), "42883");
  EXPECT_EQ(Run("select greatest(id, other) from u order by n"),
            "SELECT 4 | 80000000-0000-0000-0000-000000000000 | 00000000-0000-0000-0000-000000000001 | "
            "ffffffff-ffff-ffff-ffff-ffffffffffff | ffffffff-ffff-ffff-ffff-ffffffffffff");
  EXPECT_EQ(Run("insert into u values ('80000000000000000000000000000000', null, 9)"), "23505");
  EXPECT_EQ(Run("insert into u values ('8', null, 9)"), "22P02");
  EXPECT_EQ(Run("insert into u values (5, null, 9)"), "42804");
  EXPECT_EQ(Run("insert into u values ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::text, null, 9)"), "42804");
  EXPECT_EQ(Run("update u set other = id where n = 2").substr(0, 6), "UPDATE");
  EXPECT_EQ(Run("select other from u where n = 2"), "SELECT 1 | 00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(Run("delete from u where id = '00000000-0000-0000-0000-000000000001'").substr(0, 6), "DELETE");
  EXPECT_EQ(Run("select row_number() over (partition by other order by id), n from u order by 2"),
            "SELECT 3 | 1,1 | 2,3 | 1,4");
  EXPECT_EQ(Run("select id from u union select other from u order by 1"),
            "SELECT 3 | 7fffffff-ffff-ffff-ffff-ffffffffffff | 80000000-0000-0000-0000-000000000000 | "
            "ffffffff-ffff-ffff-ffff-ffffffffffff");
  EXPECT_EQ(Run("select n from u where id::text like '7%'"), "SELECT 1 | 4");
}

TEST_F(RecordTypesTest, EachRowHasItsOwnRandomUuid) {
  ASSERT_EQ(Run("create table g (id uuid default gen_random_uuid() primary key, n int, t text default 'x' || "
                "gen_random_uuid()::text) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into g (n) values (1), (2), (3)"), "INSERT 0 3");
  EXPECT_EQ(Run("insert into g values (gen_random_uuid(), 4, 'a'), (gen_random_uuid(), 5, 'b'), (default, 6, "
                "gen_random_uuid())"),
            "INSERT 0 3");
  EXPECT_EQ(Run("insert into g (n) select n + 10 from g"), "INSERT 0 6");
  EXPECT_EQ(Run("select count(distinct id), count(distinct t), count(*) from g"), "SELECT 1 | 12,12,12");
  EXPECT_EQ(Run("update g set id = default, t = default"), "UPDATE 12");
  EXPECT_EQ(Run("select count(distinct id), count(distinct t) from g"), "SELECT 1 | 12,12");
  EXPECT_EQ(Run("select count(*) from g where id::text like '________-____-4___-____-____________' and "
                "substr(id::text, 20, 1) in ('8', '9', 'a', 'b') and length(t) = 37"),
            "SELECT 1 | 12");
  EXPECT_EQ(Run("insert into g (n) values ((select 21)), (22)"), "INSERT 0 2");
  EXPECT_EQ(Run("insert into g (n, id) values ((select 1), default)"), "0A000");
  EXPECT_EQ(Run("insert into g (n, id) values ((select 1), gen_random_uuid())"), "0A000");
  EXPECT_EQ(Run("insert into g (n) values (gen_random_uuid())"), "42804");
  EXPECT_EQ(Run("select gen_random_uuid() from g"), "0A000");
}

TEST_F(RecordTypesTest, BytesAreKeysAndValues) {
  ASSERT_EQ(Run("create table b (k bytea primary key, v bytea, n int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(
      Run("insert into b values ('\\x', '\\x00', 1), ('\\x00', 'a', 2), ('\\x0000', 'a', 3), ('\\x0001', "
          "null, 4), ('\\xff', '\\x6100', 5), ('a\\000b', '\\xff00ff', 6), ('\\xc3', 'a', 7)")
          .substr(0, 6),
      "INSERT");
  EXPECT_EQ(Run("create index on b (v, n)"), "CREATE INDEX");
  EXPECT_EQ(Run("select k, n from b order by k"),
            "SELECT 7 | \\x,1 | \\x00,2 | \\x0000,3 | \\x0001,4 | \\x610062,6 | \\xc3,7 | \\xff,5");
  EXPECT_EQ(Run("select k, n from b order by k desc limit 3"), "SELECT 3 | \\xff,5 | \\xc3,7 | \\x610062,6");
  EXPECT_EQ(Run("select n from b where k = '\\x00'"), "SELECT 1 | 2");
  EXPECT_EQ(Run("select n from b where k = ''"), "SELECT 1 | 1");
  EXPECT_EQ(Run("select n from b where k > '\\x00' and k < '\\x62' order by k"), "SELECT 3 | 3 | 4 | 6");
  EXPECT_EQ(Run("select n from b where k >= '\\x0001' order by k"), "SELECT 4 | 4 | 6 | 7 | 5");
  EXPECT_EQ(Run("select n from b where k <= '\\x0000' order by k"), "SELECT 3 | 1 | 2 | 3");
  EXPECT_EQ(Run("select n from b where v = 'a' order by n"), "SELECT 3 | 2 | 3 | 7");
  EXPECT_EQ(Run("select n from b where v in ('a', '\\x00') order by n"), "SELECT 4 | 1 | 2 | 3 | 7");
  EXPECT_EQ(Run("select n from b where v is null"), "SELECT 1 | 4");
  EXPECT_EQ(Run("select v, count(*), sum(n) from b group by v order by v"),
            "SELECT 5 | \\x00,1,1 | \\x61,3,12 | \\x6100,1,5 | \\xff00ff,1,6 | NULL,1,4");
  EXPECT_EQ(Run("select a.n, b.n from b a join b on a.v = b.k order by 1, 2"), "SELECT 1 | 1,2");
  EXPECT_EQ(Run("select distinct v from b order by 1"),
            "SELECT 5 | \\x00 | \\x61 | \\x6100 | \\xff00ff | NULL");
  EXPECT_EQ(Run("select count(distinct v) from b"), "SELECT 1 | 4");
  EXPECT_EQ(Run("select max(v) from b"), "42883");
  EXPECT_EQ(
      Run("select length(k), encode(k, 'hex'), k || v, substring(v from 1 for 1), position('\\x00' in k) "
          "from b order by n"),
      "SELECT 7 | 0,,\\x00,\\x00,0 | 1,00,\\x0061,\\x61,1 | 2,0000,\\x000061,\\x61,1 | 2,0001,NULL,NULL,1 | "
      "1,ff,\\xff6100,\\x61,0 | 3,610062,\\x610062ff00ff,\\xff,2 | 1,c3,\\xc361,\\x61,0");
  EXPECT_EQ(Run("select md5(k) from b where n = 6"), "SELECT 1 | 70350f6027bce3713f6b76473084309b");
  EXPECT_EQ(Run("select v::text from b where n = 5"), "SELECT 1 | \\x6100");
  EXPECT_EQ(Run("select k from b union select v from b order by 1"),
            "SELECT 11 | \\x | \\x00 | \\x0000 | \\x0001 | \\x61 | \\x6100 | \\x610062 | \\xc3 | \\xff | "
            "\\xff00ff | NULL");
  EXPECT_EQ(Run("select k from b intersect select v from b order by 1"), "SELECT 1 | \\x00");
  EXPECT_EQ(Run("insert into b values ('\\x0000', null, 9)"), "23505");
  EXPECT_EQ(Run("insert into b values ('\\x0', null, 9)"), "22023");
  EXPECT_EQ(Run("insert into b values ('x\\9', null, 9)"), "22P02");
  EXPECT_EQ(Run("insert into b values ('x'::text, null, 9)"), "42804");
  EXPECT_EQ(Run("insert into b values (decode('00', 'hex') || '\\x02', sha256('x'), 8)").substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("select n, v from b where k = '\\x0002'"),
            "SELECT 1 | 8,\\x2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
  EXPECT_EQ(Run("update b set v = k || '\\x00' where n = 3").substr(0, 6), "UPDATE");
  EXPECT_EQ(Run("select v from b where n = 3"), "SELECT 1 | \\x000000");
  EXPECT_EQ(Run("select row_number() over (partition by v order by k), n from b order by 2"),
            "SELECT 8 | 1,1 | 1,2 | 1,3 | 1,4 | 1,5 | 1,6 | 2,7 | 1,8");
  EXPECT_EQ(Run("select case when n < 3 then v else '\\xee' end from b order by n"),
            "SELECT 8 | \\x00 | \\x61 | \\xee | \\xee | \\xee | \\xee | \\xee | \\xee");
  EXPECT_EQ(Run("select coalesce(v, '\\x01') from b where v is null"), "SELECT 1 | \\x01");
  EXPECT_EQ(Run("select first_value(k) over (order by k desc), n from b order by n limit 1"),
            "SELECT 1 | \\xff,1");
}

TEST_F(RecordTypesTest, IntervalsAreEqualByTheirSpans) {
  ASSERT_EQ(Run("create table i (id int primary key, iv interval, g int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into i values (1, '1 mon', 1), (2, '30 days', 1), (3, '720:00:00', 2), (4, '1 day', "
                "2), (5, '24:00:00', 1), (6, null, 1), (7, '-1 day', 2), (8, '12 days', null), (9, "
                "'288:00:00', null), (10, '00:00:01', 2)")
                .substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("select id from i order by iv, id"), "SELECT 10 | 7 | 10 | 4 | 5 | 8 | 9 | 1 | 2 | 3 | 6");
  EXPECT_EQ(Run("select id from i order by iv desc nulls last, id limit 4"), "SELECT 4 | 1 | 2 | 3 | 8");
  EXPECT_EQ(Run("select extract(epoch from iv), count(*) from i group by iv order by 1"),
            "SELECT 6 | -86400.000000,1 | 1.000000,1 | 86400.000000,2 | 1036800.000000,2 | 2592000.000000,3 "
            "| NULL,1");
  EXPECT_EQ(Run("select iv = '30 days', count(*) from i group by iv order by iv"),
            "SELECT 6 | f,1 | f,1 | f,2 | f,2 | t,3 | NULL,1");
  EXPECT_EQ(Run("select count(*) from (select distinct iv from i) x"), "SELECT 1 | 6");
  EXPECT_EQ(Run("select count(distinct iv) from i"), "SELECT 1 | 5");
  EXPECT_EQ(Run("select g, count(distinct iv) from i group by g order by g"),
            "SELECT 3 | 1,2 | 2,4 | NULL,1");
  EXPECT_EQ(Run("select extract(epoch from min(iv)), extract(epoch from max(iv)) from i"),
            "SELECT 1 | -86400.000000,2592000.000000");
  EXPECT_EQ(Run("select min(iv) from i"), "SELECT 1 | -1 days");
  EXPECT_EQ(Run("select g, extract(epoch from max(iv)) from i group by g order by g"),
            "SELECT 3 | 1,2592000.000000 | 2,2592000.000000 | NULL,1036800.000000");
  EXPECT_EQ(Run("select sum(iv) from i where g = 2"), "SELECT 1 | 720:00:01");
  EXPECT_EQ(Run("select g, sum(iv), avg(iv), count(iv) from i group by g order by g"),
            "SELECT 3 | 1,1 mon 30 days 24:00:00,20 days 08:00:00,3 | 2,720:00:01,180:00:00.25,4 | NULL,12 "
            "days 288:00:00,6 days 144:00:00,2");
  EXPECT_EQ(Run("select sum(iv), avg(iv) from i"),
            "SELECT 1 | 1 mon 42 days 1032:00:01,7 days 138:40:00.082311");
  EXPECT_EQ(Run("select sum(iv), avg(iv), min(iv), max(iv) from i where id > 100"),
            "SELECT 1 | NULL,NULL,NULL,NULL");
  EXPECT_EQ(Run("select sum(iv) filter (where g = 1) from i"), "SELECT 1 | 1 mon 30 days 24:00:00");
  EXPECT_EQ(Run("select a.id, b.id from i a join i b on a.iv = b.iv where a.id < b.id order by 1, 2"),
            "SELECT 5 | 1,2 | 1,3 | 2,3 | 4,5 | 8,9");
  EXPECT_EQ(Run("select a.id, b.id from i a left join i b on a.iv = b.iv and a.id <> b.id where a.g = 2 "
                "order by 1, 2"),
            "SELECT 5 | 3,1 | 3,2 | 4,5 | 7,NULL | 10,NULL");
  EXPECT_EQ(Run("select id from i where iv in (select iv from i where g = 2) order by 1"),
            "SELECT 7 | 1 | 2 | 3 | 4 | 5 | 7 | 10");
  EXPECT_EQ(Run("select id from i where iv not in (select iv from i where g = 2) order by 1"),
            "SELECT 2 | 8 | 9");
  EXPECT_EQ(Run("select id from i where iv in ('30 days', '1 day') order by 1"),
            "SELECT 5 | 1 | 2 | 3 | 4 | 5");
  EXPECT_EQ(Run("select id from i where iv > '1 day' order by 1"), "SELECT 5 | 1 | 2 | 3 | 8 | 9");
  EXPECT_EQ(Run("select id, rank() over (order by iv) from i order by id"),
            "SELECT 10 | 1,7 | 2,7 | 3,7 | 4,3 | 5,3 | 6,10 | 7,1 | 8,5 | 9,5 | 10,2");
  EXPECT_EQ(Run("select id, row_number() over (partition by iv order by id) from i order by id"),
            "SELECT 10 | 1,1 | 2,2 | 3,3 | 4,1 | 5,2 | 6,1 | 7,1 | 8,1 | 9,2 | 10,1");
  EXPECT_EQ(Run("select id, sum(iv) over (order by id) from i order by id"),
            "SELECT 10 | 1,1 mon | 2,1 mon 30 days | 3,1 mon 30 days 720:00:00 | 4,1 mon 31 days 720:00:00 | "
            "5,1 mon 31 days 744:00:00 | 6,1 mon 31 days 744:00:00 | 7,1 mon 30 days 744:00:00 | 8,1 mon 42 "
            "days 744:00:00 | 9,1 mon 42 days 1032:00:00 | 10,1 mon 42 days 1032:00:01");
  EXPECT_EQ(Run("select id, extract(epoch from max(iv) over (partition by g)) from i order by id"),
            "SELECT 10 | 1,2592000.000000 | 2,2592000.000000 | 3,2592000.000000 | 4,2592000.000000 | "
            "5,2592000.000000 | 6,2592000.000000 | 7,2592000.000000 | 8,1036800.000000 | 9,1036800.000000 | "
            "10,2592000.000000");
  EXPECT_EQ(Run("select id, avg(iv) over (order by id rows between 1 preceding and current row) from i order "
                "by id"),
            "SELECT 10 | 1,1 mon | 2,30 days | 3,15 days 360:00:00 | 4,372:00:00 | 5,24:00:00 | 6,24:00:00 | "
            "7,-1 days | 8,5 days 12:00:00 | 9,6 days 144:00:00 | 10,144:00:00.5");
  EXPECT_EQ(Run("select count(*) from (select iv from i union select iv from i) x"), "SELECT 1 | 6");
  EXPECT_EQ(Run("select extract(epoch from iv) from (select iv from i where g = 1 intersect select iv from i "
                "where g = 2) x order by 1"),
            "SELECT 2 | 86400.000000 | 2592000.000000");
  EXPECT_EQ(Run("select extract(epoch from iv) from (select iv from i except select iv from i where g = 2) x "
                "order by 1"),
            "SELECT 2 | 1036800.000000 | NULL");
  EXPECT_EQ(
      Run("select extract(epoch from iv) from (select iv from i except all select iv from i where g = 2) x "
          "order by 1"),
      "SELECT 6 | 86400.000000 | 1036800.000000 | 1036800.000000 | 2592000.000000 | 2592000.000000 | NULL");
  EXPECT_EQ(
      Run("select extract(epoch from iv) from (select iv from i intersect all select iv from i where g = 1 "
          "or g is null) x order by 1"),
      "SELECT 6 | 86400.000000 | 1036800.000000 | 1036800.000000 | 2592000.000000 | 2592000.000000 | NULL");
  EXPECT_EQ(Run("select g, extract(epoch from iv), count(*) from i group by rollup (g, iv) order by 1, 2, 3"),
            "SELECT 12 | 1,86400.000000,1 | 1,2592000.000000,2 | 1,NULL,1 | 1,NULL,4 | 2,-86400.000000,1 | "
            "2,1.000000,1 | 2,86400.000000,1 | 2,2592000.000000,1 | 2,NULL,4 | NULL,1036800.000000,2 | "
            "NULL,NULL,2 | NULL,NULL,10");
  EXPECT_EQ(Run("select grouping(iv), count(*) from i group by grouping sets ((iv), ()) order by 1, 2"),
            "SELECT 7 | 0,1 | 0,1 | 0,1 | 0,2 | 0,2 | 0,3 | 1,10");
  EXPECT_EQ(Run("select extract(epoch from iv) from i group by iv having count(*) > 1 order by iv"),
            "SELECT 3 | 86400.000000 | 1036800.000000 | 2592000.000000");
  EXPECT_EQ(Run("select distinct on (iv) id from i order by iv, id"), "SELECT 6 | 7 | 10 | 4 | 8 | 1 | 6");
  EXPECT_EQ(Run("select distinct iv is null, g from i order by 1, 2"), "SELECT 4 | f,1 | f,2 | f,NULL | t,1");
  EXPECT_EQ(
      Run("select id from i where exists (select 1 from i j where j.iv = i.iv and j.id <> i.id) order by 1"),
      "SELECT 7 | 1 | 2 | 3 | 4 | 5 | 8 | 9");
  EXPECT_EQ(Run("select id, (select count(*) from i j where j.iv < i.iv) from i order by 1"),
            "SELECT 10 | 1,6 | 2,6 | 3,6 | 4,2 | 5,2 | 6,0 | 7,0 | 8,4 | 9,4 | 10,1");
  EXPECT_EQ(
      Run("select id, (select max(j.iv::text || i.iv::text) from i j where j.iv = i.iv and j.g = i.g) from i "
          "where id < 4 order by 1"),
      "SELECT 3 | 1,30 days1 mon | 2,30 days30 days | 3,720:00:00720:00:00");
  EXPECT_EQ(Run("select id from i order by iv fetch first 2 rows with ties"), "SELECT 2 | 7 | 10");
  EXPECT_EQ(Run("select stddev(iv) from i"), "42883");
  EXPECT_EQ(Run("select g, sum(distinct iv), avg(distinct iv), count(*) from i group by g order by g"),
            "SELECT 3 | 1,1 mon 24:00:00,15 days 12:00:00,4 | 2,720:00:01,180:00:00.25,4 | NULL,12 days,12 "
            "days,2");
  EXPECT_EQ(Run("select sum(distinct iv) filter (where id > 1), string_agg(distinct g::text, ',') from i"),
            "SELECT 1 | 42 days 00:00:01,1,2");
  EXPECT_EQ(Run("select sum(distinct iv) from i where id > 100"), "SELECT 1 | NULL");
  EXPECT_EQ(Run("select g, sum(distinct iv) from i group by rollup (g)"), "0A000");
  EXPECT_EQ(Run("select max(iv) - min(iv) from i where g = 2"), "SELECT 1 | 1 day 720:00:00");
  EXPECT_EQ(Run("select sum(iv) + interval '1 day' from i where id < 3"), "SELECT 1 | 1 mon 31 days");
  EXPECT_EQ(Run("select id from i where iv is not distinct from '720:00:00' order by 1"),
            "SELECT 3 | 1 | 2 | 3");
}

TEST_F(RecordTypesTest, TimesAreAddedUpAsIntervals) {
  ASSERT_EQ(Run("create table d (id int primary key, at time, g int) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run("insert into d values (1, '10:00', 1), (2, '11:30:00.5', 1), (3, null, 2), (4, '24:00', 2), "
                "(5, '10:00', 1)"),
            "INSERT 0 5");
  EXPECT_EQ(Run("select sum(at), avg(at), sum(distinct at), avg(at) filter (where at > '11:00') from d"),
            "SELECT 1 | 55:30:00.5,13:52:30.125,45:30:00.5,17:45:00.25");
  EXPECT_EQ(Run("select g, sum(at), avg(at) from d group by g order by g"),
            "SELECT 2 | 1,31:30:00.5,10:30:00.166667 | 2,24:00:00,24:00:00");
  EXPECT_EQ(Run("select id, sum(at) over (order by id rows 1 preceding) from d order by id"),
            "SELECT 5 | 1,10:00:00 | 2,21:30:00.5 | 3,11:30:00.5 | 4,24:00:00 | 5,34:00:00");
  EXPECT_EQ(Run("select sum(at) from d where id > 100"), "SELECT 1 | NULL");
  EXPECT_EQ(Run("select stddev(at) from d"), "42883");
}

}  // namespace
}  // namespace nam::session
