#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "partitioner/assigned_value.h"
#include "partitioner/record_row.h"
#include "sql/constraints.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;

/// `name type [NOT NULL]`, … ; key; checks; record.
std::string Show(const proto::Table& table) {
  std::string shown = table.name() + "(";
  for (const proto::Column& column : table.columns()) {
    absl::StrAppend(&shown, column.name(), " ", partitioner::ColumnTypeName(column.type()),
                    column.nullable() ? "" : " not null", ", ");
  }
  absl::StrAppend(&shown, "key");
  for (const uint32_t key : partitioner::KeyColumnsOf(table)) absl::StrAppend(&shown, " ", key);
  for (const proto::RecordCheck& check : table.record().checks())
    absl::StrAppend(&shown, ", ", check.name(), ": ", check.expression());
  return absl::StrCat(shown, ") ", table.record().key_bytes(), "/", table.record().row_bytes(), "x",
                      table.record().versions());
}

std::vector<Expr> ExpressionsOf(const std::vector<ChangeValue>& values) {
  std::vector<Expr> expressions;
  for (const ChangeValue& value : values) expressions.push_back(value.value());
  return expressions;
}

TEST(RecordBindTest, CreateTable) {
  EXPECT_EQ(
      Show(BindAs<CreateTableStatement>("create table x (id bigint primary key) with (storage = record)")
               .table),
      "x(id bigint not null, key 0) 8/8x1");
  EXPECT_EQ(
      Show(BindAs<CreateTableStatement>(
               "create table if not exists public.x (a smallint null, b int not null check (b > a and b <> "
               "7), "
               "c decimal(19, 3), d date, e timestamp, f char(3), g varchar(10), h char, i numeric(5), "
               "k boolean, \"O\"\"d\" int constraint odd check (\"O\"\"d\" is not null), "
               "primary key (g, b), check (e > timestamp '2026-01-02 03:04:05.678' or f in ('a''b', 'c'))) "
               "with (storage = 'record', versions = 16)")
               .table),
      "x(a smallint, b integer not null, c decimal(19,3), d date, e timestamp, f char(3), g varchar(10) not "
      "null, h char(1), i decimal(5,0), k boolean, O\"d integer, key 6 1, x_check: b > a and b <> 7, odd: "
      "\"O\"\"d\" is not null, x_check1: e > timestamp '2026-01-02 03:04:05.678' or f in ('a''b', 'c')) "
      "44/105x16");
  const auto two = BindAs<CreateTableStatement>(
      "create table x (a int primary key check (a > 1) check (a < 9)) with (storage = record)");
  EXPECT_EQ(two.table.record().checks(0).name(), "x_a_check");
  EXPECT_EQ(two.table.record().checks(1).name(), "x_a_check1");
  // The condition's only column names it, wherever it is written.
  const auto elsewhere = BindAs<CreateTableStatement>(
      "create table x (a int primary key, b int check (a > 1), check (b > 2)) with (storage = record)");
  EXPECT_EQ(elsewhere.table.record().checks(0).name(), "x_a_check");
  EXPECT_EQ(elsewhere.table.record().checks(1).name(), "x_b_check");
}

TEST(RecordBindTest, CreateIndex) {
  const auto named = BindAs<CreateIndexStatement>("create index i on r (v, k)");
  EXPECT_EQ(named.index.name(), "i");
  EXPECT_EQ(named.table->name(), "r");
  ASSERT_EQ(named.index.columns_size(), 2);
  EXPECT_EQ(named.index.columns(0), 7u);
  EXPECT_EQ(named.index.columns(1), 1u);
  EXPECT_EQ(named.index.key_bytes(), 1 + 4 * 5 + 1 + 2u);
  EXPECT_EQ(named.index.pieces_size(), 2);
  EXPECT_FALSE(named.index.unique());
  EXPECT_TRUE(BindAs<CreateIndexStatement>("create unique index i on r (v)").index.unique());
  // The byte that tells NULL is beside the 1024 of the values.
  EXPECT_EQ(BindAs<CreateIndexStatement>("create index i on fits (v)").index.key_bytes(), 1025u);
  const auto dropped = BindAs<DropIndexStatement>("drop index if exists I");
  EXPECT_EQ(dropped.names, std::vector<std::string>{"i"});
  EXPECT_EQ(dropped.position, 21);
  EXPECT_TRUE(dropped.if_exists);
  const auto explained = BindAs<ExplainStatement>("explain update r set k = 1 where k = 2");
  EXPECT_EQ(std::get<UpdateStatement>(explained.statement).table.table->name(), "r");
  EXPECT_TRUE(BindAs<ExplainStatement>("explain analyze delete from r").analyze);
  const auto execute = BindAs<ExplainStatement>("explain execute q(1)");
  EXPECT_EQ(std::get<ExecuteStatement>(execute.statement).name, "q");
  EXPECT_EQ(BindAs<CreateIndexStatement>("create index on r using btree (day asc nulls last)").index.name(),
            "r_day_idx");
}

TEST(RecordBindTest, Insert) {
  const auto all = BindAs<InsertStatement>("insert into pairs values (1, 'x', 2), ('3', null, 1.5)");
  ASSERT_EQ(all.rows.size(), 2u);
  EXPECT_EQ(Show(all.table, ExpressionsOf(all.rows[0])), "1, 'x', 2");
  EXPECT_EQ(Show(all.table, ExpressionsOf(all.rows[1])), "3, NULL, 2");  // rounded half away from zero
  const auto one = BindAs<InsertStatement>("insert into pairs values (4), (5)");
  EXPECT_EQ(Show(one.table, ExpressionsOf(one.rows.at(1))), "5");
  EXPECT_EQ(one.columns, std::vector<int>{0});
  EXPECT_EQ(Show(one.table, {one.defaults.at(1).value(), one.defaults.at(2).value()}), "NULL, NULL");
  const auto some = BindAs<InsertStatement>(
      "insert into r (d, id, v, at, day) values (1, 2 + 3, 7, date '2026-01-02', timestamp '2026-01-02 "
      "23:00')");
  EXPECT_EQ(Show(some.table, ExpressionsOf(some.rows[0])),
            "1.00, 5, '7', timestamp '2026-01-02 00:00:00', date '2026-01-02'");
  EXPECT_EQ(some.columns, (std::vector<int>{3, 0, 7, 5, 4}));
  ASSERT_EQ(some.checks.size(), 2u);
  EXPECT_EQ(some.checks[0].name, "r_n_check");
  EXPECT_EQ(Show(some.table, {some.checks[0].condition, some.checks[1].condition}), "r.n > 0, r.k < r.n");
}

TEST(RecordBindTest, UpdateAndDelete) {
  const auto update = BindAs<UpdateStatement>(
      "update r as x set n = x.n + 1, d = n, v = null where id = 3 and (k is null or v like 'a%')");
  ASSERT_EQ(update.assignments.size(), 3u);
  EXPECT_EQ(update.assignments[0].column, 2);
  EXPECT_EQ(Show(update.table, {update.assignments[0].value.value(), update.assignments[1].value.value(),
                                update.assignments[2].value.value()}),
            "x.n + 1, CAST(x.n AS decimal(38,2)), NULL");
  EXPECT_EQ(Show(update.table, update.conjuncts), "x.id = 3, x.k IS NULL OR x.v LIKE 'a%'");
  EXPECT_EQ(update.checks.size(), 2u);
  const auto remove = BindAs<DeleteStatement>("delete from pairs where b >= 'a'");
  EXPECT_EQ(Show(remove.table, remove.conjuncts), "pairs.b >= 'a'");
  EXPECT_TRUE(BindAs<DeleteStatement>("delete from pairs").conjuncts.empty());
}

/// Conditions that need no other table and no subquery are found by its access path.
TEST(RecordBindTest, OnlyChangesOfSeveralTablesAreTrees) {
  EXPECT_EQ(BindAs<UpdateStatement>("update r set n = k + 1 where id = 3 returning *").source, nullptr);
  EXPECT_EQ(BindAs<UpdateStatement>("update r set (n, k) = (1, default) where id = 3").source, nullptr);
  EXPECT_EQ(BindAs<DeleteStatement>("delete from r where id = 3 returning n").source, nullptr);
  EXPECT_EQ(BindAs<InsertStatement>("insert into r (id) values (1), (2)").source, nullptr);
  EXPECT_NE(BindAs<UpdateStatement>("update r set n = u.id from u where r.id = u.id").source, nullptr);
  EXPECT_NE(BindAs<UpdateStatement>("update r set n = (select max(id) from u)").source, nullptr);
  EXPECT_NE(BindAs<DeleteStatement>("delete from r using u where r.id = u.id").source, nullptr);
  EXPECT_NE(BindAs<DeleteStatement>("delete from r where exists (select 1 from u where u.id = r.id)").source,
            nullptr);
  EXPECT_NE(BindAs<InsertStatement>("insert into r (id) values ((select 1))").source, nullptr);
  EXPECT_NE(BindAs<InsertStatement>("insert into pairs select * from pairs").source, nullptr);
  const auto explained = BindAs<ExplainStatement>("explain delete from r using u where r.id = u.id");
  EXPECT_NE(std::get<DeleteStatement>(explained.statement).source, nullptr);
  const auto inserted = BindAs<ExplainStatement>("explain insert into pairs select * from pairs");
  EXPECT_NE(std::get<InsertStatement>(inserted.statement).source, nullptr);
}

/// The target is a table, whatever WITH defines; its columns are those of relation 0.
TEST(RecordBindTest, WithBeforeChanges) {
  const auto from = BindAs<UpdateStatement>(
      "with w (a, b) as (select id, t_id from u) update r set n = w.b from w where w.a = r.id and r.k = 1");
  ASSERT_NE(from.source, nullptr);
  EXPECT_TRUE(CheckTree(*from.source, false).ok()) << CheckTree(*from.source, false);
  EXPECT_EQ(plan::logical::ToString(*from.source->root).find("CteScan"), std::string::npos) << "used once";
  const auto twice = BindAs<DeleteStatement>(
      "with w as (select id from u) delete from r using w where w.id = r.id or r.k in (select id from w)");
  ASSERT_NE(twice.source, nullptr);
  EXPECT_TRUE(CheckTree(*twice.source, false).ok()) << CheckTree(*twice.source, false);
  EXPECT_NE(plan::logical::ToString(*twice.source->root).find("With cte 0 w"), std::string::npos);
  const auto same_name =
      BindAs<DeleteStatement>("with r as (select id from u) delete from r where id in (select id from r)");
  ASSERT_NE(same_name.source, nullptr);
  EXPECT_TRUE(CheckTree(*same_name.source, false).ok());
  EXPECT_EQ(same_name.table.table->name(), "r");
  EXPECT_EQ(BindAs<DeleteStatement>("with w as (select 1) delete from r where id = 3").source, nullptr);
  const auto insert =
      BindAs<InsertStatement>("with w as (select id from u) insert into r (id) select id from w");
  ASSERT_NE(insert.source, nullptr);
  EXPECT_TRUE(CheckTree(*insert.source, false).ok());
  const auto rows =
      BindAs<InsertStatement>("with w as (select 5 as x) insert into r (id) values ((select x from w)), (7)");
  ASSERT_NE(rows.source, nullptr);
  EXPECT_TRUE(CheckTree(*rows.source, false).ok());
}

/// Subqueries are evaluated before the change: their columns of the target must stay unchanged.
TEST(RecordBindTest, SubqueriesInReturning) {
  const auto remove = BindAs<DeleteStatement>(
      "delete from r where id = 3 returning n, (select max(id) from u where u.id < r.n)");
  ASSERT_NE(remove.source, nullptr);
  EXPECT_TRUE(CheckTree(*remove.source, false).ok()) << CheckTree(*remove.source, false);
  ASSERT_EQ(remove.returning.size(), 2u);
  EXPECT_EQ(remove.returning[0].expr.column.table, 0);
  EXPECT_EQ(remove.returning[1].expr.column, (plan::ColumnRef{1, 0})) << "of the rest of the source";
  const auto update = BindAs<UpdateStatement>(
      "update r set n = n + 1 where id = 3 returning n, (select max(id) from u where u.id < r.k) + n");
  ASSERT_NE(update.source, nullptr);
  EXPECT_TRUE(CheckTree(*update.source, false).ok()) << CheckTree(*update.source, false);
  EXPECT_EQ(BindAs<UpdateStatement>("update r set n = 1 returning n, k").source, nullptr);
}

TEST(RecordBindTest, DefaultsAreKeptAsTheyAreWritten) {
  const auto created = BindAs<CreateTableStatement>(
      "create table x (a int default 1 + 2 not null, b varchar(9) default ('a,)') -- b\n, c int not null "
      "default "
      "abs(-5) unique, d bigserial, primary key (a), e text default 'it''s' check (e > ''))"
      " with (storage = record)");
  std::vector<std::string> defaults;
  for (const proto::Column& column : created.table.columns()) defaults.push_back(column.default_expression());
  EXPECT_EQ(defaults, (std::vector<std::string>{"1 + 2", "('a,)')", "abs(-5)", "", "'it''s'"}));
  EXPECT_EQ(created.table.columns(3).numbering(), proto::NUMBERED_BY_DEFAULT);
  ASSERT_EQ(created.indexes.size(), 1u);
  EXPECT_EQ(created.indexes[0].name(), "x_c_key");
  EXPECT_EQ(created.table.record().unique_constraints(0), "x_c_key");
}

/// Literals belong to the statement that holds them; now() and conversions to each one that writes.
TEST(RecordBindTest, TimesInDefaultsAndChecksAreThoseOfCreateTable) {
  FakeTables tables;
  constexpr int64_t kNowUs = 1'588'895'999'000'000;  // 2020-05-07 23:59:59 UTC
  const auto bound = Bind(
      "create table x (a date default 'today' primary key, b timestamptz default '2024-07-01 10:00', c "
      "timestamptz default 'now'::timestamptz + interval '1 day', d timestamptz default date 'tomorrow', "
      "e timestamptz default now(), f text default 'today', g time default 'now' constraint \"check\" check "
      "(a /* , */ >= 'yesterday' -- )\n and a < current_date + 7 and b in ('2024-01-01', d) and f <> 'now'))"
      " with (storage = record)",
      tables, StatementTime(kNowUs, "Europe/Berlin"));
  ASSERT_TRUE(bound.ok()) << bound.status();
  const proto::Table& table = std::get<CreateTableStatement>(*bound).table;
  std::vector<std::string> defaults;
  for (const proto::Column& column : table.columns()) defaults.push_back(column.default_expression());
  EXPECT_EQ(defaults, (std::vector<std::string>{"'2020-05-08'", "'2024-07-01 08:00:00+00'",
                                                "'2020-05-07 23:59:59+00'::timestamptz + interval '1 day'",
                                                "date '2020-05-09'", "now()", "'today'", "'01:59:59'"}));
  EXPECT_EQ(table.record().checks(0).name(), "check");
  EXPECT_EQ(table.record().checks(0).expression(),
            "a >= '2020-05-07' and a < current_date + 7 and b in ('2023-12-31 23:00:00+00', d) and f <> "
            "'now'");
}

TEST(RecordBindTest, Transactions) {
  using Kind = TransactionStatement::Kind;
  for (const auto& [text, kind] : std::initializer_list<std::pair<const char*, Kind>>{
           {"begin", Kind::kBegin},
           {"begin work", Kind::kBegin},
           {"start transaction isolation level repeatable read, read write, not deferrable", Kind::kBegin},
           {"commit", Kind::kCommit},
           {"end transaction", Kind::kCommit},
           {"rollback", Kind::kRollback},
           {"abort", Kind::kRollback}}) {
    EXPECT_EQ(BindAs<TransactionStatement>(text).kind, kind) << text;
  }
}

TEST(RecordBindTest, Savepoints) {
  using Kind = TransactionStatement::Kind;
  struct Savepoint {
    const char* text;
    Kind kind;
    const char* name;
  };
  for (const Savepoint& one :
       {Savepoint{"savepoint S", Kind::kSavepoint, "s"},
        {"savepoint \"S s\"", Kind::kSavepoint, "S s"},
        {"release s", Kind::kRelease, "s"},
        {"release savepoint S", Kind::kRelease, "s"},
        {"rollback to s", Kind::kRollbackTo, "s"},
        {"rollback to savepoint \"S\"", Kind::kRollbackTo, "S"},
        {"rollback work to s", Kind::kRollbackTo, "s"},
        {"/* a */ Rollback Transaction -- b\n To Savepoint s", Kind::kRollbackTo, "s"}}) {
    const auto bound = BindAs<TransactionStatement>(one.text);
    EXPECT_EQ(bound.kind, one.kind) << one.text;
    EXPECT_EQ(bound.savepoint, one.name) << one.text;
    EXPECT_EQ(RollsBackToSavepoint(one.text), one.kind == Kind::kRollbackTo) << one.text;
  }
  for (const char* const other :
       {"", "rollback", "rollback work", "savepoint to", "to rollback", "select 'rollback to'"})
    EXPECT_FALSE(RollsBackToSavepoint(other)) << other;
}

TEST(RecordBindTest, RefusedClauses) {
  const auto create = [](const std::string& columns) {
    return "create table x (" + columns + ") with (storage = record)";
  };
  CheckBindErrors({
      {create("id int primary key, b int ^generated always as (id + 1) stored"), "0A000", "GENERATED is"},
      {create("id int generated always as identity (^cache 5)"), "0A000", "sequence option \"cache\""},
      {create("id int default (^id + 1)"), "0A000", "column reference in DEFAULT"},
      {create("id interval ^primary key"), "0A000", "type interval as a key"},
      {create("id int, i interval, ^unique (id, i)"), "0A000", "type interval as a key"},
      {create("id varchar(3) ^collate \"C\" primary key"), "0A000", "COLLATE is"},
      {create("^like y"), "0A000", "LIKE is"},
      {create("id int primary key, t ^int[]"), "0A000", "arrays are"},
      {create("id int primary key, check (id ^in (select 1))"), "0A000",
       "cannot use subquery in check constraint"},
      {create("id int primary key, check ((id, id) = ^(select 1, 2))"), "0A000",
       "cannot use subquery in check constraint"},
      {create("id int, b bool default ((1, 2) = ^(select 1, 2))"), "0A000",
       "cannot use subquery in DEFAULT expression"},
      {"create table x (id int primary key) ^inherits (y) with (storage = record)", "0A000", "INHERITS is"},
      {"create ^temp table x (id int primary key) with (storage = record)", "0A000", "TEMPORARY is"},
      {"create table x (id int primary key) ^partition by hash (id)", "0A000", "PARTITION BY is"},
      {"create table ^s.x (id int primary key) with (storage = record)", "3F000", "schema"},
      {"create table x (id int primary key) with (storage = record, ^fillfactor = 3)", "0A000",
       "\"fillfactor\""},
      {"create table x (id int ^primary key) with (storage = columnar)", "0A000",
       "constraints of a columnar"},
      {"create index ^concurrently i on r (k)", "0A000", "CONCURRENTLY is"},
      {"drop index i^, j", "0A000", "several indexes"},
      {"drop index i ^cascade", "0A000", "CASCADE is"},
      {"create index i on r (k) ^where k > 1", "0A000", "partial index"},
      {"create index i on r ^using hash (k)", "0A000", "index method \"hash\""},
      {"create index i on r (^lower(v))", "0A000", "over an expression"},
      {"create index i on r (^k desc)", "0A000", "DESC"},
      {"with ^w as (delete from r returning id) insert into r (id) select id from w", "0A000",
       "statements in WITH"},
      {"with ^recursive w as (select 1) delete from r", "0A000", "WITH RECURSIVE is"},
      {"insert into r (id) values (1) returning ^(select 1)", "0A000", "subqueries in RETURNING of INSERT"},
      {"update r set n = 1 returning ^(select max(id) from u where u.id = r.n)", "0A000",
       "over columns that the statement assigns"},
      {"update ^only r set n = 1", "0A000", "ONLY is"},
      {"begin ^isolation level serializable", "0A000", "ISOLATION LEVEL SERIALIZABLE is"},
      {"begin ^isolation level read committed", "0A000", "ISOLATION LEVEL READ COMMITTED is"},
      {"begin ^read only", "0A000", "READ ONLY is"},
      {"begin ^deferrable", "0A000", "DEFERRABLE is"},
      {"commit ^and chain", "0A000", "AND CHAIN is"},
      {"^prepare transaction 'x'", "0A000", "PREPARE TRANSACTION is"},
  });
}

TEST(RecordBindTest, Errors) {
  const auto create = [](const std::string& columns) {
    return "create table x (" + columns + ") with (storage = record)";
  };
  CheckBindErrors({
      {create("id int primary key, ^id int"), "42701", "\"id\" specified more than once"},
      {create("id int primary key, b int ^primary key"), "42P16", "multiple primary keys for table \"x\""},
      {create("id int, ^primary key (nix)"), "42703", "column \"nix\""},
      {create("id int, ^primary key (id, id)"), "42701", "\"id\" appears twice in primary key constraint"},
      {create("id int, ^unique (nix)"), "42703", "column \"nix\""},
      {create("a int, ^unique (a, a)"), "42701", "\"a\" appears twice in unique constraint"},
      {create("a int, constraint u unique (a), b int, ^constraint u unique (b)"), "42P07", "\"u\""},
      {create("a int default 1 ^default 2"), "42601", "multiple default values specified"},
      {create("a serial ^default 2"), "42601", "both default and identity"},
      {create("a int default ^true"), "42804", "of type integer"},
      {create("a int default ^count(*)"), "42803", "not allowed in DEFAULT"},
      {create("a text ^generated always as identity"), "22023", "must be smallint, integer, or bigint"},
      {create("a int ^generated always as identity (increment by 0)"), "22023", "INCREMENT must not be zero"},
      {create("id int null ^not null primary key"), "42601", "conflicting NULL/NOT NULL"},
      {create("id int primary key check (^nix > 1)"), "42703", "column \"nix\""},
      {create("id int primary key check (^id)"), "42804", "CHECK needs a condition"},
      {create("id int primary key check (^count(*) > 1)"), "42803", "not allowed in CHECK"},
      {create("id int primary key, constraint a check (id > 1), ^constraint a check (id > 2)"), "42710",
       "\"a\""},
      {create("id int primary key, d ^decimal(39, 1)"), "22023", "38 digits"},
      {create("id int primary key, d ^varchar(0)"), "22023", "1 to 16383"},
      {"create table ^x (id char(513) primary key) with (storage = record)", "54000", "2052 bytes"},
      {"create table ^x (id int primary key, a varchar(16383), b varchar(16383)) with (storage = record)",
       "54000", "a row of \"x\""},
      {"create table ^x (id int primary key, a varchar(16250)) with (storage = record)", "54000",
       "a row of \"x\" has 65024 bytes"},
      {"create table x (id int primary key) with (^storage = heap)", "22023", "storage \"heap\""},
      {"create table x (id int primary key) with (storage = record, ^versions = 17)", "22023", "1 to 16"},
      {"create table x (id int primary key) with (storage = record, ^versions = 0)", "22023", "1 to 16"},
      {"create index i on ^wide (v)", "54000", "a key of the index has 1028 bytes"},
      {"create index i on ^nix (a)", "42P01", "\"nix\" does not exist"},
      {"create index i on r (k, ^nix)", "42703", "\"nix\""},
      {"insert into ^nix values (1)", "42P01", "\"nix\" does not exist"},
      {"insert into r (id, ^nix) values (1, 2)", "42703", "\"nix\""},
      {"insert into r (id, ^id) values (1, 2)", "42701", "specified more than once"},
      {"insert into r (id, n) values (^1)", "42601", "more target columns than expressions"},
      {"insert into pairs values (1, 'x'), (^3)", "42601", "must all be the same length"},
      {"insert into pairs values (1), (^3, 'x')", "42601", "must all be the same length"},
      {"insert into r (id) values (1, ^2)", "42601", "more expressions than target columns"},
      {"insert into r (id) values (^n)", "42703", "\"n\""},
      {"insert into r (id) values (^sum(1))", "42803", "not allowed in VALUES"},
      {"insert into r (id) values (^'x')", "22P02", "invalid integer"},
      {"insert into r (id) values (date ^'2026-01-01')", "42804", "of type integer"},
      {"insert into r (day) values (^1)", "42804", "of type date"},
      {"insert into r (at) values (^'2026-01-01 25:00')", "22008", "no such timestamp"},
      {"insert into r (id) values (1) returning ^nix", "42703", "\"nix\""},
      {"insert into r (id) values (1) returning ^max(id)", "42803", "not allowed in RETURNING"},
      {"insert into r (id) values (1) on conflict ^(nix) do nothing", "42703", "\"nix\""},
      {"update r set ^nix = 1", "42703", "\"nix\""},
      {"update r set n = 1 from ^r", "42712", "\"r\""},
      {"update r set (n, k) = ^(1, 2, 3)", "42601", "number of columns does not match"},
      {"update r set (n, k) = ^(select 1)", "42601", "number of columns does not match"},
      {"update r set n = 1, ^n = 2", "42601", "multiple assignments to same column"},
      {"update r set n = ^sum(n)", "42803", "not allowed in UPDATE"},
      {"update r set n = ^ok", "42804", "of type bigint"},
      {"delete from r where ^n", "42804", "WHERE needs a condition"},
  });
}

/// If there are two mistakes, the one that PostgreSQL reports: in WITH, the table, FROM, conditions,
/// RETURNING, SET's values, their columns, and then those of the statement as a whole.
TEST(RecordBindTest, ChangesAreLookedAtInPostgresOrder) {
  CheckBindErrors({
      {"with w as (select ^nix from r) update zzz set n = 1", "42703", "\"nix\""},
      {"with w as (select ^nix from r) delete from zzz", "42703", "\"nix\""},
      {"with w as (select ^nix from r) insert into zzz values (1)", "42703", "\"nix\""},
      {"with zzz as (select 1) delete from ^zzz where nix", "42P01", "\"zzz\" does not exist"},
      {"update r set n = day + at where ^nix = 1", "42703", "\"nix\""},
      {"update r set n = day + at returning ^nix", "42703", "\"nix\""},
      {"update r set nix = day ^+ at", "42883", "date + timestamp"},
      {"update r set nix = ok, n = ^zzz", "42703", "\"zzz\""},
      {"update r set n = ^ok, nix = 1", "42804", "of type bigint"},
      {"update r set n = 1, n = ^ok", "42804", "of type bigint"},
      {"update r set n = 1, n = 2 returning ^nix", "42703", "\"nix\""},
      {"update r set n = 1 / 0, ^n = 2", "42601", "multiple assignments"},
      {"update r set n = 1 / 0 where ^nix", "42703", "\"nix\""},
      {"update r set n = 1 ^/ 0", "22012", "division by zero"},
      {"delete from r using u where ^r.nix returning zzz", "42703", "\"r.nix\""},
      {"delete from r where id = 1 / 0 returning ^nix", "42703", "\"nix\""},
      {"delete from r where id = 1 ^/ 0", "22012", "division by zero"},
      {"insert into r (^nix) select zzz from r", "42703", "\"nix\""},
      {"insert into r (id, ^id) values (zzz)", "42701", "specified more than once"},
      {"insert into r (id) values (^nix, 2)", "42703", "\"nix\""},
      {"insert into r (id, n) values (true, ^nix)", "42703", "\"nix\""},
      {"insert into r (id) values (^true), (nix)", "42804", "of type integer"},
      {"insert into r (id) values (1), (^nix, 2)", "42703", "\"nix\""},
      {"insert into r (id, n) select ok, ^nix from r", "42703", "\"nix\""},
      {"insert into r (id) values (1) on conflict (id) do update set n = ^nix returning day + at", "42703",
       "\"nix\""},
      {"insert into r (id) values (1) on conflict (id) do update set nix = r.day ^+ r.at", "42883", ""},
      {"insert into r (id) values (1) on conflict (id) do update set n = ^r.ok where nix", "42804", ""},
      {"insert into r (id) values (1) on conflict (k) do update set n = ^nix", "42703", "\"nix\""},
      {"insert into r (id) values (1) on conflict (k) do nothing returning ^nix", "42703", "\"nix\""},
      {"insert into r (id) values (1) on conflict ^(k) do nothing returning id", "42P10", "no unique"},
      {"insert into r (id) values (1) on conflict (id) do update set n = 1, ^n = 2", "42601", "multiple"},
      {"insert into r (id) values (1 / 0) returning ^nix", "42703", "\"nix\""},
      {"insert into r (id) values (1 ^/ 0)", "22012", "division by zero"},
      {"insert into r (id) values (1) returning 1 ^/ 0", "22012", "division by zero"},
  });
}

// Without the word the relation would be another one: permanent, and everybody's.
TEST(RecordBindTest, NobodyIsAdvisedToLeaveTemporaryOut) {
  for (const char* const statement :
       {"create temp table x (id int primary key)",
        "create temporary table x (a int) with (storage = columnar)",
        "create local temp table x as select 1 as a", "create temp view x as select 1 as a"}) {
    const SqlError error = BindError(statement);
    EXPECT_EQ(error.sqlstate, "0A000") << statement;
    EXPECT_EQ(error.message, "TEMPORARY is not supported") << statement;
    EXPECT_NE(error.hint.find("stays until it is dropped, and all sessions see it"), std::string::npos)
        << statement << ": " << error.hint;
    EXPECT_EQ(error.hint.find("leave it out"), std::string::npos) << statement;
  }
  EXPECT_EQ(BindError("create unlogged table x (id int primary key)").hint, "leave it out");
}

TEST(RecordBindTest, HintsOfLimits) {
  EXPECT_EQ(BindError("create index i on wide (v)").hint,
            "at most 1024 bytes; each character of a text takes 4");
  EXPECT_EQ(BindError("create index i on r (k desc)").hint,
            "an index serves ascending orders alone, with NULLs last");
}

/// The value as the column of r stores it, or the SQLSTATE.
std::string Assigned(const char* column, Value value) {
  FakeTables tables;
  const auto table = *tables.Find("r");
  int at = 0;
  while (table->columns(at).name() != column) ++at;
  const auto stored = partitioner::Assign(*table, at, std::move(value), 7);
  if (stored.ok()) return stored->ToString();
  const SqlError error = SqlErrorOf(stored.status()).value_or(SqlError());
  EXPECT_EQ(error.position, 7);
  return error.sqlstate;
}

TEST(RecordBindTest, Assignment) {
  EXPECT_EQ(Assigned("k", Value::Integer(32767)), "32767");
  EXPECT_EQ(Assigned("k", Value::Integer(32768)), "22003");
  EXPECT_EQ(Assigned("k", Value::Integer(-32768)), "-32768");
  EXPECT_EQ(Assigned("k", Value::Integer(-32769)), "22003");
  EXPECT_EQ(Assigned("id", Value::Integer(int64_t{1} << 31)), "22003");
  EXPECT_EQ(Assigned("n", Value::Integer(INT64_MAX)), "9223372036854775807");
  EXPECT_EQ(Assigned("n", Value::Integer(PowerOfTen(20))), "22003");
  EXPECT_EQ(Assigned("d", Value::Decimal(99999, 2)), "999.99");
  EXPECT_EQ(Assigned("d", Value::Decimal(-100000, 2)), "22003");
  EXPECT_EQ(Assigned("v", Value::String("abcde")), "abcde");
  EXPECT_EQ(Assigned("v", Value::String("abcde  ")), "abcde");
  EXPECT_EQ(Assigned("v", Value::String("ab  ")), "ab  ");
  EXPECT_EQ(Assigned("v", Value::String("abcdef")), "22001");
  EXPECT_EQ(Assigned("c", Value::String("ab   ")), "ab");
  EXPECT_EQ(Assigned("c", Value::String("   ")), "");
  EXPECT_EQ(Assigned("c", Value::String("abcd")), "22001");
  // Characters, not bytes.
  EXPECT_EQ(Assigned("v", Value::String("日本日本日")), "日本日本日");
  EXPECT_EQ(Assigned("v", Value::String("😀😀😀😀😀  ")), "😀😀😀😀😀");
  EXPECT_EQ(Assigned("v", Value::String("日本日本日本")), "22001");
  EXPECT_EQ(Assigned("c", Value::String("ééé ")), "ééé");
  EXPECT_EQ(Assigned("c", Value::String("éééé")), "22001");
  EXPECT_EQ(Assigned("v", Value::Null()), "NULL");
  EXPECT_EQ(Assigned("id", Value::Null()), "23502");
}

TEST(RecordBindTest, Checks) {
  const auto statement = BindAs<InsertStatement>("insert into r (id) values (1)");
  std::vector<Value> row(9);
  const auto check = [&](Value n, Value k) {
    row[2] = std::move(n);
    row[1] = std::move(k);
    const absl::Status status = Check(*statement.table.table, statement.checks, row);
    return status.ok() ? "" : SqlErrorOf(status)->sqlstate + " " + SqlErrorOf(status)->message;
  };
  EXPECT_EQ(check(Value::Integer(2), Value::Integer(1)), "");
  EXPECT_EQ(check(Value::Integer(2), Value::Null()), "");  // unknown is not false
  EXPECT_EQ(check(Value::Integer(0), Value::Null()),
            "23514 a row of \"r\" violates check constraint \"r_n_check\"");
  EXPECT_EQ(check(Value::Integer(2), Value::Integer(2)),
            "23514 a row of \"r\" violates check constraint \"r_check\"");
}

}  // namespace
}  // namespace nam::sql
