#pragma once

#include <string>
#include <vector>

#include "bench/algorithm_command.h"

namespace nam::bench {

struct AggregateBenchOptions {
  // Empty: the defaults of the help text; in sim those of the redesign paper's figure 8b.
  std::vector<std::string> tuples;
  std::vector<std::string> groups;
  std::string keys = "dense";  // or spread
  AlgorithmBenchOptions common = {.algorithms = {"rdma", "dist"}};
};

/// `nam bench aggregate`: groups one table with each algorithm and DuckDB in turn.
int RunAggregateBench(const AggregateBenchOptions& options);

}  // namespace nam::bench
