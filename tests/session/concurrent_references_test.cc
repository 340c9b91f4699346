#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

/// Foreign keys in a cluster: sessions that change parents and children at the same time.
namespace nam::testing {
namespace {

using session::ResultSet;
using session::Session;

class ConcurrentReferencesTest : public ::testing::Test {
 protected:
  /// The command and the rows, or the SQLSTATE and the message.
  static std::string Run(Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    if (!result.ok()) {
      const auto error = SqlErrorOf(result.status());
      return error.has_value() ? absl::StrCat(error->sqlstate, ": ", error->message)
                               : result.status().ToString();
    }
    std::string shown = result->command;
    for (const auto& row : result->rows) absl::StrAppend(&shown, " | ", row.at(0).ToString());
    return shown;
  }
  std::string Run(const std::string& statement) { return Run(cluster_.session(), statement); }
  static std::string StateOf(const std::string& shown) { return shown.substr(0, 5); }

  InProcessCluster cluster_{{}};
};

TEST_F(ConcurrentReferencesTest, TablesOfAForeignKeyComeAndGo) {
  ASSERT_EQ(Run("create table p (id int primary key, k int) with (storage = record)"), "CREATE TABLE");
  ASSERT_EQ(Run("create unique index p_k on p (k)"), "CREATE INDEX");
  const std::unique_ptr<Session> other = cluster_.NewSession();
  ASSERT_EQ(Run(*other, "insert into p values (1, 10), (2, 20)"), "INSERT 0 2");
  ASSERT_EQ(Run("create table c (id int primary key, r int references p, k int references p (k)) with "
                "(storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into c values (1, 1, 20), (2, null, null)"), "INSERT 0 2");
  EXPECT_EQ(Run("insert into c values (3, 5, 10)"),
            "23503: insert or update on table \"c\" violates foreign key constraint \"c_r_fkey\"");
  EXPECT_EQ(Run("insert into c values (3, 1, 30)"),
            "23503: insert or update on table \"c\" violates foreign key constraint \"c_k_fkey\"");
  // The other session had the parent open before there was a child.
  EXPECT_EQ(
      Run(*other, "delete from p where id = 1"),
      "23503: update or delete on table \"p\" violates foreign key constraint \"c_r_fkey\" on table \"c\"");
  EXPECT_EQ(
      Run(*other, "update p set k = 21 where id = 2"),
      "23503: update or delete on table \"p\" violates foreign key constraint \"c_k_fkey\" on table \"c\"");
  EXPECT_EQ(Run(*other, "drop table p"),
            "2BP01: cannot drop table p because constraint c_r_fkey on table c depends on it");
  EXPECT_EQ(Run(*other, "drop index p_k"),
            "2BP01: cannot drop index p_k because constraint c_k_fkey on table c requires it");
  EXPECT_EQ(Run(*other, "drop index c_r_fkey"),
            "2BP01: cannot drop index c_r_fkey because constraint c_r_fkey on table c requires it");
  EXPECT_EQ(Run("drop table c"), "DROP TABLE");
  EXPECT_EQ(Run(*other, "delete from p where id = 1"), "DELETE 1");
  EXPECT_EQ(Run(*other, "drop index p_k"), "DROP INDEX");
  EXPECT_EQ(Run(*other, "drop table p"), "DROP TABLE");
}

/// A creation that fails leaves nothing behind. Its index's name is taken.
TEST_F(ConcurrentReferencesTest, ACreationThatFailsLeavesTheParentAlone) {
  ASSERT_EQ(Run("create table p (id int primary key, n int) with (storage = record)"), "CREATE TABLE");
  ASSERT_EQ(Run("create index c_r_fkey on p (n)"), "CREATE INDEX");
  ASSERT_EQ(Run("insert into p values (1, 1)"), "INSERT 0 1");
  EXPECT_EQ(StateOf(Run("create table c (r int references p) with (storage = record)")), "42P07");
  EXPECT_EQ(StateOf(Run("select 1 from c")), "42P01");
  EXPECT_EQ(Run("delete from p"), "DELETE 1");
  EXPECT_EQ(Run("drop table p"), "DROP TABLE");
}

/// One transaction makes a child, the other deletes its parent or gives it another key; their statements in
/// any order. Both never commit.
TEST_F(ConcurrentReferencesTest, OfAChildAndTheEndOfItsParentOneCommits) {
  ASSERT_EQ(Run("create table p (id int primary key, k int unique) with (storage = record)"), "CREATE TABLE");
  ASSERT_EQ(Run("create table c (id int primary key, r int references p, k int references p (k)) with "
                "(storage = record)"),
            "CREATE TABLE");
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const std::unique_ptr<Session> other = cluster_.NewSession();
  Session* const sessions[] = {&cluster_.session(), other.get()};
  int children = 0, ends = 0, late = 0;
  for (int round = 0; round < 60; ++round) {
    ASSERT_EQ(Run(absl::StrCat("insert into p values (", round, ", ", round, ")")), "INSERT 0 1");
    std::vector<int> order = {0, 0, 0, 1, 1, 1};
    std::shuffle(order.begin(), order.end(), random);
    const std::string column = random() % 2 == 0 ? "r" : "k";
    const std::string end = random() % 2 == 0 ? absl::StrCat("delete from p where id = ", round)
                            : column == "r"   ? absl::StrCat("update p set id = -1 - id where id = ", round)
                                              : absl::StrCat("update p set k = -1 - k where id = ", round);
    const std::string statements[2][3] = {
        {"begin", absl::StrCat("insert into c (id, ", column, ") values (", round, ", ", round, ")"),
         "commit"},
        {"begin", end, "commit"}};
    std::vector<std::string> results[2];
    for (const int s : order) results[s].push_back(Run(*sessions[s], statements[s][results[s].size()]));
    const bool child = results[0][2] == "COMMIT", ended = results[1][2] == "COMMIT";
    EXPECT_TRUE(child || ended) << round;
    EXPECT_FALSE(child && ended) << round;
    for (const auto& result : results) {
      const std::string last =
          StateOf(result[2] == "COMMIT" || result[1].size() < 20 ? result[2] : result[1]);
      EXPECT_TRUE(last == "COMMI" || last == "40001" || last == "23503") << last;
    }
    late += StateOf(results[1][2]) == "23503" || StateOf(results[1][2]) == "40001";
    children += child;
    ends += ended;
  }
  EXPECT_GT(children, 0);
  EXPECT_GT(ends, 0);
  EXPECT_GT(late, 0);
  EXPECT_EQ(Run("select count(*) from c left join p on c.r = p.id left join p q on c.k = q.k where "
                "coalesce(p.id, q.id) is null"),
            "SELECT 1 | 0");
}

/// The bound of a transaction's memory is a setting.
TEST_F(ConcurrentReferencesTest, ATransactionsMemoryIsBoundByASetting) {
  ASSERT_EQ(Run("create table p (id int primary key, t varchar(500)) with (storage = record)"),
            "CREATE TABLE");
  const std::string insert = "insert into p (id, t) select i, 'x' from generate_series(1, 5000) i";
  ASSERT_EQ(Run("set nam.transaction_mib_max = '8MB'"), "SET");
  const auto refused = cluster_.session().Execute(insert);
  const auto error = SqlErrorOf(refused.status());
  ASSERT_TRUE(error.has_value()) << refused.status();
  EXPECT_EQ(error->sqlstate, "54000") << error->message;
  EXPECT_NE(error->message.find("the 8 MiB that"), std::string::npos) << error->message;
  for (const char* const way : {"nam.transaction_mib_max", "storage = columnar", "BATCH"})
    EXPECT_NE(error->hint.find(way), std::string::npos) << error->hint;
  ASSERT_EQ(Run("reset nam.transaction_mib_max"), "RESET");
  EXPECT_EQ(Run(insert), "INSERT 0 5000");
}

}  // namespace
}  // namespace nam::testing
