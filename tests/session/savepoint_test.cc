#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/session/record_session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// Commands, errors and rows are those of PostgreSQL 15, except for the extent of what a conflict ends.
class SavepointTest : public RecordSessionTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run("create table t (id int primary key, v int check (v < 100)) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into t values (1, 1)"), "INSERT 0 1");
  }
  void RunAll(const std::vector<std::pair<std::string, std::string>>& steps) {
    for (const auto& [statement, expected] : steps) ASSERT_EQ(Run(statement), expected) << statement;
  }
};

TEST_F(SavepointTest, AStatementThatFailedIsTakenBack) {
  for (const auto& [failing, state] : std::vector<std::pair<std::string, std::string>>{
           {"insert into t values (8, 8), (9, 1 / (1 - 1))", "22012"},
           {"insert into t values (8, 8), (9, 100)", "23514"},
           {"insert into t values (8), (1)", "23505"},
           {"insert into t select g, g from generate_series(90, 101) g", "23514"},
           {"update t set v = v + 98", "23514"},
           {"delete from t returning 1 / (v - 1)", "22012"},
           {"select nix from t", "42703"},
           {"selec", "42601"},
           {"rollback to nix", "3B001"},
           {"release nix", "3B001"},
           {"drop index nix", "25001"}}) {
    const int aborted = access_.aborted;
    RunAll({{"begin", "BEGIN"},
            {"savepoint a", "SAVEPOINT"},
            {"insert into t values (2, 2)", "INSERT 0 1"},
            {"savepoint b", "SAVEPOINT"},
            {"insert into t values (3, 3)", "INSERT 0 1"},
            {failing, state},
            {"select id from t", "25P02"},
            {"savepoint c", "25P02"},
            {"release a", "25P02"},
            {"begin", "25P02"},
            {"rollback to nix", "3B001"},
            {"selec", "42601"},
            {"rollback to b", "ROLLBACK"},
            {"select id from t order by id", "SELECT 2 | 1 | 2"},
            {"insert into t values (4, 4)", "INSERT 0 1"},
            {failing, state},
            {"rollback to a", "ROLLBACK"},
            {"rollback to b", "3B001"},
            {"rollback to a", "ROLLBACK"},
            {"insert into t values (5, 5)", "INSERT 0 1"},
            {"commit", "COMMIT"},
            {"select id from t order by id", "SELECT 2 | 1 | 5"},
            {"delete from t where id = 5", "DELETE 1"}});
    EXPECT_EQ(access_.aborted, aborted) << "the engine's transaction went on";
  }
}

TEST_F(SavepointTest, AFailedTransactionThatWaitsAtASavepointEnds) {
  for (const char* const end : {"commit", "rollback"}) {
    const int aborted = access_.aborted;
    RunAll({{"begin", "BEGIN"},
            {"insert into t values (2)", "INSERT 0 1"},
            {"savepoint a", "SAVEPOINT"},
            {"insert into t values (2)", "23505"},
            {end, "ROLLBACK"},
            {"select id from t", "SELECT 1 | 1"}});
    EXPECT_EQ(access_.aborted, aborted + 1);
  }
  // The session ends first.
  RunAll({{"begin", "BEGIN"}, {"savepoint a", "SAVEPOINT"}, {"selec", "42601"}});
}

TEST_F(SavepointTest, WhatTheEngineHasEndedCannotBeRolledBackTo) {
  for (const auto& [failure, state, back] :
       {std::tuple{absl::AbortedError("write-write conflict"), "40001", "40001"},
        {absl::UnavailableError("the connection broke"), "08006", "25P02"},
        {absl::ResourceExhaustedError("no memory"), "53000", "25P02"}}) {
    for (const char* const end : {"commit", "rollback"}) {
      RunAll({{"begin", "BEGIN"}, {"savepoint a", "SAVEPOINT"}, {"insert into t values (2)", "INSERT 0 1"}});
      access_.failing = "Scan";
      access_.failure = failure;
      EXPECT_EQ(Run("select id from t"), state);
      access_.failing.clear();
      RunAll({{"select id from t", "25P02"},
              {"rollback to nix", "3B001"},
              {"rollback to a", back},
              {"select id from t", "25P02"},
              {"rollback to a", back}});
      const auto error = SqlErrorOf(Execute("rollback to a").status());
      EXPECT_EQ(error->message,
                "cannot roll back to savepoint \"a\": the error has ended the whole transaction");
      EXPECT_EQ(error->hint, "nothing of it has happened; ROLLBACK, and run all of it again");
      RunAll({{end, "ROLLBACK"}, {"select id from t", "SELECT 1 | 1"}});
    }
  }
}

TEST_F(SavepointTest, ALostTransactionHasNoWayBack) {
  for (const bool failed : {false, true}) {
    RunAll({{"begin", "BEGIN"}, {"savepoint a", "SAVEPOINT"}});
    if (failed) {
      EXPECT_EQ(Run("selec"), "42601");
    }
    statements_.Lose();
    RunAll({{"select id from t", "25P02"}, {"rollback to a", "25P02"}, {"rollback", "ROLLBACK"}});
  }
}

TEST_F(SavepointTest, ACancelledStatementIsTakenBack) {
  RunAll({{"begin", "BEGIN"}, {"savepoint a", "SAVEPOINT"}, {"insert into t values (2)", "INSERT 0 1"}});
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Execute("delete from t").status()));
  cancelled_ = false;
  RunAll({{"rollback to a", "ROLLBACK"}, {"commit", "COMMIT"}, {"select id from t", "SELECT 1 | 1"}});
}

TEST_F(SavepointTest, SavepointsAreBounded) {
  EXPECT_EQ(Run("begin"), "BEGIN");
  for (int i = 0; i < 65'536; ++i) {
    sql::TransactionStatement savepoint{sql::TransactionStatement::Kind::kSavepoint, "s"};
    ASSERT_TRUE(statements_.Run(savepoint).ok());
  }
  EXPECT_EQ(Run("savepoint s"), "54000");
  EXPECT_EQ(Run("rollback to s"), "ROLLBACK");
  EXPECT_EQ(Run("release s"), "RELEASE");
  EXPECT_EQ(Run("savepoint s"), "SAVEPOINT");
}

/// A table beside a map, and savepoints beside copies of it.
TEST_F(SavepointTest, RandomStatementsAgainstCopies) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  using Rows = std::map<int, int>;
  struct Savepoint {
    std::string name;
    Rows rows;
  };
  Rows committed = {{1, 1}}, now = committed;
  std::vector<Savepoint> savepoints;
  bool open = false, failed = false;
  const auto end = [&](bool keeps) {
    now = keeps ? now : committed;
    committed = now;
    savepoints.clear();
    open = failed = false;
  };
  for (int i = 0; i < 4000; ++i) {
    const int id = pick(5), v = 80 + pick(15);
    const std::string name(1, "abc"[pick(3)]);
    size_t known = savepoints.size();
    while (known > 0 && savepoints[known - 1].name != name) --known;
    std::string statement, expected;
    const bool was_failed = failed;
    switch (pick(9)) {
      case 0:
      case 1:
        statement = absl::StrCat("insert into t values (", id, ", ", v, ")");
        expected = was_failed || now.emplace(id, v).second ? "INSERT 0 1" : "23505";
        break;
      case 2: {
        statement = "update t set v = v + 2";  // some rows may be changed before one is too large
        Rows next = now;
        bool fits = true;
        for (auto& [key, value] : next) fits = (value += 2) < 100 && fits;
        expected = fits ? absl::StrCat("UPDATE ", now.size()) : "23514";
        if (fits && !was_failed) now = next;
        break;
      }
      case 3:
        statement = absl::StrCat("delete from t where id >= ", id);
        expected = absl::StrCat("DELETE ", std::distance(now.lower_bound(id), now.end()));
        if (!was_failed) now.erase(now.lower_bound(id), now.end());
        break;
      case 4:
        statement = "savepoint " + name;
        expected = open ? "SAVEPOINT" : "25P01";
        if (open && !was_failed) savepoints.push_back({name, now});
        break;
      case 5:
        statement = "release " + name;
        expected = !open ? "25P01" : known == 0 ? "3B001" : "RELEASE";
        if (known > 0 && !was_failed) savepoints.resize(known - 1);
        break;
      case 6:
        statement = "rollback to " + name;
        expected = !open ? "25P01" : known == 0 ? "3B001" : "ROLLBACK";
        if (known > 0) {
          savepoints.resize(known);
          now = savepoints.back().rows;
          failed = false;
        }
        break;
      default:
        if (open && pick(3) > 0) continue;
        statement = !open ? "begin" : pick(2) == 0 ? "commit" : "rollback";
        expected = statement == "begin" ? "BEGIN" : statement == "commit" && !failed ? "COMMIT" : "ROLLBACK";
        if (open) {
          end(expected == "COMMIT");
        } else {
          open = true;
        }
    }
    if (was_failed && failed && !statement.starts_with("rollback to")) expected = "25P02";
    ASSERT_EQ(Run(statement), expected) << statement;
    if (expected.size() == 5 && expected != "BEGIN" && !failed && open) failed = true;
    if (!open) committed = now;
    if (failed) continue;
    std::string rows = absl::StrCat("SELECT ", now.size());
    for (const auto& [key, value] : now) absl::StrAppend(&rows, " | ", key, ",", value);
    ASSERT_EQ(Run("select id, v from t order by id"), rows) << statement;
  }
}

}  // namespace
}  // namespace nam::session
