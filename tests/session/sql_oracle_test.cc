#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <iostream>

#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/session/random_query.h"

namespace nam::testing {
namespace {

/// The same tables and queries on the engine and on SQLite. rapidcheck prints the seed of a failure and
/// the smallest case it finds: run again with RC_PARAMS="reproduce=…".
class SqlOracleTest : public ::testing::TestWithParam<fabric::Kind> {};

TEST_P(SqlOracleTest, RandomQueriesAgreeWithSqlite) {
  InProcessCluster cluster({.fabric = GetParam(), .memory_servers = 3, .compute_servers = 2, .threads = 2});
  const bool in_place = GetParam() == fabric::Kind::kShm;
  int queries = 0;
  int shrinks_left = 300;  // a bound on the search for a smaller failing case
  bool failed = false;
  const auto fail = [&](const std::string& what) {
    failed = true;
    // Printed here, too: rapidcheck runs the smallest case once more, and that may pass.
    std::cerr << what << "\n";
    RC_FAIL(what);
  };
  const bool ok = rc::check("engine = SQLite", [&] {
    if (failed && --shrinks_left < 0) return;
    Choices choices(
        *rc::gen::scale(20.0, rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 16))));
    const partitioner::LoadOptions load{.block_bytes = choices.Chance(50) ? 1024u : 4096u,
                                        .pointer_group = 2 + choices.Next(3),
                                        .replace = true};
    SqliteOracle oracle;
    for (const SmallTable& table : RandomTables(choices)) {
      const absl::Status status = Load(cluster.attachment(), table, load);
      if (!status.ok()) fail("load: " + std::string(status.message()));
      oracle.Load(table);
    }
    RC_ASSERT(
        cluster.session()
            .Execute(std::string("set nam.in_place = ") + (in_place && choices.Chance(50) ? "on" : "off"))
            .ok());
    RC_ASSERT(
        cluster.session().Execute("set nam.prefetch_window = " + std::to_string(1 + choices.Next(6))).ok());
    RC_ASSERT(cluster.session()
                  .Execute(std::string("set nam.multicast = ") + (choices.Chance(50) ? "on" : "off"))
                  .ok());
    for (int i = 0; i < 6; ++i) {
      const std::string query = RandomQuery(choices);
      ++queries;
      auto expected = oracle.Run(query);
      auto actual = cluster.session().Execute(query);
      if (!expected.ok()) fail(query + "\n  " + std::string(expected.status().message()));
      if (!actual.ok()) fail(query + "\n  " + std::string(actual.status().message()));
      const TextRows theirs = Sorted(*expected), ours = Sorted(ToText(*actual));
      if (theirs != ours) {
        fail(query + "\n  other rows than SQLite");
      }
    }
  });
  EXPECT_TRUE(ok);
  RecordProperty("queries", queries);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, SqlOracleTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::testing
