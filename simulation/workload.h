#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/random.h"
#include "simulation/benchmark_answers.h"
#include "simulation/cluster.h"
#include "simulation/examiner.h"
#include "simulation/faults.h"
#include "simulation/result.h"

namespace nam::simulation {

/// The clients' work on a benchmark in a simulated cluster, and the expected answers. Records everything in a
/// RunResult. Its threads belong to the world, so one runs at a time.
class Workload {
 public:
  Workload(Cluster& cluster, Adversary& adversary, const BenchmarkAnswers& answers, const LoadShape& shape,
           RunResult& result);
  ~Workload();

  /// Loads all tables, retrying after errors; the loading client may be killed.
  void Load(RandomStream random);
  /// Runs `clients` concurrently, `statements` each. The first one reloads tables that dead memory servers
  /// have lost.
  void RunClients(RandomStream random, int clients, int statements);
  /// Requires that all is mended: every query must return its right answer after few attempts.
  void RunAllQueries();
  /// Drops all tables and checks that no memory server holds anything.
  void DropAll();

 private:
  class QueryClient;

  bool TablesLost() const { return loaded_at_deaths_ != cluster_.memory_deaths(); }

  Cluster& cluster_;
  Adversary& adversary_;
  fabric::sim::World& world_;
  const BenchmarkAnswers& answers_;
  const LoadShape shape_;
  RunResult& result_;
  Examiner examiner_;
  std::unique_ptr<fabric::Fabric> harness_;  // for the clients' threads
  int loaded_at_deaths_ = -1;
  int replacements_ = 0;  // started
  bool replacing_ = false;
};

}  // namespace nam::simulation
