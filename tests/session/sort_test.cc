#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// Orders and windows over more rows than the session, or a server, may hold.
namespace nam::testing {
namespace {

using session::ResultBatch;
using session::ResultSet;

constexpr int kSortedRows = 150'000;

/// A number for each row, in no order.
int64_t ValueOf(int64_t row) {
  return row * 7919 % kSortedRows;
}

/// Counts rows, whose first column must ascend; the test may end the statement.
class Ascending final : public session::RowReceiver {
 public:
  explicit Ascending(std::function<absl::Status(uint64_t rows)> before = {}) : before_(std::move(before)) {}

  absl::Status Begin(const std::vector<ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const ResultBatch& batch) override {
    if (before_) {
      const absl::Status status = before_(rows_);
      if (!status.ok()) return status;
    }
    ++batches_;
    EXPECT_LE(batch.rows(), 4096u);
    for (size_t row = 0; row < batch.rows(); ++row) {
      const auto value = static_cast<int64_t>(batch.number(0, row));
      ascends_ = ascends_ && value >= last_;
      last_ = value;
      sum_ += value;
      if (batch.columns() > 1) matches_ = matches_ && batch.text(1, row) == absl::StrCat("row ", value);
    }
    rows_ += batch.rows();
    return absl::OkStatus();
  }

  void ExpectAll() const {
    EXPECT_TRUE(ascends_);
    EXPECT_TRUE(matches_) << "a value beside another row's text";
    EXPECT_EQ(rows_, static_cast<uint64_t>(kSortedRows));
    EXPECT_EQ(sum_, int64_t{kSortedRows} * (kSortedRows - 1) / 2);
  }
  bool ascends() const { return ascends_; }
  uint64_t rows() const { return rows_; }
  int batches() const { return batches_; }

 private:
  const std::function<absl::Status(uint64_t rows)> before_;
  uint64_t rows_ = 0;
  int batches_ = 0;
  int64_t last_ = INT64_MIN, sum_ = 0;
  bool ascends_ = true, matches_ = true;
};

class SortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallTable table{
        {"s", {{"id", Type::Integer()}, {"v", Type::Integer()}, {"t", Type::String()}}, {{"id", 8}}, ""}, {}};
    for (int64_t i = 0; i < kSortedRows; ++i) {
      table.rows.push_back(
          {Value::Integer(i), Value::Integer(ValueOf(i)), Value::String(absl::StrCat("row ", ValueOf(i)))});
    }
    const absl::Status loaded = Load(cluster_.attachment(), table, {.block_bytes = 16384});
    ASSERT_TRUE(loaded.ok()) << loaded;
    used_ = cluster_.UsedBytes();
    for (const char* setting : {"result_mib_max = 1", "work_queue = off"}) Set(setting);
  }
  void Set(const std::string& setting) {
    ASSERT_TRUE(cluster_.session().Execute("set nam." + setting).ok()) << setting;
  }
  absl::StatusOr<ResultSet> Execute(const std::string& query, session::RowReceiver& receiver) {
    return cluster_.session().Execute(query, receiver);
  }
  std::string Explained(const std::string& query) {
    const auto report = cluster_.session().Execute("explain analyze " + query);
    EXPECT_TRUE(report.ok()) << report.status();
    std::string lines;
    if (report.ok()) {
      for (const auto& row : report->rows) absl::StrAppend(&lines, row[0].text, "\n");
    }
    return lines;
  }
  /// The memory that memory servers hold once it is what it was, or after some seconds.
  uint64_t UsedAtLast() {
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (cluster_.UsedBytes() != used_ && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
    return cluster_.UsedBytes();
  }
  static std::string StateOf(const absl::Status& status) {
    return SqlErrorOf(status).value_or(SqlError{}).sqlstate;
  }

  InProcessCluster cluster_{{.compute_servers = 2}};
  uint64_t used_ = 0;
};

/// Four times the budget and more: by numbers, and with texts. With a larger budget the session merges all
/// runs at once, and writes none.
TEST_F(SortTest, AllRowsComeInOrder) {
  for (const int mib : {1, 2, 3}) {
    Set(absl::StrCat("result_mib_max = ", mib));
    for (const char* columns : {"v", "v, t"}) {
      Ascending rows;
      const auto result = Execute(absl::StrFormat("select %s from s order by v", columns), rows);
      ASSERT_TRUE(result.ok()) << result.status();
      rows.ExpectAll();
      EXPECT_GT(rows.batches(), kSortedRows / 4096);
      EXPECT_EQ(UsedAtLast(), used_) << mib << " MiB, " << columns;
    }
  }
  Set("result_mib_max = 1");
  Set("sorts_by_runs = off");
  Ascending rows;
  const auto result = Execute("select v, t from s order by v", rows);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(StateOf(result.status()) == "53200" || StateOf(result.status()) == "53000") << result.status();
}

TEST_F(SortTest, ExplainSaysWhatWasSortedWhere) {
  const std::string lines = Explained("select v, t from s order by v");
  EXPECT_NE(lines.find("as sorted runs if they are many"), std::string::npos) << lines;
  EXPECT_NE(lines.find("to scratch memory"), std::string::npos) << lines;
  EXPECT_NE(lines.find("merged "), std::string::npos) << lines;
  EXPECT_EQ(Explained("select v from s where v < 100 order by v").find("to scratch memory"),
            std::string::npos)
      << "few rows";
}

TEST_F(SortTest, LargeLimitsAndOffsetsAreOfTheOrder) {
  Ascending rows;
  const auto result = Execute("select v from s order by v offset 1000 limit 120000", rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(rows.ascends());
  EXPECT_EQ(rows.rows(), 120'000u);
  const auto some = cluster_.session().Execute("select v from s order by v desc offset 149990");
  ASSERT_TRUE(some.ok()) << some.status();
  ASSERT_EQ(some->rows.size(), 10u);
  EXPECT_EQ(some->rows[0][0].ToString(), "9");
  EXPECT_EQ(some->rows[9][0].ToString(), "0");
  EXPECT_EQ(UsedAtLast(), used_);
}

/// Rows that the session makes itself, by a union.
TEST_F(SortTest, RowsOfTheSessionAreSortedThere) {
  Ascending rows;
  const auto result = Execute(
      absl::StrFormat("select v from (select v from s where v < %d union all select v from s where v >= %d) "
                      "u order by v",
                      kSortedRows / 3, kSortedRows / 3),
      rows);
  // Its rows lie in the session's memory before they are sorted.
  if (!result.ok()) {
    EXPECT_EQ(StateOf(result.status()), "53200") << result.status();
  } else {
    rows.ExpectAll();
  }
  EXPECT_EQ(UsedAtLast(), used_);
}

/// In memory by all threads; in runs by one.
TEST_F(SortTest, RowsThatTheSessionSortsAreReadOnce) {
  int answered = 0;
  for (const int mib : {4, 8, 16, 64}) {
    Set(absl::StrCat("result_mib_max = ", mib));
    const auto result = cluster_.session().Execute(
        "select count(*), max(r), sum(r) from (select row_number() over (order by v) as r from "
        "(select v from s where v % 2 = 0 union all select v from s where v % 2 = 1) u) w");
    if (!result.ok()) {
      EXPECT_EQ(StateOf(result.status()), "53200") << result.status();
      continue;
    }
    ++answered;
    const int64_t rows = kSortedRows;
    EXPECT_EQ(result->rows[0][0].ToString(), absl::StrCat(rows)) << mib;
    EXPECT_EQ(result->rows[0][1].ToString(), absl::StrCat(rows)) << mib;
    EXPECT_EQ(result->rows[0][2].ToString(), absl::StrCat(rows * (rows + 1) / 2)) << mib;
    EXPECT_EQ(UsedAtLast(), used_) << mib;
  }
  EXPECT_GE(answered, 2);
}

TEST_F(SortTest, NothingIsLeftBehindAnEndInTheMiddle) {
  Ascending stopped([](uint64_t rows) -> absl::Status {
    return rows > 20'000 ? absl::AbortedError("enough") : absl::OkStatus();
  });
  EXPECT_FALSE(Execute("select v, t from s order by v", stopped).ok());
  EXPECT_GT(stopped.rows(), 20'000u);
  EXPECT_EQ(UsedAtLast(), used_) << "after the receiver's error";

  Ascending cancelled([this](uint64_t rows) {
    if (rows > 20'000) cluster_.session().Cancel();
    return absl::OkStatus();
  });
  EXPECT_FALSE(Execute("select v, t from s order by v", cancelled).ok());
  EXPECT_LT(cancelled.rows(), static_cast<uint64_t>(kSortedRows));
  EXPECT_EQ(UsedAtLast(), used_) << "after a cancellation";

  Ascending failed;
  EXPECT_FALSE(Execute("select 1 / (v - 149000), t from s order by t", failed).ok());
  EXPECT_EQ(UsedAtLast(), used_) << "after an error of a server";

  Ascending rows;
  ASSERT_TRUE(Execute("select v, t from s order by v", rows).ok());
  rows.ExpectAll();
  EXPECT_EQ(UsedAtLast(), used_);
}

TEST_F(SortTest, WindowsAreOverAllRows) {
  Ascending rows;
  auto result = Execute(
      "select row_number() over (partition by v % 1000 order by v) + 1000 * 150 * (v % 1000) as n from s",
      rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(rows.ascends()) << "partitions come in their order, and rows in theirs";
  EXPECT_EQ(rows.rows(), static_cast<uint64_t>(kSortedRows));
  EXPECT_EQ(UsedAtLast(), used_);

  // One partition of all rows is more than the session may hold.
  Ascending all;
  result = Execute("select sum(v) over (order by v), t from s", all);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(StateOf(result.status()), "53200") << result.status();
  EXPECT_EQ(UsedAtLast(), used_);
}

}  // namespace
}  // namespace nam::testing
