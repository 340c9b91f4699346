#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/command.h"
#include "workload/benchmark_data.h"
#include "workload/benchmark_queries.h"

namespace nam::bench {

/// The common parts of benchmarks that load a benchmark's tables into a cluster of their own.
class QueryClusterCommand : public Command {
 protected:
  QueryClusterCommand(const Benchmark& benchmark, std::string name, std::string help)
      : Command(std::move(name), std::move(help)), benchmark_(benchmark) {}
  /// `own`, and the common options.
  std::vector<Option> WithCluster(std::vector<Option> own);
  /// `parameters_seed` as in QueryParameters; 0: the example answers' parameters.
  absl::Status CheckCluster(uint64_t parameters_seed);
  /// `memory_bytes` of each memory server.
  LocalClusterOptions ClusterFor(uint64_t memory_bytes) const;
  /// Enough for the tables.
  uint64_t TableMemory() const;

  const Benchmark& benchmark_;
  double scale_factor_ = 1;
  uint64_t seed_ = 1;
  std::string fabric_ = "shm";
  int memory_servers_ = 2;
  int compute_servers_ = 2;
  int threads_ = 0;  // total per side, a multiple of the compute servers; 0: one per processor
  // Checked:
  DataSource source_;
  std::vector<BenchmarkQuery> queries_;

 private:
  std::vector<std::string> query_ids_;  // none: all
};

}  // namespace nam::bench
