#include "session/record_statements.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/session/record_session.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

class RecordStatementsTest : public RecordSessionTest {};

class Stock : public RecordSessionTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        Run("create table stock (id int primary key, name varchar(5) not null, n smallint check (n >= 0), "
            "price decimal(5,2), sold timestamp) with (storage = record)"),
        "CREATE TABLE");
    ASSERT_EQ(Run("create index on stock (n)"), "CREATE INDEX");
    ASSERT_EQ(
        Run("insert into stock values (1, 'a', 10, 1.5, '2026-01-02 03:04:05.678'), (2, 'b', 20, 2.499, "
            "null), (3, 'c', null, 3, null)"),
        "INSERT 0 3");
  }
};

TEST_F(Stock, SelectsByKeyRangeAndScan) {
  EXPECT_EQ(Run("select * from stock where id = 1"), "SELECT 1 | 1,a,10,1.50,2026-01-02 03:04:05.678");
  EXPECT_EQ(Run("select name from stock where id = 9"), "SELECT 0");
  access_.rows_read = 0;
  EXPECT_EQ(Run("select name from stock where id in (1, 3, 4) order by 1 desc"), "SELECT 2 | c | a");
  EXPECT_EQ(access_.rows_read, 3);
  EXPECT_EQ(Run("select id from stock where id > 1"), "SELECT 2 | 2 | 3");
  EXPECT_EQ(access_.rows_read, 6);
  EXPECT_EQ(Run("select id, price from stock where n = 20"), "SELECT 1 | 2,2.50");
  EXPECT_EQ(access_.rows_read, 7);
  EXPECT_EQ(Run("select id from stock where n is null"), "SELECT 1 | 3");
  EXPECT_EQ(access_.rows_read, 8);
  EXPECT_EQ(Run("select id from stock where name like '%b' or id = 3 order by price desc"),
            "SELECT 2 | 3 | 2");
  EXPECT_EQ(Run("select id from stock limit 1 offset 1"), "SELECT 1 | 2");
  EXPECT_EQ(Run("select id from stock limit 0"), "SELECT 0");
  EXPECT_EQ(Run("select id + 1 from stock where sold >= date '2026-01-02'"), "SELECT 1 | 2");
}

TEST_F(Stock, TheBestIndexIsUsed) {
  EXPECT_EQ(Run("create index by_name on stock (name, n)"), "CREATE INDEX");
  EXPECT_EQ(Run("insert into stock values (4, 'a', 5), (5, 'a', null), (6, 'a', 1)"), "INSERT 0 3");
  access_.rows_read = 0;
  EXPECT_EQ(Run("select id from stock where name = 'a' and n between 2 and 10 order by id"),
            "SELECT 2 | 1 | 4");
  EXPECT_EQ(access_.rows_read, 2);
  EXPECT_EQ(Run("select id from stock where name = 'a' order by n limit 2"), "SELECT 2 | 6 | 4");
  EXPECT_EQ(access_.rows_read, 4);
  EXPECT_EQ(Run("select id, n from stock order by name, n limit 1 offset 3"), "SELECT 1 | 5,NULL");
  EXPECT_EQ(access_.rows_read, 8);
  EXPECT_EQ(Run("select id from stock order by name desc, n limit 1"), "SELECT 1 | 3");
  EXPECT_EQ(access_.rows_read, 14);
  EXPECT_EQ(Run("explain select id from stock where n = 1 and id > 0 and name like 'a%'"),
            "EXPLAIN | Read stock by index stock_n_idx (n), 1 range |   if stock.id > 0 |   if stock.name "
            "LIKE 'a%'");
  EXPECT_EQ(Run("explain update stock set n = 0 where id in (1, 2)"),
            "EXPLAIN | Update stock by key (id), 2 rows at most");
  EXPECT_EQ(Run("explain delete from stock where id > 2"),
            "EXPLAIN | Delete stock scan of all rows for a range of the key");
  EXPECT_EQ(Run("explain select id from stock order by name limit 1"),
            "EXPLAIN | Read stock by index by_name (name, n), all of it, in its order");
  EXPECT_EQ(Run("explain select id from stock where id = 1 and id = 2"),
            "EXPLAIN | Read stock no row can meet the conditions");
  EXPECT_EQ(Run("drop index by_name"), "DROP INDEX");
  EXPECT_EQ(Run("explain select id from stock order by name limit 1"),
            "EXPLAIN | Read stock scan of all rows");
  EXPECT_EQ(Run("drop index by_name"), "42704");
  EXPECT_EQ(Run("drop index if exists by_name"), "DROP INDEX");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("drop index stock_n_idx"), "25001");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
}

TEST_F(Stock, AnIndexThatIsNotCompleteForTheSnapshotIsNotUsed) {
  access_.usable_from = 11;
  EXPECT_EQ(Run("create index by_name on stock (name)"), "CREATE INDEX");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("explain select id from stock where name = 'a'"),
            "EXPLAIN | Read stock scan of all rows |   if stock.name = 'a'");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
}

TEST_F(Stock, BeginAndCommitWithoutEffectWarn) {
  EXPECT_EQ(Run("commit"), "COMMIT warns 25P01");
  EXPECT_EQ(Run("rollback"), "ROLLBACK warns 25P01");
  EXPECT_EQ(access_.begun, 1);  // SetUp's INSERT
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("delete from stock where id = 1"), "DELETE 1");
  EXPECT_EQ(Run("start transaction"), "BEGIN warns 25001");
  EXPECT_EQ(Run("select count(*) from stock"), "SELECT 1 | 2");  // the same transaction
  EXPECT_EQ(access_.begun, 2);
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  EXPECT_EQ(Run("select count(*) from stock"), "SELECT 1 | 3");
}

TEST_F(Stock, OneTransactionTooManyIsToldSo) {
  access_.begin_error = txn::NoClientFreeStatus("this process has 64 transactions under way");
  EXPECT_EQ(Run("insert into stock values (4, 'd', 1, 1, null)"), "53300");
  access_.begin_error = absl::OkStatus();
  EXPECT_EQ(Run("insert into stock values (4, 'd', 1, 1, null)"), "INSERT 0 1");
}

TEST_F(Stock, NothingRunsAfterABeginThatFailed) {
  for (const char* begin :
       {"begin", "begin isolation level serializable", "/* a */ BEGIN now", "start transaction read only"}) {
    for (const char* end : {"commit", "rollback"}) {
      access_.begin_error = absl::UnavailableError("no memory server");
      EXPECT_FALSE(Execute(begin).ok()) << begin;
      access_.begin_error = absl::OkStatus();
      for (const char* refused : {"delete from stock", "select id from stock", "select nix from nix", "begin",
                                  "create table x (id int primary key) with (storage = record)"})
        EXPECT_EQ(Run(refused), "25P02") << begin << "; " << refused;
      EXPECT_EQ(Run("selec"), "42601");
      EXPECT_EQ(Run(end), "ROLLBACK") << begin;
      EXPECT_EQ(Run("select count(*) from stock"), "SELECT 1 | 3");
    }
  }
  // Statements that begin otherwise leave a session unchanged.
  EXPECT_EQ(Run("selec begin"), "42601");
  EXPECT_EQ(Run("select count(*) from stock"), "SELECT 1 | 3");
}

TEST_F(Stock, AFailedTransactionOnlyEnds) {
  for (const char* failing : {"insert into stock values (1, 'x')", "select nothing from stock", "selec",
                              "insert into nix values (1)"}) {
    for (const char* end : {"commit", "rollback"}) {
      EXPECT_EQ(Run("begin"), "BEGIN");
      EXPECT_EQ(Run("delete from stock where id = 2"), "DELETE 1");
      const int aborted = access_.aborted;
      EXPECT_EQ(Run(failing).size(), 5u) << failing;  // a SQLSTATE
      EXPECT_EQ(access_.aborted, aborted + 1);
      EXPECT_EQ(Run("select id from stock"), "25P02");
      EXPECT_EQ(Run("delete from stock"), "25P02");
      EXPECT_EQ(Run("begin"), "25P02");
      // A syntax error that only binding finds is not looked for any more.
      EXPECT_EQ(Run("insert into stock (id, name) values (1)"), "25P02");
      EXPECT_EQ(Run("insert into stock (id, name) values (1"), "42601");
      EXPECT_EQ(SqlErrorOf(statements_.MayRun(""))->sqlstate, "25P02");
      EXPECT_EQ(Run(end), "ROLLBACK");
      EXPECT_EQ(Run("select count(*) from stock"), "SELECT 1 | 3");
    }
  }
}

TEST_F(Stock, EngineErrors) {
  access_.commit_error = absl::AbortedError("write-write conflict");
  EXPECT_EQ(Run("update stock set n = 0"), "40001");
  EXPECT_EQ(Run("select sum(n) from stock"), "SELECT 1 | 30");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("update stock set n = 0"), "UPDATE 3");
  access_.commit_error = absl::AlreadyExistsError("key");
  EXPECT_EQ(Run("commit"), "23505");
  EXPECT_FALSE(statements_.in_transaction());
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Execute("select sum(n) from stock").status()));
}

TEST_F(Stock, EveryErrorOfTheEngineHasASqlState) {
  const std::pair<const char*, const char*> statements[] = {
      {"Begin", "begin"},
      {"Begin", "select id from stock"},
      {"Commit", "update stock set n = 0"},
      {"Lookup", "select id from stock where id = 1"},
      {"Scan", "select id from stock"},
      {"ScanIndex", "select id from stock where n = 10"},
      {"Insert", "insert into stock values (9, 'x')"},
      {"Update", "update stock set n = 0 where id = 1"},
      {"Delete", "delete from stock where id = 1"},
      {"CreateTable", "create table x (id int primary key) with (storage = record)"},
      {"CreateIndex", "create index i on stock (name)"},
      {"CreateIndex", "create unique index i on stock (name)"},
      {"DropIndex", "drop index stock_n_idx"}};
  for (const auto& [method, statement] : statements) {
    for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
      access_.failing = method;
      access_.failure = absl::Status(static_cast<absl::StatusCode>(code), "what happened");
      const absl::Status status = Execute(statement).status();
      access_.failing.clear();
      ASSERT_FALSE(status.ok()) << statement << code;
      const auto error = SqlErrorOf(status);
      ASSERT_TRUE(error.has_value()) << statement << status;
      EXPECT_EQ(error->sqlstate.size(), 5u) << statement << status;
      // Errors that SQL has its own words for: names and keys that are taken, names that do not exist.
      const bool own_words = status.code() == absl::StatusCode::kInvalidArgument &&
                             (error->sqlstate.starts_with("42") || error->sqlstate == "23505");
      EXPECT_TRUE(own_words || absl::StrContains(error->message, "what happened")) << statement << status;
      if (statements_.in_transaction()) {
        EXPECT_EQ(Run("rollback"), "ROLLBACK");
      }
    }
  }
}

TEST_F(Stock, MessagesSayWhatAConflictHasEnded) {
  const auto message = [&](const std::string& text) {
    return SqlErrorOf(Execute(text).status()).value_or(SqlError{}).message;
  };
  access_.failing = "Scan";
  access_.failure = absl::AbortedError("snapshot too old");
  EXPECT_EQ(message("select id from stock"), "the statement failed: snapshot too old");
  EXPECT_EQ(Run("begin"), "BEGIN");
  EXPECT_EQ(message("select id from stock"), "the transaction has failed: snapshot too old");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  // The reason for a lost connection is for the log.
  access_.failure = txn::AbortStatus(txn::AbortReason::kConnectionLost, "queue pair 7 of member 12: flushed");
  EXPECT_EQ(message("select id from stock"),
            "the statement failed: a connection to a memory server was lost");
  EXPECT_EQ(Run("select id from stock"), "40001");
  access_.failing = "Commit";
  access_.failure = absl::AbortedError("write-write conflict");
  EXPECT_EQ(message("update stock set n = 0"), "the transaction cannot be committed: write-write conflict");
  access_.failure = txn::AbortStatus(txn::AbortReason::kUniqueKey, "another row of stock has this key");
  EXPECT_EQ(message("update stock set n = 0"), "duplicate key: another row of stock has this key");
  EXPECT_EQ(Run("update stock set n = 0"), "23505");
  access_.failing = "CreateIndex";
  access_.failure = absl::FailedPreconditionError("the channel is broken");
  EXPECT_EQ(message("create index i on stock (name)"), "could not create index \"i\": the channel is broken");
  EXPECT_EQ(Run("create index i on stock (name)"), "55000");
  access_.failure = absl::FailedPreconditionError("rows 1 and 2 have one key");
  EXPECT_EQ(message("create unique index i on stock (name)"),
            "could not create unique index \"i\": rows 1 and 2 have one key");
  EXPECT_EQ(Run("create unique index i on stock (name)"), "23505");
}

/// Random statements on one table against a map of what they should leave.
TEST_F(RecordStatementsTest, RandomStatementsAgainstAMap) {
  ASSERT_EQ(Run("create table t (a smallint, b char(1), v int, primary key (b, a)) with (storage = record)"),
            "CREATE TABLE");
  ASSERT_EQ(Run("create index on t (v)"), "CREATE INDEX");
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::map<std::pair<char, int>, int> committed, now;
  bool open = false;
  for (int i = 0; i < 4000; ++i) {
    const int a = pick(4), v = pick(10);
    const char b = "xyz"[pick(3)];
    const std::string key = absl::StrCat("a = ", a, " and b = '", std::string(1, b), "'");
    auto next = now;
    std::string expected, statement;
    const auto change = [&](auto&& meets, auto&& to, const char* command) {
      int changed = 0;
      for (auto& [k, value] : now) {
        if (!meets(k, value)) continue;
        ++changed;
        to(k);
      }
      expected = absl::StrCat(command, changed);
    };
    switch (pick(8)) {
      case 0:
        statement = absl::StrCat("insert into t values (", a, ", '", std::string(1, b), "', ", v, ")");
        expected = next.emplace(std::pair(b, a), v).second ? "INSERT 0 1" : "23505";
        break;
      case 1:
        statement = absl::StrCat("delete from t where ", key);
        change([&](auto& k, int) { return k == std::pair(b, a); }, [&](auto& k) { next.erase(k); },
               "DELETE ");
        break;
      case 2:
        statement = absl::StrCat("update t set v = v + 1 where v >= ", v, " and v < ", v + 3);
        change([&](auto&, int value) { return value >= v && value < v + 3; }, [&](auto& k) { ++next[k]; },
               "UPDATE ");
        break;
      case 3:
        statement = absl::StrCat("update t set v = ", v, " where ", key);
        change([&](auto& k, int) { return k == std::pair(b, a); }, [&](auto& k) { next[k] = v; }, "UPDATE ");
        break;
      case 4:
        statement = absl::StrCat("delete from t where b = '", std::string(1, b), "' and a > ", a);
        change([&](auto& k, int) { return k.first == b && k.second > a; }, [&](auto& k) { next.erase(k); },
               "DELETE ");
        break;
      case 5: {
        statement = "select b, a, v from t order by b, a";
        expected = absl::StrCat("SELECT ", now.size());
        for (const auto& [k, value] : now)
          absl::StrAppend(&expected, " | ", std::string(1, k.first), ",", k.second, ",", value);
        break;
      }
      default:
        statement = !open ? "begin" : pick(2) == 0 ? "commit" : "rollback";
        expected = statement == "begin" ? "BEGIN" : statement == "commit" ? "COMMIT" : "ROLLBACK";
        if (statement == "rollback") next = committed;
        open = statement == "begin";
    }
    ASSERT_EQ(Run(statement), expected) << statement;
    if (expected == "23505" && open) {
      ASSERT_EQ(Run("rollback"), "ROLLBACK");
      open = false;
      next = committed;
    }
    now = std::move(next);
    if (!open) committed = now;
  }
}

TEST_F(RecordStatementsTest, BytesThatAreNoUtf8AreRefused) {
  ASSERT_EQ(Run("create table t (id int primary key, v varchar(5)) with (storage = record)"), "CREATE TABLE");
  EXPECT_EQ(Run("insert into t values (3, '\xc3(')"), "22021");
}

TEST_F(RecordStatementsTest, NumericKeysAndIndexesAreUsed) {
  ASSERT_EQ(Run("create table k (x numeric, id int, y numeric unique, primary key (x, id)) with (storage = "
                "record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("explain select id from k where x = 1.00 and id = 1"),
            "EXPLAIN | Read k by key (x, id), 1 row at most");
  EXPECT_EQ(Run("explain select id from k where y between 1 and 2"),
            "EXPLAIN | Read k by index k_y_key (y), 1 range");
  EXPECT_EQ(Run("explain select id from k where y >= 1 order by y limit 1"),
            "EXPLAIN | Read k by index k_y_key (y), 1 range, in its order");
}

class Many : public RecordSessionTest {
 protected:
  static constexpr int kRows = 100'000;
  void SetUp() override {
    ASSERT_EQ(Run("create table many (id int primary key, n int) with (storage = record)"), "CREATE TABLE");
    const proto::Table& table = access_.tables["many"];
    const partitioner::RecordLayout layout(table);
    ASSERT_TRUE(access_.Begin().ok());
    for (int i = 0; i < kRows; ++i) {
      const std::vector<Value> row = {Value::Integer(i), Value::Integer(i * 7919 % kRows)};
      const std::string encoded = layout.Encode(row);
      size_t taken = 0;
      ASSERT_TRUE(access_.Insert(table, {&encoded, 1}, &taken).ok());
    }
    ASSERT_TRUE(access_.Commit().ok());
  }
};

TEST_F(Many, MoreRowsThanATransactionWritesAreNotFound) {
  for (const char* statement :
       {"delete from many", "update many set n = 0", "delete from many where n >= 0"}) {
    access_.rows_read = 0;
    EXPECT_EQ(Run(statement), "54000") << statement;
    EXPECT_EQ(access_.rows_read, 512) << statement;
  }
  EXPECT_EQ(Run("delete from many where id < 511"), "DELETE 511");
}

/// The rows that are found first do not meet the condition.
TEST_F(Many, LimitsCountRowsThatMeetTheConditions) {
  EXPECT_EQ(Run("select id from many where n = 1 limit 1"), "SELECT 1 | 17679");
  EXPECT_EQ(Run("select id from many where n = 1 limit 2"), "SELECT 1 | 17679");
}

TEST_F(Many, ResultsAreBounded) {
  result_bytes_max_ = 1 << 20;
  EXPECT_EQ(Run("select id, n from many"), "53200");
  EXPECT_EQ(Run("select n, count(*) from many group by n"), "53200");
  EXPECT_EQ(Run("select count(distinct n) from many"), "53200");
  EXPECT_EQ(Run("select count(*), sum(n) from many"), "SELECT 1 | 100000,4999950000");
  // Only as many rows are kept as an order's first rows need.
  EXPECT_EQ(Run("select id, n from many order by n limit 2 offset 1"), "SELECT 2 | 17679,1 | 35358,2");
  EXPECT_EQ(Run("select n from many order by n desc limit 2"), "SELECT 2 | 99999 | 99998");
}

TEST_F(Stock, ATransactionThatIsTooLargeIsRefusedAtItsStatement) {
  ASSERT_EQ(Run("begin"), "BEGIN");
  access_.insert_error = txn::TooLargeStatus("the transaction reads or writes more than fits");
  const auto refused = Execute("insert into stock values (90, 'z', 1, 1, null)");
  const auto error = SqlErrorOf(refused.status());
  ASSERT_TRUE(error.has_value()) << refused.status();
  EXPECT_EQ(error->sqlstate, "54000");
  EXPECT_NE(error->message.find("more than fits"), std::string::npos);
  EXPECT_NE(error->hint.find("several transactions"), std::string::npos);
  EXPECT_EQ(Run("select id from stock"), "25P02");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  // Lack of memory is another error.
  access_.insert_error = absl::ResourceExhaustedError("no memory server has room");
  EXPECT_NE(Run("insert into stock values (90, 'z', 1, 1, null)"), "54000");
}

}  // namespace
}  // namespace nam::session
