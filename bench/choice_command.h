#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct ChoiceBenchOptions {
  int points = 60;
  uint64_t seed = 1;
  std::string tuples_min = "64K";
  std::string tuples_max = "32M";  // per relation
  std::vector<std::string> fabrics = {"shm", "tcp"};
  std::vector<std::string> algorithms = {"pipelined", "rrj", "rdma_ghj", "ghj", "ghj_bloom"};
  int memory_servers = 2;
  int compute_servers = 2;
  int threads = 0;  // of all compute servers; 0: one per processor
  int repeat = 3;
  bool no_calibration = false;
  std::string format = "table";
};

/// `nam bench choice`: compares the optimizer's choice for random joins with each algorithm that it could
/// have chosen.
int RunChoiceBench(const ChoiceBenchOptions& options);

}  // namespace nam::bench
