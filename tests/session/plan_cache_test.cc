#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

using session::Session;

/// Statements whose plans a session keeps, while others change the tables.
class KnownPlansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LoadNumbers("t", 100, 1);
    LoadNumbers("u", 50, 2);
  }
  /// A columnar table: id, and `one`, which is `value` in all rows.
  void LoadNumbers(const std::string& name, int rows, int value) {
    SmallTable table{{name, {{"id", Type::Integer()}, {"one", Type::Integer()}}, {{"id", 8}}, ""}, {}};
    for (int i = 0; i < rows; ++i) table.rows.push_back({Value::Integer(i), Value::Integer(value)});
    const absl::Status loaded = Load(cluster_.attachment(), table, {.replace = true});
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  struct Answer {
    std::string value;  // the only one, the command, or the SQLSTATE
    bool planned_before = false;
    bool operator==(const Answer&) const = default;
    friend void PrintTo(const Answer& answer, std::ostream* out) {
      *out << answer.value << (answer.planned_before ? ", planned before" : ", planned now");
    }
  };
  static constexpr bool kNow = false;
  static constexpr bool kBefore = true;
  static Answer Run(Session& session, const std::string& statement) {
    const auto result = session.Execute(statement);
    if (!result.ok()) {
      const auto error = SqlErrorOf(result.status());
      return {error.has_value() ? error->sqlstate : result.status().ToString()};
    }
    return {result->rows.empty() ? result->command : result->rows[0][0].ToString(), result->planned_before};
  }
  Answer Run(const std::string& statement) { return Run(cluster_.session(), statement); }

  InProcessCluster cluster_{{}};
};

TEST_F(KnownPlansTest, AStatementThatComesAgainIsNotPlannedAgain) {
  for (const char* query :
       {"select count(*) from t", "select sum(t.one + u.one) from t join u using (id)",
        "select distinct one from t order by one",
        "with big as (select id, count(*) as n from t group by id) select count(*) from big a, big b where "
        "a.id = b.id",
        "select count(*) from t where date '2020-02-03' > date '2019-01-01'"}) {
    const Answer first = Run(query);
    EXPECT_FALSE(first.planned_before) << query;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(query), (Answer{first.value, kBefore})) << query;
  }
  EXPECT_EQ(Run("select 1"), (Answer{"1", kNow}));
  EXPECT_EQ(Run("select 1"), (Answer{"1", kNow})) << "nothing that it could be confirmed by";
}

TEST_F(KnownPlansTest, WhatDependsOnTheTimeIsPlannedAgain) {
  for (const char* query :
       {"select now() from t limit 1", "select count(*) from t where current_date > date '2020-02-03'",
        "select count(*) from t where 'now'::timestamp > timestamp '2020-02-03 00:00'",
        "select count(*) from t where date 'today' > date '2020-02-03'",
        "select count(*) from t where statement_timestamp() > '2020-02-03'",
        "select count(*) from t where '10:00'::time < localtime or true",
        "select age(timestamp '2020-02-03 00:00') from t limit 1"}) {
    EXPECT_NE(Run(query).value.size(), 5u) << query << ": a SQLSTATE";
    EXPECT_FALSE(Run(query).planned_before) << query;
  }
}

TEST_F(KnownPlansTest, ATableThatOthersReplaceIsSeenAsItIs) {
  const std::string query = "select count(*) from t where one = 1";
  EXPECT_EQ(Run(query), (Answer{"100", kNow}));
  EXPECT_EQ(Run(query), (Answer{"100", kBefore}));
  LoadNumbers("t", 70, 1);
  EXPECT_EQ(Run(query), (Answer{"70", kNow}));
  EXPECT_EQ(Run(query), (Answer{"70", kBefore}));
  const std::unique_ptr<Session> other = cluster_.NewSession();
  EXPECT_EQ(Run(*other, "drop table t").value, "DROP TABLE");
  EXPECT_EQ(Run(query).value, sqlstate::kUndefinedTable);
  EXPECT_EQ(Run(*other, "create table t (one int primary key, x text) with (storage = record)").value,
            "CREATE TABLE");
  EXPECT_EQ(Run(*other, "insert into t values (1, 'x')").value, "INSERT 0 1");
  EXPECT_EQ(Run(query), (Answer{"1", kNow}));
  EXPECT_EQ(Run(query), (Answer{"1", kNow})) << "rows of record tables are found by their transaction";
  EXPECT_EQ(Run(*other, "insert into t values (2, 'y')").value, "INSERT 0 1");
  EXPECT_EQ(Run("select max(one) from t"), (Answer{"2", kNow}));
}

TEST_F(KnownPlansTest, ServersThatHaveComeTakePart) {
  const std::string plain = "select count(*) from t";
  EXPECT_EQ(Run(plain), (Answer{"100", kNow}));
  EXPECT_EQ(Run(plain), (Answer{"100", kBefore}));
  cluster_.AddComputeServer();
  EXPECT_EQ(Run(plain), (Answer{"100", kNow}));
  EXPECT_EQ(Run(plain), (Answer{"100", kBefore}));
  cluster_.compute().pop_back();
  EXPECT_EQ(Run(plain), (Answer{"100", kNow}));
  EXPECT_EQ(Run(plain), (Answer{"100", kBefore}));
}

TEST_F(KnownPlansTest, SettingsMakeOtherPlans) {
  const std::string query = "select count(*) from t, u where t.id = u.id";
  EXPECT_EQ(Run(query), (Answer{"50", kNow}));
  EXPECT_EQ(Run(query), (Answer{"50", kBefore}));
  EXPECT_EQ(Run("set nam.join = rrj").value, "SET");
  EXPECT_EQ(Run(query), (Answer{"50", kNow}));
  EXPECT_EQ(Run(query), (Answer{"50", kBefore}));
  const std::string zoned = "select '2020-02-03 00:00'::timestamptz::text from t limit 1";
  EXPECT_EQ(Run(zoned), (Answer{"2020-02-03 00:00:00+00", kNow}));
  EXPECT_EQ(Run("set timezone = 'Europe/Berlin'").value, "SET");
  EXPECT_EQ(Run(zoned), (Answer{"2020-02-03 00:00:00+01", kNow}));
}

/// A session keeps 128 plans.
TEST_F(KnownPlansTest, TheLeastRecentlyUsedMakesRoom) {
  const auto query = [](int rows) { return absl::StrCat("select count(*) from t where id < ", rows); };
  for (int i = 0; i < 128; ++i) EXPECT_FALSE(Run(query(i)).planned_before) << i;
  EXPECT_EQ(Run(query(0)), (Answer{"0", kBefore}));
  EXPECT_EQ(Run(query(128)), (Answer{"100", kNow}));
  for (const int i : {0, 2, 3, 64, 127, 128}) EXPECT_TRUE(Run(query(i)).planned_before) << i;
  EXPECT_FALSE(Run(query(1)).planned_before);
}

/// Plans are kept of statements of 16 KiB at most.
TEST_F(KnownPlansTest, LongTextsAreNotKept) {
  const std::string query = "select count(*) from t -- ";
  const std::string most = query + std::string(16'384 - query.size(), 'x');
  for (const bool before : {kNow, kBefore}) EXPECT_EQ(Run(most), (Answer{"100", before}));
  for (const bool before : {kNow, kNow}) EXPECT_EQ(Run(most + "x"), (Answer{"100", before}));
}

TEST_F(KnownPlansTest, FailedTransactionsAndPreparedStatementsStayWhatTheyAre) {
  const std::string query = "select count(*) from t";
  EXPECT_EQ(Run(query), (Answer{"100", kNow}));
  EXPECT_EQ(Run("prepare q (int) as select count(*) from t where id < $1").value, "PREPARE");
  EXPECT_EQ(Run("execute q (10)"), (Answer{"10", kNow}));
  EXPECT_EQ(Run("deallocate q").value, "DEALLOCATE");
  EXPECT_EQ(Run("prepare q (int) as select count(*) from u where id < $1").value, "PREPARE");
  EXPECT_EQ(Run("execute q (100)"), (Answer{"50", kNow}));
  EXPECT_EQ(Run("begin").value, "BEGIN");
  EXPECT_EQ(Run(query), (Answer{"100", kNow}));
  EXPECT_EQ(Run(query), (Answer{"100", kNow})) << "it reads the tables that the transaction has read";
  EXPECT_EQ(Run("select nothing").value, "42703");
  EXPECT_EQ(Run(query).value, "25P02");
  EXPECT_EQ(Run("rollback").value, "ROLLBACK");
  EXPECT_EQ(Run(query), (Answer{"100", kNow})) << "with the state of transactions there is another table";
  EXPECT_EQ(Run(query), (Answer{"100", kBefore}));
}

}  // namespace
}  // namespace nam::testing
