#pragma once

#include <string>
#include <vector>

#include "bench/algorithm_command.h"

namespace nam::bench {

struct AggregateBenchOptions {
  std::vector<std::string> tuples = {"128M"};
  std::vector<std::string> groups = {"1", "1K", "1M", "16M", "64M"};
  std::string keys = "dense";  // or spread
  AlgorithmBenchOptions common = {.algorithms = {"rdma", "dist"}};
};

/// `nam bench aggregate`: one table, grouped by each algorithm and DuckDB in turn.
int RunAggregateBench(const AggregateBenchOptions& options);

}  // namespace nam::bench
