#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct SsbBenchOptions {
  double scale_factor = 1;
  uint64_t seed = 1;
  int repeat = 7;
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  uint64_t memory_bytes = 0;         // of each memory server; 0: enough for the scale factor
  uint64_t block_bytes = 0;          // 0: the loader's default
  int threads = 0;                   // of each side in all; 0: one a processor
  std::vector<std::string> queries;  // none: all 13
  std::string peer = "none";         // none, duckdb
  std::string peer_dir = "bench/duckdb_peer";
  bool peer_sorted = false;  // lineorder by order date in the peer too
  bool no_loop = false;
  std::string compare;  // an older report
  std::string format = "table";
};

/// `nam bench ssb`: a private cluster, the peer in a process of its own and the hand-written loop take
/// turns at every query. Leaves nothing behind. kExitCheckFailed if their rows differ.
int RunSsbBench(const SsbBenchOptions& options);

}  // namespace nam::bench
