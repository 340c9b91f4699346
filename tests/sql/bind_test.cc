#include <gtest/gtest.h>

#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "tests/sql/ssb_queries.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;

/// The conjuncts of the condition, bound as WHERE over t.
std::string Where(const std::string& condition) {
  const FlatQuery query = BindQuery("select id from t where " + condition);
  std::string shown;
  for (const Expr& e : query.conjuncts) shown += (shown.empty() ? "" : " & ") + Show(query, e);
  return shown;
}

/// The expression, bound in a select list over t, with its type.
std::string Selected(const std::string& expression) {
  const FlatQuery query = BindQuery("select " + expression + " from t");
  if (query.select.size() != 1) return "?";
  return Show(query, query.select[0].expr) + " : " + TypeName(query.select[0].expr.type);
}

TEST(BindTest, Ssb) {
  for (const char* text : kSsbQueries) {
    const FlatQuery query = BindQuery(text);
    EXPECT_EQ(query.joins.size() + 1, query.tables.size()) << text;
    EXPECT_EQ(query.aggregates.size(), 1u) << text;
    EXPECT_TRUE(query.aggregated);
    for (const Expr& conjunct : query.conjuncts) {
      const auto columns = ColumnsOf(conjunct);
      EXPECT_EQ(columns.size(), 1u) << Show(query, conjunct);
    }
  }
  EXPECT_EQ(Show(BindQuery(kSsbQueries[0])),
            "select agg0 as revenue\n"
            "from lineorder lineorder, date date\n"
            "join lineorder.lo_orderdate = date.d_datekey\n"
            "where date.d_year = 1993, lineorder.lo_discount >= 1, lineorder.lo_discount <= 3, "
            "lineorder.lo_quantity < 25\n"
            "aggregate sum(lineorder.lo_extendedprice * lineorder.lo_discount)");
  EXPECT_EQ(Show(BindQuery(kSsbQueries[8])),
            "select group0 as c_city, group1 as s_city, group2 as d_year, agg0 as revenue\n"
            "from customer customer, lineorder lineorder, supplier supplier, date date\n"
            "join lineorder.lo_custkey = customer.c_custkey, lineorder.lo_suppkey = supplier.s_suppkey, "
            "lineorder.lo_orderdate = date.d_datekey\n"
            "where customer.c_city = 'UNITED KI1' OR customer.c_city = 'UNITED KI5', "
            "supplier.s_city = 'UNITED KI1' OR supplier.s_city = 'UNITED KI5', date.d_year >= 1992, "
            "date.d_year <= 1997\n"
            "group by customer.c_city, supplier.s_city, date.d_year\n"
            "aggregate sum(lineorder.lo_revenue)\n"
            "order by group2 asc nulls last, agg0 desc nulls first");
}

TEST(BindTest, AFalseConditionKeepsTheJoin) {
  const char* expected = "select t.id as id\nfrom t t, u u\njoin t.id = u.t_id\nwhere false";
  EXPECT_EQ(Show(BindQuery("select t.id from t, u where t.id = u.t_id and 1 = 2")), expected);
  EXPECT_EQ(Show(BindQuery("select t.id from t join u on 1 = 2 and (t.n > 1 and t.id = u.t_id)")), expected);
}

TEST(BindTest, JoinSyntax) {
  const char* expected =
      "select t.id as id\nfrom t t, u u\njoin t.id = u.t_id\nwhere t.n > 1, t.price < u.price";
  EXPECT_EQ(Show(BindQuery("select t.id from t, u where t.id = u.t_id and t.n > 1 and t.price < u.price")),
            expected);
  EXPECT_EQ(Show(BindQuery("select t.id from t join u on t.id = u.t_id and n > 1 where t.price < u.price")),
            expected);
  EXPECT_EQ(
      Show(BindQuery("select t.id from t inner join u on t.id = t_id where t.n > 1 and t.price < u.price")),
      expected);
  EXPECT_EQ(
      Show(BindQuery("select t.id from t cross join u where t.id = u.t_id and n > 1 and t.price < u.price")),
      expected);
  // Once is enough, in either direction.
  EXPECT_EQ(Show(BindQuery("select t.id from t join u on t.id = t_id and t.n > 1 and t.price < u.price "
                           "where u.t_id = t.id and t.n > 1")),
            expected);
}

TEST(BindTest, Using) {
  EXPECT_EQ(Show(BindQuery("select id, name, t.price, u.price from t join u using (id, name)")),
            "select t.id as id, t.name as name, t.price as price, u.price as price\nfrom t t, u u\n"
            "join t.id = u.id, t.name = u.name");
  EXPECT_EQ(Show(BindQuery("select * from u a join u b using (id, t_id, price, amount, name)")),
            "select u1.id as id, u1.t_id as t_id, u1.price as price, u1.amount as amount, u1.name as name, "
            "u1.day as day, u2.day as day\nfrom u u1, u u2\n"
            "join u1.id = u2.id, u1.t_id = u2.t_id, u1.price = u2.price, u1.amount = u2.amount, u1.name = "
            "u2.name");
}

TEST(BindTest, SelfJoin) {
  FakeTables tables;
  const auto statement = Bind("select a.id from t a, t as b, t c where a.id = b.n and b.id = c.n", tables);
  ASSERT_TRUE(statement.ok()) << statement.status();
  const FlatQuery query = Flatten(*std::get<TreeStatement>(*statement).tree).value();
  EXPECT_EQ(Show(query), "select t1.id as id\nfrom t t1, t t2, t t3\njoin t1.id = t2.n, t2.id = t3.n");
  EXPECT_EQ(tables.lookups(), 1);  // one version of t
  EXPECT_EQ(query.tables[0].table, query.tables[2].table);
  // Equality inside one table is a conjunct.
  EXPECT_EQ(Show(BindQuery("select id from t where id = n")),
            "select t.id as id\nfrom t t\nwhere t.id = t.n");
}

TEST(BindTest, Stars) {
  EXPECT_EQ(BindQuery("select * from t").select.size(), 8u);
  EXPECT_EQ(BindQuery("select * from t, u where t.id = u.id").select.size(), 14u);
  EXPECT_EQ(BindQuery("select u.*, t.id from t, u where t.id = u.id").select.size(), 7u);
  EXPECT_EQ(BindQuery("select public.t.* from public.t").select[7].name, "Odd Name");
  EXPECT_EQ(BindQuery("select public.t.id from public.t").select[0].name, "id");
  EXPECT_EQ(BindQuery("table t").select.size(), 8u);
}

std::vector<std::string> NamesOf(const FlatQuery& query) {
  std::vector<std::string> names;
  for (const FlatQuery::Output& output : query.select) names.push_back(output.name);
  return names;
}

TEST(BindTest, OutputNames) {
  const FlatQuery query = BindQuery(
      "select id, id as x, \"Odd Name\", sum(n), count(*), 1, id + 1, case when ok then 1 end, coalesce(n, "
      "1), "
      "nullif(n, 1), cast(id as text), date '1994-01-01', extract(year from day), case when ok then 1 else "
      "cast(2 "
      "as integer) end, case when ok then 1 else n end, cast(case when ok then 1 else n end as text), "
      "cast(case when "
      "ok then 1 end as text) from t "
      "group by id, \"Odd Name\", ok, n, day");
  EXPECT_EQ(NamesOf(query), (std::vector<std::string>{"id", "x", "Odd Name", "sum", "count", "?column?",
                                                      "?column?", "case", "coalesce", "nullif", "id", "date",
                                                      "extract", "case", "n", "n", "text"}));
  EXPECT_EQ(NamesOf(BindQuery("select greatest(n, 1), least(n, 1), cast(greatest(n, 1) as text), "
                              "case when ok then 1 else least(n, 1) end, nullif(n, 1) + 1 from t")),
            (std::vector<std::string>{"greatest", "least", "greatest", "least", "?column?"}));
}

TEST(BindTest, Conditions) {
  EXPECT_EQ(Where("id = 1 and n <> 2 and (price < 3 or rate >= 4) and not ok"),
            "t.id = 1 & t.n <> 2 & t.price < 3 OR t.rate >= 4 & NOT t.ok");
  EXPECT_EQ(Where("id = 1 and (n = 2 and (price = 3 and rate = 4))"),
            "t.id = 1 & t.n = 2 & t.price = 3 & t.rate = 4");
  EXPECT_EQ(Where("n between 1 and 3"), "t.n >= 1 & t.n <= 3");
  EXPECT_EQ(Where("n not between 1 and 3"), "NOT (t.n >= 1 AND t.n <= 3)");
  EXPECT_EQ(Where("5 between n and id"), "5 >= t.n & 5 <= t.id");
  EXPECT_EQ(Where("'b' between name and 'c'"), "'b' >= t.name");
  EXPECT_EQ(Where("n is null and name is not null"), "t.n IS NULL & t.name IS NOT NULL");
  EXPECT_EQ(Where("name like 'a%' and name not like '_b'"), "t.name LIKE 'a%' & t.name NOT LIKE '_b'");
  EXPECT_EQ(Where("ok"), "t.ok");
  EXPECT_EQ(Where("ok = true and true"), "t.ok = true");
  EXPECT_EQ(Where("ok = 'f'"), "t.ok = false");
  EXPECT_EQ(Where("id = 1 and 1 = 2"), "false");
  EXPECT_EQ(Where("null"), "false");
  EXPECT_EQ(Where("n = null"), "false");
  EXPECT_EQ(Where("1 < 2"), "");
  EXPECT_EQ(Where("ok or 1 < 2"), "");
}

TEST(BindTest, InLists) {
  EXPECT_EQ(Where("n in (1, 2, 1)"), "t.n IN (1, 2)");
  EXPECT_EQ(Where("n in (1)"), "t.n = 1");
  EXPECT_EQ(Where("n not in (1, 2)"), "t.n NOT IN (1, 2)");
  EXPECT_EQ(Where("price in (1, 2.5, 2.50, 3.125)"), "t.price IN (1.00, 2.50) OR t.price = 3.125");
  EXPECT_EQ(Where("n in (1, 2.0, 2.5, null)"), "t.n IN (1, 2) OR t.n = 2.5 OR NULL");
  EXPECT_EQ(Where("n in (1, 3, id)"), "t.n IN (1, 3) OR t.n = t.id");
  EXPECT_EQ(Where("name in ('a', 'it''s')"), "t.name IN ('a', 'it''s')");
  EXPECT_EQ(Where("day in ('1994-01-01', date '1995-01-01')"),
            "t.day IN (date '1994-01-01', date '1995-01-01')");
  EXPECT_EQ(Where("day in (timestamp '1994-01-01 12:00', '1995-01-01 01:00', date '1996-01-01')"),
            "CAST(t.day AS timestamp) IN (timestamp '1994-01-01 12:00:00', timestamp '1995-01-01 01:00:00', "
            "timestamp '1996-01-01 00:00:00')");
  // Several numbers beside a real are reals, one is compared as double precision.
  EXPECT_EQ(Where("1.1::real in (1.1, 0)"), "");
  EXPECT_EQ(Where("1.1::real not in (0, '1.1')"), "false");
  EXPECT_EQ(Where("1.1::real in (1.1)"), "false");
  EXPECT_EQ(Where("1.1::real in (1.1, 0::float8)"), "false");
  const FlatQuery query = BindQuery("select id from t where price in (1, '2.5', -3)");
  for (const Expr& e : query.conjuncts.at(0).children) EXPECT_EQ(e.type, Type::Decimal(2));
}

TEST(BindTest, TheSignOfNoNumberIsZero) {
  EXPECT_EQ(Where("sign('NaN'::float8) = 0"), "");
  EXPECT_EQ(Where("sign('-Infinity'::float8) = -1"), "");
}

TEST(BindTest, UntypedStrings) {
  EXPECT_EQ(Where("n = '12'"), "t.n = 12");
  EXPECT_EQ(Where("'1.005' < price"), "1.005 < t.price");
  EXPECT_EQ(Where("day >= '1994-01-01'"), "t.day >= date '1994-01-01'");
  EXPECT_EQ(Where("day between '1994-01-01' and '1994-12-31'"),
            "t.day >= date '1994-01-01' & t.day <= date '1994-12-31'");
  EXPECT_EQ(Where("'a' < 'b' and name = 'x'"), "t.name = 'x'");
  EXPECT_EQ(Selected("'abc'"), "'abc' : varchar");
  EXPECT_EQ(Selected("null"), "NULL : varchar");
}

TEST(BindTest, Numbers) {
  EXPECT_EQ(Selected("-5"), "-5 : integer");
  EXPECT_EQ(Selected("- /* comment */ ( - (5))"), "5 : integer");
  EXPECT_EQ(Selected("0"), "0 : integer");
  EXPECT_EQ(Selected("-1"), "-1 : integer");
  EXPECT_EQ(Selected("-2147483648"), "-2147483648 : integer");
  EXPECT_EQ(Selected("9223372036854775807"), "9223372036854775807 : integer");
  EXPECT_EQ(Selected("-9223372036854775808"), "-9223372036854775808 : integer");
  EXPECT_EQ(Selected("9223372036854775808"), "9223372036854775808. : decimal(38,0)");
  EXPECT_EQ(Selected("-1.50"), "-1.50 : decimal(38,2)");
  EXPECT_EQ(Selected("1.5e3"), "1500. : decimal(38,0)");
  EXPECT_EQ(Selected("15e-3"), "0.015 : decimal(38,3)");
  EXPECT_EQ(Selected(".5"), "0.5 : decimal(38,1)");
  EXPECT_EQ(Selected("0e500"), "0. : decimal(38,0)");
  // What fits of more than 38 digits.
  EXPECT_EQ(Selected("1.1234567890123456789012345678901234567890123"),
            "1.12345678901234567890123456789012346 : decimal(38,35)");
  EXPECT_EQ(Selected("0.1234567890123456789012345678901234567890123"),
            "0.123456789012345678901234567890123457 : decimal(38,36)");
  EXPECT_EQ(Where("rate > '0.1234567890123456789012345678901234567890123'"),
            "t.rate > 0.123456789012345678901234567890123457");
}

TEST(BindTest, Arithmetic) {
  EXPECT_EQ(Selected("1 + 2 * 3"), "7 : integer");
  EXPECT_EQ(Selected("-7 / 2"), "-3 : integer");
  EXPECT_EQ(Selected("-7 % 4"), "-3 : integer");
  EXPECT_EQ(Selected("1.5 * 1.25"), "1.875 : decimal(38,3)");
  EXPECT_EQ(Selected("10 / 4.0"), "numeric '2.5000000000000000' : numeric");
  EXPECT_EQ(Selected("2 / 3.0"), "numeric '0.66666666666666666667' : numeric");
  EXPECT_EQ(Selected("price * (1 - rate)"), "t.price * (1 - t.rate) : decimal(38,6)");
  EXPECT_EQ(Selected("price / id"), "t.price / t.id : numeric");
  EXPECT_EQ(Selected("n / id % 3"), "t.n / t.id % 3 : integer");
  EXPECT_EQ(Selected("- n + + 3"), "- t.n + 3 : integer");
  EXPECT_EQ(Selected("n - (id - 1)"), "t.n - (t.id - 1) : integer");
  EXPECT_EQ(Selected("n + null"), "NULL : integer");
  EXPECT_EQ(Selected("n + '3'"), "t.n + 3 : integer");
}

TEST(BindTest, Dates) {
  EXPECT_EQ(Selected("date '1994-01-01' + interval '1' year"), "timestamp '1995-01-01 00:00:00' : timestamp");
  EXPECT_EQ(Selected("date '1994-01-31' + interval '1' month"),
            "timestamp '1994-02-28 00:00:00' : timestamp");
  EXPECT_EQ(Selected("interval '1 year 2 months -3 days' + date '1994-01-01'"),
            "timestamp '1995-02-26 00:00:00' : timestamp");
  // A timestamp at midnight is compared as its day, so that codes of dates can be used.
  EXPECT_EQ(Where("day < date '1994-01-01' + interval '1' year"), "t.day < date '1995-01-01'");
  EXPECT_EQ(Where("day in (date '1994-01-01' + interval '1' year, '1994-03-01')"),
            "t.day IN (date '1995-01-01', date '1994-03-01')");
  EXPECT_EQ(Where("day < timestamp '1994-01-01 12:00'"),
            "CAST(t.day AS timestamp) < timestamp '1994-01-01 12:00:00'");
  EXPECT_EQ(Selected("date '1994-01-01' + 90"), "date '1994-04-01' : date");
  EXPECT_EQ(Selected("90 + date '1994-01-01'"), "date '1994-04-01' : date");
  EXPECT_EQ(Selected("day + interval '30' day"),
            "(CAST(t.day AS timestamp) + interval '30 days') : timestamp");
  EXPECT_EQ(Selected("day - 1"), "t.day - 1 : date");
  EXPECT_EQ(Selected("1 + day"), "t.day + 1 : date");
  EXPECT_EQ(Selected("day - date '1994-01-01'"), "t.day - date '1994-01-01' : integer");
  EXPECT_EQ(Selected("day - '1994-01-01'"), "t.day - date '1994-01-01' : integer");
  EXPECT_EQ(Selected("extract(year from day)"), "EXTRACT(YEAR FROM t.day) : integer");
  EXPECT_EQ(Selected("extract(month from date '1994-03-05') * 100 + extract(day from date '1994-03-05')"),
            "305 : integer");
}

TEST(BindTest, TheStatementsTime) {
  FakeTables tables;
  constexpr int64_t kNowUs = 1'588'820'645'678'000;
  const auto bind = [&](const std::string& text) { return Bind(text, tables, kNowUs); };
  const auto bound =
      bind("select now(), current_timestamp, localtimestamp, current_date, age(date '2020-05-01') from t");
  ASSERT_TRUE(bound.ok()) << bound.status();
  const FlatQuery query = Flatten(*std::get<TreeStatement>(*bound).tree).value();
  std::string shown;
  for (const FlatQuery::Output& column : query.select) shown += column.expr.literal.ToString() + "\n";
  EXPECT_EQ(shown,
            "2020-05-07 03:04:05.678+00\n2020-05-07 03:04:05.678+00\n2020-05-07 03:04:05.678\n2020-05-07\n6 "
            "days\n");
  EXPECT_EQ(BindError("select now() from t").sqlstate, "0A000");
}

TEST(BindTest, Cases) {
  EXPECT_EQ(Selected("case when n > 1 then 1 when n < 0 then 2.5 else price end"),
            "CASE WHEN t.n > 1 THEN 1.00 WHEN t.n < 0 THEN 2.50 ELSE t.price END : decimal(38,2)");
  EXPECT_EQ(Selected("case n when 1 then 'one' when 2 then name end"),
            "CASE WHEN t.n = 1 THEN 'one' WHEN t.n = 2 THEN t.name END : varchar");
  EXPECT_EQ(Selected("case when ok then id else price end"),
            "CASE WHEN t.ok THEN CAST(t.id AS decimal(38,2)) ELSE t.price END : decimal(38,2)");
  EXPECT_EQ(Selected("coalesce(n, id, 0)"),
            "CASE WHEN t.n IS NOT NULL THEN t.n WHEN t.id IS NOT NULL THEN t.id ELSE 0 END : integer");
  EXPECT_EQ(Selected("coalesce(day, '1994-01-01')"),
            "CASE WHEN t.day IS NOT NULL THEN t.day ELSE date '1994-01-01' END : date");
  EXPECT_EQ(Selected("coalesce(day, timestamp '1994-01-01 12:00')"),
            "CASE WHEN CAST(t.day AS timestamp) IS NOT NULL THEN CAST(t.day AS timestamp) ELSE timestamp "
            "'1994-01-01 12:00:00' END : timestamp");
  EXPECT_EQ(
      Selected("case when ok then timestamp '1994-01-01 12:00' else day end"),
      "CASE WHEN t.ok THEN timestamp '1994-01-01 12:00:00' ELSE CAST(t.day AS timestamp) END : timestamp");
  EXPECT_EQ(Selected("nullif(n, 3)"), "CASE WHEN t.n = 3 THEN NULL ELSE t.n END : integer");
  EXPECT_EQ(Selected("case when id = 0 then 1/0 else 1 end"),
            "CASE WHEN t.id = 0 THEN 1 / 0 ELSE 1 END : integer");
  EXPECT_EQ(Selected("case when 1 = 1 then 2 else 1/0 end"), "2 : integer");
}

TEST(BindTest, Casts) {
  EXPECT_EQ(Selected("'12'::int"), "12 : integer");
  EXPECT_EQ(Selected("cast(1.5 as integer)"), "2 : integer");
  EXPECT_EQ(Selected("cast(id as decimal(10, 2))"), "CAST(t.id AS decimal(10,2)) : decimal(38,2)");
  EXPECT_EQ(Selected("id::bigint"), "t.id : integer");
  EXPECT_EQ(Selected("price::numeric"), "t.price : decimal(38,2)");
  EXPECT_EQ(Selected("'1.250'::decimal"), "numeric '1.250' : numeric");
  EXPECT_EQ(Selected("day::text"), "CAST(t.day AS text) : varchar");
  EXPECT_EQ(Selected("day::varchar"), "CAST(t.day AS varchar) : varchar");
  EXPECT_EQ(Selected("' 1.5e-2 '::numeric"), "numeric '0.015' : numeric");
  EXPECT_EQ(Selected("cast('1994-02-03' as date)"), "date '1994-02-03' : date");
  EXPECT_EQ(Selected("date '1994-02-03'::text"), "'1994-02-03' : varchar");
  EXPECT_EQ(Selected("name::date"), "CAST(t.name AS date) : date");
  EXPECT_EQ(Selected("null::date"), "NULL : date");
}

TEST(BindTest, Aggregates) {
  const FlatQuery query = BindQuery(
      "select count(*), count(1), count(n), count(distinct n), sum(n), sum(price), avg(n), avg(price), "
      "avg(rate), "
      "min(day), max(name), min(distinct price), sum(n) + sum(n) from t");
  EXPECT_EQ(
      Show(query),
      "select agg0 as count, agg0 as count, agg1 as count, agg2 as count, agg3 as sum, agg4 as sum, agg5 as "
      "avg, "
      "agg6 as avg, agg7 as avg, agg8 as min, agg9 as max, agg10 as min, agg3 + agg3 as ?column?\nfrom t t\n"
      "aggregate count(*), count(t.n), count(distinct t.n), sum(t.n), sum(t.price), avg(t.n), avg(t.price), "
      "avg(t.rate), min(t.day), max(t.name), min(t.price)");
  const auto type = [&](int i) { return TypeName(query.aggregates.at(static_cast<size_t>(i)).type); };
  EXPECT_EQ(type(0), "integer");
  EXPECT_EQ(type(3), "integer");
  EXPECT_EQ(type(4), "decimal(38,2)");
  EXPECT_EQ(type(5), "numeric");
  EXPECT_EQ(type(6), "numeric");
  EXPECT_EQ(type(7), "numeric");
  EXPECT_EQ(type(8), "date");
}

/// So that conditions on columns stay conditions on their codes, and indexes are used.
TEST(BindTest, ConstantNumericsMeetColumnsAsDecimals) {
  EXPECT_EQ(Where("price > 10 / 4.0"), "t.price > 2.5000000000000000");
  EXPECT_EQ(Where("10 / 4.0 > price"), "2.5000000000000000 > t.price");
  EXPECT_EQ(Where("id in (10 / 4.0, 6 / 2.0)"), "t.id = 3 OR t.id = 2.5000000000000000");
  EXPECT_EQ(Where("price / 3 > 2"), "t.price / 3 > 2");
}

TEST(BindTest, LongProductsAreNumerics) {
  EXPECT_EQ(
      Selected("rate*rate*rate*rate*rate*rate*rate*rate*rate"),
      "t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate : decimal(38,36)");
  EXPECT_EQ(
      Selected("rate*rate*rate*rate*rate*rate*rate*rate*rate*rate"),
      "t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate * t.rate : numeric");
}

TEST(BindTest, TimesAreAddedUpAsIntervals) {
  const FlatQuery query = BindQuery("select sum(name::time), avg(name::time), max(name::time) from t");
  EXPECT_EQ(Show(query),
            "select agg0 as sum, agg1 as avg, agg2 as max\nfrom t t\naggregate "
            "sum(CAST(CAST(t.name AS time) AS interval)), avg(CAST(CAST(t.name AS time) AS interval)), "
            "max(CAST(t.name AS time))");
  EXPECT_EQ(TypeName(query.aggregates.at(0).type), "interval");
  EXPECT_EQ(TypeName(query.aggregates.at(1).type), "interval");
  EXPECT_EQ(TypeName(query.aggregates.at(2).type), "time");
}

TEST(BindTest, GroupBy) {
  const char* expected =
      "select group0 + 1 as x, agg0 as s\nfrom t t\ngroup by t.n\naggregate sum(t.id)\norder by agg0 asc "
      "nulls last";
  EXPECT_EQ(Show(BindQuery("select n + 1 as x, sum(id) as s from t group by n order by s")), expected);
  EXPECT_EQ(Show(BindQuery("select n + 1 as x, sum(id) as s from t group by n, t.n order by 2")), expected);
  const char* grouped =
      "select group0 as x, agg0 as count\nfrom t t\ngroup by t.n + 1\naggregate count(*)\norder by group0 "
      "desc nulls "
      "first";
  EXPECT_EQ(Show(BindQuery("select n + 1 as x, count(*) from t group by 1 order by x desc")), grouped);
  EXPECT_EQ(Show(BindQuery("select n + 1 as x, count(*) from t group by x order by 1 desc")), grouped);
  EXPECT_EQ(
      Show(BindQuery("select n + 1 as x, count(*) from t group by n + 1 order by n + 1 desc nulls first")),
      grouped);
  // A table's column comes before an output of the same name; ORDER BY sees it the other way round.
  EXPECT_EQ(Show(BindQuery("select n as id, id as n from t group by id, n order by n")),
            "select group1 as id, group0 as n\nfrom t t\ngroup by t.id, t.n\norder by group0 asc nulls last");
  EXPECT_EQ(Show(BindQuery("select 'x', n from t group by 1, 2")),
            "select 'x' as ?column?, group0 as n\nfrom t t\ngroup by t.n");
  EXPECT_EQ(Show(BindQuery("select 'x', count(*) from t group by 1")),
            "select 'x' as ?column?, agg0 as count\nfrom t t\ngroup by 'x'\naggregate count(*)");
}

TEST(BindTest, Having) {
  EXPECT_EQ(
      Show(BindQuery("select n from t group by n having count(*) > 1 and n < 5 and sum(id) > count(*)")),
      "select group0 as n\nfrom t t\ngroup by t.n\naggregate count(*), sum(t.id)\n"
      "having agg0 > 1 AND group0 < 5 AND agg1 > agg0");
  const FlatQuery query = BindQuery("select 1 from t having true");
  EXPECT_TRUE(query.aggregated);
  EXPECT_FALSE(query.having.has_value());
}

TEST(BindTest, OrderLimitDistinct) {
  EXPECT_EQ(
      Show(BindQuery(
          "select distinct id, n + 1 as m from t order by m desc nulls last, 1, n + 1 limit 10 offset 5")),
      "select distinct t.id as id, t.n + 1 as m\nfrom t t\norder by t.n + 1 desc nulls last, t.id asc nulls "
      "last\nlimit 10\noffset 5");
  EXPECT_EQ(BindQuery("select id from t limit 2 * 3 + '4'").limit, 10);
  EXPECT_EQ(BindQuery("select id from t limit 1.5 offset 0.4").limit, 2);
  EXPECT_EQ(BindQuery("select id from t limit null").limit, std::nullopt);
  EXPECT_EQ(BindQuery("select id from t fetch first row only").limit, 1);
  EXPECT_EQ(BindQuery("select id from t offset 3 rows fetch next 2 rows only").offset, 3);
}

TEST(BindTest, Positions) {
  const std::string text = "select n+1, sum(id) from t where name = 'é' and price > 2.5 group by 1";
  const FlatQuery query = BindQuery(text);
  EXPECT_EQ(query.conjuncts.at(0).position, static_cast<int>(text.find('=')));
  EXPECT_EQ(query.conjuncts.at(1).position, static_cast<int>(text.find('>')));
  EXPECT_EQ(query.conjuncts.at(1).children.at(1).position, static_cast<int>(text.find("2.5")));
  EXPECT_EQ(query.aggregates.at(0).argument.position, static_cast<int>(text.find("id)")));
}

TEST(BindTest, OtherStatements) {
  FakeTables tables;
  const auto bind = [&](const std::string& text) {
    auto statement = Bind(text, tables);
    EXPECT_TRUE(statement.ok()) << text << statement.status();
    return *std::move(statement);
  };
  EXPECT_FALSE(std::get<ExplainStatement>(bind("explain select id from t")).analyze);
  EXPECT_TRUE(std::get<ExplainStatement>(bind("explain analyze select id from t;")).analyze);
  EXPECT_TRUE(std::get<ExplainStatement>(bind("explain (analyze true) select id from t")).analyze);
  EXPECT_FALSE(std::get<ExplainStatement>(bind("explain (analyze off) select id from t")).analyze);
  EXPECT_FALSE(std::get<ExplainStatement>(bind("explain (analyze 0) select id from t")).analyze);
  EXPECT_TRUE(std::get<ExplainStatement>(bind("explain (analyze 1) select id from t")).analyze);
  EXPECT_TRUE(std::get<ExplainStatement>(bind("explain (analyze, format json) select id from t")).json);
  EXPECT_FALSE(std::get<ExplainStatement>(bind("explain (format text) select id from t")).json);
  auto drop = std::get<DropTableStatement>(bind("drop table if exists \"T\""));
  EXPECT_EQ(drop.table, "T");
  EXPECT_TRUE(drop.if_exists);
  drop = std::get<DropTableStatement>(bind("drop table public.nothing"));
  EXPECT_EQ(drop.table, "nothing");
  EXPECT_FALSE(drop.if_exists);
}

TEST(BindTest, Settings) {
  FakeTables tables;
  const auto setting = [&](const std::string& text) {
    const auto statement = Bind(text, tables);
    EXPECT_TRUE(statement.ok()) << text << statement.status();
    const auto set = std::get<SetStatement>(*statement);
    std::string out = set.name + (set.local ? "|local" : "") + (set.reset ? "|reset" : "");
    for (const std::string& value : set.values) out += "|" + value;
    return out + "|" + std::to_string(set.position) + "|" + std::to_string(set.value_position);
  };
  EXPECT_EQ(setting("set nam.prefetch = 8"), "nam.prefetch|8|4|19");
  EXPECT_EQ(setting("set nam.x to 0"), "nam.x|0|4|13");
  EXPECT_EQ(setting("set session nam.x to -1"), "nam.x|-1|12|21");
  EXPECT_EQ(setting("SET NAM.X TO On"), "nam.x|on|4|13");
  EXPECT_EQ(setting("set nam.x = 'a b'"), "nam.x|a b|4|12");
  EXPECT_EQ(setting("set nam.x = -1.5"), "nam.x|-1.5|4|12");
  EXPECT_EQ(setting("set local nam.x = 1"), "nam.x|local|1|10|18");
  EXPECT_EQ(setting("set local.x = 1"), "local.x|1|4|14");
  EXPECT_EQ(setting("set x = a, 'b'"), "x|a|b|4|8");
  EXPECT_EQ(setting("set nam.x to default"), "nam.x|4|-1");
  EXPECT_EQ(setting("reset nam.x"), "nam.x|reset|6|-1");
  EXPECT_EQ(setting("reset all"), "|reset|6|-1");
  EXPECT_EQ(setting("set timezone = 'Europe/Berlin'"), "timezone|Europe/Berlin|4|15");
  EXPECT_EQ(setting("set time zone 'Asia/Tokyo'"), "timezone|Asia/Tokyo|4|14");
  EXPECT_EQ(setting("set time zone 2"), "timezone|2|4|14");
  EXPECT_EQ(setting("set time zone -3.5"), "timezone|-3.5|4|14");
  EXPECT_EQ(setting("set local time zone default"), "timezone|local|10|-1");
  EXPECT_EQ(setting("set transaction isolation level repeatable read"),
            "transaction_isolation|local|repeatable read|0|-1");
  const auto show = [&](const std::string& text) {
    const auto statement = Bind(text, tables);
    EXPECT_TRUE(statement.ok()) << text << statement.status();
    const auto shown = std::get<ShowStatement>(*statement);
    return shown.name + "|" + std::to_string(shown.position);
  };
  EXPECT_EQ(show("show all"), "|5");
  EXPECT_EQ(show("show \"TimeZone\""), "TimeZone|5");
  EXPECT_EQ(show("show time zone"), "timezone|5");
  EXPECT_EQ(show("show transaction isolation level"), "transaction_isolation|5");
}

TEST(BindTest, TextOfAnExpressionBindsToItself) {
  for (const char* expression :
       {"price * (1 - rate) / (id - -3) + 1 > 2",
        "not (n in (1, 2) and not (ok or n is null)) and name not like 'a''%'",
        "case when not ok then - (n + 1) * 2 when (id = 1) = ok then 3 end = 4",
        "cast(price as integer) - (n - id) = 7", "(name like 'x') = (n is not null)",
        "day - 3 > date '1994-01-01' and extract(day from day) = 2", "not (not ok)",
        "(ok or n = 1) and (id = 2 or not ok)", "- (- n) < 2 and n * (id / 3) > 2 and n / (id * 3) = 1"}) {
    const std::string text(expression);
    const std::string once = Where(text);
    std::string conjunction;
    const FlatQuery query = BindQuery("select id from t where " + text);
    for (const Expr& e : query.conjuncts)
      conjunction += (conjunction.empty() ? "(" : " and (") + Show(query, e) + ")";
    EXPECT_EQ(Where(conjunction), once);
  }
}

TEST(BindTest, FailureOfTheCatalogPassesThrough) {
  FakeTables tables;
  tables.Fail(absl::UnavailableError("the catalog is away"));
  const auto statement = Bind("select id from t", tables);
  EXPECT_TRUE(absl::IsUnavailable(statement.status()));
  EXPECT_FALSE(SqlErrorOf(statement.status()).has_value());
}

}  // namespace
}  // namespace nam::sql
