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
  int repeat = 3;                  // of each query in a round
  std::string fabric = "shm";
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 0;                   // in all; 0: one a processor
  std::vector<std::string> queries;  // none: all 13
  std::string format = "table";
};

/// `nam bench blocks`: SSB's queries in place and by READ over blocks of several sizes, which chose the
/// loader's own. Leaves nothing behind. kExitCheckFailed if two sizes give different rows.
int RunBlockSizeBench(const BlockSizeBenchOptions& options);

}  // namespace nam::bench
