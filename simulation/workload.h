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

/// What the clients of a simulated cluster do with a benchmark, and what they may expect. Everything is
/// written to a RunResult. Its threads are the world's, so one runs at a time.
class Workload {
 public:
  Workload(Cluster& cluster, Adversary& adversary, const BenchmarkAnswers& answers, const LoadShape& shape,
           RunResult& result);
  ~Workload();

  /// Loads all tables, again after errors, until they are there; whoever loads may be killed.
  void Load(RandomStream random);
  /// `clients` at once, `statements` each. The first reloads what dead memory servers have lost.
  void RunClients(RandomStream random, int clients, int statements);
  /// All is mended: every query must come to its right answer, after few attempts.
  void RunAllQueries();
  /// Drops all tables; then no memory server holds anything.
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
  std::unique_ptr<fabric::Fabric> harness_;  // of the clients' threads
  int loaded_at_deaths_ = -1;
  int replacements_ = 0;  // begun
  bool replacing_ = false;
};

}  // namespace nam::simulation
