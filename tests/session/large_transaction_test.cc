#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

/// Queries by servers in a transaction that has written more than any message holds.
class LargeTransactionTest : public ::testing::Test {
 protected:
  explicit LargeTransactionTest(uint64_t scratch_bytes = uint64_t{128} << 20)
      : cluster_({.memory_bytes = uint64_t{384} << 20, .scratch_bytes = scratch_bytes}) {
    for (const char* table : {"r", "other"}) {
      Run(std::string("create table ") + table +
          " (k bigint primary key, a bigint, note varchar(1000)) with (storage = record)");
      // With a row of its own no table takes a load.
      Run(std::string("insert into ") + table + " values (-1, -1, ''), (-2, 3, '')");
    }
    Run("create table c (k bigint)");
    Run("insert into c select n from generate_series(0, 9999) n");
  }
  std::string Run(const std::string& statement) {
    const auto result = cluster_.session().Execute(statement);
    if (!result.ok()) {
      const auto error = SqlErrorOf(result.status());
      return error.has_value() ? error->sqlstate + " " + error->message : result.status().ToString();
    }
    return result->rows.empty() ? result->command : result->rows[0][0].ToString();
  }
  /// 17,500 rows of 4 KB.
  void Write(const std::string& table) {
    EXPECT_EQ(Run("insert into " + table + " select n, n, 'x' from generate_series(0, 17499) n"),
              "INSERT 0 17500");
  }

  InProcessCluster cluster_;
};

TEST_F(LargeTransactionTest, JoinsSeeAllThatItHasWritten) {
  EXPECT_EQ(Run("begin"), "BEGIN");
  Write("r");
  const std::string join = "select count(*) from r, c where r.a = c.k";
  EXPECT_EQ(Run(join), "10001") << "of its own rows, and one that was there";
  EXPECT_EQ(Run("delete from r where k = -2"), "DELETE 1");
  EXPECT_EQ(Run("update r set a = -5 where k < 100"), "UPDATE 101");
  EXPECT_EQ(Run(join), "9900");
  EXPECT_EQ(Run("select count(*) from other, r, c where other.a = r.a and r.a = c.k"), "0");
  EXPECT_EQ(Run("select count(*) from other, c where other.a = c.k"), "1");
  EXPECT_EQ(cluster_.NewSession()->Execute(join)->rows[0][0].ToString(), "1");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  EXPECT_EQ(Run(join), "1");
}

class LittleScratchTest : public LargeTransactionTest {
 protected:
  LittleScratchTest() : LargeTransactionTest(uint64_t{4} << 20) {}
};

TEST_F(LittleScratchTest, RowsBeyondScratchMemoryAreAnError) {
  EXPECT_EQ(Run("begin"), "BEGIN");
  Write("r");
  EXPECT_EQ(Run("select count(*) from other, c where other.a = c.k"), "1") << "it has not written that table";
  EXPECT_EQ(Run("select count(*) from r, c where r.a = c.k"), "53200 scratch memory is full");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  EXPECT_EQ(Run("select count(*) from r, c where r.a = c.k"), "1");
}

}  // namespace
}  // namespace nam::testing
