#include <gtest/gtest.h>

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

}  // namespace
}  // namespace nam::testing
