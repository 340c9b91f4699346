#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

/// Settings through a session's statements.
class SessionSettingsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new InProcessCluster({}); }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  /// The command's tag and the rows, or the SQLSTATE.
  std::string Run(const std::string& text) {
    const auto result = session_->Execute(text);
    if (!result.ok()) {
      error_ = SqlErrorOf(result.status()).value_or(SqlError{});
      return error_.sqlstate;
    }
    std::string out = result->command;
    for (const auto& row : ToText(*result)) absl::StrAppend(&out, " ", row.at(0));
    for (const auto& warning : result->warnings) absl::StrAppend(&out, " warning ", warning.sqlstate);
    return out;
  }
  /// What this thread has had of the processor.
  static int64_t ProcessorUs() {
    rusage had{};
    getrusage(RUSAGE_THREAD, &had);
    const auto microseconds = [](const timeval& of) { return int64_t{of.tv_sec} * 1'000'000 + of.tv_usec; };
    return microseconds(had.ru_utime) + microseconds(had.ru_stime);
  }
  int64_t NowMs() const { return cluster_->attachment().fabric().clock().NowNs() / 1'000'000; }

  static InProcessCluster* cluster_;
  std::unique_ptr<session::Session> session_ = cluster_->NewSession();
  SqlError error_;
};
InProcessCluster* SessionSettingsTest::cluster_ = nullptr;

TEST_F(SessionSettingsTest, SetShowReset) {
  EXPECT_EQ(Run("set nam.prefetch_window = 7"), "SET");
  EXPECT_EQ(Run("show nam.prefetch_window"), "SHOW 7");
  EXPECT_EQ(Run("reset nam.prefetch_window"), "RESET");
  EXPECT_NE(Run("show nam.prefetch_window"), "SHOW 7");
  EXPECT_EQ(Run("set nam.prefetch_windo = 7"), "42704");
  EXPECT_EQ(Run("set local nam.prefetch_window = 9"), "SET warning 25P01");
  const auto all = session_->Execute("show all");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->columns.size(), 3u);
  EXPECT_EQ(all->columns[0].name, "name");
  EXPECT_EQ(all->columns[1].name, "setting");
  EXPECT_EQ(all->columns[2].name, "description");
  const auto zone = session_->Execute("show timezone");
  ASSERT_TRUE(zone.ok()) << zone.status();
  EXPECT_EQ(zone->columns.at(0).name, "TimeZone");
}

TEST_F(SessionSettingsTest, CreateIndexEndsAtItsTimeoutAndLeavesNothing) {
  ASSERT_EQ(Run("create table many (id int primary key, x int) with (storage = record)"), "CREATE TABLE");
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(Run(absl::StrCat("insert into many select n, n % 1000 from generate_series(", i * 500 + 1, ", ",
                               i * 500 + 500, ") as s (n)")),
              "INSERT 0 500");
  }
  struct Created {
    std::string ended;
    int64_t took_ms = 0, worked_us = 0;
  };
  const auto create = [&](int64_t timeout_ms) {
    Run("drop index if exists many_x");
    Run(absl::StrCat("set statement_timeout = ", timeout_ms));
    const int64_t begun_ms = NowMs(), begun_us = ProcessorUs();
    Created created{.ended = Run("create index many_x on many (x)")};
    created.took_ms = NowMs() - begun_ms;
    created.worked_us = ProcessorUs() - begun_us;
    Run("reset statement_timeout");
    return created;
  };
  // This thread's work is compared, which takes no longer on a busy machine. There the timeout may be late,
  // but not each time.
  int64_t whole_us = create(0).worked_us;
  bool at_once = false;
  for (int i = 0; i < 20 && !at_once; ++i) {
    const Created whole = create(0), cut = create(std::max<int64_t>(1, whole.took_ms / 4));
    whole_us = std::min(whole_us, whole.worked_us);
    at_once = cut.ended == "57014" && cut.worked_us < whole_us * 2 / 3;
  }
  EXPECT_TRUE(at_once) << "without one: " << whole_us / 1'000 << " ms of work";
  EXPECT_EQ(Run("drop index many_x"), "42704") << "nothing of it is left";
  EXPECT_EQ(Run("insert into many values (100000, 7)"), "INSERT 0 1");
  EXPECT_EQ(Run("create index many_x on many (x)"), "CREATE INDEX");
  EXPECT_EQ(Run("select count(*) from many where x = 7"), "SELECT 1 33");
}

TEST_F(SessionSettingsTest, AStatementEndsAtItsTimeout) {
  SmallTable pairs{{"pairs", {{"id", Type::Integer()}, {"one", Type::Integer()}}, {{"id", 64}}, ""}, {}};
  // Ten thousand million pairs of one key: without the timeout they take much longer than the bound below.
  for (int i = 0; i < 100'000; ++i) pairs.rows.push_back({Value::Integer(i), Value::Integer(1)});
  ASSERT_TRUE(Load(cluster_->attachment(), pairs, {.block_bytes = 8192}).ok());
  const std::string endless = "select sum(a.id + b.id) from pairs a, pairs b where a.one = b.one";
  EXPECT_EQ(Run("set statement_timeout = '0.4s'"), "SET");
  const int64_t begun_ms = NowMs();
  EXPECT_EQ(Run(endless), "57014");
  EXPECT_GE(NowMs() - begun_ms, 400);
  EXPECT_LT(NowMs() - begun_ms, 10'000);
  EXPECT_EQ(error_.message, "canceling statement due to statement timeout");
  EXPECT_EQ(Run("select count(*) from pairs"), "SELECT 1 100000") << "the session goes on";
  // The same inside of changes and of transactions, which fail.
  Run("create table sums (id bigint primary key) with (storage = record)");
  EXPECT_EQ(Run("insert into sums " + endless), "57014");
  EXPECT_EQ(Run("select count(*) from sums"), "SELECT 1 0");
  Run("begin");
  EXPECT_EQ(Run("set local statement_timeout = 100"), "SET");
  EXPECT_EQ(Run(endless), "57014");
  EXPECT_EQ(Run("select 1"), "25P02");
  EXPECT_EQ(Run("rollback"), "ROLLBACK");
  EXPECT_EQ(Run("show statement_timeout"), "SHOW 400ms");
  session_->Cancel();
  EXPECT_EQ(Run("select count(*) from pairs"), "57014");
  EXPECT_EQ(error_.message, "canceling statement due to user request");
}

}  // namespace
}  // namespace nam::testing
