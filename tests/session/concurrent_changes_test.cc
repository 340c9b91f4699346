#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

/// Sessions that change one table at the same time.
namespace nam::testing {
namespace {

using session::ResultSet;
using session::Session;

class ConcurrentChangesTest : public ::testing::Test {
 protected:
  /// The command, or the SQLSTATE.
  static std::string Run(Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    if (result.ok()) return result->command;
    const auto error = SqlErrorOf(result.status());
    return error.has_value() ? error->sqlstate : result.status().ToString();
  }
  using TextRow = std::vector<std::string>;
  TextRow Column(const std::string& query) {
    TextRow values;
    const auto result = cluster_.session().Execute(query);
    EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
    if (!result.ok()) return values;
    for (const auto& row : result->rows) values.push_back(row.at(0).ToString());
    return values;
  }

  InProcessCluster cluster_{{}};
};

/// Two transactions that each have seen that a key is free, with their statements in any order: one of them
/// commits it.
TEST_F(ConcurrentChangesTest, OneOfTwoTransactionsGetsAUniqueKey) {
  ASSERT_EQ(Run(cluster_.session(),
                "create table v (id int primary key, a int unique, b text unique) with (storage = record)"),
            "CREATE TABLE");
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const std::unique_ptr<Session> other = cluster_.NewSession();
  Session* const sessions[] = {&cluster_.session(), other.get()};
  int both = 0;
  for (int round = 0; round < 40; ++round) {
    // The statements of both transactions, interleaved at random.
    std::vector<int> order = {0, 0, 0, 1, 1, 1};
    std::shuffle(order.begin(), order.end(), random);
    const bool by_text = random() % 2 == 0, update = random() % 2 == 0;
    std::vector<std::string> statements[2], results[2];
    for (int s = 0; s < 2; ++s) {
      const int id = 2 * round + s;
      const std::string key = by_text ? absl::StrCat("null, 'k", round, "'") : absl::StrCat(round, ", null");
      if (update) {
        ASSERT_EQ(Run(*sessions[s], absl::StrCat("insert into v values (", id, ", null, null)")),
                  "INSERT 0 1");
      }
      const std::string change = update ? absl::StrCat("update v set (a, b) = (", key, ") where id = ", id)
                                        : absl::StrCat("insert into v values (", id, ", ", key, ")");
      statements[s] = {"begin", change, "commit"};
    }
    for (const int s : order) results[s].push_back(Run(*sessions[s], statements[s][results[s].size()]));
    const bool committed[] = {results[0][2] == "COMMIT", results[1][2] == "COMMIT"};
    both += results[0][1].size() > 5 && results[1][1].size() > 5 ? 1 : 0;
    EXPECT_TRUE(committed[0] || committed[1]) << round;
    EXPECT_FALSE(committed[0] && committed[1]) << round;
    const std::string where = by_text ? absl::StrCat("b = 'k", round, "'") : absl::StrCat("a = ", round);
    EXPECT_EQ(Column("select count(*) from v where " + where), TextRow{"1"}) << round;
    for (const auto& result : results) {
      const std::string& last = result[1].size() == 5 ? result[1] : result[2];
      EXPECT_TRUE(last == "COMMIT" || last == "23505" || last == "40001") << last;
    }
  }
  EXPECT_GT(both, 0) << "no two statements went through before a commit";
}

/// A process runs 64 transactions at once. The session that begins one more waits until one of them ends, or
/// as long as its statement may take.
TEST_F(ConcurrentChangesTest, OneTransactionTooManyWaits) {
  ASSERT_EQ(Run(cluster_.session(), "create table c (id int primary key, n int) with (storage = record)"),
            "CREATE TABLE");
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 65; ++i) {
    sessions.push_back(cluster_.NewSession());
    if (i == 64) break;
    ASSERT_EQ(Run(*sessions[i], "begin"), "BEGIN");
    ASSERT_EQ(Run(*sessions[i], absl::StrCat("insert into c values (", i, ", 1)")), "INSERT 0 1");
  }
  Session& last = *sessions.back();
  ASSERT_EQ(Run(last, "set statement_timeout = 300"), "SET");
  EXPECT_EQ(Run(last, "insert into c values (64, 1)"), "57014");
  ASSERT_EQ(Run(last, "set statement_timeout = 0"), "SET");
  std::string waited;
  std::thread waiter([&] { waited = Run(last, "insert into c values (64, 1)"); });
  ASSERT_EQ(Run(*sessions[7], "commit"), "COMMIT");
  waiter.join();
  EXPECT_EQ(waited, "INSERT 0 1");
  for (int i = 0; i < 64; ++i) {
    if (i != 7) {
      ASSERT_EQ(Run(*sessions[i], "commit"), "COMMIT") << i;
    }
  }
  EXPECT_EQ(Column("select count(*) from c"), TextRow{"65"});
}

/// Two doctors are on call, and each leaves if another is. Whatever the order of their statements, both
/// leave, unless they lock the rows that they have read.
TEST_F(ConcurrentChangesTest, RowsThatAreLockedForbidWriteSkew) {
  ASSERT_EQ(
      Run(cluster_.session(), "create table d (id int primary key, here boolean) with (storage = record)"),
      "CREATE TABLE");
  ASSERT_EQ(Run(cluster_.session(), "insert into d values (1, true), (2, true)"), "INSERT 0 2");
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const std::unique_ptr<Session> other = cluster_.NewSession();
  Session* const sessions[] = {&cluster_.session(), other.get()};
  int both_left = 0;
  for (int round = 0; round < 60; ++round) {
    const bool locks = round % 2 == 0;
    ASSERT_EQ(Run(cluster_.session(), "update d set here = true"), "UPDATE 2");
    std::vector<int> order = {0, 0, 0, 0, 1, 1, 1, 1};
    std::shuffle(order.begin(), order.end(), random);
    size_t done[2] = {};
    std::string last[2];
    bool leaves[2] = {};
    for (const int s : order) {
      const std::string statements[] = {
          "begin", absl::StrCat("select id from d where here", locks ? " for update" : ""),
          absl::StrCat("update d set here = ", leaves[s] ? "false" : "here", " where id = ", s + 1),
          "commit"};
      last[s] = Run(*sessions[s], statements[done[s]++]);
      if (done[s] == 2) leaves[s] = last[s] == "SELECT 2";
    }
    for (const int s : {0, 1})
      EXPECT_TRUE(last[s] == "COMMIT" || last[s] == "40001" || last[s] == "ROLLBACK") << last[s];
    const size_t here = Column("select id from d where here").size();
    both_left += here == 0 ? 1 : 0;
    EXPECT_TRUE(here > 0 || !locks) << round;
    EXPECT_LT(here, 2u) << "no doctor has left";
  }
  EXPECT_GT(both_left, 0) << "there was no write skew to be forbidden";
}

/// Sessions insert under one parent, which each locks. With a lock timeout none of them fails, as the locks
/// leave the parent as it is.
TEST_F(ConcurrentChangesTest, CommitsWaitForLocks) {
  // There are many rows, so that locks are held long enough for others to meet them.
  constexpr int kSessions = 3, kCommits = 30, kRows = 300;
  ASSERT_EQ(Run(cluster_.session(), "create table p (id int primary key) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run(cluster_.session(), "create table c (id int primary key, p int) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run(cluster_.session(), "insert into p values (1)"), "INSERT 0 1");
  std::vector<std::unique_ptr<Session>> sessions;
  for (int s = 0; s < kSessions; ++s) sessions.push_back(cluster_.NewSession());
  std::vector<std::string> failed(kSessions);
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([&, s] {
      Session& session = *sessions[static_cast<size_t>(s)];
      failed[static_cast<size_t>(s)] += Run(session, "set lock_timeout = '30s'") == "SET" ? "" : "SET ";
      for (int i = 0; i < kCommits; ++i) {
        const int first = (s * kCommits + i) * kRows;
        for (const std::string& statement :
             {std::string("begin"), std::string("select id from p where id = 1 for key share"),
              absl::StrCat("insert into c select n, 1 from generate_series(", first, ", ", first + kRows - 1,
                           ") as s (n)"),
              std::string("commit")}) {
          const std::string result = Run(session, statement);
          if (result.size() == 5 && result != "BEGIN") failed[static_cast<size_t>(s)] += result + " ";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : failed) EXPECT_EQ(one, "");
  EXPECT_EQ(Column("select count(*) from c"), TextRow{absl::StrCat(kSessions * kCommits * kRows)});
}

/// No number is given twice, to any session, nor one that an ended session has taken.
TEST_F(ConcurrentChangesTest, NumbersAreGivenOnce) {
  ASSERT_EQ(Run(cluster_.session(),
                "create table s (id bigserial primary key, n int generated always as identity, x int) with "
                "(storage = record)"),
            "CREATE TABLE");
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(cluster_.NewSession());
  int rows = 0;
  for (int i = 0; i < 150; ++i) {
    std::unique_ptr<Session>& session = sessions[random() % sessions.size()];
    if (random() % 20 == 0) session = cluster_.NewSession();
    const bool undone = random() % 4 == 0;
    if (undone) {
      EXPECT_EQ(Run(*session, "begin"), "BEGIN");
    }
    EXPECT_EQ(Run(*session, "insert into s (x) values (1), (2)"), "INSERT 0 2");
    if (undone) {
      EXPECT_EQ(Run(*session, "rollback"), "ROLLBACK");
    }
    rows += undone ? 0 : 2;
  }
  const TextRow ids = Column("select id from s"), numbers = Column("select n from s");
  EXPECT_EQ(ids.size(), static_cast<size_t>(rows));
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(std::set<std::string>(numbers.begin(), numbers.end()).size(), numbers.size());
}

}  // namespace
}  // namespace nam::testing
