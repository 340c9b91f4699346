#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct ShuffleBenchOptions {
  std::string fabric = "shm";
  std::vector<uint32_t> tables;           // none: 2, 3 and 4
  int memory_servers = 0;                 // 0: 2, in sim 8
  std::vector<uint32_t> compute_servers;  // none: 2, in sim 8
  uint32_t threads = 0;                   // per compute server; 0: shared processors, in sim 10
  double scale_factor = 0;                // 0: 1
  uint64_t seed = 1;
  uint32_t fan_out = 0;             // 0: 8, or 16 for more than 8 compute servers
  uint64_t batch_bytes = 16 << 10;  // per message
  std::string multicast = "auto";   // of the pipelined plan's build sides: auto, on, off
  std::string tuples = "narrow";    // of lineorder: narrow (needed columns) or whole
  uint32_t credits = 4;             // batches per leg that a peer may send ahead
  int repeat = 5;                   // rounds; in sim 1
  std::string generation = "fdr";   // sim
  std::string format = "table";
  std::string html;  // a page with plots
};

/// `nam bench shuffle`: joins of two, three and four tables by pipelined and by shuffle-based plans, in a
/// private cluster or, in `sim`, in virtual time. Leaves nothing behind. kExitCheckFailed if answers differ.
int RunShuffleBench(const ShuffleBenchOptions& options);

}  // namespace nam::bench
