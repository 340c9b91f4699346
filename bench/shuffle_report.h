#pragma once

#include <string>
#include <vector>

#include "bench/shuffle_bench.h"
#include "terminal/json_report.h"

/// The output of `nam bench shuffle`.
namespace nam::bench {

Json ShuffleRows(const ShuffleBench& bench);
/// Ratios are for 8 compute servers if measured, else for the most. Efficiency is the throughput per server
/// relative to the fewest servers, for the most tables.
Json ShuffleSummary(const ShuffleBench& bench);
bool EqualAnswers(const ShuffleBench& bench);
/// SVG, of the report's rows: the paper's figure, times and ratios, and throughput by servers if there are
/// several numbers of them.
std::vector<std::string> ShuffleCharts(const ShuffleBench& bench, const Json& rows);

}  // namespace nam::bench
