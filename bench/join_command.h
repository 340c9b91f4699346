#pragma once

#include <string>
#include <vector>

#include "bench/algorithm_command.h"

namespace nam::bench {

struct JoinBenchOptions {
  // Empty: as the help says, in sim those of the redesign paper's figure 8a.
  std::vector<std::string> tuples;  // of each relation
  std::vector<double> selectivity;
  std::vector<double> zipf;
  bool no_loop = false;
  AlgorithmBenchOptions common = {.algorithms = {"rrj", "rdma_ghj", "ghj", "ghj_bloom"}};
};

/// Estimates of what a join of so many tuples in both relations takes, without a loop by hand and a peer.
MemoryNeed JoinNeed(uint64_t tuples);

/// `nam bench join`: R ⋈ S by each algorithm, DuckDB and a radix join by hand, in turn.
int RunJoinBench(const JoinBenchOptions& options);

}  // namespace nam::bench
