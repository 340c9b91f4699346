#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "session/session.h"
#include "tests/session/file_session.h"

/// Views, schemas, ALTER TABLE, ANALYZE and nam.default_storage.
namespace nam::testing {
namespace {

class SchemaObjectsTest : public FileSession {
 protected:
  std::string StateOf(const std::string& sql) { return ErrorOf(sql).sqlstate; }
  std::shared_ptr<const proto::Table> Table(const std::string& name) {
    return *cluster_.attachment().catalog().GetTable(name);
  }
  std::string NoticeOf(const std::string& sql) {
    const auto result = Run(sql);
    EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
    if (!result.ok() || result->warnings.size() != 1) return "";
    EXPECT_EQ(result->warnings[0].sqlstate, "00000");
    return result->warnings[0].message;
  }
  void MakeColumnar() {
    Command("create table t (a int not null, b text, c int) with (partition_by = 'a:2')");
    Command("insert into t values (1, 'one', 10), (2, null, 20)");
    Command("insert into t values (3, 'three', 30)");
  }
};

TEST_F(SchemaObjectsTest, DefaultStorageDecidesWhatIsMade) {
  Command("create table r (a int)");
  EXPECT_TRUE(Table("r")->has_record());
  Command("set nam.default_storage = columnar");
  Command("create table c (a int)");
  EXPECT_FALSE(Table("c")->has_record());
  EXPECT_EQ(StateOf("create table k (a int primary key)"), "0A000");
  Command("create table k (a int primary key) with (storage = record)");
  Command("set nam.default_storage = record");
  EXPECT_EQ(StateOf("create table d as select 1 as x"), "0A000");
  Command("reset nam.default_storage");
  Command("create table d as select 1 as x");
  EXPECT_FALSE(Table("d")->has_record());
  EXPECT_EQ(StateOf("set nam.default_storage = disk"), "22023");
}

TEST_F(SchemaObjectsTest, ColumnsOfColumnarTablesAreRenamedDroppedAndAdded) {
  MakeColumnar();
  const std::string query = "select * from t order by 1";
  EXPECT_EQ(Rows(query).size(), 3u);
  Command("alter table t rename column a to k");
  EXPECT_EQ(Rows("select k from t where k = 3"), (TextRows{{"3"}}));
  EXPECT_EQ(StateOf("select a from t"), "42703");
  EXPECT_EQ(StateOf("alter table t rename column a to z"), "42703");
  EXPECT_EQ(StateOf("alter table t rename column k to b"), "42701");
  EXPECT_EQ(StateOf("alter table t drop column k"), "2BP01") << "rows are partitioned by it";
  EXPECT_EQ(Command("alter table t drop column b"), "ALTER TABLE");
  EXPECT_EQ(Rows(query), (TextRows{{"1", "10"}, {"2", "20"}, {"3", "30"}})) << "a plan of before is not run";
  EXPECT_EQ(StateOf("select b from t"), "42703");
  Command("insert into t values (4, 40)");
  Command("alter table t add column b text default 'new', add column n bigint");
  EXPECT_EQ(Rows("select k, c, b, n from t order by 1"), (TextRows{{"1", "10", "new", "NULL"},
                                                                   {"2", "20", "new", "NULL"},
                                                                   {"3", "30", "new", "NULL"},
                                                                   {"4", "40", "new", "NULL"}}));
  Command("insert into t (k, n) values (5, 50)");
  Command("insert into t (k, b) select 6, null");
  EXPECT_EQ(Rows("select b, n from t where k > 4 order by k"), (TextRows{{"new", "50"}, {"NULL", "NULL"}}));
  EXPECT_EQ(StateOf("alter table t add column n int"), "42701");
  EXPECT_EQ(StateOf("alter table t add column m int not null"), "23502");
  EXPECT_EQ(NoticeOf("alter table t add column if not exists n int"),
            "column \"n\" of relation \"t\" already exists, skipping");
  EXPECT_EQ(NoticeOf("alter table t drop column if exists zz"),
            "column \"zz\" of relation \"t\" does not exist, skipping");
  EXPECT_EQ(NoticeOf("alter table if exists nowhere drop column x"),
            "relation \"nowhere\" does not exist, skipping");
}

/// Old rows and new ones would have other values.
TEST_F(SchemaObjectsTest, ADefaultOfAddedColumnsIsTheSameForAllRows) {
  MakeColumnar();
  Command("create schema s2");
  Command("set search_path = s2, public");
  EXPECT_EQ(StateOf("alter table t add column d text default current_schema"), "0A000");
  EXPECT_EQ(StateOf("alter table t add column d text default current_schema()"), "0A000");
  const SqlError random = ErrorOf("alter table t add column u uuid default gen_random_uuid()");
  EXPECT_EQ(random.sqlstate, "0A000");
  EXPECT_TRUE(absl::StrContains(random.hint, "one UUID")) << random.hint;
  EXPECT_EQ(Table("t")->columns_size(), 3);
}

/// A dropped column stays dropped through every change that makes the table anew.
TEST_F(SchemaObjectsTest, DroppedColumnsDoNotComeBack) {
  MakeColumnar();
  Command("alter table t drop column b");
  Command("vacuum t");
  EXPECT_EQ(Rows("select * from t order by 1"), (TextRows{{"1", "10"}, {"2", "20"}, {"3", "30"}}));
  Command("truncate t");
  Command("insert into t values (7, 70)");
  EXPECT_EQ(Rows("select * from t"), (TextRows{{"7", "70"}}));
  EXPECT_EQ(StateOf("alter table t drop column a, drop column c"), "2BP01");
  EXPECT_EQ(Rows("select * from t"), (TextRows{{"7", "70"}})) << "all of it or nothing";
}

TEST_F(SchemaObjectsTest, TablesAreRenamed) {
  MakeColumnar();
  Command("create table r (id int primary key, x int, check (r.x > 0))");
  EXPECT_EQ(StateOf("alter table r rename to q"), "0A000") << "others know record tables by their names";
  EXPECT_EQ(StateOf("alter table t rename to r"), "42P07");
  Command("alter table t rename to u");
  EXPECT_EQ(StateOf("select * from t"), "42P01");
  Command("insert into u values (4, 'four', 40)");
  EXPECT_EQ(Rows("select count(*) from u"), (TextRows{{"4"}}));
  Command("create table t (a int)");
  Command("alter table r rename column x to y");
  EXPECT_EQ(StateOf("insert into r values (5, -1)"), "23514") << "the check has the new name";
  Command("insert into r values (5, 1)");
  EXPECT_EQ(Rows("select y from r"), (TextRows{{"1"}}));
}

TEST_F(SchemaObjectsTest, ColumnsMayHaveNamesThatTablesMayNot) {
  Command("create table r (\"nam.x\" int, \"a.b\" int)");
  Command("insert into r values (1, 2)");
  EXPECT_EQ(Rows("select \"nam.x\", \"a.b\" from r"), (TextRows{{"1", "2"}}));
  Command("create table c as select 1 as \"nam.x\"");
  Command("alter table c rename column \"nam.x\" to \"nam.y\"");
  Command("alter table c add column \"nam.x\" int default 2");
  EXPECT_EQ(Rows("select \"nam.y\", \"nam.x\" from c"), (TextRows{{"1", "2"}}));
  Command("alter table r drop column \"a.b\"");
  EXPECT_EQ(StateOf("alter table r rename column \"nam.x\" to \"nam.row\""), "42701");
  EXPECT_EQ(StateOf("alter table c rename column \"nam.x\" to \"nam.dropped.2\""), "42701");
  EXPECT_EQ(StateOf("create table d (a int, \"nam.row\" int)"), "42701");
  EXPECT_EQ(StateOf("create table d as select 1 as \"nam.dropped.1\""), "42701");
  EXPECT_EQ(StateOf("create table \"nam.x\" (a int)"), "42501");
}

TEST_F(SchemaObjectsTest, SetSchemaToItsOwnDoesNothing) {
  Command("create schema s");
  Command("create table s.t (a int) with (storage = columnar)");
  Command("create table s.r (a int)");
  Command("create view v as select a from s.t");
  for (const char* const change : {"alter table s.t set schema s", "alter table s.r set schema s"})
    EXPECT_EQ(Command(change), "ALTER TABLE");
  EXPECT_EQ(Command("alter view v set schema public"), "ALTER VIEW");
  EXPECT_EQ(Rows("select * from v, s.r"), TextRows());
}

TEST_F(SchemaObjectsTest, RecordTablesLoseColumnsAndKeepTheirRows) {
  Command("create table r (id int primary key, a int not null, b text, c int, check (a < 100))");
  Command("create index r_c on r (c)");
  Command("insert into r values (1, 10, 'x', 5)");
  EXPECT_EQ(StateOf("alter table r drop column id"), "2BP01");
  EXPECT_EQ(StateOf("alter table r drop column c"), "2BP01") << "an index has it";
  Command("alter table r drop column a");
  Command("insert into r values (2, 'y', 6)");
  Command("update r set b = 'z' where id = 1");
  EXPECT_EQ(Rows("select * from r order by id"), (TextRows{{"1", "z", "5"}, {"2", "y", "6"}}));
  EXPECT_EQ(StateOf("select a from r"), "42703");
  EXPECT_EQ(StateOf("alter table r add column d int"), "0A000");
  Command("create table s (a int, b int)");
  Command("insert into s values (1, 2)");
  Command("alter table s drop column b");
  Command("insert into s values (3)");
  EXPECT_EQ(Rows("select * from s order by a"), (TextRows{{"1"}, {"3"}}));
}

TEST_F(SchemaObjectsTest, ViewsAreBoundWhereTheyAreNamed) {
  MakeColumnar();
  Command("create view v as select * from t where a > 1");
  EXPECT_EQ(Rows("select * from v order by a"), (TextRows{{"2", "NULL", "20"}, {"3", "three", "30"}}));
  Command("create view w (total) as select sum(c) from v");
  EXPECT_EQ(Rows("select total from w x"), (TextRows{{"50"}}));
  EXPECT_EQ(Rows("select count(*) from v join t using (a)"), (TextRows{{"2"}}));
  Command("insert into t values (4, 'four', 40)");
  EXPECT_EQ(Rows("select total from w"), (TextRows{{"90"}}));
  Command("alter table t add column d int default 1");
  EXPECT_EQ(Rows("select * from v where a = 4"), (TextRows{{"4", "four", "40"}}))
      << "its stars are written out";
  EXPECT_EQ(StateOf("drop table t"), "2BP01");
  EXPECT_EQ(StateOf("drop view v"), "2BP01");
  EXPECT_EQ(StateOf("alter table t drop column c"), "2BP01");
  EXPECT_EQ(StateOf("alter table t rename column c to cc"), "2BP01");
  EXPECT_EQ(StateOf("alter table t rename to u"), "2BP01");
  Command("alter table t drop column d");
  EXPECT_EQ(StateOf("drop table v"), "42809");
  EXPECT_EQ(StateOf("drop view t"), "42809");
  EXPECT_EQ(StateOf("insert into v values (1)"), "42809");
  EXPECT_EQ(StateOf("delete from v"), "42809");
  const SqlError into = ErrorOf("copy v from stdin"), from = ErrorOf("copy v (a) to stdout");
  EXPECT_EQ(into.sqlstate, "42809");
  EXPECT_EQ(into.message, "cannot copy to view \"v\"");
  EXPECT_EQ(from.sqlstate, "42809");
  EXPECT_EQ(from.message, "cannot copy from view \"v\"");
  EXPECT_EQ(from.hint, "Try the COPY (SELECT ...) TO variant.");
  EXPECT_EQ(StateOf("create view v as select 1 as one"), "42P07");
  EXPECT_EQ(StateOf("create table v (a int)"), "42P07");
  EXPECT_EQ(StateOf("create or replace view v as select 1 as one"), "42P16");
  EXPECT_EQ(StateOf("create or replace view v as select a, b, c from w, t"), "55000") << "a cycle";
  EXPECT_EQ(StateOf("create or replace view v as select * from v"), "42P17");
  EXPECT_EQ(StateOf("create view n as select 1 as a, 2 as a"), "42701");
  Command("create or replace view v as select a, b, c, 1 as more from t");
  EXPECT_EQ(Rows("select total from w"), (TextRows{{"100"}}));
  EXPECT_EQ(NoticeOf("drop view if exists nothing"), "view \"nothing\" does not exist, skipping");
  EXPECT_EQ(NoticeOf("drop index if exists nothing"), "index \"nothing\" does not exist, skipping");
  Command("drop table t cascade");
  EXPECT_EQ(StateOf("select * from w"), "42P01");
}

/// Not every star of a query has a `*` of its own, and not every `*` is a star.
TEST_F(SchemaObjectsTest, AllStarsOfViewsAreWrittenOut) {
  MakeColumnar();
  Command("create table \"a*b\" (x int, \"y*\" int)");
  Command("insert into \"a*b\" values (1, 2)");
  const std::string people = Write("people.csv", "id,name\n7,Ada\n");
  const std::vector<std::pair<std::string, std::string>> queries = {
      {"table t", "a, b, c"},
      {"table /* from t */ public . t order by a limit 2", "a, b, c"},
      {"(table t)", "a, b, c"},
      {"select * from (table t) x", "a, b, c"},
      {"with w as (table t) select * from w", "a, b, c"},
      {"table t union all select a, b, 2 * c from t order by 1, 3", "a, b, c"},
      {"select \"a*b\".* from t \"a*b\"", "a, b, c"},
      {"select t /* * */ . /* t.* */ *, -- * from\n 2 * c as d from t", "a, b, c, d"},
      {"table \"a*b\"", "x, \"y*\""},
      {"from '" + people + "'", "id, name"},
      {"select * from '" + people + "'", "id, name"},
  };
  const auto sorted = [&](const std::string& columns, const std::string& from) {
    return Rows("select " + columns + " from " + from + " order by 1, 2");
  };
  for (size_t i = 0; i < queries.size(); ++i) {
    Command("create view v" + std::to_string(i) + " as " + queries[i].first);
    const std::string columns = queries[i].second;
    const bool file = queries[i].first.starts_with("from");
    EXPECT_EQ(sorted(columns, "v" + std::to_string(i)),
              sorted(columns, file ? "'" + people + "'" : "(" + queries[i].first + ") q"))
        << queries[i].first;
  }
  Command("alter table t add column z int default 1");
  for (int i = 0; i < 8; ++i) {
    const auto result = Run("select * from v" + std::to_string(i));
    ASSERT_TRUE(result.ok()) << queries[static_cast<size_t>(i)].first << result.status();
    EXPECT_EQ(result->columns.size(), i == 7 ? 4u : 3u) << queries[static_cast<size_t>(i)].first;
  }
}

TEST_F(SchemaObjectsTest, ViewsReadAtMostSoManyLevels) {
  Command("create view v0 as select 1 as x");
  for (int i = 1; i < 32; ++i)
    Command("create view v" + std::to_string(i) + " as select x from v" + std::to_string(i - 1));
  EXPECT_EQ(Rows("select x from v31"), (TextRows{{"1"}}));
  EXPECT_FALSE(Run("create view v32 as select x from v31").ok());
}

/// What the shell's \d finds.
TEST_F(SchemaObjectsTest, NamesAreLookedUpAlongTheSearchPath) {
  Command("create schema s");
  Command("create table k (a int)");
  Command("create table s.k (b int)");
  Command("create view s.v as select 1 as one");
  const auto found = [&](const std::string& schema, const std::string& name) {
    const auto table = cluster_.session().FindRelation(schema, name);
    return table.ok() ? (*table)->name() : std::string(absl::IsNotFound(table.status()) ? "none" : "error");
  };
  EXPECT_EQ(found("", "k"), "k");
  EXPECT_EQ(found("s", "k"), "s.k");
  EXPECT_EQ(found("", "v"), "none");
  Command("set search_path = \"$user\", s, public");
  EXPECT_EQ(found("", "k"), "s.k");
  EXPECT_EQ(found("public", "k"), "k");
  EXPECT_EQ(found("", "v"), "s.v");
  EXPECT_EQ(found("s", ""), "none") << "the schema itself is no table";
  EXPECT_EQ(found("", "s.k"), "none");
  EXPECT_EQ(StateOf("select * from \"s.k\""), "42P01");
  Command("set search_path = s");
  Command("drop table s.k");
  EXPECT_EQ(found("", "k"), "none");
  const SqlError error = ErrorOf("select * from k");
  EXPECT_EQ(error.hint, "search_path lacks its schema: write public.k");
  Command("create view verse as select 1 as one");
  EXPECT_TRUE(absl::StrContains(ErrorOf("select * from vers").hint, "verse")) << "it is in the search path";
  Command("set search_path = public");
  EXPECT_EQ(ErrorOf("select * from v").hint, "search_path lacks its schema: write s.v");
}

TEST_F(SchemaObjectsTest, ConstraintsAreNamedWithoutTheirSchema) {
  Command("create schema s");
  Command(
      "create table s.p (k int primary key, u int unique, c int check (c > 0), n int constraint named "
      "unique, "
      "check (u > c))");
  Command("create table s.f (id int primary key, k int references s.p, u int references s.p (u))");
  Command("insert into s.p values (1, 20, 3, 4)");
  Command("insert into s.f values (1, 1, 20)");
  const std::pair<const char*, const char*> cases[] = {
      {"insert into s.p values (1, 30, 3, 5)", "unique constraint \"p_pkey\""},
      {"insert into s.p values (2, 20, 3, 5)", "unique constraint \"p_u_key\""},
      {"insert into s.p values (2, 30, 3, 4)", "unique constraint \"named\""},
      {"insert into s.p values (2, 30, 0, 5)", "check constraint \"p_c_check\""},
      {"insert into s.p values (2, 30, 40, 5)", "check constraint \"p_check\""},
      {"insert into s.f values (2, 9, 20)", "foreign key constraint \"f_k_fkey\""},
      {"delete from s.p", "foreign key constraint \"f_"},
      {"drop index s.p_u_key", "constraint p_u_key on table s.p"},
      {"insert into s.p values (1, 30, 3, 5) on conflict on constraint none do nothing", "\"none\""}};
  for (const auto& [sql, message] : cases)
    EXPECT_NE(ErrorOf(sql).message.find(message), std::string::npos) << sql << ": " << ErrorOf(sql).message;
  for (const char* const name : {"p_pkey", "p_u_key", "named"}) {
    EXPECT_EQ(Command(std::string("insert into s.p values (1, 20, 3, 4) on conflict on constraint ") + name +
                      " do nothing"),
              "INSERT 0 0");
  }
  // A table of another schema has its own.
  Command("create table p (k int primary key, u int unique, c int check (c > 0))");
  EXPECT_NE(ErrorOf("insert into p values (1, 2, 0)").message.find("\"p_c_check\""), std::string::npos);
  Command("create index on s.f (u)");
  EXPECT_EQ(StateOf("create table g (a int, constraint \"s.x\" unique (a))"), "42602");
}

TEST_F(SchemaObjectsTest, ANoticeSaysWhichKindOfTableWasMade) {
  const std::string record = NoticeOf("create table r (a int primary key)");
  EXPECT_NE(record.find("\"r\" is a record table"), std::string::npos) << record;
  EXPECT_NE(record.find("storage = columnar"), std::string::npos) << record;
  const std::string columnar = NoticeOf("create table c as select 1 as a");
  EXPECT_NE(columnar.find("\"c\" is a columnar table"), std::string::npos) << columnar;
  // Whoever says it knows it.
  for (const char* const told :
       {"create table a1 (a int) with (storage = record)",
        "create table a2 (a int) with (storage = columnar)", "create table a3 (a int) with (versions = 2)",
        "create table a4 with (sort_by = 'a') as select 1 as a", "set nam.default_storage = columnar",
        "create table a5 (a int)", "create table a6 as select 1 as a", "create index a1_i on a1 (a)"})
    EXPECT_EQ(NoticeOf(told), "") << told;
  for (const auto& [skipped, name] :
       {std::pair("create table if not exists a1 (a int) with (storage = record)", "a1"),
        std::pair("create table if not exists a2 (a int)", "a2"),
        std::pair("create table if not exists a6 as select 1 as a", "a6"),
        std::pair("create index if not exists a1_i on a1 (a)", "a1_i")})
    EXPECT_EQ(NoticeOf(skipped), absl::StrCat("relation \"", name, "\" already exists, skipping")) << skipped;
}

TEST_F(SchemaObjectsTest, SchemasKeepNamesApart) {
  Command("create schema s");
  EXPECT_EQ(StateOf("create schema s"), "42P06");
  EXPECT_EQ(NoticeOf("create schema if not exists s"), "schema \"s\" already exists, skipping");
  EXPECT_EQ(StateOf("create table nowhere.t (a int)"), "3F000");
  EXPECT_EQ(StateOf("create schema \"a.b\""), "42602");
  EXPECT_EQ(StateOf("create table \"s.t\" (a int)"), "42602");
  EXPECT_FALSE(Run("create schema nam").ok());
  Command("create table t (a int) with (storage = columnar)");
  Command("create table s.t (a int primary key)");
  Command("insert into t values (1)");
  Command("insert into s.t values (2)");
  EXPECT_EQ(Rows("select a from t"), (TextRows{{"1"}}));
  EXPECT_EQ(Rows("select s.t.a from s.t"), (TextRows{{"2"}}));
  EXPECT_EQ(Rows("select x.a, y.a from public.t x, s.t y"), (TextRows{{"1", "2"}}));
  Command("create view s.v as select a from s.t");
  Command("set search_path = s, public");
  EXPECT_EQ(Rows("select a from t"), (TextRows{{"2"}}));
  EXPECT_EQ(Rows("select current_schema, current_schema()"), (TextRows{{"s", "s"}}));
  Command("create table u (a int references t)");
  Command("create index on u (a)");
  Command("reset search_path");
  EXPECT_EQ(StateOf("select * from u"), "42P01");
  EXPECT_EQ(StateOf("insert into s.u values (7)"), "23503");
  Command("update s.t set a = 3");
  EXPECT_EQ(Rows("select a from s.v"), (TextRows{{"3"}})) << "by the path that it was made under";
  EXPECT_EQ(StateOf("drop schema s"), "2BP01");
  EXPECT_EQ(StateOf("drop schema nowhere"), "3F000");
  EXPECT_EQ(StateOf("alter table t set schema s"), "42P07");
  Command("alter table t rename to mine");
  Command("alter table mine set schema s");
  EXPECT_EQ(Rows("select a from s.mine"), (TextRows{{"1"}}));
  Command("set search_path = nowhere");
  EXPECT_EQ(StateOf("create table x (a int)"), "3F000");
  Command("reset search_path");
  Command("drop schema s cascade");
  EXPECT_EQ(StateOf("select * from s.mine"), "42P01");
  EXPECT_EQ(StateOf("drop schema s"), "3F000");
}

TEST_F(SchemaObjectsTest, TheCurrentSchemaExists) {
  const std::string current = "select current_schema, current_schema()";
  Command("set search_path = \"$user\", public");
  EXPECT_EQ(Rows(current), (TextRows{{"public", "public"}}));
  Command("set search_path = later, public");
  EXPECT_EQ(Rows(current), (TextRows{{"public", "public"}}));
  Command("create schema later");
  EXPECT_EQ(Rows(current), (TextRows{{"later", "later"}})) << "where CREATE TABLE makes a table";
  Command("drop schema later cascade");
  EXPECT_EQ(Rows(current), (TextRows{{"public", "public"}}));
  Command("set search_path = nowhere");
  EXPECT_EQ(Rows(current), (TextRows{{"NULL", "NULL"}}));
  Command("create table public.t (a text default current_schema)");
  Command("insert into public.t values (default)");
  EXPECT_EQ(Rows("select a from public.t"), (TextRows{{"NULL"}}));
}

TEST_F(SchemaObjectsTest, AnalyzeCountsWhatAppendsOnlyGuess) {
  Command("create table t (a int, b int) with (storage = columnar)");
  for (int i = 0; i < 3; ++i) Command("insert into t select g, g % 2 from generate_series(1, 100) x (g)");
  EXPECT_EQ(Command("analyze t"), "ANALYZE");
  EXPECT_EQ(Table("t")->columns(0).distinct(), 100u);
  EXPECT_EQ(Table("t")->columns(1).distinct(), 2u);
  Command("create table r (a int primary key, b text)");
  Command("insert into r values (1, 'x'), (2, 'x'), (3, null)");
  Command("analyze r (b)");
  EXPECT_EQ(Table("r")->columns(0).distinct(), 0u) << "it was not asked for";
  EXPECT_EQ(Table("r")->columns(1).distinct(), 1u);
  Command("create view s as select a from r");
  Command("create table z (a int) with (storage = columnar)");
  for (int i = 0; i < 2; ++i) Command("insert into z values (1), (2)");
  Command("analyze");
  EXPECT_EQ(Table("r")->columns(0).distinct(), 3u);
  EXPECT_EQ(Table("z")->columns(0).distinct(), 2u) << "what follows a view";
  EXPECT_EQ(StateOf("analyze t (zz)"), "42703");
  EXPECT_EQ(StateOf("analyze nothing"), "42P01");
}

/// Users see what the catalog says, and not where it is.
TEST_F(SchemaObjectsTest, ErrorsOfTheCatalogAreInSql) {
  MakeColumnar();
  Command("create view v as select a, b from t");
  const SqlError dropped = ErrorOf("drop table t");
  EXPECT_EQ(dropped.message, "cannot drop table \"t\": view \"v\" depends on table \"t\"");
  EXPECT_TRUE(absl::StrContains(dropped.hint, "CASCADE")) << dropped.hint;
  const std::string column = "cannot alter \"t\": view \"v\" depends on column \"b\" of \"t\"";
  for (const char* const change : {"alter table t drop column b", "alter table t rename column b to bb"}) {
    const SqlError error = ErrorOf(change);
    EXPECT_EQ(error.message, column);
    EXPECT_FALSE(absl::StrContains(error.hint, "CASCADE")) << error.hint;
    EXPECT_TRUE(absl::StrContains(error.hint, "DROP VIEW")) << error.hint;
  }
  EXPECT_EQ(ErrorOf("alter table t rename to u").message,
            "cannot alter \"t\": view \"v\" depends on table \"t\"");
  Command("create table other (id int) with (storage = columnar)");
  Command("create view w as select t.a, other.id from t, other");
  EXPECT_EQ(ErrorOf("alter table t add column id int").message,
            "cannot alter \"t\": view \"w\" depends on column \"id\" of \"t\"");
}

/// Two sessions: the other one has a plan, and a table's name in its cache.
TEST_F(SchemaObjectsTest, OtherSessionsSeeTheOldOrTheNew) {
  MakeColumnar();
  Command("create view v as select a from t");
  const auto other = session::Session::Open(cluster_.attachment());
  ASSERT_TRUE(other.ok()) << other.status();
  const auto rows = [&](const std::string& sql) { return ToText(*(*other)->Execute(sql)); };
  EXPECT_EQ(rows("select a from v order by 1").size(), 3u);
  Command("create or replace view v as select a from t where a < 3");
  EXPECT_EQ(rows("select a from v order by 1").size(), 2u);
  Command("drop view v");
  EXPECT_FALSE((*other)->Execute("select a from v order by 1").ok());
  Command("alter table t rename to u");
  EXPECT_FALSE((*other)->Execute("select a from t").ok());
  EXPECT_EQ(rows("select count(*) from u"), (TextRows{{"3"}}));
}

}  // namespace
}  // namespace nam::testing
