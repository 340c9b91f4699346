#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/base/seeds.h"
#include "types/sql_error.h"

namespace nam::simulation {
namespace {

constexpr uint64_t kStalledSeeds = 60;
constexpr uint32_t kStalledLeaseMs = 1'000;
constexpr char kSumQuery[] = "SELECT count(*), sum(v) FROM t";
constexpr char kCount[] = "2000", kSum[] = "2001000";

/// Two clients that run the same query. Each READ takes long, so that there is time to stall.
class Stalled {
 public:
  explicit Stalled(uint64_t seed) : world_(Options(seed)) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.threads = 1, .lease_ms = kStalledLeaseMs});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto stalled = cluster_->NewClient("client-0"), other = cluster_->NewClient("client-1");
    EXPECT_TRUE(stalled.ok() && other.ok()) << stalled.status() << other.status();
    stalled_ = *std::move(stalled);
    other_ = *std::move(other);
    for (const char* const sql : {"CREATE TABLE t (v bigint NOT NULL) WITH (storage = columnar)",
                                  "INSERT INTO t SELECT v FROM generate_series(1, 2000) AS g(v)"})
      EXPECT_TRUE(stalled_->session().Execute(sql).ok()) << sql;
  }

  /// Of the client that stalls.
  absl::StatusOr<session::ResultSet> Execute() { return stalled_->session().Execute(kSumQuery); }
  /// The others' results lie where the stalled client's lay.
  void OthersExecute() {
    const auto thread = other_->fabric().StartThread("other", [this] {
      for (int i = 0; i < 3; ++i) CheckRows(other_->session().Execute(kSumQuery));
    });
  }
  template <typename Body>
  std::unique_ptr<fabric::Thread> StartStatement(Body&& body) {
    return stalled_->fabric().StartThread("statement", body);
  }
  static void CheckRows(const absl::StatusOr<session::ResultSet>& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->rows.size(), 1u);
    EXPECT_EQ(result->rows[0][0].ToString(), kCount);
    EXPECT_EQ(result->rows[0][1].ToString(), kSum);
  }
  void PassUs(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  void StopAndCutOff() {
    world_.Partition("catalog", "client-0");
    world_.Pause(stalled_->process(), /*card_too=*/false);
  }
  void Resume() { world_.Resume(stalled_->process()); }
  void Heal() { world_.Heal("catalog", "client-0"); }

 private:
  static fabric::sim::WorldOptions Options(uint64_t seed) {
    fabric::sim::WorldOptions options;
    options.seed = seed;
    options.nic.read_ns = 20'000;
    return options;
  }

  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> stalled_, other_;
};

/// A client stops while its query runs, for longer than its lease: its servers drop its results, and others'
/// lie there when it goes on. The catalog answers it at once, after a while, or only once it has given up.
TEST(StalledClientTest, IsNotToldThatSomethingIsDamaged) {
  const uint64_t seeds = FromEnvironment("NAM_SIM_SEEDS", kStalledSeeds);
  uint64_t lost = 0, unknown = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    Stalled world(seed);
    Stalled::CheckRows(world.Execute());
    const absl::StatusOr<session::ResultSet> whole = world.Execute();
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto after_us = static_cast<int64_t>(whole->elapsed_ms * 1000 *
                                               (0.3 + 0.7 * static_cast<double>(random.Below(1000)) / 1000));
    const int64_t silent_us = random.OneIn(3) ? 0 : static_cast<int64_t>(random.Below(12'000)) * 1'000;
    absl::StatusOr<session::ResultSet> result = absl::UnknownError("not run");
    auto statement = world.StartStatement([&] { result = world.Execute(); });
    world.PassUs(after_us);
    world.StopAndCutOff();
    world.PassUs(int64_t{2} * kStalledLeaseMs * 1'000);
    world.OthersExecute();
    if (silent_us == 0) world.Heal();
    world.Resume();
    world.PassUs(silent_us);
    if (silent_us > 0) world.Heal();
    statement.reset();
    if (result.ok()) {
      Stalled::CheckRows(result);
    } else {
      const auto error = SqlErrorOf(result.status());
      ASSERT_TRUE(error.has_value()) << result.status();
      EXPECT_EQ(error->sqlstate, "08006") << result.status();
      ++(error->message.find("may be lost") == std::string::npos ? lost : unknown);
    }
    Stalled::CheckRows(world.Execute());
  }
  // A test that stops clients too early or too late tests nothing.
  EXPECT_GT(lost, seeds / 10);
  EXPECT_GT(unknown, seeds / 10);
}

}  // namespace
}  // namespace nam::simulation
