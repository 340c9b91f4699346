#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/sim/world.h"
#include "simulation/benchmark_answers.h"
#include "simulation/cluster.h"

namespace nam::simulation {

/// The answers of SSB at scale factor 0.002, which the tests' tables are loaded from.
inline const BenchmarkAnswers& Answers() {
  static const BenchmarkAnswers* const answers = [] {
    auto made = BenchmarkAnswers::Make(SsbBenchmark(), 0.002);
    EXPECT_TRUE(made.ok()) << made.status();
    return made->release();
  }();
  return *answers;
}

/// After a kill a query fails, or completes, within this time plus its usual one.
inline constexpr double kPromisedMs = 5'000;

/// What became of statements during which members died.
struct Fates {
  int in_time = 0;  // victims that died before the statement's end
  int failed = 0;
};

/// A simulated cluster with SSB in it, and a client. Each READ takes long, so that there is time for servers
/// to go.
class LoadedCluster {
 public:
  static constexpr uint64_t kScratchBytes = uint64_t{16} << 20;  // of a memory server

  LoadedCluster(const std::string& test, uint64_t seed, int compute_servers, int memory_servers)
      : store_(std::filesystem::path(::testing::TempDir()) / absl::StrCat(test, "-", seed, ".db")),
        world_(Options(seed)) {
    std::filesystem::remove(store_);
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.memory_servers = memory_servers,
                                           .compute_servers = compute_servers,
                                           .threads = 2,
                                           .scratch_bytes = kScratchBytes,
                                           .always_by_parts = true,
                                           .catalog_store = store_});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client-0");
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const absl::Status loaded =
        LoadTables(client_->attachment(), Answers(), {.fan_out = 4, .block_bytes = 4096});
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
  ~LoadedCluster() {
    client_.reset();
    cluster_.reset();
    std::filesystem::remove(store_);
  }

  /// `join = 'ghj'`
  void Set(const std::string& setting) { EXPECT_TRUE(Execute("SET nam." + setting).ok()) << setting; }
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql) {
    return client_->session().Execute(sql);
  }
  /// Runs the statement, with `meanwhile` on another thread.
  template <typename Meanwhile>
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql, Meanwhile&& meanwhile) {
    const auto thread = StartThread(meanwhile);
    return Execute(sql);
  }
  /// Of no process of the cluster.
  template <typename Body>
  std::unique_ptr<fabric::Thread> StartThread(Body&& body) {
    return harness_->StartThread("meanwhile", body);
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  double NowMs() { return static_cast<double>(world_.clock().NowNs()) / 1e6; }
  Cluster& cluster() { return *cluster_; }
  fabric::sim::World& world() { return world_; }

 private:
  static fabric::sim::WorldOptions Options(uint64_t seed) {
    fabric::sim::WorldOptions options;
    options.seed = seed;
    options.nic.read_ns = 20'000;
    return options;
  }

  const std::string store_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

}  // namespace nam::simulation
