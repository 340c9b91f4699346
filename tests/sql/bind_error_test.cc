#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// All of SQLSTATE 0A000.
struct RefusalCase {
  std::string marked;
  std::string message;
};

void CheckRefusals(const std::vector<RefusalCase>& cases) {
  for (const RefusalCase& c : cases) CheckBindError({c.marked, "0A000", c.message, ""});
}

TEST(BindErrorTest, Syntax) {
  CheckBindErrors({
      {"^selec", "42601", "syntax error at or near \"selec\"", ""},
      {"select id from t where 'é' = name ^x", "42601", "syntax error at or near \"x\"", ""},
      {"", "42601", "empty", "SELECT"},
      {" -- nothing\n ;", "42601", "empty", "SELECT"},
      {"select id from t; ^select id from u", "42601", "more than one statement", "one"},
      {"select ^'abc from t", "42601", "unterminated quoted string", ""},
      {"select E'\\udb99^' from t", "42601", "invalid Unicode surrogate pair", ""},
      {"select id from t where ^", "42601", "syntax error at end of input", "not complete"},
  });
}

TEST(BindErrorTest, StatementKinds) {
  CheckRefusals({
      {"insert into t values (1) ^on conflict do nothing", "ON CONFLICT of a columnar table is"},
      {"insert into t values (1) ^returning id", "RETURNING of a columnar table is"},
      {"/* x */ update ^t set n = 1", "UPDATE of \"t\" is"},
      {"delete from ^t", "DELETE of \"t\" is"},
      {"create table ^x with (storage = record) as select id from t",
       "CREATE TABLE … AS of a record table is"},
      {"^create materialized view x as select id from t", "materialized views are"},
      {"create table ^x as execute y", "CREATE TABLE … AS of anything but SELECT"},
      {"create index i on ^t (id)", "an index on \"t\" is"},
      {"^create role x", "CREATE ROLE is"},
      {"copy t to ^program 'x'", "COPY … TO PROGRAM is"},
      {"copy (^insert into t (id) values (1)) to 'x'", "COPY of anything but a table"},
      {"copy t to 'x.csv' (^header match)", "cannot use \"match\" with HEADER in COPY TO"},
      {"copy t to 'x' (^force_quote (id))", "COPY FORCE_QUOTE requires CSV mode"},
      {"copy t from ^program 'x'", "COPY … FROM PROGRAM is"},
      {"copy t from 'x' ^where n = 1", "COPY … WHERE is"},
      {"copy t from 'x' (^format binary)", "the binary format of COPY is"},
      {"copy t from 'x' (^encoding latin1)", "encoding \"latin1\" is"},
      {"copy t from 'x' (^quote '!')", "COPY quote available only in CSV mode"},
      {"truncate t^, t", "TRUNCATE of several tables"},
      {"truncate t ^cascade", "CASCADE"},
      {"truncate t ^restart identity", "RESTART IDENTITY"},
      {"vacuum (^full) t", "VACUUM option \"full\""},
      {"^vacuum", "VACUUM of anything but one whole table"},
      {"^merge into t using u on true when matched then delete", "MERGE is"},
      {"drop table a^, b", "several tables"},
      {"drop table if exists ^a.b.c", "names of other databases are"},
      {"set nam.x ^from current", "FROM CURRENT"},
      {"set time zone ^interval '2' hour", "this kind of value"},
      {"^set transaction snapshot 'x'", "SET TRANSACTION SNAPSHOT"},
      {"set transaction ^isolation level serializable", "ISOLATION LEVEL SERIALIZABLE"},
      {"^explain create table x as select 1", "EXPLAIN of anything but SELECT"},
      {"explain (analyze, ^costs off) select id from t", "EXPLAIN option \"costs\""},
      {"explain ^verbose select id from t", "EXPLAIN option \"verbose\""},
      {"explain (^format xml) select id from t", "EXPLAIN (FORMAT XML)"},
  });
  CheckBindErrors({
      {"copy t from ''", "58P01", "could not open file", "FROM STDIN"},
      {"copy t to ''", "58P01", "could not open file", "TO STDOUT"},
  });
  CheckBindError({"explain (^analyze maybe) select id from t", "22023", "ANALYZE takes", ""});
  CheckBindError({"explain (^analyze 2) select id from t", "22023", "ANALYZE takes", ""});
  CheckBindError({"explain (^format jsonb) select id from t", "22023", "unrecognized value", "TEXT or JSON"});
}

TEST(BindErrorTest, SelectClauses) {
  CheckRefusals({
      {"select id ^into x from t", "SELECT INTO is"},
      {"select id from t ^for update", "FOR UPDATE of \"t\" is"},
      {"select id from t ^for no key update", "FOR NO KEY UPDATE of \"t\" is"},
      {"select id from t order by id ^using >", "ORDER BY … USING is"},
  });
}

TEST(BindErrorTest, From) {
  CheckRefusals({
      {"select * from ^f(1)", "functions in FROM but generate_series and read_csv are"},
      {"select * from generate_series(1, 2) with ^ordinality", "WITH ORDINALITY is"},
      {"select * from ^generate_series(1, (select max(id) from t))", "a subquery in generate_series is"},
      {"with ^w as (delete from r where id = 1 returning id) select * from w", "statements in WITH"},
      {"select * from t ^tablesample bernoulli (1)", "TABLESAMPLE is"},
      {"select * from ^only t", "ONLY is"},
  });
  CheckBindErrors({
      {"select * from ^lineorders", "42P01", "table \"lineorders\" does not exist",
       "did you mean \"lineorder\"?"},
      {"select * from ^zzzzzz", "42P01", "does not exist", ""},
      {"select * from ^pg_catalog.pg_class", "0A000", "schema \"pg_catalog\" is", "\\dt lists tables"},
      {"select ^generate_series(1, 2)", "0A000", "is not supported", "write it in FROM"},
      {"select * from t, ^t", "42712", "table name \"t\"", "alias"},
      {"select * from t a, ^u a", "42712", "table name \"a\"", "alias"},
      {"select * from t join u using (id, ^nam)", "42703", "column \"nam\"", "did you mean \"name\"?"},
      {"select * from t join u using (id, ^id)", "42701", "twice in USING", ""},
      {"select * from t a, u b join t c on ^a.id = b.id", "42P01", "cannot be referenced from this part",
       "WHERE"},
      {"select * from t join u on ^sum(t.id) = u.id", "42803", "not allowed in JOIN", "HAVING"},
      {"select * from t join u on ^t.id", "42804", "JOIN conditions needs a condition", ""},
  });
}

TEST(BindErrorTest, Names) {
  CheckBindErrors({
      {"select ^nme from t", "42703", "column \"nme\" does not exist", "did you mean \"name\"?"},
      {"select sum(^lo_revenu) from lineorder", "42703", "column \"lo_revenu\"",
       "did you mean \"lo_revenue\"?"},
      {"select ^t.pric from t", "42703", "column \"t.pric\"", "did you mean \"price\"?"},
      {"select ^name from t, u where t.id = u.id", "42702", "column \"name\" is ambiguous",
       "t.name or u.name"},
      {"select ^x.id from t", "42P01", "table \"x\" is not in FROM", ""},
      {"select ^t.id from t as z", "42P01", "table \"t\" is not in FROM", "called \"z\""},
      {"select ^lineorde.lo_tax from lineorder", "42P01", "not in FROM", "did you mean \"lineorder\"?"},
      {"select ^x.* from t", "42P01", "table \"x\"", ""},
      {"select id from t where name = ^\"ASIA\"", "42703", "column \"ASIA\"", "single quotes"},
      {"select id from t group by ^nix", "42703", "column \"nix\"", ""},
      {"select id from t order by ^nix", "42703", "column \"nix\"", ""},
      {"select ^t from t", "0A000", "whole row", "t.*"},
      {"select ^a.b.c from t", "0A000", "schema", ""},
      {"select id a, n a from t order by ^a", "42702", "ORDER BY \"a\" is ambiguous", ""},
      {"select ^Odd from t", "42703", "column \"odd\"", ""},
  });
}

TEST(BindErrorTest, Types) {
  CheckBindErrors({
      {"select id from t where n = ^'abc'", "22P02", "invalid integer: \"abc\"", ""},
      {"select id from t where n = ^'1.5'", "22P02", "invalid integer", ""},
      {"select id from t where price > ^'x'", "22P02", "invalid decimal", ""},
      {"select id from t where ok = ^'maybe'", "22P02", "invalid boolean", "true or false"},
      {"select id from t where day > ^'1994-02-30'", "22008", "no such date: \"1994-02-30\"", "9999"},
      {"select ^'99999'::smallint from t", "22003", "smallint out of range", "a smallint has 16 bits"},
      {"select 2147483648^::int from t", "22003", "integer out of range", "an integer has 32 bits"},
      {"select (9223372036854775807 + 1)^::bigint from t", "22003", "bigint out of range",
       "a bigint has 64 bits"},
      {"select id from t where day between '1994-01-01' and ^'tomorrow'", "22007", "invalid date", "YYYY"},
      {"select date ^'x' from t", "22007", "invalid date", "YYYY-MM-DD"},
      {"select ^'1x'::int from t", "22P02", "invalid integer", ""},
      {"select id from t where n ^= name", "42883", "bigint = string", "CAST"},
      {"select id from t where day ^< 19940101", "42883", "date < integer", "one type"},
      {"select id from t where ok ^= 1", "42883", "boolean = integer", "one type"},
      {"select id from t where n in (1, ^name)", "42883", "bigint = string", ""},
      {"select id from t where n in (1, ^'x')", "22P02", "invalid integer", ""},
      {"select name ^+ 1 from t", "42883", "string + integer", "arithmetic"},
      {"select day ^+ day from t", "42883", "date + date", "arithmetic"},
      {"select 1 ^- day from t", "42883", "integer - date", "arithmetic"},
      {"select day ^* 2 from t", "42883", "date * integer", "arithmetic"},
      {"select ^- name from t", "42883", "- string", "numbers"},
      {"select 'a' ^+ 'b' from t", "42725", "not unique", ""},
      {"select id from t where ^n", "42804", "WHERE needs a condition, not bigint", "compare"},
      {"select id from t where ok and ^id", "42804", "needs a condition", ""},
      {"select id from t group by id having ^id", "42804", "HAVING needs a condition", ""},
      {"select case when ok then ^1 else name end from t", "42804", "CASE types varchar(20) and integer",
       "CAST"},
      {"select coalesce(n, ^day) from t", "42804", "COALESCE types", "CAST"},
      {"select n ^like 'a' from t", "42883", "bigint LIKE", "CAST"},
      {"select name like ^'a\\' from t", "22025", "must not end", ""},
      {"select ^extract(year from n) from t", "42883", "extract(text, bigint)", "type casts"},
      {"select ^upper(n) from t", "42883", "upper(bigint)", "type casts"},
      {"select ^substring(name) from t", "42883", "substring(text)", "type casts"},
      {"select ^round(n::double precision, 2) from t", "42883", "round(double precision, integer)",
       "type casts"},
      {"select n ^|| id from t", "42883", "bigint || bigint", "CAST"},
      {"select interval '1 day' ^+ 1 from t", "42883", "interval + integer", "intervals"},
      {"select interval '1 day' ^- day from t", "42883", "interval - date", "intervals"},
      {"select ^upper(distinct name) from t", "42809", "not an aggregate", ""},
      {"select extract(^foo from day) from t", "22023", "not recognized", ""},
      {"select (id, n) ^= (1, 2, 3) from t", "42601", "unequal number", ""},
      {"select 'a' ^~ '(' from t", "2201B", "invalid regular expression", ""},
      {"select 'a' ^~ '\\ma' from t", "0A000", "\\m", ""},
      {"select ^cast(day as integer) from t", "42846", "cannot cast date to integer", ""},
      {"select ok^::bigint from t", "42846", "cannot cast boolean to bigint", ""},
      {"select ^sum(name) from t", "42883", "sum(varchar(20))", "numbers"},
      {"select ^avg(day) from t", "42883", "avg(date)", "numbers"},
      {"select ^max(ok) from t", "42883", "max(boolean)",
       "numbers, dates, times, timestamps, intervals and strings"},
      {"select ^sum(null) from t", "42725", "sum(unknown) is not unique", "CAST"},
      {"select ^bit_and('1') from t", "42725", "bit_and(unknown)", ""},
      {"select case '1' ^when 1 then 2 end from t", "42883", "string = integer", ""},
      {"select ^sum(*) from t", "42883", "sum(*)", "count"},
      {"select ^sum(n, id) from t", "42883", "argument(s), not 2", ""},
      {"select ^count() from t", "42809", "an argument", "count(*)"},
      {"select ^sum() from t", "42883", "argument(s), not 0", ""},
  });
}

TEST(BindErrorTest, Values) {
  CheckBindErrors({
      {"select 1^/0 from t", "22012", "division by zero", "NULLIF"},
      {"select id from t where n = 5 ^% 0", "22012", "division by zero", ""},
      {"select ^123456789012345678901234567890123456789 from t", "22003", "38 digits", ""},
      {"select ^1e400 from t", "22003", "38 digits", ""},
      {"select 99999999999999999999999999999999999999 ^+ 1 from t", "22003", "38 digits", ""},
      {"select date '9999-12-31' ^+ 1 from t", "22008", "date out of range", "9999"},
      {"select date '1994-01-01' ^+ interval '9000' year from t", "22008", "timestamp out of range", ""},
      {"select date '1994-01-01' + interval ^'1 fortnight' from t", "22007", "invalid interval",
       "1 year 2 months"},
      {"select id from t limit ^-1", "2201W", "LIMIT must not be negative", ""},
      {"select id from t offset ^-1", "2201X", "OFFSET must not be negative", ""},
      {"select id from t limit ^date '1994-01-01'", "42804", "LIMIT needs an integer", ""},
      {"select id from t limit ^-1.5", "2201W", "LIMIT must not be negative", ""},
      {"select id from t limit ^n", "42P10", "LIMIT must not contain columns", ""},
      {"select id from t limit ^nothing", "42703", "column \"nothing\" does not exist", ""},
      {"select id from t offset ^name", "42804", "OFFSET needs an integer", ""},
      {"select id from t limit ^'x'", "22P02", "invalid integer", ""},
      {"select id from t limit ^count(*)", "42803", "not allowed in LIMIT", ""},
      {"select id from t order by ^2", "42P10", "ORDER BY position 2", "1 columns"},
      {"select id from t order by ^0", "42P10", "ORDER BY position 0", ""},
      {"select id from t group by ^-1", "42P10", "GROUP BY position -1", ""},
      {"select id from t group by ^'x'", "42601", "must be a position", ""},
      {"select ^x'61", "42601", "unterminated", ""},
  });
}

TEST(BindErrorTest, Grouping) {
  CheckBindErrors({
      {"select ^name, sum(n) from t", "42803", "\"t.name\" must appear in GROUP BY", "add t.name"},
      {"select id, ^n from t group by id", "42803", "\"t.n\"", "min(t.n)"},
      {"select id + ^n from t group by id + 1, id", "42803", "\"t.n\"", ""},
      {"select id from t group by id order by ^n", "42803", "\"t.n\"", ""},
      {"select id from t group by id having ^n > 1", "42803", "\"t.n\"", ""},
      {"select ^id from t having count(*) > 1", "42803", "\"t.id\"", ""},
      {"select ^* from t group by id", "42803", "\"t.n\"", ""},
      {"select id from t where ^sum(n) > 1", "42803", "not allowed in WHERE", "HAVING"},
      {"select sum(1 + ^max(n)) from t", "42803", "nested", ""},
      {"select id from t group by ^count(*)", "42803", "not allowed in GROUP BY", ""},
      {"select count(*) c from t group by ^c", "42803", "not allowed in GROUP BY", ""},
      {"select distinct id from t order by ^n", "42P10", "SELECT DISTINCT", "select list"},
      {"select distinct count(*) from t order by ^n", "42P10", "SELECT DISTINCT", "select list"},
      {"select distinct ^n from t group by id order by 1", "42803", "\"t.n\"", ""},
  });
}

/// If there are two mistakes, the one in the clause that PostgreSQL checks first is reported.
TEST(BindErrorTest, ClausesAreLookedAtInPostgresOrder) {
  CheckBindErrors({
      {"select ^nix from t where n = date '1994-01-01'", "42703", "\"nix\"", ""},
      {"select n ^+ name from t where nix", "42883", "bigint + string", ""},
      {"select n ^= date '1994-01-01' from t where sum(n) > 1", "42883", "bigint = date", ""},
      {"with w as (select n ^+ name from t) select nix from zzz", "42883", "bigint + string", ""},
      {"select nix from t join u on t.id ^= u.name", "42883", "bigint = string", ""},
      {"select 1 from t where n ^= name having nix", "42883", "bigint = string", ""},
      {"select 1 from t group by nix having n ^= name order by zzz", "42883", "bigint = string", ""},
      {"select 1 from t group by nix order by n ^+ name", "42883", "bigint + string", ""},
      {"select name, sum(n) from t group by ^nix", "42703", "\"nix\"", ""},
      {"select distinct on (name ^+ n) id from t limit n", "42883", "string + bigint", ""},
      {"select distinct id from t order by ^n limit true", "42P10", "SELECT DISTINCT", ""},
      {"select name, sum(n) from t limit ^n", "42P10", "LIMIT must not contain columns", ""},
      {"select 1 from t limit n offset ^true", "42804", "OFFSET needs an integer", ""},
      {"select ^name, sum(n) from t limit -1", "42803", "\"t.name\"", ""},
      {"select rank() over (order by nix), n from t limit ^true", "42804", "LIMIT needs an integer", ""},
      {"select rank() over (order by nix), n ^+ name from t", "42883", "bigint + string", ""},
      {"select rank() over w, n ^+ name from t window w as (order by nix) limit n", "42883", "", ""},
      {"select rank() over ^w, n + name from t", "42704", "window \"w\"", ""},
      {"select name, sum(n), rank() over (order by ^nix) from t", "42703", "\"nix\"", ""},
      {"select name, sum(n) from t window w as (order by ^nix)", "42703", "\"nix\"", ""},
      {"select 1 from t where lag(^nix) over () > 1", "42703", "\"nix\"", ""},
      {"select n from t union select n, n + ^nix from t", "42703", "\"nix\"", ""},
      // Constants are computed when everything has been checked.
      {"select 1 / 0 from t where ^nix", "42703", "\"nix\"", ""},
      {"select x from (select 1 / 0 as x from t) q where ^nix", "42703", "\"nix\"", ""},
      {"select 1 ^/ 0 from t where 2 % 0 = 1", "22012", "division by zero", ""},
  });
}

TEST(BindErrorTest, Expressions) {
  CheckRefusals({
      {"select sum(n) ^within group (order by id) from t", "WITHIN GROUP is"},
      {"select count(^variadic n) from t", "VARIADIC is"},
      {"select ^my.f(name) from t", "functions with a schema are"},
      {"select ^current_date from t", "the current time is"},
      {"select ^current_time from t", "CURRENT_TIME is"},
      {"select extract(^julian from day) from t", "EXTRACT(julian FROM …) is"},
      {"select ^interval '1' second(3) from t", "intervals of a precision"},
      {"select ^!! n from t", "operator !! is"},
      {"select n ^operator(pg_catalog.+) 1 from t", "operator + is"},
      {"select name ^collate \"C\" from t", "COLLATE is"},
      {"select ^array[1] from t", "arrays are"},
      {"select ^row(1, 2) from t", "row values by themselves are"},
      {"select (^t).id from t", "subscripts"},
      {"select ^b'101' from t", "bit string"},
      {"select n::^money from t", "type money is"},
      {"select n::^int[] from t", "arrays are"},
      {"select ^timetz '10:00' from t", "type timetz is"},
      {"select ^timestamp(3) '1994-01-01' from t", "type timestamp(…) is"},
  });
  CheckBindErrors({
      {"select ^upper(name) filter (where n > 1) from t", "42809", "FILTER specified, but upper is no", ""},
      {"select ^upper(name order by n) from t", "42809", "ORDER BY specified, but upper is no", ""},
      {"select ^abs(n) within group (order by n) from t", "42809", "WITHIN GROUP specified, but abs", ""},
      {"select ^abs(distinct n) from t", "42809", "DISTINCT specified, but abs is not an aggregate", ""},
      {"select ^pi(*) from t", "42809", "(*) specified, but pi is not an aggregate", ""},
      {"select ^array_agg(n order by id) from t", "0A000", "\"array_agg\" is not supported", ""},
      {"select ^percentile_cont(1) within group (order by n) from t", "0A000", "\"percentile_cont\" is", ""},
      {"select ^summ(n) filter (where true) from t", "42883", "summ(bigint) does not exist", ""},
      {"create table x (a int default ^sum(1) filter (where true)) with (storage = record)", "42803",
       "aggregates are not allowed in DEFAULT", ""},
      {"create table x (a int default ^sum(1) over ()) with (storage = record)", "42P20",
       "window functions are not allowed in DEFAULT", ""},
      {"create table x (a int default ^rank() over ()) with (storage = record)", "42P20",
       "window functions are not allowed in DEFAULT", ""},
      {"create table x (a int primary key, check (^abs(a) over () > 1)) with (storage = record)", "42809",
       "OVER specified, but abs is not a window function", ""},
  });
  CheckBindError({"select ^$1 from t", "42P02", "there is no parameter $1", ""});
  CheckBindError(
      {"select ^summ(n) from t", "42883", "function summ(bigint) does not exist", "did you mean \"sum\"?"});
  CheckBindError(
      {"select ^lower(n) from t", "42883", "function lower(bigint) does not exist", "explicit type casts"});
  CheckBindError(
      {"select ^array_length(n) from t", "0A000", "function \"array_length\" is not supported", ""});
  CheckBindError(
      {"select date '2024-01-01' ^+ '1 day' from t", "42725", "operator is not unique: date + unknown", ""});
  CheckBindError({"select n = any(^'{1,2') from t", "22P02", "malformed array literal: \"{1,2\"", ""});
  CheckBindError({"select n = any(^'{{1}}') from t", "0A000", "arrays of arrays", ""});
  CheckBindError({"select n::^decimal(60, 2) from t", "22023", "38 digits", ""});
}

TEST(BindErrorTest, Bounds) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(BindError("select " + repeat("1+", 5000) + "1 from t").sqlstate, "54001");
  EXPECT_EQ(BindError("select " + repeat("1+", 300000) + "1 from t").sqlstate, "54001");
  // Chains may be longer than other nesting is deep, and are bounded inside of each other, too.
  EXPECT_EQ(BindQuery("select id from t where " + repeat("n + ", 1499) + "n > 1").conjuncts.size(), 1u);
  EXPECT_EQ(BindQuery("select id from t where " + repeat("name || ", 1499) + "name > 'x'").conjuncts.size(),
            1u);
  EXPECT_EQ(BindError("select " + repeat("n + ", 1800) + "n from t").sqlstate, "54001");
  const std::string inner = "(" + repeat("n + ", 1000) + "n)";
  EXPECT_EQ(BindError("select abs(" + inner + repeat(" + n", 1000) + ") from t").sqlstate, "54001");
  EXPECT_EQ(BindError("select n * abs(" + inner + repeat(" + n", 1000) + ") from t").sqlstate, "54001");
  EXPECT_EQ(BindError("select " + repeat("(", 100000)).sqlstate, "54001");
  EXPECT_EQ(BindError("select id from t where " + repeat("not ", 3000) + "ok").sqlstate, "54001");
  EXPECT_EQ(BindError("select " + repeat("coalesce(", 300) + "n" + repeat(", 1)", 300) + "from t").sqlstate,
            "54001");
  EXPECT_EQ(BindError("select * from t" + repeat(" join t on true", 1000)).sqlstate, "54001");
  EXPECT_EQ(BindError("select 1 " + repeat(" ", 5 << 20) + " from t").sqlstate, "54001");
  EXPECT_EQ(BindError("select '\xff' from t").sqlstate, "22021");
  EXPECT_EQ(BindError(std::string("select id\0 from t", 17)).sqlstate, "22021");
  // Long lists are no nesting.
  EXPECT_EQ(BindQuery("select id from t where n in (" + repeat("1, 2, ", 20000) + "3)").conjuncts.size(), 1u);
}

TEST(BindErrorTest, TermsOfAndAndOrAreBesideEachOther) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const auto where = [&](const std::string& condition) { return "select id from t where " + condition; };
  const auto state = [&](const std::string& condition) { return BindError(where(condition)).sqlstate; };
  EXPECT_EQ(BindQuery(where(repeat("n + 1 > id or not ok and ", 10'000) + "ok")).conjuncts.size(), 1u);
  EXPECT_EQ(
      BindQuery(where(repeat("n between id and 2 and (id > n or ok) and ", 6'000) + "ok")).conjuncts.size(),
      4u)
      << "each once";
  EXPECT_EQ(
      BindQuery("select case when " + repeat("n > id or ", 20'000) + "ok then 1 end from t").select.size(),
      1u);
  EXPECT_EQ(state(repeat("n = 1 or ", 20'000) + "id = 'x'"), "22P02") << "the last term is read";
  // What is nested for the parser stays bounded, whatever words are in it.
  EXPECT_EQ(state(repeat("n between 1 and not ", 6'000) + "ok"), "54001");
  EXPECT_EQ(state(repeat("(ok or ", 6'000) + "ok" + repeat(")", 6'000)), "54001");
  EXPECT_EQ(state(repeat("case when ok or ok then ok else ", 6'000) + "ok" + repeat(" end", 6'000)), "54001");
  EXPECT_EQ(BindError("select " + repeat("t.or + ", 100'000) + "t.and from t").sqlstate, "54001");
  EXPECT_EQ(BindError("select id from t" + repeat(" union select id from t where ok or ok", 6'000)).sqlstate,
            "54001");
  EXPECT_EQ(BindError("select id from t" + repeat(" join t on ok and ok", 6'000)).sqlstate, "54001");
}

/// What an expression is declared as, not how the engine holds it.
TEST(BindErrorTest, TypesInMessagesAreTheDeclaredOnes) {
  CheckBindErrors({
      {"select ^upper(3000000000) from t", "42883", "function upper(bigint) does not exist", ""},
      {"select ^upper(count(*)) from t", "42883", "function upper(bigint) does not exist", ""},
      {"select ^upper(2::smallint) from t", "42883", "function upper(smallint) does not exist", ""},
      {"select ^upper(7) from t", "42883", "function upper(integer) does not exist", ""},
      {"select ^bool_and(id::bigint) from t", "42883", "bool_and(bigint)", ""},
      {"select id from t where 3000000000 ^= name", "42883", "bigint = string", ""},
      {"select id from t where ^3000000000", "42804", "not bigint", ""},
      {"select case when ok then ^3000000000 else name end from t", "42804", "varchar(20) and bigint do not",
       ""},
      {"select ok^::bigint from t", "42846", "cannot cast boolean to bigint", ""},
      {"select ^'x'::decimal(8,2) from t", "22P02", "invalid decimal: \"x\"", ""},
  });
}

TEST(BindErrorTest, RefusedStatementsAreCalledByTheirOwnWords) {
  CheckBindErrors({
      {"^create sequence s", "0A000", "CREATE SEQUENCE is not supported", ""},
      {"^Create Type mood as enum ('a')", "0A000", "CREATE TYPE is not supported", ""},
      {"^create or replace function f() returns int as '' language sql", "0A000",
       "CREATE FUNCTION is not supported", ""},
      {"^create materialized view v as select 1", "0A000", "materialized views are not supported", ""},
      {"^refresh materialized view v", "0A000", "REFRESH MATERIALIZED VIEW is not supported", ""},
      {"^create database d", "0A000", "CREATE DATABASE is not supported", ""},
      {"^create user mapping for u server s", "0A000", "CREATE USER MAPPING is not supported", ""},
      {"^create user u", "0A000", "CREATE USER is not supported", ""},
      {"^grant select on t to u", "0A000", "GRANT is not supported", ""},
      {"^checkpoint", "0A000", "CHECKPOINT is not supported", ""},
  });
}

TEST(BindErrorTest, FunctionsAreSuggestedIfTheyAreSpelledAlike) {
  CheckBindErrors({
      {"select ^lenght(name) from t", "42883", "lenght", "did you mean \"length\"?"},
      {"select ^concta(name) from t", "42883", "concta", "did you mean \"concat\"?"},
      {"select ^to_number(name, '9') from t", "0A000", "to_number", "PostgreSQL has it"},
      {"select ^array_length(name, 1) from t", "0A000", "array_length", "PostgreSQL has it"},
  });
  for (const char* const name : {"len", "nvl", "ifnull", "int8an", "timestamptz_i"}) {
    const SqlError error = BindError(std::string("select ") + name + "(name, name) from t");
    EXPECT_EQ(error.sqlstate, "42883") << name;
    EXPECT_EQ(error.hint.find("did you mean"), std::string::npos) << name << ": " << error.hint;
  }
}

TEST(BindErrorTest, NumbersOfTooManyDigits) {
  CheckBindErrors({
      {"select ^340282366920938463463374607431768211456 from t", "22003", "38 digits", ""},
      {"select ^680564733841876926926749214863536422912.5 from t", "22003", "38 digits", ""},
      {"select ^'340282366920938463463374607431768211456'::bigint from t", "22003", "38 digits", ""},
  });
}

TEST(BindErrorTest, RowsOfValuesAreBesideEachOther) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(BindError("select * from (values " + repeat("(-1, null), ", 6000) + "(1, 2 + 'x')) v").sqlstate,
            "22P02")
      << "the last row is read";
  const std::string deep = "(" + repeat("1+", 6000) + "1)";
  EXPECT_EQ(BindError("select * from (values (1), " + deep + ") v").sqlstate, "54001");
  const SqlError both = BindError("select " + repeat("1+", 6000) + "1 from (values (1), " + deep + ") v");
  EXPECT_EQ(both.sqlstate, "54001");
  EXPECT_NE(both.hint.find("COPY"), std::string::npos) << "before the parser is called";
  EXPECT_EQ(BindError("values (1), (" + repeat("(", 100000)).sqlstate, "54001");
  EXPECT_EQ(BindError("values (1), (2)" + repeat(" union values (1)", 6000)).sqlstate, "54001");
}

TEST(BindErrorTest, OptionsOfCopy) {
  CheckBindErrors({
      {"copy t from 'x' (^force_quote *)", "0A000", "COPY FORCE_QUOTE cannot be used with COPY FROM", ""},
      {"copy t to 'x' (^on_error ignore)", "0A000", "COPY ON_ERROR cannot be used with COPY TO", ""},
      {"copy t to 'x' (^batch 5)", "0A000", "COPY BATCH cannot be used with COPY TO", ""},
      {"copy t from 'x' (^batch 5)", "0A000", "COPY BATCH cannot be used with a columnar table", ""},
      {"copy t from 'x' (^batch 0)", "22023", "COPY BATCH takes a number of rows", "10000"},
      {"copy t from 'x' (^rejects 'y')", "22023", "COPY REJECTS requires ON_ERROR ignore", ""},
      {"copy t to 'x.csv' (^force_quote (ide))", "42P10", "FORCE_QUOTE column \"ide\" not referenced", ""},
      {"copy t to 'x.csv' (^force_quote (id, name, id))", "42701", "column \"id\" specified more than once",
       ""},
      {"copy t to 'x' (^compression lzma)", "22023", "COMPRESSION \"lzma\" not recognized", "zstd"},
      {"copy t to 'x' (^delimiter 'n')", "22023", "COPY delimiter cannot be \"n\"", ""},
      {"copy ^t to 'x.csv' (null '\"')", "22023", "CSV quote character must not appear", ""},
      {"copy t to 'x' (header, ^header)", "42601", "conflicting or redundant options", ""},
      {"copy ^missing to 'x'", "42P01", "\"missing\" does not exist", ""},
  });
}

TEST(BindErrorTest, StatusesAreReadable) {
  FakeTables tables;
  absl::Status status = Bind("select nme from t", tables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "column \"nme\" does not exist (did you mean \"name\"?)");
  status = Bind("copy t to program 'x'", tables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace nam::sql
