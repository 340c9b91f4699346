#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/session/file_session.h"

/// Many rows between BEGIN and COMMIT: loads of several tables, which are visible to the transaction at once,
/// and to others at its end.
namespace nam::testing {
namespace {

using session::Session;

class TransactionLoadTest : public FileSession {
 protected:
  TransactionLoadTest() {
    Command("set nam.transaction_mib_max = '4MB'");
    Command(
        "create table t (id int primary key, name varchar(20) not null unique, ten bigint check (ten >= 0), "
        "n serial) with (storage = record)");
    Command("create index t_ten on t (ten)");
    Command("create table u (id bigint primary key, x double precision) with (storage = record)");
    Command("create table small (id int primary key) with (storage = record)");
    Command("create table full_one (id int primary key, v int) with (storage = record)");
    Command("insert into full_one values (1, 1), (2, 2)");
    other_ = cluster_.NewSession();
  }
  ~TransactionLoadTest() override {
    const auto tables = cluster_.attachment().catalog().ListTables();
    EXPECT_TRUE(tables.ok()) << tables.status();
    for (const proto::Table& table : *tables) {
      EXPECT_FALSE(table.name().starts_with("nam.load.")) << table.name();
      EXPECT_EQ(table.record().closed_by(), 0u) << table.name();
    }
  }

  /// A COPY of so many rows into t: id, name, 10 * id.
  std::string CopyT(int first = 0, int count = 30'000) {
    std::string text;
    for (int i = first; i < first + count; ++i) absl::StrAppend(&text, i, ",name ", i, ",", 10 * i, "\n");
    return absl::StrCat("copy t (id, name, ten) from '", Write(absl::StrCat("t", files_++, ".csv"), text),
                        "'");
  }
  static std::string IntoU(int count = 20'000) {
    return absl::StrCat("insert into u select i, i / 2.0 from generate_series(1, ", count, ") g (i)");
  }
  /// The number of rows, or the SQLSTATE.
  static std::string Count(Session& session, const std::string& from) {
    const auto result = session.Execute("select count(*) from " + from);
    if (result.ok()) return ToText(*result)[0][0];
    return SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate;
  }
  std::string Count(const std::string& from) { return Count(cluster_.session(), from); }
  std::string Others(const std::string& from) { return Count(*other_, from); }
  std::string Other(const std::string& statement) {
    const auto result = other_->Execute(statement);
    return result.ok() ? result->command : SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate;
  }

  /// Logs of transactions may grow. T takes more.
  static constexpr uint64_t kLogBytes = uint64_t{4} << 20;

  std::unique_ptr<Session> other_;
  int files_ = 0;
};

TEST_F(TransactionLoadTest, TheTransactionSeesItsRowsAndOthersAtItsEnd) {
  Command("begin");
  EXPECT_EQ(Count("full_one"), "2");
  EXPECT_EQ(Command("insert into small values (1), (2), (3)"), "INSERT 0 3");
  EXPECT_EQ(Command(CopyT()), "COPY 30000");
  EXPECT_EQ(Count("t"), "30000");
  EXPECT_EQ(Count("small"), "3") << "it is a load as well";
  EXPECT_EQ(Rows("select id from t where name = 'name 777'"), (TextRows{{"777"}}));
  EXPECT_EQ(Rows("select id from t where ten between 100 and 120 order by 1"),
            (TextRows{{"10"}, {"11"}, {"12"}}));
  EXPECT_EQ(Count("t join small on t.id = small.id"), "3");
  EXPECT_EQ(Count("t a join t b on a.id = b.id join full_one on full_one.id = a.id"), "2");
  EXPECT_EQ(Command("insert into t values (-1, 'one', 1)"), "INSERT 0 1");
  EXPECT_EQ(Command("update t set ten = ten + 1 where id < 100"), "UPDATE 101");
  EXPECT_EQ(Command("delete from t where id between 10 and 19"), "DELETE 10");
  EXPECT_EQ(Command(CopyT(40'000, 10'000)), "COPY 10000") << "behind rows of its own";
  EXPECT_EQ(Command(IntoU()), "INSERT 0 20000");
  EXPECT_EQ(Command("insert into u select id + 100000, ten from t"), "INSERT 0 39991");
  EXPECT_EQ(Count("u"), "59991");
  for (const char* table : {"t", "u", "small"}) EXPECT_EQ(Others(table), "0") << table;
  EXPECT_EQ(Command("commit"), "COMMIT");
  EXPECT_EQ(Others("t"), "39991");
  EXPECT_EQ(Others("t where name >= ''"), "39991");
  EXPECT_EQ(Others("(select distinct n from t) d"), "39991");
  EXPECT_EQ(Others("u"), "59991");
  EXPECT_EQ(Others("small"), "3");
  EXPECT_EQ(Count("t"), "39991");
  EXPECT_EQ(ErrorOf("insert into t values (-2, 'name 5', 1)").sqlstate, "23505");
  EXPECT_EQ(Command("insert into t values (-2, 'two', 1)"), "INSERT 0 1");
}

TEST_F(TransactionLoadTest, NothingIsLeftIfItDoesNotCommit) {
  const uint64_t before = cluster_.UsedBytes() + kLogBytes;
  const auto check = [&](const char* how) {
    for (const char* table : {"t", "u", "small"}) EXPECT_EQ(Others(table), "0") << how << table;
    EXPECT_LE(cluster_.AwaitUsedBytes(before), before) << how;
  };
  const auto begin = [&](Session& session) {
    for (const std::string& statement :
         std::vector<std::string>{"set nam.transaction_mib_max = '4MB'", "begin",
                                  "insert into small values (1)", CopyT(), IntoU()}) {
      EXPECT_TRUE(session.Execute(statement).ok()) << statement;
    }
    EXPECT_EQ(Count(session, "t"), "30000");
  };
  Session& session = cluster_.session();
  begin(session);
  EXPECT_EQ(Command("rollback"), "ROLLBACK");
  check("ROLLBACK");
  begin(session);
  EXPECT_EQ(ErrorOf("insert into t values (17, 'other', 1)").sqlstate, "23505");
  EXPECT_EQ(ErrorOf("select count(*) from t").sqlstate, "25P02");
  EXPECT_EQ(Command("commit"), "ROLLBACK");
  check("an error");
  begin(session);
  EXPECT_EQ(ErrorOf(CopyT(29'999)).sqlstate, "23505");
  EXPECT_EQ(Command("rollback"), "ROLLBACK");
  check("an error of COPY");
  std::unique_ptr<Session> ended = cluster_.NewSession();
  begin(*ended);
  ended.reset();
  check("the end of the session");
  begin(session);
  EXPECT_EQ(Command("commit"), "COMMIT");
  EXPECT_EQ(Others("t"), "30000");
}

/// Whoever commits first wins, whichever of the tables it is.
TEST_F(TransactionLoadTest, RowsOfOthersAreNotLost) {
  for (const std::string row : {"t values (-1, 'first', 1)", "small values (7)"}) {
    Command("begin");
    Command("insert into small values (1)");
    Command(CopyT());
    EXPECT_EQ(Other("insert into " + row), "INSERT 0 1");
    EXPECT_EQ(ErrorOf("commit").sqlstate, "40001");
    EXPECT_EQ(Count("t"), row[0] == 't' ? "1" : "0");
    EXPECT_EQ(Count("small"), row[0] == 't' ? "0" : "1");
    EXPECT_EQ(Other("delete from t"), row[0] == 't' ? "DELETE 1" : "DELETE 0") << "it is open again";
  }
}

TEST_F(TransactionLoadTest, TablesWithRowsAreNotChangedBesideALoad) {
  Command("begin");
  Command(CopyT());
  EXPECT_EQ(Command("update full_one set v = 0 where id = 9"), "UPDATE 0");
  const SqlError error = ErrorOf("update full_one set v = 0");
  EXPECT_EQ(error.sqlstate, "0A000");
  EXPECT_NE(error.message.find("full_one"), std::string::npos) << error.message;
  Command("rollback");
  Command("begin");
  EXPECT_EQ(Command("update full_one set v = 0"), "UPDATE 2");
  EXPECT_EQ(ErrorOf(CopyT()).sqlstate, "54000") << "one transaction has both";
  Command("rollback");
  EXPECT_EQ(Count("full_one where v = 0"), "0");
}

TEST_F(TransactionLoadTest, SavepointsEndWithALoad) {
  Command("begin");
  Command("savepoint a");
  EXPECT_EQ(ErrorOf(CopyT()).sqlstate, "54000") << "ROLLBACK TO could not take it back";
  Command("rollback");
  Command("begin");
  Command("savepoint a");
  Command("insert into t values (-1, 'one', 1)");
  Command("rollback to a");
  Command("release a");
  EXPECT_EQ(Command(CopyT()), "COPY 30000");
  Command("savepoint b");
  EXPECT_EQ(Command("insert into t values (-1, 'one', 1)"), "INSERT 0 1");
  EXPECT_EQ(ErrorOf("rollback to b").sqlstate, "25P02");
  EXPECT_EQ(Command("rollback"), "ROLLBACK");
  EXPECT_EQ(Others("t"), "0");
}

TEST_F(TransactionLoadTest, TruncateTakesManyRowsWithTheirMemory) {
  Command("insert into full_one select i, i from generate_series(3, 100) g (i)");
  const uint64_t before = cluster_.UsedBytes() + kLogBytes;
  Command(CopyT());
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE") << "more than a transaction may change";
  EXPECT_EQ(Count("t"), "0");
  EXPECT_LE(cluster_.AwaitUsedBytes(before), before);
  EXPECT_EQ(Command(CopyT(1'000)), "COPY 30000");
  EXPECT_EQ(Others("(select distinct n from t) d"), "30000");
  // As pgbench -i fills its tables.
  Command("begin");
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE");
  EXPECT_EQ(Command("truncate full_one"), "TRUNCATE TABLE");
  EXPECT_EQ(Count("t"), "0");
  EXPECT_EQ(Count("full_one"), "0");
  EXPECT_EQ(Command(CopyT(0, 10)), "COPY 10");
  EXPECT_EQ(Command("insert into full_one select i, 7 from generate_series(1, 20000) g (i)"),
            "INSERT 0 20000");
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE") << "once more";
  EXPECT_EQ(Command(CopyT(0, 20)), "COPY 20");
  EXPECT_EQ(Others("t"), "30000");
  EXPECT_EQ(Others("full_one"), "100");
  EXPECT_EQ(Command("commit"), "COMMIT");
  EXPECT_EQ(Others("t"), "20");
  EXPECT_EQ(Others("full_one where v = 7"), "20000");
}

TEST_F(TransactionLoadTest, TruncateInATransactionTakesWhatItHasSeen) {
  Command(CopyT());
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"insert into t values (-1, 'one', 1)", "INSERT 0 1"},
      {"update t set ten = 3 where id = 5", "UPDATE 1"},
      {"delete from t where id = 6", "DELETE 1"}};
  for (const auto& [change, done] : changes) {
    Command("begin");
    Command("truncate t");
    EXPECT_EQ(Other(change), done);
    EXPECT_EQ(ErrorOf("commit").sqlstate, "40001") << change;
  }
  EXPECT_EQ(Count("t"), "30000");
  // Rows that a savepoint brings back are not deleted.
  Command("insert into small values (1), (2)");
  Command("begin");
  Command("insert into u values (1, 1)");
  Command("savepoint a");
  Command("truncate small");
  Command("rollback to a");
  Command("release a");
  EXPECT_EQ(ErrorOf("insert into small select i from generate_series(10, 60000) g (i)").sqlstate, "54000");
  Command("rollback");
  EXPECT_EQ(Count("small"), "2");
}

}  // namespace
}  // namespace nam::testing
