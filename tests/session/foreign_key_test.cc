#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/session/record_session.h"
#include "txn/session.h"

namespace nam::session {
namespace {

/// Foreign keys as one session sees them.
class ForeignKeyTest : public RecordSessionTest {
 protected:
  void SetUp() override {
    Create("p", "id int primary key, u varchar(4), v bigint, n int, unique (u, v)");
    Create("c", "id int primary key, r int references p, n int");
    Run("insert into p values (1, 'a', 1, 0), (2, 'b', 2, 0), (3, null, 3, 0)");
  }
  void Create(const std::string& name, const std::string& columns) {
    ASSERT_EQ(Run(absl::StrCat("create table ", name, " (", columns, ") with (storage = record)")),
              "CREATE TABLE");
  }
  /// SQLSTATE, message and hint.
  std::string Why(const std::string& text) {
    const auto error = SqlErrorOf(Execute(text).status());
    return error.has_value() ? absl::StrCat(error->sqlstate, ": ", error->message, ": ", error->hint) : "";
  }
  std::string Locks(const std::string& change) {
    access_.locked.clear();
    const std::string done = Run(change);
    return absl::StrCat(done, " / ", absl::StrJoin(access_.locked, ", "));
  }
};

TEST_F(ForeignKeyTest, AChildHasItsParentAndLocksIt) {
  EXPECT_EQ(Locks("insert into c values (1, 1), (2, 2), (3, 1), (4, null)"), "INSERT 0 4 / p 1, p 2");
  EXPECT_EQ(Why("insert into c values (5, 2), (6, 7), (7, 8)"),
            "23503: insert or update on table \"c\" violates foreign key constraint \"c_r_fkey\": "
            "Key (r)=(7) is not present in table \"p\".");
  EXPECT_EQ(Why("insert into c (id, r) select 10 + id, 9 from p"),
            "23503: insert or update on table \"c\" violates foreign key constraint \"c_r_fkey\": "
            "Key (r)=(9) is not present in table \"p\".");
  EXPECT_EQ(Run("select id, r from c order by id"), "SELECT 4 | 1,1 | 2,2 | 3,1 | 4,NULL");
  EXPECT_EQ(Locks("update c set r = 3 where id < 3"), "UPDATE 2 / p 3");
  EXPECT_EQ(Why("update c set r = id where id = 4"),
            "23503: insert or update on table \"c\" violates foreign key constraint \"c_r_fkey\": "
            "Key (r)=(4) is not present in table \"p\".");
  EXPECT_EQ(Locks("update c set r = null where id = 1"), "UPDATE 1 / ");
}

/// A change that leaves the key needs no lock, unless the row becomes another record.
TEST_F(ForeignKeyTest, WhatLeavesTheKeyLocksNothing) {
  ASSERT_EQ(Run("insert into c values (1, 1), (2, 2)"), "INSERT 0 2");
  EXPECT_EQ(Locks("update c set n = 5"), "UPDATE 2 / ");
  EXPECT_EQ(Locks("update c set r = r"), "UPDATE 2 / ");
  EXPECT_EQ(Locks("update c set id = id + 1"), "UPDATE 2 / p 1, p 2");
  EXPECT_EQ(Locks("delete from c where id = 2"), "DELETE 1 / ");
  EXPECT_EQ(Locks("insert into c values (3, 2, 9) on conflict (id) do update set n = excluded.n"),
            "INSERT 0 1 / ");
  EXPECT_EQ(Locks("insert into c values (3, 2, 9) on conflict (id) do update set r = 1"), "INSERT 0 1 / p 1");
  EXPECT_EQ(Locks("insert into c values (3, 7) on conflict (id) do update set r = excluded.r"), "23503 / ");
  EXPECT_EQ(Locks("insert into c values (3, 7) on conflict do nothing"), "INSERT 0 0 / ");
}

/// Several columns, in another order than the parent's index has them, and columns that may be NULL.
TEST_F(ForeignKeyTest, AUniqueKeyOfSeveralColumns) {
  Create("d", "id int primary key, y bigint, x varchar(4) not null, foreign key (y, x) references p (v, u)");
  EXPECT_EQ(Locks("insert into d values (1, 1, 'a'), (2, 2, 'b'), (3, 1, 'a'), (4, null, 'q')"),
            "INSERT 0 4 / p 1, p 2");
  EXPECT_EQ(Why("insert into d values (5, 1, 'b')"),
            "23503: insert or update on table \"d\" violates foreign key constraint \"d_y_x_fkey\": "
            "Key (y, x)=(1, b) is not present in table \"p\".");
  EXPECT_EQ(Why("update p set u = 'z' where id = 2"),
            "23503: update or delete on table \"p\" violates foreign key constraint \"d_y_x_fkey\" on table "
            "\"d\": Key (v, u)=(2, b) is still referenced from table \"d\".");
  EXPECT_EQ(Run("update p set u = null where id = 2"), "23503");
  EXPECT_EQ(Run("update p set id = 7 where id = 2"), "UPDATE 1") << "the key that is referenced stays";
  EXPECT_EQ(Run("delete from p where id = 3"), "DELETE 1") << "its key has NULL in it";
  EXPECT_EQ(Run("update p set u = case id when 1 then 'b' else 'a' end, v = 3 - v"), "UPDATE 2");
  EXPECT_EQ(Run("delete from p"), "23503");
}

/// The parent's index is younger than the snapshot.
TEST_F(ForeignKeyTest, AnIndexThatIsTooYoungIsAConflict) {
  access_.usable_from = 11;
  Create("y", "id int primary key, k int unique");
  access_.usable_from = 1;
  Create("d", "id int primary key, k int references y (k)");
  EXPECT_EQ(Run("insert into y values (1, 1)"), "INSERT 0 1");
  EXPECT_EQ(Run("insert into d values (1, 1)"), "40001");
  EXPECT_EQ(Run("insert into d values (1, null)"), "INSERT 0 1");
}

/// Violations that the commit finds.
TEST_F(ForeignKeyTest, ACommitThatFindsAChildFails) {
  access_.commit_error = txn::AbortStatus(txn::AbortReason::kForeignKey,
                                          "update or delete on table \"p\" violates foreign key constraint");
  EXPECT_EQ(Why("delete from p where id = 3"),
            "23503: update or delete on table \"p\" violates foreign key constraint: another transaction has "
            "inserted a row that references it; nothing of this one has happened");
}

}  // namespace
}  // namespace nam::session
