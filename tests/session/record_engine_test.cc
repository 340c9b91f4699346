#include "session/record_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interruption.h"
#include "session/session.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

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

/// The first INSERT would say so, too late.
TEST(RecordEngineTest, ATableIsRefusedWhileTheStateOfTransactionsIsLost) {
  InProcessCluster cluster({.memory_servers = 2, .compute_servers = 0, .lease_ms = 1'000});
  const auto create = [&](session::Session& session, const std::string& name) {
    return session.Execute("create table " + name + " (k bigint primary key) with (storage = record)");
  };
  ASSERT_TRUE(create(cluster.session(), "t").ok());
  const auto none = cluster.attachment().catalog().GetTable("nam.transactions");
  EXPECT_TRUE(absl::IsNotFound(none.status())) << "the first transaction makes it";
  ASSERT_TRUE(cluster.session().Execute("insert into t values (1)").ok());
  ASSERT_TRUE(create(cluster.session(), "t2").ok());
  const auto state = cluster.attachment().catalog().GetTable("nam.transactions");
  ASSERT_TRUE(state.ok()) << state.status();
  const uint32_t holder = (*state)->record().parts(0).extents(0).server();
  for (auto& server : cluster.memory()) {
    if (server->id().value() == holder) server.reset();
  }
  const auto fresh = cluster.NewSession();
  for (session::Session* const session : {&cluster.session(), fresh.get()}) {
    const Deadline soon = RealClock().After(60'000'000);
    std::string error;
    while (error.find("nam reset-transactions") == std::string::npos && !RealClock().Passed(soon)) {
      const auto created = create(*session, "u");
      ASSERT_FALSE(created.ok());
      ASSERT_TRUE(SqlErrorOf(created.status()).has_value()) << created.status();
      error = SqlErrorOf(created.status())->message + SqlErrorOf(created.status())->sqlstate;
    }
    EXPECT_TRUE(error.ends_with("creates a new state08006")) << error;
    EXPECT_FALSE(cluster.attachment().catalog().GetTable("u").ok());
  }
}

}  // namespace
}  // namespace nam::testing
