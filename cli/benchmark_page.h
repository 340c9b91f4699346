#pragma once

#include <string>
#include <vector>

#include "terminal/json_report.h"
#include "workload/benchmark_queries.h"

namespace nam::cli {

/// `nam ssb run --html`: a self-contained page with plots of the queries' times, of the rows and bytes that
/// the compute servers streamed, and of how long their threads worked and waited. `config` as in the JSON
/// report.
std::string BenchmarkPage(const Benchmark& benchmark, const std::vector<QueryOutcome>& outcomes,
                          const Json& config);

}  // namespace nam::cli
