#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct BlockSizeBenchOptions {
  double scale_factor = 1;
  uint64_t seed = 1;
  std::vector<std::string> sizes;  // none: 16 KiB to 1 MiB
  int rounds = 3;                  // in which all sizes take turns
  int repeat = 3;                  // runs of each query per round
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 0;                   // total; 0: one per processor
  std::vector<std::string> queries;  // none: all 13
  std::string format = "table";
};

/// `nam bench blocks`: SSB's queries in place and by READ, with several block sizes; the loader's default
/// comes from it. Leaves nothing behind. kExitCheckFailed if two sizes give different rows.
int RunBlockSizeBench(const BlockSizeBenchOptions& options);

}  // namespace nam::bench
