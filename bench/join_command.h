#pragma once

#include <string>
#include <vector>

#include "bench/algorithm_command.h"

namespace nam::bench {

struct JoinBenchOptions {
  std::vector<std::string> tuples = {"16M"};  // of each relation
  std::vector<double> selectivity = {1};
  std::vector<double> zipf = {0, 1};
  bool no_loop = false;
  AlgorithmBenchOptions common = {.algorithms = {"rrj", "rdma_ghj", "ghj", "ghj_bloom"}};
};

/// `nam bench join`: R ⋈ S by each algorithm, DuckDB and a radix join by hand, in turn.
int RunJoinBench(const JoinBenchOptions& options);

}  // namespace nam::bench
