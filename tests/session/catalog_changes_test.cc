#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// A session's knowledge of the catalog, and changes that another session makes meanwhile.
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

/// Each EXECUTE looks up the names of its prepared statement; it fails if the table it meant has changed.
TEST_F(CatalogChangesTest, APreparedStatementSeesWhatHasHappenedBeforeIt) {
  const std::unique_ptr<Session> other = cluster_.NewSession();
  Session& session = cluster_.session();
  const auto make = [&](int n) {
    ASSERT_EQ(Run(*other, "create table t (id int primary key, n int) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run(*other, absl::StrCat("insert into t values (1, ", n, ")")), "INSERT 0 1");
  };
  make(100);
  ASSERT_EQ(Run(session, "prepare raise as update t set n = n + 1 where id = 1"), "PREPARE");
  ASSERT_EQ(Run(session, "prepare look as select n from t where id = 1"), "PREPARE");
  ASSERT_EQ(Run(session, "prepare add (int) as insert into t values ($1, 0)"), "PREPARE");
  int n = 100;
  for (const std::string first :
       {"execute raise", "execute look", "execute add (2)", "explain execute raise"}) {
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(Run(session, "execute look"), absl::StrCat(n));
      ASSERT_EQ(Run(*other, "drop table t"), "DROP TABLE");
      make(n = 300 + round);
      const std::string answer = Run(session, first);
      n += first == "execute raise";
      EXPECT_TRUE(first != "execute look" || answer == absl::StrCat(n)) << answer;
      EXPECT_EQ(Run(*other, "select n from t where id = 1"), absl::StrCat(n)) << first;
      EXPECT_EQ(Run(*other, "select count(*) from t"), first == "execute add (2)" ? "2" : "1");
    }
  }
  ASSERT_EQ(Run(*other, "drop table t"), "DROP TABLE");
  EXPECT_EQ(Run(session, "execute raise"), "42P01");
}

}  // namespace
}  // namespace nam::testing
