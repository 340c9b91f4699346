#include <gtest/gtest.h>

#include "tests/session/record_session.h"

namespace nam::session {
namespace {

class RecordChangesTest : public RecordSessionTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run("create table t (id int primary key, n int, s varchar(10)) with (storage = record)"),
              "CREATE TABLE");
    ASSERT_EQ(Run("insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, null, 'c')"), "INSERT 0 3");
  }
};

TEST_F(RecordChangesTest, Defaults) {
  ASSERT_EQ(Run("create table d (id int primary key, n int default 1 + 2 not null, s varchar(20) default "
                "'a, (b)' /* c */, at timestamp default now(), day date default current_date, x numeric(5,2) "
                "default round(2.345, 2) check (x > 0), b boolean default (1 < 2)) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into d (id) values (1)"), "INSERT 0 1");
  now_us_ += 86'400'000'000;
  EXPECT_EQ(Run("insert into d (id, s, n) values (2, default, 5), (3, 'z', default)"), "INSERT 0 2");
  EXPECT_EQ(Run("select * from d order by id"),
            "SELECT 3 | 1,3,a, (b),2026-09-21 14:13:20,2026-09-21,2.35,t | 2,5,a, (b),2026-09-22 "
            "14:13:20,2026-09-22,2.35,t | 3,3,z,2026-09-22 14:13:20,2026-09-22,2.35,t");
  EXPECT_EQ(Run("update d set n = default, s = 'q', at = default where id = 2"), "UPDATE 1");
  EXPECT_EQ(Run("select n, s from d where id = 2"), "SELECT 1 | 3,q");
  EXPECT_EQ(Run("insert into d (id, n) values (4, null)"), "23502");
  EXPECT_EQ(Run("insert into d default values"), "23502");
  ASSERT_EQ(Run("create table e (id int default 7 primary key, n int) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into e default values returning *"), "INSERT 0 1 | 7,NULL");
  EXPECT_EQ(Run("insert into e values (default, 1)"), "23505");
  EXPECT_EQ(Run("insert into e (id, n) select 8, n from t where id = 1"), "INSERT 0 1");
  EXPECT_EQ(Run("create table f (id int primary key, n int default id) with (storage = record)"), "0A000");
  EXPECT_EQ(Run("create table f (id int primary key, n int default (select 1)) with (storage = record)"),
            "0A000");
  EXPECT_EQ(Run("create table f (id int primary key, n int default true) with (storage = record)"), "42804");
  EXPECT_EQ(Run("create table f (id int primary key, n int default 1 default 2) with (storage = record)"),
            "42601");
}

/// Its creator may die before it has made the indexes.
TEST_F(RecordChangesTest, ATableIsWholeBeforeItIsChanged) {
  ASSERT_EQ(Run("create table v (id int primary key, a int unique) with (storage = record)"), "CREATE TABLE");
  access_.tables["v"].mutable_record()->mutable_parts(0)->set_usable_from(0);
  EXPECT_EQ(Run("insert into v values (1, 1)"), "55000");
  EXPECT_EQ(Run("delete from v"), "55000");
  EXPECT_EQ(Run("select count(*) from v"), "SELECT 1 | 0");
  access_.tables["v"].mutable_record()->mutable_parts(0)->set_usable_from(1);
  EXPECT_EQ(Run("insert into v values (1, 1)"), "INSERT 0 1");
}

TEST_F(RecordChangesTest, ReturnedColumnsHaveNames) {
  const auto result = Execute("insert into t select 20, 1, 'q' returning id as key, n + 1");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->columns.at(0).name, "key");
  EXPECT_EQ(result->columns.at(1).name, "?column?");
}

}  // namespace
}  // namespace nam::session
