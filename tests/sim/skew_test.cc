#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/cluster/oracle.h"

/// Joins by parts of which one key has half of the rows of a side.
namespace nam::simulation {
namespace {

using Json = nlohmann::json;

constexpr int kComputeServers = 4;
constexpr int kManyRows = 24'000, kFewRows = 2'000, kKeys = 1'500, kHeavyKey = 700;
constexpr int kKills = 12;

struct SkewedJoin {
  std::string sql;
  bool shared = true;  // the rows of the heavy key by several tasks
};

/// `many` is the larger side, and half of it has one key; some keys have no row on one side.
const std::vector<SkewedJoin>& Joins() {
  static const std::vector<SkewedJoin> joins = {
      {"select count(*), sum(m.v), sum(f.v) from many m join few f on m.k = f.k"},
      {"select count(*), count(f.v), sum(m.v) from many m left join few f on m.k = f.k"},
      {"select count(*), sum(m.v) from many m where exists (select 1 from few f where m.k = f.k)"},
      {"select count(*), sum(m.v) from many m where m.k not in (select f.k from few f)"},
      // Columns of the build side, all of which leave.
      {"select count(*), count(f.v), sum(m.v) from few f right join many m on m.k = f.k"},
      // Rows of both sides may have no partner, so that one task has to see all of both.
      {"select count(*), count(f.v), count(m.v) from many m full join few f on m.k = f.k", false}};
  return joins;
}

testing::SmallTable Many() {
  testing::SmallTable table{{"many", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"v", 8}}, ""}, {}};
  for (int i = 0; i < kManyRows; ++i)
    table.rows.push_back({Value::Integer(i % 2 == 0 ? kHeavyKey : i % kKeys), Value::Integer(i)});
  return table;
}
/// Keys from 300 on, some of them twice.
testing::SmallTable Few() {
  testing::SmallTable table{{"few", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"v", 4}}, ""}, {}};
  for (int i = 0; i < kFewRows; ++i)
    table.rows.push_back({Value::Integer(300 + i % kKeys), Value::Integer(i)});
  return table;
}

class SkewTest : public ::testing::Test {
 protected:
  SkewTest() : world_(Options()) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.memory_servers = 2,
                                           .compute_servers = kComputeServers,
                                           .threads = 2,
                                           .scratch_bytes = uint64_t{8} << 20,
                                           .always_by_parts = true});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client");
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    for (const char* const setting : {"work_queue = on", "prefetch_window = 1", "multicast = off"})
      EXPECT_TRUE(Execute(absl::StrCat("set nam.", setting)).ok());
    testing::SqliteOracle oracle;
    for (const testing::SmallTable& table : {Many(), Few()}) {
      const absl::Status loaded = testing::Load(client_->attachment(), table, {.block_bytes = 2048});
      EXPECT_TRUE(loaded.ok()) << loaded;
      oracle.Load(table);
    }
    for (const SkewedJoin& join : Joins()) {
      const absl::StatusOr<testing::TextRows> rows = oracle.Run(join.sql);
      EXPECT_TRUE(rows.ok()) << rows.status();
      expected_.push_back(rows.value_or(testing::TextRows()));
    }
    EXPECT_TRUE(Execute("set nam.join = rrj").ok());
  }
  ~SkewTest() override {
    client_.reset();
    cluster_.reset();
  }

  absl::StatusOr<session::ResultSet> Execute(const std::string& sql) {
    return client_->session().Execute(sql);
  }
  /// The stage of a statement that joins by parts, as EXPLAIN ANALYZE tells of it.
  Json JoinStage(const std::string& sql) {
    const auto result = Execute("explain (analyze, format json) " + sql);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    std::string text;
    for (const auto& row : testing::ToText(*result)) absl::StrAppend(&text, row[0], "\n");
    const Json explained = Json::parse(text);
    for (const Json& stage : explained.at(0).at("stages")) {
      if (stage.contains("claimed_parts")) return stage;
    }
    ADD_FAILURE() << "no stage claims parts: " << text;
    return {};
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  /// Waits until it has joined again.
  void Restart(int server) {
    for (int i = 0; i < 100; ++i) {
      if (cluster_->Restart(Cluster::Role::kCompute, server).ok()) return;
      Pause(500'000);
    }
    ADD_FAILURE() << "a server does not join again";
  }

  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
  std::vector<testing::TextRows> expected_;  // by join

 private:
  /// Each READ takes long, so that there is time for servers to go.
  static fabric::sim::WorldOptions Options() {
    fabric::sim::WorldOptions options;
    options.nic.read_ns = 20'000;
    return options;
  }
};

TEST_F(SkewTest, RowsOfAHeavyKeyAreAllServersWork) {
  for (size_t j = 0; j < Joins().size(); ++j) {
    const std::string& sql = Joins()[j].sql;
    SCOPED_TRACE(sql);
    const auto result = Execute(sql);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(testing::ToText(*result), expected_[j]);
    const Json stage = JoinStage(sql);
    EXPECT_EQ(stage.contains("skew"), Joins()[j].shared) << stage;
    uint64_t most = 0;
    for (const Json& server : stage.at("pipelines").at(0).at("servers"))
      most = std::max<uint64_t>(most, server.at("rows_in"));
    // A task that joins the heavy key alone reads more than half of the rows.
    if (Joins()[j].shared) {
      EXPECT_LT(most, kManyRows / 2) << stage;
    } else {
      EXPECT_GT(most, kManyRows / 2) << stage;
    }
  }
}

TEST_F(SkewTest, ExplainAnalyzeSaysHowManyPiecesSkewHasMade) {
  const auto lines = [&](const std::string& sql) {
    const auto result = Execute(sql);
    EXPECT_TRUE(result.ok()) << result.status();
    std::string text;
    for (const auto& row : result.ok() ? testing::ToText(*result) : testing::TextRows())
      absl::StrAppend(&text, row[0], "\n");
    return text;
  };
  const std::string skewed = lines("explain analyze " + Joins()[0].sql);
  EXPECT_NE(skewed.find("  Skew: 1 of the parts came in 8 pieces\n  Done of the parts\n"), std::string::npos)
      << skewed;
  EXPECT_EQ(lines("explain " + Joins()[0].sql).find("Skew"), std::string::npos) << "nothing has run";
  const std::string full = lines("explain analyze " + Joins().back().sql);
  EXPECT_EQ(full.find("Skew"), std::string::npos) << full;
}

/// Shares of a part that a lost server had claimed are joined once more, and no others.
TEST_F(SkewTest, AServerDiesInTheMiddle) {
  RandomStream random(1);
  int in_time = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const size_t j = static_cast<size_t>(kill) % Joins().size();
    SCOPED_TRACE(absl::StrCat("kill ", kill, ": ", Joins()[j].sql));
    const auto whole = Execute(Joins()[j].sql);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto victim = static_cast<int>(random.Below(kComputeServers));
    const auto after_us = static_cast<int64_t>(whole->elapsed_ms * static_cast<double>(random.Below(1'000)));
    bool done = false;
    {
      const auto thread = harness_->StartThread("kill", [&] {
        Pause(after_us);
        in_time += !done;
        cluster_->Kill(Cluster::Role::kCompute, victim, /*whole_host=*/false);
      });
      const auto result = Execute(Joins()[j].sql);
      done = true;
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(testing::ToText(*result), expected_[j]);
    }
    Restart(victim);
  }
  EXPECT_GT(in_time, kKills / 2);
}

}  // namespace
}  // namespace nam::simulation
