#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

}  // namespace
}  // namespace nam::session
