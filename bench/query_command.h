#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/benchmark.h"

namespace nam::bench {

struct QueryBenchOptions {
  double scale_factor = 1;
  uint64_t seed = 1;
  int repeat = 7;
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  uint64_t memory_bytes = 0;         // per memory server; 0: enough for the scale factor
  uint64_t block_bytes = 0;          // 0: the loader's default
  int threads = 0;                   // total per side; 0: one per processor
  std::vector<std::string> queries;  // none: all
  std::string peer = "none";         // none, duckdb
  std::string peer_dir = "bench/duckdb_peer";
  uint64_t peer_memory_bytes = 0;  // 0: its default
  bool peer_file = false;          // its tables are in a file
  bool peer_sorted = false;        // the peer's tables are also sorted as NAM clusters them
  bool no_loop = false;            // only SSB has one
  uint64_t parameters_seed = 0;    // for TPC-H's random parameters; 0: the example answers' parameters
  std::string compare;             // an older report
  std::string format = "table";
};

/// `nam bench ssb` and `nam bench tpch`: a private cluster, the peer in its own process and the hand-written
/// loop take turns at every query. Leaves nothing behind. kExitCheckFailed if their rows differ.
int RunQueryBench(const Benchmark& benchmark, const QueryBenchOptions& options);

}  // namespace nam::bench
