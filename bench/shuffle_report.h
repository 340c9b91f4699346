#pragma once

#include <string>

#include "bench/shuffle_bench.h"
#include "terminal/json_report.h"
#include "terminal/plot.h"

/// The output of `nam bench shuffle`.
namespace nam::bench {

Json ShuffleRows(const ShuffleBench& bench);
/// Ratios are for 8 compute servers if measured, else for the most. Efficiency is the throughput per server
/// relative to the fewest servers, for the most tables.
Json ShuffleSummary(const ShuffleBench& bench);
bool EqualAnswers(const ShuffleBench& bench);
PlotPage ShufflePage(const ShuffleBench& bench, const std::string& remarks);

}  // namespace nam::bench
