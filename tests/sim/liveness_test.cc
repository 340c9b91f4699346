#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "types/sql_error.h"

namespace nam::simulation {
namespace {

constexpr uint32_t kShortLeaseMs = 1'000;

/// A cluster with a record table that lies on both memory servers, and a client. Hosts are cut off from the
/// catalog alone, as by a fault of the network between them.
class LivenessTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  LivenessTest() : world_({.seed = GetParam()}) {}

  void Start(uint32_t bury_after_ms = catalog::kDefaultBuryAfterMs) {
    auto cluster = Cluster::Start(world_, {.memory_bytes = uint64_t{128} << 20,
                                           .region_bytes = uint64_t{16} << 20,  // extents lie in one piece
                                           .lease_ms = kShortLeaseMs,
                                           .bury_after_ms = bury_after_ms});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client-0");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    Execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) WITH (storage = record)");
    Execute("INSERT INTO accounts VALUES (1, 10), (2, 20), (3, 30)");
  }
  session::ResultSet Execute(const std::string& sql) {
    auto result = client_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? *std::move(result) : session::ResultSet();
  }
  /// The SQLSTATE of a statement that must fail.
  std::string StateOf(const std::string& sql) {
    const absl::Status status = client_->session().Execute(sql).status();
    EXPECT_FALSE(status.ok()) << sql;
    const auto error = SqlErrorOf(status);
    last_error_ = status.ToString();
    return error.has_value() ? error->sqlstate : "none: " + status.ToString();
  }
  int64_t Sum() {
    const auto result = Execute("SELECT sum(balance) FROM accounts");
    return result.rows.size() == 1 ? static_cast<int64_t>(result.rows[0][0].number) : -1;
  }
  void PassMs(int64_t ms) { world_.clock().SleepUntil(world_.clock().After(ms * 1'000)); }
  void CutOffMs(const std::string& host, int64_t ms) {
    world_.Partition("catalog", host);
    PassMs(ms);
    world_.Heal("catalog", host);
  }

  fabric::sim::World world_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
  std::string last_error_;
};

TEST_P(LivenessTest, AMemoryServerThatWasCutOffGoesOnWithItsData) {
  Start();
  for (int server = 0; server < 2; ++server) {
    const std::string host = cluster_->HostOf(Cluster::Role::kMemory, server);
    world_.Partition("catalog", host);
    PassMs(3 * kShortLeaseMs);
    const int64_t started_ns = world_.NowNs();
    EXPECT_EQ(StateOf("UPDATE accounts SET balance = balance + 1"), "57P03");
    EXPECT_NE(last_error_.find("memory server"), std::string::npos) << last_error_;
    EXPECT_LT(world_.NowNs() - started_ns, 3'000'000'000);
    world_.Heal("catalog", host);
    PassMs(kShortLeaseMs);
    Execute("UPDATE accounts SET balance = balance + 1");
    EXPECT_EQ(Sum(), 63 + 3 * server);
  }
  EXPECT_EQ(cluster_->given_up(), 0);
  EXPECT_EQ(cluster_->memory_deaths(), 0);
}

TEST_P(LivenessTest, AStatementWaitsForOneThatComesBackSoon) {
  Start();
  const std::string host = cluster_->HostOf(Cluster::Role::kMemory, 0);
  world_.Partition("catalog", host);
  PassMs(2 * kShortLeaseMs);
  const auto healer = client_->fabric().StartThread("healer", [&] {
    PassMs(500);
    world_.Heal("catalog", host);
  });
  Execute("UPDATE accounts SET balance = balance + 1");
  EXPECT_EQ(Sum(), 63);
}

TEST_P(LivenessTest, OneThatStaysAwayIsBuriedAndEveryoneRefusesIt) {
  Start(/*bury_after_ms=*/2'000);
  const std::string host = cluster_->HostOf(Cluster::Role::kMemory, 0);
  world_.Partition("catalog", host);
  PassMs(kShortLeaseMs + 2'000 + kShortLeaseMs);
  // The process lives, its memory answers, and it does not know yet that it was declared dead.
  ASSERT_TRUE(cluster_->Alive(Cluster::Role::kMemory, 0));
  EXPECT_EQ(StateOf("UPDATE accounts SET balance = balance + 1"), "XX001") << last_error_;
  world_.Heal("catalog", host);
  PassMs(kShortLeaseMs);
  EXPECT_EQ(cluster_->given_up(), 1) << "it learns it, and ends";
}

TEST_P(LivenessTest, AKilledMemoryServerIsBuriedBeforeItsLeaseIsOver) {
  Start();
  cluster_->Kill(Cluster::Role::kMemory, 1, /*whole_host=*/false);
  PassMs(kShortLeaseMs);
  EXPECT_EQ(StateOf("UPDATE accounts SET balance = balance + 1"), "XX001") << last_error_;
}

TEST_P(LivenessTest, AHostWithoutPowerIsSuspectAndBuriedOnceItIsUpAgain) {
  Start();
  cluster_->Kill(Cluster::Role::kMemory, 1, /*whole_host=*/true);
  PassMs(4 * kShortLeaseMs);
  EXPECT_EQ(StateOf("UPDATE accounts SET balance = balance + 1"), "57P03") << last_error_;
  world_.RestartHost(cluster_->HostOf(Cluster::Role::kMemory, 1));
  PassMs(kShortLeaseMs);
  EXPECT_EQ(StateOf("UPDATE accounts SET balance = balance + 1"), "XX001") << last_error_;
}

TEST_P(LivenessTest, AClientWhoseLeaseIsOverGoesOn) {
  Start();
  Execute("SET nam.prefetch_window = 7");
  const MemberId former = client_->attachment().member();
  CutOffMs("client-0", 5 * kShortLeaseMs);
  Execute("UPDATE accounts SET balance = balance + 1");
  EXPECT_EQ(Sum(), 63);
  EXPECT_NE(client_->attachment().member(), former);
  EXPECT_EQ(client_->session().Settings()["nam.prefetch_window"], "7");
}

TEST_P(LivenessTest, AnOpenTransactionIsLostWithTheLeaseAndThatIsSaidOnce) {
  Start();
  for (const bool commits : {false, true}) {
    Execute("BEGIN");
    Execute("UPDATE accounts SET balance = 0 WHERE id = 1");
    CutOffMs("client-0", 5 * kShortLeaseMs);
    if (commits) {
      EXPECT_EQ(StateOf("COMMIT"), "08006") << last_error_;
    } else {
      EXPECT_EQ(StateOf("UPDATE accounts SET balance = 0 WHERE id = 2"), "08006") << last_error_;
      EXPECT_EQ(StateOf("UPDATE accounts SET balance = 0 WHERE id = 3"), "25P02") << last_error_;
      EXPECT_EQ(Execute("ROLLBACK").command, "ROLLBACK");
    }
    EXPECT_EQ(Sum(), 60);
    Execute("UPDATE accounts SET balance = balance");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LivenessTest, ::testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace nam::simulation
