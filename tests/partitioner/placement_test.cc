#include "partitioner/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "catalog/server_ids.h"
#include "partitioner/loader.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::partitioner {
namespace {

using nam::testing::InProcessCluster;
using nam::testing::SmallTable;

constexpr uint32_t kShareBytes = 1 << 16;

/// A table with a dictionary and several chains, smaller than a block.
absl::Status LoadSmall(InProcessCluster& cluster, const std::string& name, int rows) {
  SmallTable table{{name, {{"k", Type::Integer()}, {"s", Type::String(8), true}}, {{"k", 4}}, ""}, {}};
  for (int i = 0; i < rows; ++i)
    table.rows.push_back({Value::Integer(i), Value::String("s" + std::to_string(i % 7))});
  return nam::testing::Load(cluster.attachment(), table, {});
}

std::vector<uint64_t> UsedBytes(InProcessCluster& cluster, size_t first = 0) {
  std::vector<uint64_t> used;
  for (size_t s = first; s < cluster.memory().size(); ++s) used.push_back(cluster.memory()[s]->used_bytes());
  return used;
}

/// The pieces' servers and bytes.
std::map<MemoryServerId, uint64_t> TakeAll(Placement& placement, const std::vector<uint32_t>& pieces) {
  std::set<uint64_t> addresses;
  for (const uint32_t bytes : pieces) addresses.insert(placement.Next(bytes).raw());
  EXPECT_EQ(addresses.size(), pieces.size()) << "two pieces share an address";
  return placement.used_bytes();
}

AllocationId Begin(InProcessCluster& cluster, const std::string& table) {
  catalog::Attachment& attachment = cluster.attachment();
  return *attachment.catalog().BeginLoad(attachment.member(), table, /*replace=*/false);
}

TEST(Placement, SmallTablesLieEachOnOneOfAllServers) {
  InProcessCluster cluster({.memory_servers = 4, .compute_servers = 0});
  constexpr int kTables = 60;
  std::map<uint32_t, int> tables_of;
  for (int t = 0; t < kTables; ++t) {
    const std::string name = "t" + std::to_string(t);
    ASSERT_TRUE(LoadSmall(cluster, name, t % 3 == 0 ? 2'500 : 50).ok());
    const auto table = *cluster.attachment().catalog().GetTable(name);
    ASSERT_EQ(table->usage_size(), 1) << "the loss of any of its servers loses a table";
    ++tables_of[table->usage(0).server()];
  }
  EXPECT_EQ(tables_of.size(), 4u);
  for (const auto& [server, tables] : tables_of) EXPECT_LE(tables, kTables / 2) << "server " << server;
  const std::vector<uint64_t> used = UsedBytes(cluster);
  EXPECT_LE(*std::max_element(used.begin(), used.end()), *std::min_element(used.begin(), used.end()) * 5 / 4);
}

TEST(Placement, AnAddedServerTakesWhatTheOthersHaveNoRoomFor) {
  constexpr uint64_t kMemoryBytes = 1 << 20;
  InProcessCluster cluster({.memory_servers = 2,
                            .compute_servers = 0,
                            .memory_bytes = kMemoryBytes,
                            .region_bytes = kMemoryBytes / 4,
                            .scratch_bytes = 0});
  int tables = 0;
  absl::Status loaded;
  while (loaded.ok() && tables < 1'000) loaded = LoadSmall(cluster, "t" + std::to_string(tables++), 2'500);
  EXPECT_TRUE(absl::IsResourceExhausted(loaded)) << loaded;
  for (const uint64_t used : UsedBytes(cluster))
    EXPECT_GE(used, kMemoryBytes * 9 / 10) << "a load fails only if no server has room";
  cluster.AddMemoryServer();
  cluster.AddMemoryServer();
  for (int t = 0; t < tables / 2; ++t) {
    loaded = LoadSmall(cluster, "u" + std::to_string(t), 2'500);
    ASSERT_TRUE(loaded.ok()) << t << ": " << loaded;
  }
  const std::vector<uint64_t> added = UsedBytes(cluster, 2);
  EXPECT_LE(std::max(added[0], added[1]), std::min(added[0], added[1]) * 5 / 4);
}

TEST(Placement, ALargeLoadGoesToAllServersByWhatTheyHaveFree) {
  InProcessCluster cluster({.memory_servers = 2, .compute_servers = 0, .scratch_bytes = 0});
  catalog::Attachment& attachment = cluster.attachment();
  const auto servers = *attachment.Members(proto::ROLE_MEMORY);
  // 256 MiB of memory on each: half of the first one's is taken.
  ASSERT_TRUE(
      attachment.Allocate(catalog::MemberServerId(servers[0]), Begin(cluster, "other"), uint64_t{128} << 20)
          .ok());
  const std::vector<uint32_t> pieces(300, kShareBytes);
  Placement placement(attachment, Begin(cluster, "t"), kShareBytes);
  ASSERT_TRUE(placement.Prepare(300 * kShareBytes).ok());
  ASSERT_TRUE(placement.Reserve(pieces).ok());
  const auto used = TakeAll(placement, pieces);
  EXPECT_NEAR(static_cast<double>(used.at(catalog::StorageServerId(servers[0]))), 100.0 * kShareBytes,
              2.0 * kShareBytes);
  EXPECT_NEAR(static_cast<double>(used.at(catalog::StorageServerId(servers[1]))), 200.0 * kShareBytes,
              2.0 * kShareBytes);
}

/// The room that another load takes between the question and the request.
TEST(Placement, AServerThatIsFullByNowIsLeftOut) {
  InProcessCluster cluster({.memory_servers = 3, .compute_servers = 0, .scratch_bytes = 0});
  catalog::Attachment& attachment = cluster.attachment();
  const auto servers = *attachment.Members(proto::ROLE_MEMORY);
  const std::vector<uint32_t> pieces(90, kShareBytes);
  Placement placement(attachment, Begin(cluster, "t"), kShareBytes);
  ASSERT_TRUE(placement.Prepare(90 * kShareBytes).ok());
  const AllocationId other = Begin(cluster, "other");
  const auto fill = [&](const proto::Member& server) {
    const MemoryServerId id = catalog::MemberServerId(server);
    const auto usage = *attachment.MemoryUsage(id);
    return attachment.Allocate(id, other, usage.memory_bytes() - usage.used_bytes()).status();
  };
  ASSERT_TRUE(fill(servers[0]).ok());
  ASSERT_TRUE(fill(servers[2]).ok());
  const absl::Status reserved = placement.Reserve(pieces);
  ASSERT_TRUE(reserved.ok()) << reserved;
  EXPECT_EQ(TakeAll(placement, pieces).at(catalog::StorageServerId(servers[1])), 90 * kShareBytes);

  Placement late(attachment, Begin(cluster, "u"), kShareBytes);
  ASSERT_TRUE(late.Prepare(kShareBytes).ok());
  ASSERT_TRUE(fill(servers[1]).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(late.Reserve(std::vector<uint32_t>{kShareBytes})));
}

TEST(Placement, LoadsThatBeginAtOnceBeginOnDifferentServers) {
  InProcessCluster cluster({.memory_servers = 3, .compute_servers = 0});
  std::vector<std::unique_ptr<Placement>> placements;
  for (int i = 0; i < 6; ++i) {
    placements.push_back(std::make_unique<Placement>(cluster.attachment(),
                                                     Begin(cluster, "t" + std::to_string(i)), kShareBytes));
    ASSERT_TRUE(placements.back()->Prepare(100).ok());
  }
  std::map<MemoryServerId, int> loads_of;
  for (const auto& placement : placements) {
    ASSERT_TRUE(placement->Reserve(std::vector<uint32_t>{100}).ok());
    ++loads_of[placement->Next(100).server()];
  }
  ASSERT_EQ(loads_of.size(), 3u);
  for (const auto& [server, loads] : loads_of) EXPECT_EQ(loads, 2) << server.value();
}

}  // namespace
}  // namespace nam::partitioner
