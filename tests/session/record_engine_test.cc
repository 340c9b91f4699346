#include "session/record_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/interruption.h"
#include "session/session.h"
#include "tests/cluster/in_process_cluster.h"

namespace nam::testing {
namespace {

/// With memory in place no change waits for a memory server, so only the engine itself checks whether its
/// statement was cancelled.
TEST(RecordEngineTest, ChangesOfManyRowsAreInterrupted) {
  InProcessCluster cluster({.fabric = fabric::Kind::kShm, .memory_servers = 2, .compute_servers = 1});
  ASSERT_TRUE(
      cluster.session().Execute("create table t (k bigint primary key) with (storage = record)").ok());
  ASSERT_TRUE(cluster.session().Execute("insert into t select g from generate_series(1, 2000) g").ok());
  const auto table = cluster.attachment().catalog().GetTable("t");
  ASSERT_TRUE(table.ok()) << table.status();
  const auto engine = session::MakeRecordEngine(cluster.attachment());
  ASSERT_TRUE(engine->Begin().ok());
  std::vector<std::string> keys;
  std::atomic<bool> cancelled = false;
  const Interruption interruption(&cancelled);
  ASSERT_TRUE(engine
                  ->Scan(**table,
                         [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
                           keys.emplace_back(reinterpret_cast<const char*>(row.data()),
                                             (*table)->record().key_bytes());
                           return true;
                         })
                  .ok());
  ASSERT_EQ(keys.size(), 2'000u);
  cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(engine->Delete(**table, keys)));
  cancelled = false;
  engine->Abort();
  EXPECT_EQ(cluster.session().Execute("select count(*) from t")->rows[0][0].ToString(), "2000");
}

}  // namespace
}  // namespace nam::testing
