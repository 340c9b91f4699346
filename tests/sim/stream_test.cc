#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// Results in windows while servers and clients die.
namespace nam::simulation {
namespace {

constexpr uint64_t kPairsSeeds = 60;
constexpr int kNumbers = 300;
constexpr char kPairs[] = "select a.id, b.id from numbers a, numbers b";

/// Takes each pair of numbers at most once, and pauses after each batch.
class Pairs final : public session::RowReceiver {
 public:
  explicit Pairs(std::function<void()> pause) : pause_(std::move(pause)) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row)
      repeated_ += seen_.at(static_cast<size_t>(batch.number(0, row) * kNumbers + batch.number(1, row)))++;
    rows_ += static_cast<int>(batch.rows());
    pause_();
    return absl::OkStatus();
  }
  int rows() const { return rows_; }
  int repeated() const { return repeated_; }

 private:
  const std::function<void()> pause_;
  int rows_ = 0, repeated_ = 0;
  std::vector<uint8_t> seen_ = std::vector<uint8_t>(kNumbers * kNumbers);
};

class Streaming {
 public:
  Streaming(uint64_t seed, int compute_servers) : world_({.seed = seed}) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.compute_servers = compute_servers, .threads = 1});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    client_ = NewClient("client-0");
    testing::SmallTable numbers{{"numbers", {{"id", Type::Integer()}}, {{"id", 8}}, ""}, {}};
    for (int i = 0; i < kNumbers; ++i) numbers.rows.push_back({Value::Integer(i)});
    const absl::Status loaded =
        testing::Load(client_->attachment(), numbers, {.block_bytes = 1024, .pointer_group = 4});
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
  std::unique_ptr<Client> NewClient(const std::string& host) {
    auto client = cluster_->NewClient(host);
    EXPECT_TRUE(client.ok()) << client.status();
    // Windows of two pages.
    EXPECT_TRUE((*client)->session().Execute("SET nam.result_mib_max = 1").ok());
    return *std::move(client);
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  double NowMs() { return static_cast<double>(world_.clock().NowNs()) / 1e6; }

  fabric::sim::World& world() { return world_; }
  fabric::Fabric& harness() { return *harness_; }
  Cluster& cluster() { return *cluster_; }
  Client& client() { return *client_; }

 private:
  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

TEST(StreamTest, NoRowComesTwiceWhicheverServerDies) {
  int whole = 0, ended = 0;
  for (uint64_t seed = 1; seed <= kPairsSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    const auto servers = static_cast<int>(random.Between(2, 3));
    Streaming streaming(seed, servers);
    const char* const queue = random.OneIn(2) ? "on" : "off";
    ASSERT_TRUE(streaming.client().session().Execute(absl::StrCat("SET nam.work_queue = ", queue)).ok());
    const int64_t pause_us = random.OneIn(2) ? 0 : 500;
    const auto run = [&](Pairs& rows) { return streaming.client().session().Execute(kPairs, rows); };
    Pairs first([&] { streaming.Pause(pause_us); });
    const double before_ms = streaming.NowMs();
    ASSERT_TRUE(run(first).ok());
    EXPECT_EQ(first.rows(), kNumbers * kNumbers);
    const double whole_ms = streaming.NowMs() - before_ms;
    const auto victim = static_cast<int>(random.Below(static_cast<uint64_t>(servers)));
    const auto after_us = static_cast<int64_t>(whole_ms * static_cast<double>(random.Below(1000)));
    const bool whole_host = random.OneIn(4);
    Pairs rows([&] { streaming.Pause(pause_us); });
    absl::Status status;
    {
      const auto meanwhile = streaming.harness().StartThread("meanwhile", [&] {
        streaming.Pause(after_us);
        streaming.cluster().Kill(Cluster::Role::kCompute, victim, whole_host);
      });
      status = run(rows).status();
    }
    EXPECT_EQ(rows.repeated(), 0);
    if (status.ok()) {
      EXPECT_EQ(rows.rows(), kNumbers * kNumbers);
      ++whole;
    } else {
      EXPECT_EQ(SqlErrorOf(status).value_or(SqlError{}).sqlstate, "08006") << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "had been delivered")) << status;
      EXPECT_GT(rows.rows(), 0);
      ++ended;
    }
    // The other servers have nothing left of it.
    Pairs again([] {});
    ASSERT_TRUE(run(again).ok());
    EXPECT_EQ(again.rows(), kNumbers * kNumbers);
    EXPECT_EQ(again.repeated(), 0);
  }
  // A test that kills too early, or too late, tests nothing.
  EXPECT_GT(whole, static_cast<int>(kPairsSeeds / 10));
  EXPECT_GT(ended, static_cast<int>(kPairsSeeds / 10));
}

/// A READ of a host that is silent is not waited for, once the statement is cancelled.
TEST(StreamTest, ACancelEndsTheReadingOfAWindow) {
  Streaming streaming(1, 1);
  bool silent = false;
  double cancelled_ms = 0;
  Pairs rows([&] {
    if (silent) return;
    streaming.Pause(500'000);  // until the next window is there
    streaming.cluster().Kill(Cluster::Role::kCompute, 0, /*whole_host=*/true);
    silent = true;
  });
  const auto meanwhile = streaming.harness().StartThread("meanwhile", [&] {
    while (!silent) streaming.Pause(1'000);
    streaming.Pause(50'000);
    cancelled_ms = streaming.NowMs();
    streaming.client().session().Cancel();
  });
  const absl::Status status = streaming.client().session().Execute(kPairs, rows).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  // The server is told, for a second.
  EXPECT_LT(streaming.NowMs() - cancelled_ms, 1'500);
}

/// Twice as many as may be open, but never more at a time.
TEST(StreamTest, AttemptsThatStandStillEndWithTheirClients) {
  constexpr int kClients = 40;
  Streaming streaming(1, 2);
  for (int round = 0; round < 2; ++round) {
    int standing = 0;
    bool dead = false;
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::unique_ptr<Pairs>> rows;
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(streaming.NewClient(absl::StrCat("client-", round, "-", i)));
      rows.push_back(std::make_unique<Pairs>([&] {
        standing += !dead;
        while (!dead) streaming.Pause(10'000);
      }));
      threads.push_back(clients[i]->fabric().StartThread("session", [&, i] {
        const auto at = static_cast<size_t>(i);
        EXPECT_FALSE(clients[at]->session().Execute(kPairs, *rows[at]).ok());
      }));
    }
    streaming.Pause(1'000'000);
    EXPECT_EQ(standing, kClients);
    for (const auto& client : clients) streaming.world().KillProcess(client->process());
    dead = true;  // its threads unwind, and have no peers any more
    threads.clear();
    clients.clear();
    streaming.Pause(15'000'000);  // leases end, and the servers hear of it
  }
  Pairs rows([] {});
  EXPECT_TRUE(streaming.client().session().Execute(kPairs, rows).ok());
  EXPECT_EQ(rows.rows(), kNumbers * kNumbers);
}

/// No client reads its rows, nor waits for more.
TEST(StreamTest, AServerLeavesWhileAttemptsStandStill) {
  Streaming streaming(1, 2);
  double left_ms = 0;
  Pairs rows([&, once = true]() mutable {
    if (!std::exchange(once, false)) return;
    const double before_ms = streaming.NowMs();
    streaming.cluster().Leave(1);
    left_ms = streaming.NowMs() - before_ms;
  });
  const absl::Status status = streaming.client().session().Execute(kPairs, rows).status();
  EXPECT_LT(left_ms, 1'000);
  // The rows that it had delivered decide.
  if (status.ok()) {
    EXPECT_EQ(rows.rows(), kNumbers * kNumbers);
  }
  EXPECT_EQ(rows.repeated(), 0);
}

}  // namespace
}  // namespace nam::simulation
