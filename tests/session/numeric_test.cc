#include <gtest/gtest.h>

#include "tests/session/record_session.h"

/// Numbers with a scale of their own: in columns, and as quotients and averages. The results are PostgreSQL
/// 15's.
namespace nam::session {
namespace {

class NumericTest : public RecordSessionTest {};

TEST_F(NumericTest, NumericsAreEqualByTheirValues) {
  ASSERT_EQ(Run("create table n (id int primary key, x numeric, g int) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(
      Run("insert into n values (1, 1.0, 1), (2, 1.00, 1), (3, 1, 2), (4, 2.5, 2), (5, 2.50, 1), (6, null, "
          "1), (7, -0.5, 2), (8, 12345678901234567890.123456789, null), (9, 0.000, null), (10, 1e-10, 2)")
          .substr(0, 6),
      "INSERT");
  EXPECT_EQ(Run("select id, x from n order by id"),
            "SELECT 10 | 1,1.0 | 2,1.00 | 3,1 | 4,2.5 | 5,2.50 | 6,NULL | 7,-0.5 | "
            "8,12345678901234567890.123456789 | 9,0.000 | 10,0.0000000001");
  EXPECT_EQ(Run("select id from n order by x, id"), "SELECT 10 | 7 | 9 | 10 | 1 | 2 | 3 | 4 | 5 | 8 | 6");
  EXPECT_EQ(Run("select id from n order by x desc nulls last, id limit 4"), "SELECT 4 | 8 | 4 | 5 | 1");
  EXPECT_EQ(Run("select x = 1, count(*) from n group by x order by x"),
            "SELECT 7 | f,1 | f,1 | f,1 | t,3 | f,2 | f,1 | NULL,1");
  EXPECT_EQ(Run("select count(*) from (select distinct x from n) q"), "SELECT 1 | 7");
  EXPECT_EQ(Run("select count(distinct x) from n"), "SELECT 1 | 6");
  EXPECT_EQ(Run("select g, count(distinct x) from n group by g order by g"), "SELECT 3 | 1,2 | 2,4 | NULL,2");
  EXPECT_EQ(Run("select min(x), max(x) from n"), "SELECT 1 | -0.5,12345678901234567890.123456789");
  EXPECT_EQ(Run("select g, min(x) + 0.00, max(x) from n group by g order by g"),
            "SELECT 3 | 1,1.00,2.50 | 2,-0.50,2.5 | NULL,0.000,12345678901234567890.123456789");
  EXPECT_EQ(Run("select g, sum(x), avg(x), count(x) from n group by g order by g"),
            "SELECT 3 | 1,4.50,1.5000000000000000,3 | 2,3.0000000001,0.75000000002500000000,4 | "
            "NULL,12345678901234567890.123456789,6172839450617283945.061728395,2");
  EXPECT_EQ(Run("select sum(x), avg(x) from n"),
            "SELECT 1 | 12345678901234567897.6234567891,1371742100137174210.8470507543");
  EXPECT_EQ(Run("select sum(x), avg(x), min(x), max(x), stddev(x) from n where id > 100"),
            "SELECT 1 | NULL,NULL,NULL,NULL,NULL");
  EXPECT_EQ(Run("select sum(x) filter (where g = 1) from n"), "SELECT 1 | 4.50");
  EXPECT_EQ(Run("select a.id, b.id from n a join n b on a.x = b.x where a.id < b.id order by 1, 2"),
            "SELECT 4 | 1,2 | 1,3 | 2,3 | 4,5");
  EXPECT_EQ(Run("select a.id, b.id from n a left join n b on a.x = b.x and a.id <> b.id where a.g = 2 order "
                "by 1, 2"),
            "SELECT 5 | 3,1 | 3,2 | 4,5 | 7,NULL | 10,NULL");
  EXPECT_EQ(Run("select id from n where x in (select x from n where g = 2) order by 1"),
            "SELECT 7 | 1 | 2 | 3 | 4 | 5 | 7 | 10");
  EXPECT_EQ(Run("select id from n where x not in (select x from n where g = 2) order by 1"),
            "SELECT 2 | 8 | 9");
  EXPECT_EQ(Run("select id from n where x in (1, 2.500) order by 1"), "SELECT 5 | 1 | 2 | 3 | 4 | 5");
  EXPECT_EQ(Run("select id from n where x > 1 order by 1"), "SELECT 3 | 4 | 5 | 8");
  EXPECT_EQ(Run("select id from n where x between 0 and 1.000 order by 1"), "SELECT 5 | 1 | 2 | 3 | 9 | 10");
  EXPECT_EQ(Run("select id from n where x = 1.000 order by 1"), "SELECT 3 | 1 | 2 | 3");
  EXPECT_EQ(Run("select id from n where x <> 2.5 order by 1"), "SELECT 7 | 1 | 2 | 3 | 7 | 8 | 9 | 10");
  EXPECT_EQ(Run("select id from n where x is null"), "SELECT 1 | 6");
  EXPECT_EQ(Run("select id, rank() over (order by x) from n order by id"),
            "SELECT 10 | 1,4 | 2,4 | 3,4 | 4,7 | 5,7 | 6,10 | 7,1 | 8,9 | 9,2 | 10,3");
  EXPECT_EQ(Run("select id, row_number() over (partition by x order by id) from n order by id"),
            "SELECT 10 | 1,1 | 2,2 | 3,3 | 4,1 | 5,2 | 6,1 | 7,1 | 8,1 | 9,1 | 10,1");
  EXPECT_EQ(Run("select id, sum(x) over (order by id) from n order by id"),
            "SELECT 10 | 1,1.0 | 2,2.00 | 3,3.00 | 4,5.50 | 5,8.00 | 6,8.00 | 7,7.50 | "
            "8,12345678901234567897.623456789 | 9,12345678901234567897.623456789 | "
            "10,12345678901234567897.6234567891");
  EXPECT_EQ(Run("select id, max(x) over (partition by g) from n order by id"),
            "SELECT 10 | 1,2.50 | 2,2.50 | 3,2.5 | 4,2.5 | 5,2.50 | 6,2.50 | 7,2.5 | "
            "8,12345678901234567890.123456789 | 9,12345678901234567890.123456789 | 10,2.5");
  EXPECT_EQ(
      Run("select id, avg(x) over (order by id rows between 1 preceding and current row) from n order by id"),
      "SELECT 10 | 1,1.00000000000000000000 | 2,1.00000000000000000000 | 3,1.00000000000000000000 | "
      "4,1.7500000000000000 | 5,2.5000000000000000 | 6,2.5000000000000000 | 7,-0.50000000000000000000 | "
      "8,6172839450617283944.811728395 | 9,6172839450617283945.061728395 | "
      "10,0.0000000000500000000000000000");
  EXPECT_EQ(Run("select x from n where g = 1 union select x from n where g = 3 order by 1"),
            "SELECT 3 | 1.0 | 2.50 | NULL");
  EXPECT_EQ(Run("select x + 0 from n where g = 2 intersect select 1 order by 1"), "SELECT 1 | 1");
  EXPECT_EQ(Run("select id from n except select id from n where x >= 1 order by 1"),
            "SELECT 4 | 6 | 7 | 9 | 10");
  EXPECT_EQ(Run("select sum(distinct x), avg(distinct x) from n where g = 1"),
            "SELECT 1 | 3.50,1.7500000000000000");
  EXPECT_EQ(Run("select var_pop(x), var_samp(x), stddev_pop(x), stddev_samp(x) from n where id < 8"),
            "SELECT 1 | 1.0625000000000000,1.2750000000000000,1.0307764064044151,1.1291589790636215");
  EXPECT_EQ(Run("select g, variance(x), stddev(x) from n where id <> 8 group by g order by g"),
            "SELECT 3 | 1,0.75000000000000000000,0.86602540378443864676 | "
            "2,1.74999999995000000000,1.32287565551339707160 | NULL,NULL,NULL");
  EXPECT_EQ(Run("select id, (select count(*) from n b where b.x < a.x) from n a order by id"),
            "SELECT 10 | 1,3 | 2,3 | 3,3 | 4,6 | 5,6 | 6,0 | 7,0 | 8,8 | 9,1 | 10,2");
  EXPECT_EQ(
      Run("select id from n a where exists (select 1 from n b where b.x = a.x and b.id <> a.id) order by id"),
      "SELECT 5 | 1 | 2 | 3 | 4 | 5");
  EXPECT_EQ(
      Run("select id, x * 2, x / 3, x - 0.001, -x, x % 2, abs(x) from n where id in (1, 2, 4, 7) order by "
          "id"),
      "SELECT 4 | 1,2.0,0.33333333333333333333,0.999,-1.0,1.0,1.0 | "
      "2,2.00,0.33333333333333333333,0.999,-1.00,1.00,1.00 | 4,5.0,0.83333333333333333333,2.499,-2.5,0.5,2.5 "
      "| 7,-1.0,-0.16666666666666666667,-0.501,0.5,-0.5,0.5");
  EXPECT_EQ(Run("select id, round(x, 1), trunc(x), ceil(x), floor(x), x::int from n where id in (1, 4, 7) "
                "order by id"),
            "SELECT 3 | 1,1.0,1,1,1,1 | 4,2.5,2,3,2,3 | 7,-0.5,0,0,-1,-1");
  EXPECT_EQ(
      Run("select id, x::text, x::numeric(10,3), x::double precision from n where id in (2, 5, 7, 10) order "
          "by id"),
      "SELECT 4 | 2,1.00,1.000,1 | 5,2.50,2.500,2.5 | 7,-0.5,-0.500,-0.5 | 10,0.0000000001,0.000,1e-10");
  EXPECT_EQ(Run("select id, coalesce(x, 0), greatest(x, 1.5) from n where id in (1, 6, 7) order by id"),
            "SELECT 3 | 1,1.0,1.5 | 6,0,1.5 | 7,-0.5,1.5");
  EXPECT_EQ(Run("select sum(x) filter (where false), avg(x) filter (where id = 6), var_samp(x) filter (where "
                "id = 4), var_pop(x) filter (where id = 4) from n"),
            "SELECT 1 | NULL,NULL,NULL,0");
  EXPECT_EQ(Run("select g, sum(x), avg(x), var_samp(x), stddev_pop(x) from n where id in (3, 6, 7) group by "
                "g order by g"),
            "SELECT 2 | 1,NULL,NULL,NULL,NULL | "
            "2,0.5,0.25000000000000000000,1.12500000000000000000,0.75000000000000000000");
  EXPECT_EQ(Run("select id, var_samp(x) over (order by id rows 1 preceding) from n where id < 5 order by id"),
            "SELECT 4 | 1,NULL | 2,0 | 3,0 | 4,1.12500000000000000000");
  EXPECT_EQ(Run("select 1 / x from n where id = 9"), "22012");
  EXPECT_EQ(Run("select x::int from n where id = 8"), "22003");
  EXPECT_EQ(Run("select id from n order by x / 3, id limit 3"), "SELECT 3 | 7 | 9 | 10");
  EXPECT_EQ(Run("update n set x = x * 1.10 where id = 2").substr(0, 6), "UPDATE");
  EXPECT_EQ(Run("select x from n where id = 2"), "SELECT 1 | 1.1000");
  EXPECT_EQ(Run("update n set x = 3.000 where x = 2.5").substr(0, 6), "UPDATE");
  EXPECT_EQ(Run("select id, x from n where x = 3 order by id"), "SELECT 2 | 4,3.000 | 5,3.000");
  EXPECT_EQ(Run("delete from n where x = 3.0").substr(0, 6), "DELETE");
  EXPECT_EQ(Run("select count(*) from n"), "SELECT 1 | 8");
  EXPECT_EQ(Run("insert into n values (11, '7.70', 1), (12, 'abc', 1)"), "22P02");
  EXPECT_EQ(Run("insert into n values (11, '7.70', 1)").substr(0, 6), "INSERT");
  EXPECT_EQ(Run("select x from n where id = 11"), "SELECT 1 | 7.70");
  EXPECT_EQ(Run("insert into n select id + 20, x / 7, g from n where id in (1, 11)").substr(0, 6), "INSERT");
  EXPECT_EQ(Run("select id, x from n where id > 20 order by id"),
            "SELECT 2 | 21,0.14285714285714285714 | 31,1.10000000000000000000");
}

TEST_F(NumericTest, RowsOfValuesKeepTheirScales) {
  EXPECT_EQ(Run("values ('1.0'::numeric), (2.00)"), "SELECT 2 | 1.0 | 2.00");
  EXPECT_EQ(Run("values (1.0), (2.00), (3), (null), ('4.5')"), "SELECT 5 | 1.0 | 2.00 | 3 | NULL | 4.5");
  EXPECT_EQ(Run("values (1.50, 1), (1.5 + 0.25, 2)"), "SELECT 2 | 1.50,1 | 1.75,2");
  EXPECT_EQ(Run("values (1), (2.5 * 1.0)"), "SELECT 2 | 1 | 2.50");
  EXPECT_EQ(Run("select sum(x), count(distinct x) from (values (1.0), (1.00), (2)) v(x)"),
            "SELECT 1 | 4.00,2");
  EXPECT_EQ(Run("select x from (values (2.0), (1.000), (10)) v(x) where x < 5 order by x"),
            "SELECT 2 | 1.000 | 2.0");
  // Those whose digits a numeric does not hold have one scale.
  EXPECT_EQ(Run("values (12345678901234567890123456789012345678), (3.0 - 2)"), "22003");
  EXPECT_EQ(Run("values (1234567890123456789012345678901234567), (0.5)"),
            "SELECT 2 | 1234567890123456789012345678901234567.0 | 0.5");
}

/// The error names the number, not an operand: there is none.
TEST_F(NumericTest, NumbersThatAreTooLongAreNamed) {
  ASSERT_EQ(Run("create table n (id int primary key, x numeric, d decimal(38,2)) with (storage = record)"),
            "CREATE TABLE");
  const std::string digits = "1234567890123456789012345678901234567";
  for (const std::string& value : {"'" + digits + "'", digits, digits + ".0"}) {
    const auto refused = Execute("insert into n (id, x) values (1, " + value + ")");
    ASSERT_FALSE(refused.ok()) << value;
    const SqlError error = *SqlErrorOf(refused.status());
    EXPECT_EQ(error.sqlstate, "22003");
    EXPECT_EQ(error.message.find("the number " + digits), 0u) << error.message;
    EXPECT_EQ(error.hint.find("operand"), std::string::npos) << error.hint;
  }
  EXPECT_EQ(Run("insert into n values (1, '1.1234567890123456789012345678901234567890123', "
                "'1.1254567890123456789012345678901234567890123')")
                .substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("select x, d from n"), "SELECT 1 | 1.12345678901234567890123456789012346,1.13");
}

TEST_F(NumericTest, QuotientsHaveTheScaleOfTheirValues) {
  ASSERT_EQ(
      Run("create table q (id int primary key, a int, b bigint, d decimal(10,2)) with (storage = record)"),
      "CREATE TABLE");
  ASSERT_EQ(Run("insert into q values (1, 1, 3, 1.00), (2, 5, 7, 2.50), (3, 100, 12345678, -3.10), (4, null, "
                "1, 0.00), (5, 2, 1000000000, 99.99)")
                .substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("select id, d / 3, d / a, d / nullif(d, 0) from q order by id"),
            "SELECT 5 | 1,0.33333333333333333333,1.00000000000000000000,1.00000000000000000000 | "
            "2,0.83333333333333333333,0.50000000000000000000,1.00000000000000000000 | "
            "3,-1.03333333333333333333,-0.03100000000000000000,1.00000000000000000000 | "
            "4,0.00000000000000000000,NULL,NULL | "
            "5,33.3300000000000000,49.9950000000000000,1.00000000000000000000");
  EXPECT_EQ(Run("select id from q where d / b > 0 order by id"), "SELECT 3 | 1 | 2 | 5");
  EXPECT_EQ(Run("select id from q where d / 10000000 <> 0 order by id"), "SELECT 4 | 1 | 2 | 3 | 5");
  EXPECT_EQ(Run("select avg(a), avg(b), avg(d) from q"),
            "SELECT 1 | 27.0000000000000000,202469137.80000000,20.0780000000000000");
  EXPECT_EQ(Run("select id % 2, avg(d), sum(d) / count(*) from q group by id % 2 order by 1"),
            "SELECT 2 | 0,1.25000000000000000000,1.25000000000000000000 | "
            "1,32.6300000000000000,32.6300000000000000");
  EXPECT_EQ(Run("select avg(d) / 3, avg(d) * 2, avg(d) + 1 from q"),
            "SELECT 1 | 6.6926666666666667,40.1560000000000000,21.0780000000000000");
  EXPECT_EQ(Run("select sum(b) / count(*), sum(a) / count(*), sum(d) / sum(b) from q"),
            "SELECT 1 | 202469137.80000000,21,0.000000099165730728962486");
  EXPECT_EQ(Run("select count(*) / sum(count(*)) over () from q group by id % 2 order by 1"),
            "SELECT 2 | 0.40000000000000000000 | 0.60000000000000000000");
  EXPECT_EQ(Run("select id, d / b from q order by d / b, id"),
            "SELECT 5 | 3,-0.000000251100020590201688 | 4,0.00000000000000000000 | "
            "5,0.000000099990000000000000 | 1,0.33333333333333333333 | 2,0.35714285714285714286");
  EXPECT_EQ(Run("select d / b * b from q where id < 4 order by id"),
            "SELECT 3 | 0.99999999999999999999 | 2.50000000000000000002 | -3.099999999999999995104464");
  EXPECT_EQ(Run("select id from q where d > (select avg(d) from q) order by id"), "SELECT 1 | 5");
  EXPECT_EQ(Run("select id from q a where d > (select 0.2 * avg(d) from q b where b.id <> a.id) order by id"),
            "SELECT 1 | 5");
  EXPECT_EQ(Run("select variance(a), stddev(d), var_pop(b), stddev_pop(d) from q"),
            "SELECT 1 | 2371.3333333333333333,44.7192063883070268,159036731391580560,39.9980741536389474");
  EXPECT_EQ(Run("select id, avg(d) over (order by id), stddev(d) over (order by id) from q order by id"),
            "SELECT 5 | 1,1.00000000000000000000,NULL | 2,1.7500000000000000,1.06066017177982128660 | "
            "3,0.13333333333333333333,2.8988503468329187 | 4,0.10000000000000000000,2.3678400846904055 | "
            "5,20.0780000000000000,44.7192063883070268");
  EXPECT_EQ(Run("select round(avg(d), 2), round(avg(a), 3), avg(d)::numeric(10,1) from q"),
            "SELECT 1 | 20.08,27.000,20.1");
  EXPECT_EQ(Run("select case when id = 1 then d / 3 else d end from q order by id"),
            "SELECT 5 | 0.33333333333333333333 | 2.50 | -3.10 | 0.00 | 99.99");
  EXPECT_EQ(Run("select power(d, 2), sqrt(abs(d)), exp(a / 100.0) from q where id < 4 order by id"),
            "SELECT 3 | 1.0000000000000000,1.000000000000000,1.01005016708416805754 | "
            "6.2500000000000000,1.581138830084190,1.05127109637602403970 | "
            "9.6100000000000000,1.760681686165901,2.71828182845904523536");
  EXPECT_EQ(Run("select ln(b), log(b::numeric), d ^ 3 from q where id in (2, 3) order by id"),
            "SELECT 2 | 1.9459101490553132,0.8450980400142568,15.6250000000000000 | "
            "16.32881660027397,7.091514945509201,-29.7910000000000000");
  EXPECT_EQ(Run("select sum(d / b), avg(d / b), max(d / b), min(d / b) from q"),
            "SELECT 1 | "
            "0.690476039366169885988312,0.138095207873233977197662,0.35714285714285714286,-0."
            "000000251100020590201688");
  EXPECT_EQ(Run("select 200000*(0.05/12)*pow(1+0.05/12,360)/(pow(1+0.05/12,360)-1) > 1073.6432"),
            "SELECT 1 | t");
  EXPECT_EQ(Run("select d / 0 from q"), "22012");
  EXPECT_EQ(Run("select d / (a - 1) from q where id > 1 order by id"),
            "SELECT 4 | 0.62500000000000000000 | -0.03131313131313131313 | NULL | 99.9900000000000000");
  EXPECT_EQ(Run("select id, d / 3 is null, d / null from q where id = 1"), "SELECT 1 | 1,f,NULL");
  EXPECT_EQ(Run("select distinct d / d from q where d <> 0"), "SELECT 1 | 1.00000000000000000000");
  EXPECT_EQ(Run("select d / d, count(*) from q where d <> 0 group by 1"),
            "SELECT 1 | 1.00000000000000000000,4");
  EXPECT_EQ(Run("select a.id from q a join q b on a.d / 2 = b.d * 0.5 order by 1"),
            "SELECT 5 | 1 | 2 | 3 | 4 | 5");
  EXPECT_EQ(Run("select avg(d * d * d * d * d * d * d * d) > 0, sum(d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d) "
                "> 1e35 from q where id < 3"),
            "SELECT 1 | t,f");
  EXPECT_EQ(Run("select round(stddev(d / 3), 25), round(variance(d / b), 25) from q where id < 4"),
            "SELECT 1 | 0.9662834489443062501908882,0.0398715619501013418780114");
  EXPECT_EQ(Run("select (d / 3)::text from q where id = 2"), "SELECT 1 | 0.83333333333333333333");
  EXPECT_EQ(Run("select sum(d * d * d * d) from q"), "SELECT 1 | 99960138.41420001");
  EXPECT_EQ(Run("select sum(x * x * x) from (select (d * 1000000)::numeric(18,2) as x from q) q"),
            "SELECT 1 | 999686863999000000000000.000000");
  EXPECT_EQ(Run("select round(x) from (select 9999999999999999999999999999999999999.5::numeric(38,1) as x, d "
                "from q where id = 1) s"),
            "SELECT 1 | 10000000000000000000000000000000000000");
  EXPECT_EQ(Run("select r, round(d / 3, r), trunc(d / 3, r), round(d, r) from q, generate_series(-1, 3) r "
                "where id = 2 order by r"),
            "SELECT 5 | -1,0,0,0 | 0,1,0,3 | 1,0.8,0.8,2.5 | 2,0.83,0.83,2.50 | 3,0.833,0.833,2.500");
  EXPECT_EQ(
      Run("select mod(d / 3, 1), div(d / 3, 0.5), d / 3 % 0.7 from q order by id"),
      "SELECT 5 | 0.33333333333333333333,0,0.33333333333333333333 | "
      "0.83333333333333333333,1,0.13333333333333333333 | -0.03333333333333333333,-2,-0.33333333333333333333 "
      "| 0.00000000000000000000,0,0.00000000000000000000 | 0.3300000000000000,66,0.4300000000000000");
  EXPECT_EQ(Run("select id from q where d / 2 in (0.5, 1.25) order by id"), "SELECT 2 | 1 | 2");
  EXPECT_EQ(Run("select id from q where d / 2 in (select d * 0.5 from q where id < 3) order by id"),
            "SELECT 2 | 1 | 2");
  EXPECT_EQ(Run("select sum(x) from (select d / 3 as x from q union all select 1) u"),
            "SELECT 1 | 34.46333333333333333333");
  // A scale that depends on the row has no distances, and no series.
  EXPECT_EQ(Run("select sum(d) over (order by d / 3 range between 1 preceding and current row) from q"),
            "0A000");
  EXPECT_EQ(Run("select * from q, generate_series(1, d / 3) s"), "0A000");
  EXPECT_EQ(Run("select count(*) from generate_series(1, 10 / 4.0) s"), "SELECT 1 | 2");
  // Numbers have 36 digits.
  EXPECT_EQ(Run("select sum(x * x * x) from (select (123456789012.34 + id)::numeric(18,2) as x from q where "
                "id < 3) q"),
            "SELECT 1 | 3763352744843970421352029677367293.14");
  EXPECT_EQ(Run("select 1 / 3.0 * 1e35"), "SELECT 1 | 33333333333333333333000000000000000.0");
  EXPECT_EQ(Run("select d / 3 * 1e35 from q where id = 5"), "22003");
}

/// 1.0 and 1.00 are one key, which shows the scale that it was stored with.
TEST_F(NumericTest, NumericsAreKeys) {
  ASSERT_EQ(Run("create table k (x numeric, id int, y numeric unique, primary key (x, id)) with (storage = "
                "record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run("insert into k values (1.0, 1, 10), (1.00, 2, -0.5), (-2.50, 1, 3.000), (0.00, 1, null), "
                "(123456789012345678901234567890.5, 1, 1e-20), (1e-38, 7, null)")
                .substr(0, 6),
            "INSERT");
  EXPECT_EQ(Run("insert into k values (1.000, 1, 5)"), "23505");
  EXPECT_EQ(Run("insert into k values (7, 7, 3)"), "23505");
  EXPECT_EQ(Run("insert into k values (1, 1, 5) on conflict do nothing"), "INSERT 0 0");
  EXPECT_EQ(Run("insert into k values (7, 7, 10.00) on conflict (y) do update set x = k.x"), "INSERT 0 1");
  EXPECT_EQ(Run("select x, id, y from k order by x, id"),
            "SELECT 6 | -2.50,1,3.000 | 0.00,1,NULL | 0.00000000000000000000000000000000000001,7,NULL | "
            "1.0,1,10 | 1.00,2,-0.5 | 123456789012345678901234567890.5,1,0.00000000000000000001");
  EXPECT_EQ(Run("select id from k where x = 1 order by id"), "SELECT 2 | 1 | 2");
  EXPECT_EQ(Run("select x from k where x = 1.0000 and id = 2"), "SELECT 1 | 1.00");
  EXPECT_EQ(Run("select y from k where x in (1, 0.0, 5) and id = 1 order by y"), "SELECT 2 | 10 | NULL");
  EXPECT_EQ(Run("select y from k where y > 0 and y <= 3 order by y"),
            "SELECT 2 | 0.00000000000000000001 | 3.000");
  EXPECT_EQ(Run("select y from k where y < 0.00"), "SELECT 1 | -0.5");
  EXPECT_EQ(Run("select count(*) from k where y is null"), "SELECT 1 | 2");
  EXPECT_EQ(Run("explain select id from k where x = 1.00 and id = 1"),
            "EXPLAIN | Read k by key (x, id), 1 row at most");
  EXPECT_EQ(Run("explain select id from k where y between 1 and 2"),
            "EXPLAIN | Read k by index k_y_key (y), 1 range");
  EXPECT_EQ(Run("explain select id from k where y >= 1 order by y limit 1"),
            "EXPLAIN | Read k by index k_y_key (y), 1 range, in its order");
  EXPECT_EQ(Run("explain update k set y = 4 where y = 3"),
            "EXPLAIN | Update k by index k_y_key (y), 1 range");
  EXPECT_EQ(Run("update k set y = 3.1 where x = -2.5 and id = 1"), "UPDATE 1");
  EXPECT_EQ(Run("update k set x = -2.5000 where y = 3.10"), "UPDATE 1");
  EXPECT_EQ(Run("select x, y from k where x < 0"), "SELECT 1 | -2.5000,3.1");
  EXPECT_EQ(Run("update k set y = 10.0 where id = 2"), "23505");
  EXPECT_EQ(Run("delete from k where x = 1.000 and id = 1"), "DELETE 1");
  EXPECT_EQ(Run("select id from k where x = 1"), "SELECT 1 | 2");
}

TEST_F(NumericTest, NumericsAreForeignKeys) {
  ASSERT_EQ(Run("create table p (x numeric primary key, y numeric unique) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run("create table c (id int primary key, px numeric references p, py numeric references p (y)) "
                "with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run("insert into p values (1.0, 2.00), (3, 4)").substr(0, 6), "INSERT");
  EXPECT_EQ(Run("insert into c values (1, 1.00, 2), (2, 3.0, null)").substr(0, 6), "INSERT");
  EXPECT_EQ(Run("insert into c values (3, 1.01, 2)"), "23503");
  EXPECT_EQ(Run("insert into c values (3, 1, 2.000000001)"), "23503");
  EXPECT_EQ(Run("delete from p where x = 1"), "23503");
  EXPECT_EQ(Run("update p set x = 1.000 where x = 1"), "UPDATE 1");
  EXPECT_EQ(Run("update p set y = 5 where x = 1"), "23503");
  EXPECT_EQ(Run("select c.id, p.x, c.px from c join p on c.px = p.x order by 1"),
            "SELECT 2 | 1,1.000,1.00 | 2,3,3.0");
  EXPECT_EQ(Run("delete from c where px = 1"), "DELETE 1");
  EXPECT_EQ(Run("delete from p where x = 1.0"), "DELETE 1");
}

/// If 38 digits do not suffice, decimals give way, not the statement.
TEST_F(NumericTest, SumsOfLongDecimalsYieldTheirScale) {
  ASSERT_EQ(Run("create table d (id int primary key, x decimal(38,10), y decimal(38,10), z decimal(38,2), g "
                "int) with (storage = record)"),
            "CREATE TABLE");
  const std::string a = "9876543210987654321098765432.1098765432",
                    b = "9123456789123456789123456789.1234567891";
  ASSERT_EQ(
      Run("insert into d values (1, " + a + ", " + b + ", 9e35, 1), (2, " + b + ", " + b +
          " - 0.0000000001, 9e35, 1), (3, -" + a + ", " + a + ", 0.01, 2), (4, 0.0000000001, null, 2, 2)")
          .substr(0, 6),
      "INSERT");
  EXPECT_EQ(Run("select sum(x), avg(x) from d where g = 1"),
            "SELECT 1 | 19000000000111111110222222221.2333333,9500000000055555555111111110.61666667");
  EXPECT_EQ(Run("select id, x + y, x - y, -x - y from d order by id"),
            "SELECT 4 | 1,19000000000111111110222222221.2333333,753086421864197531975308642.986419754,"
            "-19000000000111111110222222221.2333333 | 2,18246913578246913578246913578.2469136,0.0000000001,"
            "-18246913578246913578246913578.2469136 | 3,0.0000000000,-19753086421975308642197530864.2197531,"
            "0.0000000000 | 4,NULL,NULL,NULL");
  EXPECT_EQ(Run("select g, sum(x), sum(x + y), avg(z) from d group by g order by g"),
            "SELECT 2 | 1,19000000000111111110222222221.2333333,37246913578358024688469135799.4802469,"
            "900000000000000000000000000000000000 | "
            "2,-9876543210987654321098765432.10987654,0.0000000000,1.00500000000000000000");
  EXPECT_EQ(Run("select sum(distinct y), avg(distinct y), sum(x) filter (where id > 7) from d where g = 1"),
            "SELECT 1 | 18246913578246913578246913578.2469136,9123456789123456789123456789.12345679,NULL");
  EXPECT_EQ(Run("select id, sum(x) over (order by id) from d order by id"),
            "SELECT 4 | 1,9876543210987654321098765432.10987654 | 2,19000000000111111110222222221.2333333 | "
            "3,9123456789123456789123456789.12345679 | 4,9123456789123456789123456789.12345679");
  EXPECT_EQ(Run("select g from d group by g having sum(x) > 1 order by sum(x)"), "SELECT 1 | 1");
  // Of constants the result decides.
  EXPECT_EQ(Run("select " + a + " + 1, " + a + " + " + b),
            "SELECT 1 | 9876543210987654321098765433.1098765432,19000000000111111110222222221.2333333");
  // With two decimals a numeric holds no greater numbers than a decimal.
  EXPECT_EQ(Run("select sum(z) from d"), "22003");
  EXPECT_EQ(Run("select sum(z) from d where id <> 2"), "SELECT 1 | 900000000000000000000000000000000002.01");
  EXPECT_EQ(
      Run("select g, sum(distinct x) from d where id > 2 group by rollup(g) order by g"),
      "SELECT 2 | 2,-9876543210987654321098765432.10987654 | NULL,-9876543210987654321098765432.10987654");
  // A sum of fewer digits has all of its decimals.
  EXPECT_EQ(Run("select sum(q) from (select x::decimal(30,10) as q from d where id = 4) t"),
            "SELECT 1 | 0.0000000001");
  EXPECT_EQ(Run("select pg_typeof(sum(x)), pg_typeof(x + y) from d where false"),
            "SELECT 1 | numeric,numeric");
}

}  // namespace
}  // namespace nam::session
