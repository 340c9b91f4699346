#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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
  void MakeColumnar() {
    Command("create table t (a int not null, b text, c int) with (partition_by = 'a:2')");
    Command("insert into t values (1, 'one', 10), (2, null, 20)");
    Command("insert into t values (3, 'three', 30)");
  }
};

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

}  // namespace
}  // namespace nam::testing
