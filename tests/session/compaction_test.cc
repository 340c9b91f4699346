#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "catalog/chain_groups.h"
#include "partitioner/appended_table.h"
#include "session/result_batch.h"
#include "tests/session/file_session.h"

/// Groups of rows that are merged into one: by VACUUM, and on their own.
namespace nam::testing {
namespace {

class CompactionTest : public FileSession {
 protected:
  std::shared_ptr<const proto::Table> Table(const std::string& name) {
    return *cluster_.attachment().catalog().GetTable(name);
  }
  /// How many groups the table has once there are at most `most`, or after a minute.
  uint32_t AwaitGroups(const std::string& name, uint32_t most) {
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (catalog::GroupCount(*Table(name)) > most && !clock.Passed(deadline))
      clock.SleepUntil(clock.After(5'000));
    return catalog::GroupCount(*Table(name));
  }
};

TEST_F(CompactionTest, ManySmallAppendsAreMergedByThemselves) {
  constexpr int kAppends = 150;
  Command("create table t (n int, name text) with (partition_by = 'n:2')");
  for (int i = 1; i <= kAppends; ++i)
    ASSERT_EQ(Command(absl::StrCat("insert into t values (", i, ", 'row ", i, "')")), "INSERT 0 1");
  EXPECT_LE(AwaitGroups("t", 60), 60u);
  EXPECT_EQ(Rows("select count(*), count(distinct n), sum(n), count(distinct name), max(name) from t"),
            (TextRows{{"150", "150", "11325", "150", "row 99"}}));
}

TEST_F(CompactionTest, GroupsAreBoundedWhereNothingIsMerged) {
  Command("create table t (n int) with (storage = columnar)");
  Command("set nam.compaction = off");
  constexpr int kSessions = 4;
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([this] {
      const auto session = cluster_.NewSession();
      EXPECT_TRUE(session->Execute("set nam.compaction = off").ok());
      for (uint32_t i = 0; i < partitioner::kGroupsMax / kSessions; ++i)
        EXPECT_TRUE(session->Execute("insert into t values (1)").ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(catalog::GroupCount(*Table("t")), partitioner::kGroupsMax);
  EXPECT_EQ(ErrorOf("insert into t values (1)").sqlstate, "54000");
  Command("set nam.compaction = on");
  EXPECT_EQ(Command("insert into t values (1)"), "INSERT 0 1") << "it waits for room";
  EXPECT_LE(AwaitGroups("t", 60), 60u);
  EXPECT_EQ(Rows("select sum(n) from t"), (TextRows{{"1025"}}));
}

TEST_F(CompactionTest, VacuumKeepsValuesOfAllTypes) {
  Command(
      "create table t (a smallint, b int not null, c bigint, d decimal(9,2), e decimal(30,4), f text, "
      "g varchar(5), h boolean, i date, j timestamp, k double precision, l interval, m uuid, n bytea, "
      "o char(3), p timestamptz, q time) with (partition_by = 'b:3', sort_by = 'c')");
  Command(
      "insert into t values (1, 1, 9223372036854775807, -1.5, 123456789012345678901234.5, 'x', 'abc', true, "
      "'2020-01-01', '2020-01-01 10:00:00.5', 1.5, '1 month 2 days', "
      "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff', 'a', '2020-01-01 10:00:00+02', '10:00')");
  Command("insert into t (b) values (2)");
  Command(
      "insert into t select i % 7, i, i * 1000000007, i / 4.0, i * 1000000000000.5, 'text ' || i, 'v' || i % "
      "9, "
      "i % 2 = 0, date '2000-01-01' + i, timestamp '2000-01-01', i / 3.0::double precision, "
      "i * interval '1 day', null, null, 'c' || i % 3, null, null from generate_series(3, 3000) g (i)");
  Command("insert into t (b, f, g) select -i, 'plain ' || i, null from generate_series(1, 70000) g (i)");
  const std::string all = "select * from t order by b",
                    few =
                        "select * from t where c > 5000000000 and g = 'v3'"
                        " order by b";
  const TextRows before = Rows(all), chosen = Rows(few);
  ASSERT_EQ(before.size(), 73'000u);
  ASSERT_FALSE(chosen.empty());
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 4u);
  EXPECT_EQ(Command("vacuum t"), "VACUUM");
  EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
  EXPECT_EQ(Rows(all), before);
  EXPECT_EQ(Rows(few), chosen);
  Command("insert into t (b) values (5000)");
  EXPECT_EQ(Command("vacuum t"), "VACUUM");
  EXPECT_EQ(Rows("select count(*), min(b), max(b) from t"), (TextRows{{"73001", "-70000", "5000"}}));
}

/// Calls a function once its first rows have arrived.
class Interrupted final : public session::RowReceiver {
 public:
  explicit Interrupted(std::function<void()> first) : first_(std::move(first)) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch& rows) override {
    if (rows_ == 0) first_();
    rows_ += rows.rows();
    return absl::OkStatus();
  }
  size_t rows() const { return rows_; }

 private:
  const std::function<void()> first_;
  size_t rows_ = 0;
};

/// The former groups stay for a query that runs, and are removed after it.
TEST_F(CompactionTest, AQueryReadsTheGroupsThatItBeganWith) {
  constexpr int kGroups = 12, kRows = 150'000;
  Command("create table t (n bigint, m bigint) with (storage = columnar)");
  for (int g = 0; g < kGroups; ++g)
    Command(absl::StrCat("insert into t select i * 1000003, i * 1000033 from generate_series(1, ", kRows,
                         ") g (i)"));
  const uint64_t before = cluster_.UsedBytes();
  const auto other = cluster_.NewSession();
  Interrupted receiver([&] {
    const auto done = other->Execute("vacuum t");
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(catalog::GroupCount(*Table("t")), 1u);
    const auto analyzed = other->Execute("analyze t");
    EXPECT_TRUE(analyzed.ok()) << analyzed.status();
    EXPECT_GT(cluster_.UsedBytes(), before + before / 2);
    // Freed memory is returned with the next renewals: another table's shows that they have happened.
    ASSERT_TRUE(other->Execute("create table gone as select i from generate_series(1, 3000000) g (i)").ok());
    const uint64_t with = cluster_.UsedBytes();
    ASSERT_TRUE(other->Execute("drop table gone").ok());
    EXPECT_LT(cluster_.AwaitUsedBytes(with - (8 << 20)), with);
  });
  const auto result = cluster_.session().Execute("select n, m from t", receiver);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(receiver.rows(), size_t{kGroups} * kRows);
  EXPECT_LE(cluster_.AwaitUsedBytes(before + before / 4), before + before / 4)
      << "the former groups have gone";
}

/// It does so even when the table's groups are merged or removed.
TEST_F(CompactionTest, ATransactionReadsATableAsItWasAtFirst) {
  Command("create table t (n int) with (storage = columnar)");
  Command("create table r (id int primary key) with (storage = record)");
  Command("insert into t values (1), (2)");
  Command("insert into t values (3)");
  const std::string sum = "select count(*), sum(n) from t";
  EXPECT_EQ(Rows(sum), (TextRows{{"3", "6"}}));  // its plan is known from now on
  const auto other = cluster_.NewSession();
  Command("begin");
  ASSERT_TRUE(other->Execute("insert into t values (4)").ok());
  EXPECT_EQ(Rows(sum), (TextRows{{"4", "10"}})) << "it has not been read yet";
  ASSERT_TRUE(other->Execute("insert into t values (100)").ok());
  EXPECT_EQ(Rows(sum), (TextRows{{"4", "10"}}));
  ASSERT_TRUE(other->Execute("vacuum t").ok());
  ASSERT_TRUE(other->Execute("insert into t values (1000)").ok());
  EXPECT_EQ(Rows(sum), (TextRows{{"4", "10"}}));
  EXPECT_EQ(Rows("select n from t order by n"), (TextRows{{"1"}, {"2"}, {"3"}, {"4"}}));
  Command("insert into r select n from t");
  Command("commit");
  EXPECT_EQ(Rows(sum), (TextRows{{"6", "1110"}}));
  EXPECT_EQ(Rows("select sum(id) from r"), (TextRows{{"10"}}));
  Command("begin");
  EXPECT_EQ(Rows(sum), (TextRows{{"6", "1110"}}));
  ASSERT_TRUE(other->Execute("truncate t").ok());
  EXPECT_EQ(ErrorOf(sum).sqlstate, "40001");
  Command("rollback");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
}

TEST_F(CompactionTest, ATransactionIsToldThatItsTableHasGone) {
  Command("create table t (n int) with (storage = columnar)");
  Command("create table u (n int) with (storage = columnar)");
  const auto other = cluster_.NewSession();
  Command("begin");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
  EXPECT_EQ(Rows("select count(*) from u"), (TextRows{{"0"}}));
  ASSERT_TRUE(other->Execute("alter table t rename to moved").ok());
  ASSERT_TRUE(other->Execute("drop table u").ok());
  EXPECT_EQ(ErrorOf("select n from t").sqlstate, "40001");
  Command("rollback");
  EXPECT_EQ(ErrorOf("select n from t").sqlstate, "42P01") << "it is another transaction";
  Command("create table u (n int) with (storage = columnar)");
  Command("begin");
  EXPECT_EQ(Rows("select count(*) from u"), (TextRows{{"0"}}));
  ASSERT_TRUE(other->Execute("drop table u").ok());
  EXPECT_EQ(ErrorOf("select n from u").sqlstate, "40001");
  Command("rollback");
}

/// Sessions append, compact, read and empty a table at once: each append is seen whole or not at all.
TEST_F(CompactionTest, AllGoOnAtOnce) {
  constexpr int kSessions = 3, kAppends = 60, kRows = 7;
  Command("create table t (session int, turn int, n int) with (partition_by = 'n:2')");
  std::atomic<int> left = kSessions;
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([&, s] {
      const auto session = cluster_.NewSession();
      for (int turn = 0; turn < kAppends; ++turn) {
        const auto done = session->Execute(absl::StrCat("insert into t select ", s, ", ", turn,
                                                        ", i from generate_series(1, ", kRows, ") g (i)"));
        EXPECT_TRUE(done.ok()) << done.status();
        if (turn % 20 == 10) {
          EXPECT_TRUE(session->Execute("vacuum t").ok());
        }
      }
      --left;
    });
  }
  while (left > 0) {
    EXPECT_EQ(
        Rows(absl::StrCat("select session, turn from t group by session, turn having count(*) <> ", kRows)),
        TextRows());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Rows("select count(*), sum(n) from t"),
            (TextRows{{absl::StrCat(kSessions * kAppends * kRows),
                       absl::StrCat(kSessions * kAppends * kRows * (kRows + 1) / 2)}}));
  EXPECT_EQ(Command("truncate t"), "TRUNCATE TABLE");
  EXPECT_EQ(Command("vacuum t"), "VACUUM");
  EXPECT_EQ(Rows("select count(*) from t"), (TextRows{{"0"}}));
  Command("drop table t");
  EXPECT_EQ(ErrorOf("vacuum t").sqlstate, "42P01");
}

}  // namespace
}  // namespace nam::testing
