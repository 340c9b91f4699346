#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <string>

#include "fabric/sim/world.h"
#include "partitioner/loader.h"
#include "simulation/benchmark_answers.h"
#include "simulation/cluster.h"
#include "ssb/generator.h"
#include "ssb/schema.h"

namespace nam::simulation {
namespace {

/// The overhead of a query: the tables have so few rows that it is nearly the whole time. In virtual time,
/// with calls that take 20 to 60 µs each way.
class ShortQueryTest : public ::testing::Test {
 protected:
  void Start(int memory_servers, int compute_servers) {
    world_ = std::make_unique<fabric::sim::World>(fabric::sim::WorldOptions{});
    auto cluster = Cluster::Start(
        *world_, {.memory_servers = memory_servers, .compute_servers = compute_servers, .threads = 2});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const auto answers = BenchmarkAnswers::Make(SsbBenchmark(), 0.002);
    ASSERT_TRUE(answers.ok()) << answers.status();
    sql_ = (*answers)->queries()[10].sql;  // Q4.1: four build sides
    const absl::Status loaded =
        LoadTables(client_->attachment(), **answers, {.fan_out = 4, .block_bytes = 4096});
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  double Execute(const std::string& sql) {
    const auto result = client_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? result->elapsed_ms : 0;
  }
  /// The least time of a few runs, once all connections are made.
  double Ms(const std::string& setting) {
    Execute("SET nam." + setting);
    Execute(sql_);
    double least = Execute(sql_);
    for (int i = 0; i < 5; ++i) least = std::min(least, Execute(sql_));
    return least;
  }

  std::unique_ptr<fabric::sim::World> world_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
  std::string sql_;
};

/// The time of a join with a build side of 40,000 rows in one partition of such blocks, on one server.
double MsToBuild(uint32_t block_bytes) {
  fabric::sim::World world({});
  auto cluster = Cluster::Start(world, {.compute_servers = 1, .threads = 8});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  auto client = (*cluster)->NewClient("client");
  EXPECT_TRUE(client.ok()) << client.status();
  const ssb::Generator generator({.scale_factor = 0.2});
  for (const ssb::Table table : {ssb::Table::kPart, ssb::Table::kLineorder}) {
    const partitioner::TableSchema schema = ssb::Schema(table, 1);
    partitioner::ColumnBatch batch(schema.columns.size());
    const bool build = table == ssb::Table::kPart;
    generator.Fill(table, 0, build ? generator.Units(table) : 15'000, batch);
    auto loader =
        partitioner::BeginLoad((*client)->attachment(), schema, {.block_bytes = build ? block_bytes : 8'192});
    EXPECT_TRUE(loader.ok()) << loader.status();
    EXPECT_TRUE((*loader)->Append(batch).ok());
    const auto committed = (*loader)->Commit();
    EXPECT_TRUE(committed.ok()) << committed.status();
  }
  double least = 1e9;
  for (int i = 0; i < 4; ++i) {
    const auto result = (*client)->session().Execute(
        "select p_mfgr, count(*) from lineorder, part where lo_partkey = p_partkey group by p_mfgr");
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) least = std::min(least, result->elapsed_ms);
  }
  return least;
}

TEST_F(ShortQueryTest, ABuildSideOfOnePartitionIsBuiltByAllThreads) {
  const double one_block_ms = MsToBuild(1 << 20), many_blocks_ms = MsToBuild(16 << 10);
  EXPECT_LT(many_blocks_ms, one_block_ms - 0.06) << "a block is the least that a thread takes";
}

TEST_F(ShortQueryTest, ClaimingWorkDelaysItLittleOnManyServers) {
  Start(2, 16);
  Execute("SET nam.multicast = off");
  const double shares_ms = Ms("work_queue = off"), claims_ms = Ms("work_queue = on");
  EXPECT_LT(claims_ms, shares_ms + 0.1);
}

/// A claim is a round trip: short work is not claimed piece by piece.
TEST_F(ShortQueryTest, QuickPiecesAreClaimedByTheMany) {
  Start(2, 1);
  Execute("SET nam.work_queue = on");
  const auto result = client_->session().Execute("EXPLAIN ANALYZE " + sql_);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::regex turn("([0-9]+) partitions of its own share, ([0-9]+) claims");
  int partitions = 0, claims = 0;
  for (const auto& row : result->rows) {
    const std::string line = row[0].ToString();
    std::smatch found;
    if (!std::regex_search(line, found, turn)) continue;
    partitions += std::stoi(found[1]);
    claims += std::stoi(found[2]);
  }
  EXPECT_EQ(partitions, 64);
  EXPECT_LE(3 * claims, partitions);
  EXPECT_GT(claims, 0);
}

TEST_F(ShortQueryTest, MulticastStartsAndEndsOnAllMemoryServersAtOnce) {
  Start(8, 4);
  Execute("SET nam.work_queue = off");
  const double read_ms = Ms("multicast = off"), multicast_ms = Ms("multicast = on");
  EXPECT_LT(multicast_ms, read_ms + 0.3);
}

}  // namespace
}  // namespace nam::simulation
