#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

/// What a session has seen of the catalog, and what another one has made of it since.
namespace nam::testing {
namespace {

using session::Session;

class CatalogChangesTest : public ::testing::Test {
 protected:
  /// The command, the only value, or the SQLSTATE.
  static std::string Run(Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    if (!result.ok()) {
      const auto error = SqlErrorOf(result.status());
      return error.has_value() ? error->sqlstate : result.status().ToString();
    }
    return result->rows.empty() ? result->command : result->rows[0][0].ToString();
  }

  InProcessCluster cluster_{{}};
};

/// Statements are bound to what the session saw before while the catalog is asked: never run so.
TEST_F(CatalogChangesTest, AStatementSeesWhatHasHappenedBeforeIt) {
  const std::unique_ptr<Session> other = cluster_.NewSession();
  Session& session = cluster_.session();
  for (const char* table : {"t", "u"}) {
    ASSERT_EQ(Run(*other, absl::StrCat("create table ", table,
                                       " (id int primary key, a int) with (storage = record)")),
              "CREATE TABLE");
    ASSERT_EQ(Run(*other, absl::StrCat("insert into ", table, " values (1, 7)")), "INSERT 0 1");
  }
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Run(session, "select a from t where id = 1"), "7") << round;
    EXPECT_EQ(Run(session, "select max(t.a) from t, u where t.id = u.id"), "7") << round;
    // Another table of the same name: the column means something else, or is not there.
    ASSERT_EQ(Run(*other, "drop table t"), "DROP TABLE");
    ASSERT_EQ(Run(*other, "create table t (id int primary key, b text, a text) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run(*other, "insert into t values (1, 'b', 'seven')"), "INSERT 0 1");
    EXPECT_EQ(Run(session, "select max(t.a) from u, t where t.id = u.id"), "seven") << round;
    EXPECT_EQ(Run(session, "update t set b = a where id = 1"), "UPDATE 1") << round;
    EXPECT_EQ(Run(session, "select b from t where id = 1"), "seven") << round;
    ASSERT_EQ(Run(*other, "drop table t"), "DROP TABLE");
    EXPECT_EQ(Run(session, "select b from t where id = 1"), "42P01") << round;
    EXPECT_EQ(Run(session, "select a from u"), "7") << round;
    ASSERT_EQ(Run(*other, "create table t (id int primary key, a int) with (storage = record)"),
              "CREATE TABLE");
    // Bound to a name that was not there when the session looked.
    EXPECT_EQ(Run(session, "insert into t select id, a from u"), "INSERT 0 1") << round;
  }
}

}  // namespace
}  // namespace nam::testing
