#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/session/sales_query.h"

namespace nam::testing {
namespace {

TEST_F(QueryTest, ErrorsOfReceiversHaveASqlState) {
  struct Refuses final : session::RowReceiver {
    absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
    absl::Status Add(const session::ResultBatch&) override { return absl::DataLossError("no disk"); }
  } receiver;
  const auto refused = cluster_->session().Execute("select id from sales", receiver);
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
  EXPECT_TRUE(SqlErrorOf(refused.status()).has_value()) << "an error of the receiver's, in no words of SQL";
}

TEST_F(QueryTest, LimitWithOffsetIsWhole) {
  // All rows are on one thread of one server: no other rows make up for one too few.
  SmallTable one{{"one", {{"id", Type::Integer()}, {"one", Type::Integer()}}, {{"one", 1}}, ""}, {}};
  for (int i = 0; i < 50; ++i) one.rows.push_back({Value::Integer(i), Value::Integer(1)});
  ASSERT_TRUE(Load(cluster_->attachment(), one, {.block_bytes = 8192}).ok());
  EXPECT_EQ(Rows("select id from one limit 7").size(), 7u);
  EXPECT_EQ(Rows("select id from one limit 7 offset 13").size(), 7u);
  EXPECT_EQ(Rows("select id from one limit 7 offset 43").size(), 7u);
  EXPECT_EQ(Rows("select id from one limit 7 offset 44").size(), 6u);
  EXPECT_EQ(Rows("select id from one order by id limit 2 offset 47"), (TextRows{{"47"}, {"48"}}));
  EXPECT_EQ(Rows("select id from one order by id desc limit 2 offset 48"), (TextRows{{"1"}, {"0"}}));
  EXPECT_EQ(Rows("select id from one order by id offset 49"), (TextRows{{"49"}}));
}

/// A sink with an order and a limit throws rows away once it has 4,096 of them.
TEST_F(QueryTest, TheFirstRowsOfManyAreKept) {
  constexpr int kRows = 20'000;
  SmallTable top{{"top",
                  {{"id", Type::Integer()}, {"k", Type::Integer(), true}, {"one", Type::Integer()}},
                  {{"one", 1}},
                  ""},
                 {}};
  // NULLs at the start, in the middle and at the end, so that they meet every pruning.
  const auto null = [](int i) { return i % 2'000 == 1'999 || i == 0; };
  for (int i = 0; i < kRows; ++i) {
    top.rows.push_back({Value::Integer(i),
                        null(i) ? Value::Null(Type::Integer()) : Value::Integer(i * 7919 % kRows),
                        Value::Integer(1)});
  }
  ASSERT_TRUE(Load(cluster_->attachment(), top, {.block_bytes = 16384}).ok());
  const auto expected = [&](bool descending, bool nulls_first, size_t limit) {
    std::vector<std::pair<int64_t, int>> order;  // rank, id
    for (int i = 0; i < kRows; ++i) {
      const int k = i * 7919 % kRows;
      order.emplace_back(null(i) ? (nulls_first ? -kRows - 1 : kRows + 1) : descending ? -k : k, i);
    }
    std::sort(order.begin(), order.end());
    TextRows rows;
    for (size_t i = 0; i < limit; ++i) rows.push_back({std::to_string(order[i].second)});
    return rows;
  };
  for (const size_t limit : {1u, 15u, 1'000u}) {
    for (const bool descending : {false, true}) {
      for (const bool nulls_first : {false, true}) {
        const std::string order =
            std::string(descending ? " desc" : "") + (nulls_first ? " nulls first" : " nulls last");
        EXPECT_EQ(Rows("select id from top order by k" + order + ", id limit " + std::to_string(limit)),
                  expected(descending, nulls_first, limit))
            << order << " " << limit;
      }
    }
  }
}

TEST_F(QueryTest, ManyRowsAreOrdered) {
  SmallTable many{{"many", {{"id", Type::Integer()}, {"k", Type::Integer()}}, {{"id", 4}}, ""}, {}};
  std::vector<std::pair<int, int>> expected;
  for (int i = 0; i < 20'000; ++i) {
    const int k = i * 7919 % 1000;
    many.rows.push_back({Value::Integer(i), Value::Integer(k)});
    expected.emplace_back(-k, i);
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_TRUE(Load(cluster_->attachment(), many, {.block_bytes = 8192}).ok());
  const TextRows rows = Rows("select k, id from many order by k desc, id");
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i], (std::vector<std::string>{std::to_string(-expected[i].first),
                                                 std::to_string(expected[i].second)}))
        << i;
  }
}

TEST_F(QueryTest, ALargePartitionIsSharedByServersAndThreads) {
  // Nearly all rows are in one of the driving table's partitions.
  SmallTable skewed{{"skewed", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"k", 8}}, ""}, {}};
  int64_t sum = 0;
  for (int i = 0; i < 300'000; ++i) {
    const int k = i % 50 == 0 ? i / 50 % 8 : 8;
    skewed.rows.push_back({Value::Integer(k), Value::Integer(i)});
    sum += k * int64_t{i};
  }
  SmallTable keys{{"keys", {{"k", Type::Integer()}, {"twice", Type::Integer()}}, {{"k", 8}}, ""}, {}};
  for (int i = 0; i < 9; ++i) keys.rows.push_back({Value::Integer(i), Value::Integer(2 * i)});
  ASSERT_TRUE(Load(cluster_->attachment(), skewed, {.block_bytes = 4096, .pointer_group = 4}).ok());
  ASSERT_TRUE(Load(cluster_->attachment(), keys, {}).ok());
  const std::string query = "select sum(twice * v) from skewed, keys where skewed.k = keys.k";
  const TextRows expected{{std::to_string(2 * sum)}};
  for (const char* setting : {"set nam.work_queue = off", "set nam.in_place = off", "set nam.work_queue = on",
                              "set nam.in_place = on", "set nam.work_queue = off"}) {
    Rows(setting);
    EXPECT_EQ(Rows(query), expected) << setting;
  }
  std::string text;
  for (const auto& row : Rows("explain analyze " + query)) text += row[0] + "\n";
  text = std::regex_replace(text, std::regex("\n {10,}"), " ");  // lines that go on are joined
  const std::regex share(
      "compute server [0-9]+: ([0-9,]+) rows \\(([0-9.]+) %\\), by thread ([0-9,]+) \\+ ([0-9,]+)");
  int servers = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), share), end; it != end; ++it) {
    ++servers;
    EXPECT_NEAR(std::stod((*it)[2]), 50, 2.5) << text;
  }
  EXPECT_EQ(servers, 2) << text;
  EXPECT_NE(text.find("only some blocks)"), std::string::npos) << text;
  EXPECT_NE(text.find("pieces of its own share"), std::string::npos) << text;
  Rows("set nam.work_queue = auto");
}

TEST_F(QueryTest, LongQueriesTellTheirProgressAndAreCancelledSoon) {
  // All rows have one key: ten thousand million pairs, which take much longer than the bound below.
  SmallTable pairs{{"pairs", {{"id", Type::Integer()}, {"one", Type::Integer()}}, {{"id", 64}}, ""}, {}};
  for (int i = 0; i < 100'000; ++i) pairs.rows.push_back({Value::Integer(i), Value::Integer(1)});
  ASSERT_TRUE(Load(cluster_->attachment(), pairs, {.block_bytes = 8192}).ok());
  const auto session = cluster_->NewSession();
  Clock& clock = cluster_->attachment().fabric().clock();
  std::vector<session::QueryProgress> told;
  int64_t cancelled_ns = 0;
  session->OnProgress([&](const session::QueryProgress& progress) {
    if (told.size() == 3) return;  // the end takes as long as it takes
    told.push_back(progress);
    if (told.size() < 3) return;
    cancelled_ns = clock.NowNs();
    session->Cancel();
  });
  const auto result = session->Execute("select sum(a.id + b.id) from pairs a, pairs b where a.one = b.one");
  const int64_t ended_ns = clock.NowNs();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled) << result.status();
  ASSERT_EQ(told.size(), 3u);
  uint64_t before = 0;
  for (const session::QueryProgress& progress : told) {
    EXPECT_EQ(progress.table, "pairs");
    EXPECT_EQ(progress.rows, 100'000u);
    EXPECT_GE(progress.rows_done, before);
    EXPECT_LE(progress.rows_done, progress.rows);
    EXPECT_GE(progress.elapsed_ms, 300);
    before = progress.rows_done;
  }
  EXPECT_GT(before, 0u) << "what has been claimed counts";
  std::printf("cancelled after %.1f ms\n", static_cast<double>(ended_ns - cancelled_ns) / 1e6);
  EXPECT_LT(ended_ns - cancelled_ns, 10'000'000'000) << "0.2 s is meant; the machine may be busy";
  // The session goes on, and short queries report no progress.
  session->OnProgress([](const session::QueryProgress& progress) { EXPECT_GE(progress.elapsed_ms, 300); });
  const auto after = session->Execute("select count(*) from pairs");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(ToText(*after), (TextRows{{"100000"}}));
}

TEST_F(QueryTest, ExplainShowsPlanAssignmentAndCounters) {
  const TextRows plan =
      Rows("explain select name, sum(price) from sales, items where sales.item = items.item group by name");
  std::string text;
  for (const auto& row : plan) text += row[0] + "\n";
  EXPECT_NE(text.find("probe P0 on item"), std::string::npos) << text;
  EXPECT_NE(text.find("partition by partition"), std::string::npos) << text;
  EXPECT_NE(text.find("Assignment of sales"), std::string::npos) << text;
  EXPECT_NE(text.find("Session\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("waiting"), std::string::npos) << text;
  EXPECT_EQ(text.find("(actual "), std::string::npos) << text;
  text.clear();
  for (const auto& row : Rows("explain analyze select count(*) from sales where id < 10"))
    text += row[0] + "\n";
  EXPECT_NE(text.find("from memory server 1"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting"), std::string::npos) << text;
  EXPECT_NE(text.find("(actual 10)"), std::string::npos) << text;
}

/// Every pipeline of any query says how many rows it made, and no line is wider than a terminal.
TEST_F(QueryTest, ExplainAnalyzeShowsRowsOfEveryStage) {
  for (const std::string query :
       {"select distinct note from sales where id < 500 order by note",
        "select count(*) from sales s left join items i on s.item = i.item where i.name is null",
        "select item, id, rank() over (partition by item order by id desc, price, big, day, note) r, "
        "sum(price * 2 + 1) over (partition by item, note order by day) from sales",
        "select id from sales where id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, "
        "19, "
        "20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32) union select item from items",
        "select name from items where item in (select item from sales where price > 100)"}) {
    std::string text;
    for (const auto& row : Rows("explain analyze " + query)) {
      EXPECT_LE(row[0].size(), 100u) << row[0];
      text += row[0] + "\n";
    }
    EXPECT_NE(text.find("(actual "), std::string::npos) << text;
    const auto session = text.find("\nSession\n");
    ASSERT_NE(session, std::string::npos) << text;
    EXPECT_NE(text.find("Result: "), std::string::npos) << text;
  }
}

TEST_F(QueryTest, ExplainAsJsonIsOneDocument) {
  const TextRows plan = Rows("explain (format json) select name from items order by name");
  ASSERT_EQ(plan.size(), 1u);
  ASSERT_EQ(nlohmann::json::parse(plan[0][0]).size(), 1u) << "an array, as PostgreSQL's";
  EXPECT_EQ(nlohmann::json::parse(plan[0][0]).at(0).count("result"), 0u) << plan[0][0];
  const TextRows analyzed = Rows(
      "explain (analyze, format json) select name, count(*) from sales, items where sales.item = items.item "
      "and sales.id < 100 group by name order by name");
  ASSERT_EQ(analyzed.size(), 1u);
  const auto document = nlohmann::json::parse(analyzed[0][0]).at(0);
  EXPECT_EQ(document.at("result").at("rows"), 9);
  const auto& stages = document.at("stages");
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[1].at("site"), "session");
  const auto& servers = stages[0];
  EXPECT_EQ(servers.at("claimed_table"), "sales");
  ASSERT_EQ(servers.at("pipelines").size(), 2u);
  EXPECT_EQ(servers.at("pipelines")[0].at("table"), "items");
  const auto& claimed = servers.at("pipelines")[1];
  uint64_t rows_in = 0;
  for (const auto& server : claimed.at("servers")) rows_in += server.at("rows_in").get<uint64_t>();
  EXPECT_EQ(rows_in, 1000u);
  EXPECT_EQ(claimed.at("steps").size(), 1u);
}

TEST_F(QueryTest, DeepExpressionsRunOrAreRefused) {
  const auto chain = [](int terms) {
    std::string text = "id";
    for (int i = 1; i < terms; ++i) text += " + id";
    return "select sum(" + text + ") from sales";
  };
  for (const int terms : {81, 200, 390})
    EXPECT_EQ(Rows(chain(terms)), (TextRows{{std::to_string(terms * 499500)}}));
  EXPECT_EQ(Error(chain(2500)).sqlstate, "54001");
}

TEST_F(QueryTest, SettingsChangeHowNotWhat) {
  const std::string query = "select item, sum(price) from sales group by item order by item";
  const TextRows expected = Rows(query);
  for (const char* setting :
       {"set nam.in_place = off", "set nam.prefetch_window = 64", "set nam.prefetch_window = 1",
        "set nam.verify_checksums = off", "set nam.compute_servers = 1"}) {
    Rows(setting);
    EXPECT_EQ(Rows(query), expected) << setting;
  }
  for (const char* setting : {"set nam.in_place = on", "set nam.prefetch_window = 10",
                              "set nam.verify_checksums = on", "set nam.compute_servers = 0"}) {
    Rows(setting);
  }
}

TEST_F(QueryTest, ACancelBeforeTheStatementCounts) {
  const auto session = cluster_->NewSession();
  session->Cancel();
  const auto cancelled = session->Execute("select count(*) from sales");
  EXPECT_TRUE(absl::IsCancelled(cancelled.status())) << cancelled.status();
  EXPECT_EQ(SqlErrorOf(cancelled.status()).value_or(SqlError{}).sqlstate, "57014");
  const auto next = session->Execute("select count(*) from sales");
  EXPECT_TRUE(next.ok()) << next.status();
}

// The cluster is the test's own: no other memory is being returned.
TEST(SessionTest, DropGivesEverythingBack) {
  InProcessCluster cluster({});
  SmallTable extra{{"extra", {{"k", Type::Integer()}}, {{"k", 2}}, ""}, {}};
  for (int i = 0; i < 100; ++i) extra.rows.push_back({Value::Integer(i)});
  const uint64_t before = cluster.UsedBytes();
  ASSERT_TRUE(Load(cluster.attachment(), extra, {}).ok());
  EXPECT_GT(cluster.UsedBytes(), before);
  EXPECT_FALSE(Load(cluster.attachment(), extra, {}).ok()) << "a second table of the same name";
  ASSERT_TRUE(cluster.session().Execute("drop table extra").ok());
  EXPECT_LE(cluster.AwaitUsedBytes(before), before);
  const auto gone = cluster.session().Execute("select k from extra");
  EXPECT_EQ(SqlErrorOf(gone.status()).value_or(SqlError{}).sqlstate, "42P01");
}

TEST_F(QueryTest, ARecordTableOfManyColumnsJoins) {
  std::string columns;
  for (int i = 0; i < 1100; ++i) columns += ", c" + std::to_string(i) + " smallint";
  Rows("create table broad (id int primary key" + columns + ") with (storage = record)");
  Rows("insert into broad (id, c1099) values (3, 7), (4, 8)");
  EXPECT_EQ(Rows("select sum(c1099) from broad, items where broad.id = items.item and items.item = 3"),
            (TextRows{{"7"}}));
  Rows("drop table broad");
}

TEST(SessionTest, WithoutComputeServersOneMayTryAgain) {
  InProcessCluster cluster({.compute_servers = 0});
  SmallTable table{{"small", {{"k", Type::Integer()}}, {}, ""}, {{Value::Integer(1)}}};
  ASSERT_TRUE(Load(cluster.attachment(), table, {}).ok());
  const auto result = cluster.session().Execute("select k from small");
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
  EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "57P03");
}

TEST(LoaderTest, ATableThatDoesNotFitIsRefusedAndLeavesNothing) {
  InProcessCluster cluster({.memory_bytes = uint64_t{4} << 20, .region_bytes = uint64_t{1} << 20});
  SmallTable large{{"large", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {}, ""}, {}};
  for (int i = 0; i < 1'000'000; ++i)
    large.rows.push_back({Value::Integer(i), Value::Integer(i * INT64_C(1'000'003))});
  const absl::Status status = Load(cluster.attachment(), large, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(cluster.AwaitUsedBytes(0), 0u);
  EXPECT_TRUE(cluster.attachment().catalog().ListTables()->empty());
}

}  // namespace
}  // namespace nam::testing
