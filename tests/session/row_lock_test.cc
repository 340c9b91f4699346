#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/session/record_session.h"

/// SELECT … FOR UPDATE and its variants: the rows that it locks, what it shows, and what it refuses.
namespace nam::session {
namespace {

class RowLockTest : public RecordSessionTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run("create table t (id int primary key, n int, s varchar(10)) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, null, 'c')"), "INSERT 0 3");
    ASSERT_EQ(Run("create table u (t_id int, at timestamptz, v int, primary key (at, t_id)) with (storage = "
                  "record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into u values (1, '2026-01-01', 1), (1, '2026-01-02', 2), (2, '2026-01-03', 9)"),
              "INSERT 0 3");
    ASSERT_EQ(Run("create table h (x int) with (storage = record)"), "CREATE TABLE");
    ASSERT_EQ(Run("insert into h values (7), (8)"), "INSERT 0 2");
  }
  /// Runs in a transaction: the rows that the statement shows, and those that it has locked.
  std::string Locks(const std::string& select) {
    access_.locked.clear();
    EXPECT_EQ(Run("begin"), "BEGIN");
    std::string shown = Run(select);
    Run("rollback");
    std::sort(access_.locked.begin(), access_.locked.end());
    return absl::StrCat(shown, " / ", absl::StrJoin(access_.locked, ", "));
  }
  /// The error's SQLSTATE, message and position.
  std::string Why(const std::string& text) {
    const auto error = SqlErrorOf(Execute(text).status());
    return error.has_value() ? absl::StrCat(error->sqlstate, " ", error->position, ": ", error->message) : "";
  }
};

TEST_F(RowLockTest, TheRowsOfTheResultAreLocked) {
  EXPECT_EQ(Locks("select n from t where id < 3 for update"), "SELECT 2 | 10 | 20 / t 1, t 2");
  EXPECT_EQ(Locks("select n from t order by s desc limit 1 for no key update"), "SELECT 1 | NULL / t 3");
  EXPECT_EQ(Locks("select s, n + 1 from t order by id offset 1 for share"),
            "SELECT 2 | b,21 | c,NULL / t 2, t 3");
  EXPECT_EQ(Locks("select 1 from t where id = 9 for key share"), "SELECT 0 / ");
  EXPECT_EQ(Locks("select * from t where id = 2 for update nowait"), "SELECT 1 | 2,20,b / t nowait 2");
  EXPECT_EQ(Locks("select id, id from t where id = 1 for update for share nowait"),
            "SELECT 1 | 1,1 / t nowait 1");
  EXPECT_EQ(Locks("select 1 for update"), "SELECT 1 | 1 / ");
  EXPECT_EQ(Locks("with w as (select 2 as k) select t.id from t, w where id = k for update"),
            "SELECT 1 | 2 / t 2");
  EXPECT_EQ(Locks("select x from h where x = 8 for update"), "SELECT 1 | 8 / h 8");
  EXPECT_EQ(Locks("select id from t where id in (select t_id from u) order by 1 for update"),
            "SELECT 2 | 1 | 2 / t 1, t 2");
}

TEST_F(RowLockTest, OfJoinsTheNamedTables) {
  const std::string join = "select t.id, v from t join u on t.id = u.t_id where v < 5 order by v ";
  EXPECT_EQ(Locks(join + "for update of t"), "SELECT 2 | 1,1 | 1,2 / t 1");
  EXPECT_EQ(Locks(join + "for update of u"), "SELECT 2 | 1,1 | 1,2 / u 1, u 1");
  EXPECT_EQ(Locks(join + "for update"), "SELECT 2 | 1,1 | 1,2 / t 1, u 1, u 1");
  EXPECT_EQ(Locks(join + "for update of t nowait for share of u"),
            "SELECT 2 | 1,1 | 1,2 / t nowait 1, u 1, u 1");
  EXPECT_EQ(Locks("select a.id, b.id from t a, t b where a.id = 1 and b.id = 2 for update of b"),
            "SELECT 1 | 1,2 / t 2");
  EXPECT_EQ(Locks("select t.id, v from t left join u on t.id = u.t_id and v > 5 order by 1 for update of t"),
            "SELECT 3 | 1,NULL | 2,9 | 3,NULL / t 1, t 2, t 3");
  EXPECT_EQ(Locks("select * from (t join h on t.id = x - 6) j for update"),
            "SELECT 2 | 1,10,a,7 | 2,20,b,8 / "
            "h 7, h 8, t 1, t 2");
  EXPECT_EQ(
      Locks("select q.k from (select t_id as k from u where v = 9) q, t where t.id = q.k for update of t"),
      "SELECT 1 | 2 / t 2");
}

/// Keys are not the text that the session's zone shows of them.
TEST_F(RowLockTest, KeysAreInNoZone) {
  zone_ = "Asia/Tokyo";
  EXPECT_EQ(Locks("select at from u where v = 9 for update"), "SELECT 1 | 2026-01-03 09:00:00+09 / u 2");
}

/// There is no transaction to keep the locks.
TEST_F(RowLockTest, OutsideOfATransactionItIsJustASelect) {
  EXPECT_EQ(Run("select n from t where id = 1 for update"), "SELECT 1 | 10");
  EXPECT_TRUE(access_.locked.empty());
  EXPECT_EQ(Execute("select n from t for update")->columns.size(), 1u);
}

TEST_F(RowLockTest, AConflictFailsTheTransaction) {
  access_.failing = "Lock";
  access_.failure = txn::AbortStatus(txn::AbortReason::kWriteWrite, "a row of t");
  EXPECT_EQ(Locks("select id from t for update"), "40001 / ");
  access_.failure = txn::AbortStatus(txn::AbortReason::kLockTimeout, "a row of t");
  EXPECT_EQ(Locks("select id from t for update"), "55P03 / ");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Why("select id from t for update"), "55P03 -1: canceling statement due to lock timeout");
  EXPECT_EQ(Run("select 1"), "25P02");
}

/// The messages are PostgreSQL's.
TEST_F(RowLockTest, WhatIsRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"select id from t for update skip locked", "0A000 28: SKIP LOCKED is not supported"},
      {"select distinct id from t for update", "0A000 26: FOR UPDATE is not allowed with DISTINCT clause"},
      {"select n from t group by n for share", "0A000 27: FOR SHARE is not allowed with GROUP BY clause"},
      {"select 1 from t having true for update", "0A000 28: FOR UPDATE is not allowed with HAVING clause"},
      {"select count(*) from t for key share",
       "0A000 23: FOR KEY SHARE is not allowed with aggregate functions"},
      {"select rank() over () from t for update",
       "0A000 29: FOR UPDATE is not allowed with window functions"},
      {"select id from t union select x from h for no key update",
       "0A000 39: FOR NO KEY UPDATE is not allowed with UNION/INTERSECT/EXCEPT"},
      {"values (1) for update", "0A000 11: FOR UPDATE cannot be applied to VALUES"},
      {"select id from t for update of u",
       "42P01 31: relation \"u\" in FOR UPDATE clause not found in FROM clause"},
      {"select id from t a for share of t",
       "42P01 32: relation \"t\" in FOR SHARE clause not found in FROM clause"},
      {"select id from t for update of public.t",
       "42601 31: FOR UPDATE must specify unqualified relation names"},
      {"select t.id from t left join h on id = x for update",
       "0A000 41: FOR UPDATE cannot be applied to the nullable side of an outer join"},
      {"select t.id from t right join h on id = x for update of t",
       "0A000 56: FOR UPDATE cannot be applied to the nullable side of an outer join"},
      {"with w as (select 1) select 1 from w for update of w",
       "0A000 51: FOR UPDATE cannot be applied to a WITH query"},
      {"select 1 from (t join h on id = x) j for update of j",
       "0A000 51: FOR UPDATE cannot be applied to a join"},
      {"select 1 from generate_series(1, 2) g for update of g",
       "0A000 52: FOR UPDATE cannot be applied to a function"},
      {"select 1 from (select id from t) q for update",
       "0A000 35: FOR UPDATE of tables inside a subquery is not supported"},
      {"select 1 from (select id from t for update) q",
       "0A000 32: FOR UPDATE inside a statement is not supported"},
      {"insert into h select id from t for update",
       "0A000 31: FOR UPDATE inside a statement is not supported"},
  };
  for (const auto& [text, why] : kCases) EXPECT_EQ(Why(text), why) << text;
}

}  // namespace
}  // namespace nam::session
