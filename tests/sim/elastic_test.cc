#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/benchmark_answers.h"
#include "simulation/cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/sim/loaded_cluster.h"
#include "workload/sqlite_oracle.h"

namespace nam::simulation {
namespace {

constexpr uint64_t kElasticSeeds = 80;

/// A cluster with SSB in it, and a client whose queries claim their work. Each READ takes long, so that
/// there is time for servers to come and go.
class Elastic {
 public:
  Elastic(uint64_t seed, int compute_servers, int64_t read_ns) : world_(Options(seed, read_ns)) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.compute_servers = compute_servers, .threads = 1});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client-0");
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const absl::Status loaded =
        LoadTables(client_->attachment(), Answers(), {.fan_out = 4, .block_bytes = 4096});
    EXPECT_TRUE(loaded.ok()) << loaded;
    Execute("SET nam.work_queue = on");
    Execute("SET nam.prefetch_window = 1");
    Execute("SET nam.multicast = off");
  }

  session::ResultSet Execute(const std::string& sql) {
    auto result = client_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? *std::move(result) : session::ResultSet();
  }
  /// Runs the statement, with `meanwhile` on another thread.
  template <typename Meanwhile>
  session::ResultSet Execute(const std::string& sql, Meanwhile&& meanwhile) {
    const auto thread = harness_->StartThread("meanwhile", meanwhile);
    return Execute(sql);
  }
  template <typename Meanwhile>
  absl::Status Fail(const std::string& sql, Meanwhile&& meanwhile) {
    const auto thread = harness_->StartThread("meanwhile", meanwhile);
    return client_->session().Execute(sql).status();
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  double NowMs() { return static_cast<double>(world_.clock().NowNs()) / 1e6; }
  /// Only the catalog reaches the memory server from now on, as if it had stopped.
  void CutOff(int memory_server) {
    const std::string server = cluster_->HostOf(Cluster::Role::kMemory, memory_server);
    world_.Partition(server, "client-0");
    for (int c = 0; c < cluster_->count(Cluster::Role::kCompute); ++c)
      world_.Partition(server, cluster_->HostOf(Cluster::Role::kCompute, c));
  }
  void EndClient() { client_.reset(); }
  Cluster& cluster() { return *cluster_; }
  session::Session& session() { return client_->session(); }
  catalog::Attachment& attachment() { return client_->attachment(); }

 private:
  static fabric::sim::WorldOptions Options(uint64_t seed, int64_t read_ns) {
    fabric::sim::WorldOptions options;
    options.seed = seed;
    options.nic.read_ns = read_ns;
    return options;
  }
  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

TEST(ElasticTest, WhatAKilledComputeServerHadIsDoneOnceByOthers) {
  int killed_in_time = 0;
  for (uint64_t seed = 1; seed <= kElasticSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    const auto& query = Answers().queries()[random.Below(Answers().queries().size())];
    Elastic elastic(seed, static_cast<int>(random.Between(2, 4)), 20'000);
    const double whole_ms = elastic.Execute(query.sql).elapsed_ms;
    const auto victim = static_cast<int>(
        random.Below(static_cast<uint64_t>(elastic.cluster().count(Cluster::Role::kCompute))));
    const auto after_us =
        static_cast<int64_t>(whole_ms * 1000 * static_cast<double>(random.Below(1000)) / 1000);
    const bool whole_host = random.OneIn(4);
    bool done = false;
    const auto result = elastic.Execute(query.sql, [&] {
      elastic.Pause(after_us);
      killed_in_time += !done;
      elastic.cluster().Kill(Cluster::Role::kCompute, victim, whole_host);
    });
    done = true;
    EXPECT_TRUE(SameRows(result.rows, query.rows)) << query.id;
  }
  // A test that kills too late tests nothing.
  EXPECT_GT(killed_in_time, static_cast<int>(kElasticSeeds / 2));
}

/// Only one server has a share of it; the other one has none yet when it is dead.
TEST(ElasticTest, ASmallQueryIsDoneByAnotherServer) {
  for (const bool planned_before : {false, true}) {
    for (const int victim : {0, 1}) {
      Elastic elastic(1, 2, 20'000);
      elastic.Execute("SET nam.work_queue = auto");
      const std::string query = "SELECT count(*) FROM date";
      if (planned_before) elastic.Execute(query);
      elastic.cluster().Kill(Cluster::Role::kCompute, victim, /*whole_host=*/false);
      const session::ResultSet result = elastic.Execute(query);
      EXPECT_EQ(result.planned_before, planned_before);
      ASSERT_EQ(result.rows.size(), 1u);
      EXPECT_EQ(result.rows[0][0].ToString(), "2556");
    }
  }
}

/// The server is told to leave before it has connected to a memory server.
TEST(ElasticTest, AServerThatLeavesFinishesWhatItHasBegun) {
  const auto& query = Answers().queries()[3];
  int left_in_time = 0;
  for (int64_t after_us = 100; after_us <= 3'000; after_us += 100) {
    SCOPED_TRACE(absl::StrCat("left after ", after_us, " us"));
    Elastic elastic(1, 2, 20'000);
    bool done = false;
    const auto result = elastic.Execute(query.sql, [&] {
      elastic.Pause(after_us);
      left_in_time += !done;
      elastic.cluster().Leave(1);
    });
    done = true;
    EXPECT_TRUE(SameRows(result.rows, query.rows)) << query.id;
  }
  EXPECT_GT(left_in_time, 20);
}

/// One server at first; three more join in mid-query, then two leave.
template <typename Check>
void ComeAndGo(const std::string& sql, Check&& check) {
  Elastic elastic(1, 4, 500'000);
  for (const int server : {1, 2, 3}) elastic.cluster().Leave(server);
  elastic.Pause(100'000);
  const auto result = elastic.Execute(sql, [&] {
    elastic.Pause(30'000);
    for (const int server : {1, 2, 3}) {
      const absl::Status status = elastic.cluster().Restart(Cluster::Role::kCompute, server);
      EXPECT_TRUE(status.ok()) << status;
    }
    elastic.Pause(80'000);
    for (const int server : {1, 2}) elastic.cluster().Leave(server);
  });
  check(result);
}

TEST(ElasticTest, ServersComeAndGoInMidQuery) {
  const auto& query = Answers().queries()[3];  // Q2.1: every block is looked at
  ComeAndGo(query.sql,
            [&](const session::ResultSet& result) { EXPECT_TRUE(SameRows(result.rows, query.rows)); });
  ComeAndGo("explain analyze " + query.sql, [&](const session::ResultSet& result) {
    int helpers = 0;
    std::string report;
    for (const auto& row : result.rows) {
      absl::StrAppend(&report, row[0].text, "\n");
      helpers += absl::StrContains(row[0].text, "partitions of the share of compute server");
    }
    EXPECT_GE(helpers, 3) << report;
  });
}

/// A table whose partitions' rows follow Zipf's law (exponent 2), in small blocks, and one to join it with by
/// its key.
constexpr int kSkewedParts = 32;
constexpr char kSkewedQuery[] =
    "select count(*), sum(v), sum(twice * v) from skewed, keys where skewed.k = keys.k";

struct Skewed {
  testing::SmallTable skewed{
      {"skewed", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"k", kSkewedParts}}, ""}, {}};
  testing::SmallTable keys{
      {"keys", {{"k", Type::Integer()}, {"twice", Type::Integer()}}, {{"k", kSkewedParts}}, ""}, {}};
  testing::TextRows answer;
};

const Skewed& SkewedTables() {
  static const Skewed* const made = [] {
    auto* tables = new Skewed;
    int64_t rows = 0, sum = 0, twice = 0;
    for (int k = 0; k < kSkewedParts; ++k) {
      tables->keys.rows.push_back({Value::Integer(k), Value::Integer(2 * k)});
      for (int i = 0; i < 12'000 / ((k + 1) * (k + 1)); ++i) {
        const int64_t v = 1'000'003 * rows++;
        tables->skewed.rows.push_back({Value::Integer(k), Value::Integer(v)});
        sum += v;
        twice += 2 * k * v;
      }
    }
    tables->answer = {{absl::StrCat(rows), absl::StrCat(sum), absl::StrCat(twice)}};
    return tables;
  }();
  return *made;
}

void LoadSkewed(Elastic& elastic) {
  for (const testing::SmallTable* table : {&SkewedTables().skewed, &SkewedTables().keys}) {
    const absl::Status loaded =
        testing::Load(elastic.attachment(), *table, {.block_bytes = 1024, .pointer_group = 4});
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
}

std::string Report(Elastic& elastic, const std::string& explain, auto&& meanwhile) {
  std::string report;
  for (const auto& row : elastic.Execute(explain + kSkewedQuery, meanwhile).rows)
    absl::StrAppend(&report, row[0].text, "\n");
  return report;
}

TEST(ElasticTest, PiecesOfLargePartitionsAreDoneOnceWhoeverComesAndGoes) {
  constexpr uint64_t kSkewedSeeds = 30;
  int in_time = 0;
  for (uint64_t seed = 1; seed <= kSkewedSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    const auto servers = static_cast<int>(random.Between(2, 4));
    Elastic elastic(seed, servers, 20'000);
    LoadSkewed(elastic);
    const auto whole = elastic.Execute(kSkewedQuery);
    EXPECT_EQ(testing::ToText(whole), SkewedTables().answer);
    const auto victim = static_cast<int>(random.Below(static_cast<uint64_t>(servers)));
    const auto after_us =
        static_cast<int64_t>(whole.elapsed_ms * 1000 * static_cast<double>(random.Below(1000)) / 1000);
    const bool leaves = random.OneIn(3);
    bool done = false;
    const auto result = elastic.Execute(kSkewedQuery, [&] {
      elastic.Pause(after_us);
      in_time += !done;
      if (!leaves) return elastic.cluster().Kill(Cluster::Role::kCompute, victim, random.OneIn(4));
      elastic.cluster().Leave(victim);
      EXPECT_TRUE(elastic.cluster().Restart(Cluster::Role::kCompute, victim).ok());
    });
    done = true;
    EXPECT_EQ(testing::ToText(result), SkewedTables().answer);
  }
  EXPECT_GT(in_time, static_cast<int>(kSkewedSeeds / 2));
}

TEST(ElasticTest, PiecesOfLargePartitionsAreStolen) {
  Elastic elastic(1, 4, 2'000'000);
  LoadSkewed(elastic);
  for (const int server : {2, 3}) elastic.cluster().Leave(server);
  elastic.Pause(100'000);
  const std::string report = Report(elastic, "explain analyze ", [&] {
    elastic.Pause(20'000);
    for (const int server : {2, 3})
      EXPECT_TRUE(elastic.cluster().Restart(Cluster::Role::kCompute, server).ok());
  });
  EXPECT_TRUE(absl::StrContains(report, "pieces of the share of compute server")) << report;
  EXPECT_EQ(testing::ToText(elastic.Execute(kSkewedQuery)), SkewedTables().answer);
}

/// The share that the plan gives each server, and the work that each did, are within a twentieth of fair.
TEST(ElasticTest, SharesOfASkewedTableAreEven) {
  for (const int servers : {2, 3, 4}) {
    Elastic elastic(1, servers, 20'000);
    LoadSkewed(elastic);
    elastic.Execute("SET nam.work_queue = off");  // claims depend on which server is faster
    const std::string report = Report(elastic, "explain analyze ", [] {});
    int shares = 0;
    for (const absl::string_view line : absl::StrSplit(report, '\n')) {
      const size_t at = line.find(" rows (");
      if (at == absl::string_view::npos || !absl::StrContains(line, " %)")) continue;
      double percent = 0;
      const size_t from = at + 7;
      ASSERT_TRUE(absl::SimpleAtod(line.substr(from, line.find(" %)") - from), &percent)) << line;
      EXPECT_LE(percent, 105.0 / servers) << report;
      ++shares;
    }
    EXPECT_EQ(shares, 2 * servers) << "planned and actual\n" << report;
  }
}

TEST(ElasticTest, ProgressGrowsTowardsAllRows) {
  const auto& query = Answers().queries()[3];
  Elastic elastic(1, 2, 10'000'000);
  std::vector<session::QueryProgress> told;
  elastic.session().OnProgress([&](const session::QueryProgress& now) { told.push_back(now); });
  const auto result = elastic.Execute(query.sql);
  EXPECT_TRUE(SameRows(result.rows, query.rows));
  // The session's work on the groups afterwards has no known end.
  std::erase_if(told, [](const session::QueryProgress& now) { return now.table.empty(); });
  ASSERT_GE(told.size(), 2u) << "it took " << result.elapsed_ms << " ms";
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].table, "lineorder");
    EXPECT_LE(told[i].rows_done, told[i].rows);
    if (i == 0) continue;
    EXPECT_GE(told[i].rows_done, told[i - 1].rows_done);
    EXPECT_GE(told[i].elapsed_ms, told[i - 1].elapsed_ms + 100);
  }
  EXPECT_LT(told.front().rows_done, told.front().rows);
  EXPECT_GT(told.back().rows_done, told.front().rows_done);
}

/// One of the two has the words that the query's work is claimed from.
TEST(ElasticTest, AMemoryServerThatStandsStillEndsTheQueryAndNobodyWaitsForItTwice) {
  for (const int victim : {0, 1}) {
    for (const bool shows_progress : {false, true}) {
      SCOPED_TRACE(absl::StrCat("memory-", victim, shows_progress ? ", with progress" : ", by multicast"));
      Elastic elastic(1, 2, 20'000'000);
      if (!shows_progress) elastic.Execute("SET nam.multicast = on");
      if (shows_progress) elastic.session().OnProgress([](const session::QueryProgress&) {});
      double cut_off_ms = 0;
      const absl::Status status = elastic.Fail(Answers().queries()[3].sql, [&] {
        elastic.Pause(400'000);
        cut_off_ms = elastic.NowMs();
        elastic.CutOff(victim);
      });
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("memory server ", victim + 1))) << status;
      EXPECT_LT(elastic.NowMs() - cut_off_ms, 3'500) << "one peer timeout, and no more";
      elastic.EndClient();
      EXPECT_LT(elastic.NowMs() - cut_off_ms, 3'600) << "the client's end waits for it, too";
    }
  }
}

TEST(ElasticTest, ACancelWaitsForNoMemoryServerThatStandsStill) {
  for (const int victim : {0, 1}) {
    SCOPED_TRACE(absl::StrCat("memory-", victim));
    Elastic elastic(1, 2, 20'000'000);
    elastic.session().OnProgress([](const session::QueryProgress&) {});
    double cancelled_ms = 0;
    const absl::Status status = elastic.Fail(Answers().queries()[3].sql, [&] {
      elastic.Pause(400'000);
      elastic.CutOff(victim);
      elastic.Pause(500'000);
      cancelled_ms = elastic.NowMs();
      elastic.session().Cancel();
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LT(elastic.NowMs() - cancelled_ms, 200);
  }
}

}  // namespace
}  // namespace nam::simulation
