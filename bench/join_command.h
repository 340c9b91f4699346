#pragma once

#include <string>
#include <vector>

#include "bench/algorithm_command.h"

namespace nam::bench {

struct JoinBenchOptions {
  // Empty: the defaults of the help text; in sim those of the redesign paper's figure 8a.
  std::vector<std::string> tuples;  // per relation
  std::vector<double> selectivity;
  std::vector<double> zipf;
  bool no_loop = false;
  AlgorithmBenchOptions common = {.algorithms = {"rrj", "rdma_ghj", "ghj", "ghj_bloom"}};
};

/// Estimates the memory for a join of `tuples` in both relations, without the hand-written loop and the peer.
MemoryNeed JoinNeed(uint64_t tuples);

/// `nam bench join`: R ⋈ S by each algorithm, DuckDB and a hand-written radix join, in turn.
int RunJoinBench(const JoinBenchOptions& options);

}  // namespace nam::bench
