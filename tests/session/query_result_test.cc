#include "session/query_result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "execution/local_stage.h"
#include "execution/rows/row_layout.h"
#include "fabric/fabric.h"
#include "optimizer/plan_query.h"
#include "session/result_collector.h"
#include "tests/execution/tuples.h"
#include "tests/session/stored_result.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using execution::RowLayout;
using execution::TestSeeds;

constexpr uint64_t kBudgetBytes = uint64_t{1} << 30;

std::string Line(const Row& row) {
  return absl::StrJoin(row, ",", [](std::string* out, const Value& value) {
    absl::StrAppend(out, value.null ? "NULL" : value.ToString());
  });
}

std::vector<std::string> Lines(const Rows& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(Line(row));
  return lines;
}

void ExpectLines(const std::vector<std::string>& actual, const std::vector<std::string>& expected) {
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    ASSERT_EQ(actual[i], expected[i]) << "row " << i;
  EXPECT_EQ(actual.size(), expected.size());
}

struct Attempt {
  uint64_t number;
  std::vector<std::byte> pages;
};

class QueryResultTest : public ::testing::Test {
 protected:
  /// A query whose servers have finished their stage.
  struct Ending {
    explicit Ending(const Planned& planned)
        : result(planned.columns, rows), from(planned.physical.stages[0].claimed) {}
    absl::Status Add(std::span<const std::byte> pages, uint64_t attempt) {
      return stage->Add(from, pages, attempt);
    }
    absl::StatusOr<ResultSet> Finish() {
      NAM_RETURN_IF_ERROR(stage->Run());
      NAM_ASSIGN_OR_RETURN(ResultSet finished, result.Finish());
      finished.rows = rows.Take();
      return finished;
    }

    ResultCollector rows;
    QueryResult result;
    const uint32_t from;
    std::unique_ptr<execution::LocalStage> stage;
  };

  absl::StatusOr<std::unique_ptr<Ending>> Begin(const Planned& planned,
                                                uint64_t budget_bytes = kBudgetBytes) {
    auto ending = std::make_unique<Ending>(planned);
    NAM_ASSIGN_OR_RETURN(ending->stage, ending->result.PrepareStage(planned.physical, planned.tables,
                                                                    budget_bytes, *fabric_, cancel_));
    return ending;
  }

  absl::StatusOr<ResultSet> Finish(const Planned& planned, const std::vector<Attempt>& attempts,
                                   uint64_t budget_bytes = kBudgetBytes) {
    NAM_ASSIGN_OR_RETURN(const auto ending, Begin(planned, budget_bytes));
    for (const Attempt& attempt : attempts) NAM_RETURN_IF_ERROR(ending->Add(attempt.pages, attempt.number));
    absl::StatusOr<ResultSet> result = ending->Finish();
    most_ = ending->stage->bytes_most();
    threads_started_ = ending->stage->threads_started();
    EXPECT_LE(most_, budget_bytes);
    return result;
  }

  const std::unique_ptr<fabric::Fabric> fabric_ =
      fabric::Open({.kind = fabric::Kind::kShm, .secret = "s"}).value();
  const bool one_processor_ = fabric_->capabilities().processors == 1;
  std::atomic<bool> cancel_ = false;
  uint64_t most_ = 0;
  uint64_t threads_started_ = 0;
};

/// Their results do not depend on the order in which rows and groups come.
const std::vector<std::string>& OrderedQueries() {
  static const std::vector<std::string> queries = {
      "select name, k, sum(price), count(*) from t group by name, k order by name desc, k",
      "select name, k, sum(price) from t group by name, k order by sum(price) desc nulls last, name nulls "
      "first, k limit 7 offset 3",
      "select count(*), count(n), sum(n), avg(price), min(day), max(name), count(distinct k), min(c) from t",
      "select k from t group by k having sum(n) > 100 order by k",
      "select k, max(n) - min(n) as d, k + 1 from t group by k having max(n) > 500 or min(name) is null "
      "order by d desc, k",
      "select distinct count(*) from t group by k order by 1",
      "select distinct k % 2 as m, count(*) > 10 as many from t group by k, name order by m nulls first, "
      "many",
      "select distinct name, k from t order by k desc, name limit 10 offset 2",
      "select c, day, ok, count(n), avg(price) from t group by c, day, ok order by day nulls first, c desc, "
      "ok",
      "select 1, null, 'x', count(*) from t having count(*) > 0",
      "select count(*), sum(n) from t having sum(n) > 1000000",
      "select k, count(distinct name), count(distinct n), avg(n) from t group by k order by k limit 1",
      "select case when k is null then 'none' else name end as w, count(*) from t group by k, name order by "
      "w, k, name limit 900",
      "select ok, sum(price) + 1, min(price) from t group by ok order by ok desc nulls last",
      "select name, price from t order by price desc, id",
      "select id, n + k from t order by n nulls first, name desc nulls last, id limit 20 offset 5",
      "select c, day from t order by c desc nulls last, day desc, id limit 2000",
      "select id from t order by id limit 9223372036854775807 offset 9223372036854775807",
      "select id from t order by id limit 9223372036854775807 offset 1",
      "select ok, id from t order by ok, id desc limit 1"};
  return queries;
}

/// Their rows come in the order of their arrival where no key of theirs gives another.
const std::vector<std::string>& OtherQueries() {
  static const std::vector<std::string> queries = {
      "select k, count(*), sum(n), avg(n), min(name), max(price), count(distinct name) from t group by k",
      "select name, count(*) from t group by name having min(k) > 0 limit 5 offset 1",
      "select distinct name, ok from t",
      "select distinct name, k from t limit 30 offset 7",
      "select distinct k % 3 from t group by k, name",
      "select distinct ok, count(*) > 3 from t group by ok, k offset 1",
      "select k, name from t group by k, name order by k, name",
      "select k, name from t group by k, name order by count(*) desc, k, name limit 40",
      "select id, name from t",
      "select id from t limit 5 offset 3",
      "select id from t limit 1500 offset 1100",
      "select id from t order by k, id",
      "select id, ok from t order by ok, day desc, id limit 100",
      "select id, k from t order by k nulls first, id limit 1700 offset 1000",
      "select id from t limit 1",
      "select id from t offset 1000000"};
  return queries;
}

/// Up to three shares of rows, with none in them now and then.
std::vector<Rows> RandomShares(RandomStream& random) {
  const size_t sizes[] = {0, 1, 700, 1023, 1025, 3000};
  const uint64_t distinct[] = {1, 2, 7, 40, 5000};
  const uint64_t of_each = distinct[random.Below(std::size(distinct))];
  std::vector<Rows> shares;
  int64_t id = 0;
  for (uint64_t left = 1 + random.Below(3); left > 0; --left) {
    shares.push_back(RandomRows(id, sizes[random.Below(std::size(sizes))], of_each, random));
    id += std::ssize(shares.back());
  }
  return shares;
}

Rows All(const std::vector<Rows>& shares) {
  Rows all;
  for (const Rows& share : shares) all.insert(all.end(), share.begin(), share.end());
  return all;
}

std::vector<Attempt> StoreAll(const Planned& planned, const std::vector<Rows>& shares, RandomStream& random,
                              bool ordered) {
  std::vector<Attempt> attempts;
  for (const Rows& share : shares) {
    const Storing storing{.tasks = ordered ? 1 + static_cast<int>(random.Below(2)) : 1, .in_order = ordered};
    auto pages = Store(planned, share, 100 + attempts.size(), random, storing);
    EXPECT_TRUE(pages.ok()) << pages.status();
    if (pages.ok()) attempts.push_back({100 + attempts.size(), std::move(*pages)});
  }
  return attempts;
}

TEST_F(QueryResultTest, ResultsAreThoseOfAllRowsTogether) {
  for (const bool ordered : {true, false}) {
    for (const std::string& text : ordered ? OrderedQueries() : OtherQueries()) {
      const Planned planned = PlanOf(text);
      for (const uint64_t seed : TestSeeds(6)) {
        SCOPED_TRACE(absl::StrCat(text, " NAM_SEED=", seed));
        RandomStream random(seed);
        const std::vector<Rows> shares = RandomShares(random);
        const auto expected = Model(planned.query, All(shares));
        ASSERT_TRUE(expected.ok()) << expected.status();
        const auto result = Finish(planned, StoreAll(planned, shares, random, ordered));
        ASSERT_TRUE(result.ok()) << result.status();
        ExpectLines(Lines(result->rows), Lines(*expected));
        if (HasFatalFailure()) return;
        EXPECT_EQ(result->command, absl::StrCat("SELECT ", expected->size()));
        ASSERT_EQ(result->columns.size(), planned.query.select.size());
        for (size_t i = 0; i < result->columns.size(); ++i) {
          EXPECT_EQ(result->columns[i].name, planned.query.select[i].name);
          EXPECT_EQ(result->columns[i].type, planned.query.select[i].expr.type);
        }
      }
    }
  }
}

/// An attempt's pages go to whichever thread is free; what reaches the client, numbers its groups over all
/// pages, or is small, to one.
TEST_F(QueryResultTest, ManyRowsTakeAllProcessors) {
  if (one_processor_) GTEST_SKIP() << "this host has one";
  struct Case {
    std::string text;
    bool starts_threads;
  };
  RandomStream random(1);
  const std::vector<Rows> many = {RandomRows(0, 90'000, 70'000, random),
                                  RandomRows(90'000, 500, 70'000, random)};
  const std::vector<Rows> few = {RandomRows(0, 3000, 70'000, random)};
  for (const auto& [text, starts_threads] :
       {Case{"select id, n from t order by n nulls first, id limit 100 offset 80000", true},
        Case{"select k, n, count(*), sum(price) from t group by k, n order by k, n limit 5000", true},
        Case{"select id, n from t", false},
        Case{"select n, count(distinct k) from t group by n order by n limit 5000", false}}) {
    SCOPED_TRACE(text);
    const Planned planned = PlanOf(text);
    for (const bool are_many : {true, false}) {
      const std::vector<Rows>& shares = are_many ? many : few;
      const auto expected = Model(planned.query, All(shares));
      ASSERT_TRUE(expected.ok()) << expected.status();
      const auto result = Finish(planned, StoreAll(planned, shares, random, false));
      ASSERT_TRUE(result.ok()) << result.status();
      ExpectLines(Lines(result->rows), Lines(*expected));
      if (starts_threads && are_many) {
        EXPECT_GT(threads_started_, 0u);
      } else if (!are_many) {
        EXPECT_EQ(threads_started_, 0u);
      }
    }
  }
}

/// One thread's table of all groups fits, and those of two threads do not.
TEST_F(QueryResultTest, TablesOfSeveralThreadsKeepToTheBudget) {
  if (one_processor_) GTEST_SKIP() << "this host has one";
  RandomStream random(1);
  const Planned planned = PlanOf("select n, count(*) from t group by n order by n limit 10");
  std::vector<Rows> portions;
  for (int64_t i = 0; i < 6; ++i) portions.push_back(RandomRows(i * 50'000, 50'000, 100'000, random));
  ASSERT_TRUE(Finish(planned, StoreAll(planned, portions, random, false)).ok());
  const uint64_t of_one = most_;
  Rows halves[2];
  for (size_t i = 0; i < portions.size(); ++i)
    halves[i % 2].insert(halves[i % 2].end(), portions[i].begin(), portions[i].end());
  const std::vector<Attempt> attempts = StoreAll(planned, {halves[0], halves[1]}, random, false);
  ASSERT_TRUE(Finish(planned, attempts).ok());
  EXPECT_GT(threads_started_, 0u) << "where there is room";
  const auto tight = Finish(planned, attempts, of_one + attempts[0].pages.size() + (1 << 20));
  EXPECT_TRUE(tight.ok()) << tight.status();
}

TEST_F(QueryResultTest, AnAggregationOfNothingHasOneRow) {
  RandomStream random(1);
  const auto rows_of = [&](const std::string& text, const std::vector<Rows>& shares) {
    const Planned planned = PlanOf(text);
    const auto result = Finish(planned, StoreAll(planned, shares, random, true));
    EXPECT_TRUE(result.ok()) << text << ": " << result.status();
    return result.ok() ? Lines(result->rows) : std::vector<std::string>();
  };
  for (const std::vector<Rows>& shares : {std::vector<Rows>(), std::vector<Rows>(3)}) {
    using Expected = std::vector<std::string>;
    EXPECT_EQ(rows_of("select count(*), sum(n), min(name), count(distinct k), avg(price) from t", shares),
              Expected{"0,NULL,NULL,0,NULL"});
    EXPECT_EQ(rows_of("select count(distinct k) from t", shares), Expected{"0"});
    EXPECT_EQ(rows_of("select distinct count(*) + 1 from t order by 1 limit 3", shares), Expected{"1"});
    // Unknown is not true.
    EXPECT_EQ(rows_of("select count(*) from t having sum(n) > 0", shares), Expected());
    EXPECT_EQ(rows_of("select count(*) from t having not sum(n) > 0", shares), Expected());
    EXPECT_EQ(rows_of("select count(*) from t having sum(n) is null", shares), Expected{"0"});
    EXPECT_EQ(rows_of("select k, count(*) from t group by k", shares), Expected());
    EXPECT_EQ(rows_of("select id from t order by k", shares), Expected());
  }
}

TEST_F(QueryResultTest, ErrorsOfTheSelectListAreTheUsers) {
  RandomStream random(1);
  for (const std::string text :
       {"select 1 / (count(*) - count(*)) from t", "select count(*) from t having 1 / count(k) > 0",
        "select k from t group by k order by 1 / (count(*) - count(*))"}) {
    const Planned planned = PlanOf(text);
    std::vector<Rows> shares = {RandomRows(0, 10, 3, random)};
    for (Row& row : shares[0]) row[1] = Value::Null(Type::Integer());
    const auto result = Finish(planned, StoreAll(planned, shares, random, true));
    ASSERT_FALSE(result.ok()) << text;
    ASSERT_TRUE(SqlErrorOf(result.status()).has_value()) << text << result.status();
    EXPECT_EQ(SqlErrorOf(result.status())->sqlstate, sqlstate::kDivisionByZero) << text;
  }
  // Groups that HAVING drops raise none.
  const Planned planned = PlanOf("select 1 / (count(*) - 2) from t group by k having count(*) <> 2");
  std::vector<Rows> shares = {RandomRows(0, 2, 1, random)};
  for (Row& row : shares[0]) row[1] = Value::Null(Type::Integer());
  const auto result = Finish(planned, StoreAll(planned, shares, random, true));
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST_F(QueryResultTest, DeepExpressionsAreRefused) {
  plan::logical::Query tree = TreeOf("select count(*) from t group by k");
  plan::Expr& deep = tree.root->As<plan::logical::Project>()->outputs.at(0);
  for (int i = 0; i < 2000; ++i) {
    plan::Expr negate;
    negate.op = plan::Op::kNegate;
    negate.type = deep.type;
    negate.children.push_back(std::move(deep));
    deep = std::move(negate);
  }
  const absl::Status planned = optimizer::PlanQuery(std::move(tree)).status();
  EXPECT_EQ(SqlErrorOf(planned).value().sqlstate, sqlstate::kTooComplex);
}

TEST_F(QueryResultTest, BrokenPagesAreRefused) {
  const std::string texts[] = {"select k, name, sum(n), count(distinct c) from t group by k, name",
                               "select id, name, k from t", "select id, name from t order by name, id"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const Planned planned = PlanOf(text);
    RandomStream random(7);
    const Rows rows = RandomRows(0, 3000, 1000, random);
    const std::vector<std::byte> pages = Store(planned, rows, 5, random).value();
    ASSERT_GE(pages.size(), 2 * RowLayout::kMostPageBytes);
    const auto error_of = [&](std::span<const std::byte> given, uint64_t attempt) {
      const auto ending = Begin(planned).value();
      const absl::Status added = ending->Add(given, attempt);
      // The error stays: earlier rows are of no use.
      if (!added.ok()) {
        EXPECT_EQ(ending->Finish().status(), added);
      }
      return added;
    };
    EXPECT_TRUE(error_of(pages, 5).ok());
    EXPECT_TRUE(absl::IsDataLoss(error_of(pages, 6)));
    EXPECT_TRUE(absl::IsDataLoss(error_of(std::span(pages).first(pages.size() - 1), 5)));
    EXPECT_TRUE(absl::IsDataLoss(error_of(std::span(pages).subspan(8), 5)));
    const std::vector<std::byte> zeros(RowLayout::kMostPageBytes);
    EXPECT_TRUE(absl::IsDataLoss(error_of(zeros, 0)));
    for (const std::string& other : texts) {
      if (other == text) continue;
      const std::vector<std::byte> strange = Store(PlanOf(other), rows, 5, random).value();
      EXPECT_TRUE(absl::IsDataLoss(error_of(strange, 5))) << other;
    }
    // A byte that is read cannot change unseen; others do not matter.
    const auto whole = Finish(planned, {{5, pages}});
    ASSERT_TRUE(whole.ok()) << whole.status();
    int refused = 0;
    for (int i = 0; i < 40; ++i) {
      std::vector<std::byte> broken = pages;
      broken[random.Below(broken.size())] ^= std::byte{static_cast<uint8_t>(1 + random.Below(255))};
      const auto result = Finish(planned, {{5, broken}});
      refused += !result.ok();
      if (result.ok()) {
        EXPECT_EQ(Lines(result->rows), Lines(whole->rows));
      } else {
        EXPECT_TRUE(absl::IsDataLoss(result.status())) << result.status();
      }
    }
    EXPECT_GT(refused, 10);
  }
}

TEST_F(QueryResultTest, BeyondTheBudgetTheQueryFailsWith53200) {
  RandomStream random(3);
  const std::vector<Rows> shares = {RandomRows(0, 20'000, 1'000'000, random),
                                    RandomRows(20'000, 20'000, 1'000'000, random)};
  for (const std::string text :
       {"select name, count(*) from t group by name order by 1 limit 1", "select distinct name, n from t",
        "select n, count(distinct name) from t group by n limit 1", "select id, name from t",
        "select id, name from t order by name, id", "select id, name from t order by name, id limit 30000",
        "select distinct max(name) from t group by n order by 1 desc limit 2"}) {
    SCOPED_TRACE(text);
    const Planned planned = PlanOf(text);
    const std::vector<Attempt> attempts = StoreAll(planned, shares, random, true);
    const auto whole = Finish(planned, attempts);
    ASSERT_TRUE(whole.ok()) << whole.status();
    uint64_t values = 0;
    for (const Row& row : whole->rows) values += row.size() * sizeof(Value);
    EXPECT_GE(most_, values);
    const uint64_t enough = most_;
    // The query fails, whichever of its parts asks for too much.
    for (const uint64_t budget : {enough - 1, enough / 2, enough / 8, uint64_t{70'000}, uint64_t{1000}}) {
      const auto result = Finish(planned, attempts, budget);
      ASSERT_FALSE(result.ok()) << budget << " of " << enough;
      EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
      const auto error = SqlErrorOf(result.status());
      ASSERT_TRUE(error.has_value()) << result.status();
      EXPECT_EQ(error->sqlstate, "53200");
      EXPECT_TRUE(absl::StrContains(error->hint, "nam.result_mib_max")) << error->hint;
    }
    EXPECT_TRUE(Finish(planned, attempts, 2 * enough).ok());
  }
}

/// If rows must wait in the session, it takes in an attempt's rows all at once, when the attempt has ended.
TEST_F(QueryResultTest, OnlyRowsThatFlowOnComeInWindows) {
  for (const auto& [text, flows] :
       std::vector<std::pair<std::string, bool>>{{"select id, name from t", true},
                                                 {"select id + k from t where n > 3 limit 5 offset 3", true},
                                                 {"select id, name from t order by name", false},
                                                 {"select distinct name from t", false},
                                                 {"select k, count(*) from t group by k", false}}) {
    const Planned planned = PlanOf(text);
    EXPECT_EQ(FlowsToClient(planned.physical, planned.physical.stages[0].claimed), flows) << text;
  }
}

/// They lie in memory beside what the query holds of them.
TEST_F(QueryResultTest, PagesCountWhileTheyAreTakenIn) {
  RandomStream random(5);
  const Planned planned = PlanOf("select id, name from t offset 1000000");
  const std::vector<Attempt> attempts = {
      {1, Store(planned, RandomRows(0, 30'000, 10, random), 1, random, {.in_order = false}).value()}};
  const uint64_t bytes = attempts[0].pages.size();
  ASSERT_GT(bytes, 3u << 16);
  EXPECT_TRUE(Finish(planned, attempts, bytes + 100'000).ok());
  const auto result = Finish(planned, attempts, bytes - 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "53200") << result.status();
  const auto ending = Begin(planned, bytes).value();
  EXPECT_TRUE(ending->stage->CheckRoom(bytes).ok());
  EXPECT_EQ(SqlErrorOf(ending->stage->CheckRoom(bytes + 1)).value_or(SqlError{}).sqlstate, "53200");
}

/// More than one sorted run.
TEST_F(QueryResultTest, ManyRowsAreOrdered) {
  RandomStream random(6);
  std::vector<Rows> shares;
  for (int i = 0; i < 3; ++i) shares.push_back(RandomRows(i * 50'000, 50'000, 900, random));
  for (const std::string text : {"select id, k, name from t order by k desc, name, id",
                                 "select id from t order by ok, id offset 70000",
                                 "select n, id, count(*) from t group by n, id order by n, id"}) {
    SCOPED_TRACE(text);
    const Planned planned = PlanOf(text);
    const auto result = Finish(planned, StoreAll(planned, shares, random, false));
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectLines(Lines(result->rows), Lines(Model(planned.query, All(shares)).value()));
  }
}

/// Rows that are not among the first take no memory for long.
TEST_F(QueryResultTest, AnOrderWithALimitKeepsTheFirstRowsAlone) {
  RandomStream random(4);
  std::vector<Rows> shares;
  for (int i = 0; i < 3; ++i) shares.push_back(RandomRows(i * 30'000, 30'000, 1'000'000, random));
  const Planned planned = PlanOf("select id, name from t order by n, id limit 10");
  std::vector<Attempt> attempts;
  for (const Rows& share : shares) {
    const uint64_t number = attempts.size();
    attempts.push_back({number, Store(planned, share, number, random, {.in_order = false}).value()});
  }
  size_t bytes = 0;
  for (const Attempt& attempt : attempts) bytes += attempt.pages.size();
  const auto result = Finish(planned, attempts);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Lines(result->rows), Lines(Model(planned.query, All(shares)).value()));
  EXPECT_LT(most_, bytes / 2);
}

TEST_F(QueryResultTest, ACancelledQueryEnds) {
  RandomStream random(5);
  const Rows rows = RandomRows(0, 5000, 1000, random);
  for (const std::string text :
       {"select k, count(distinct name) from t group by k order by k",
        "select distinct max(k) from t group by name", "select id from t", "select id from t order by name",
        "select id from t order by name limit 9"}) {
    SCOPED_TRACE(text);
    const Planned planned = PlanOf(text);
    const std::vector<std::byte> pages = Store(planned, rows, 1, random).value();
    const auto before = Begin(planned).value(), between = Begin(planned).value();
    ASSERT_TRUE(between->Add(pages, 1).ok());
    cancel_ = true;
    EXPECT_TRUE(absl::IsCancelled(before->Add(pages, 1)));
    EXPECT_TRUE(absl::IsCancelled(before->Finish().status()));
    EXPECT_TRUE(absl::IsCancelled(between->Finish().status()));
    cancel_ = false;
    // Nothing is left half-done: another session's query continues.
    EXPECT_TRUE(Finish(planned, {{1, pages}}).ok());
  }
}

}  // namespace
}  // namespace nam::session
