#pragma once

#include <string>

#include "bench/shuffle_bench.h"
#include "terminal/json_report.h"
#include "terminal/plot.h"

/// What `nam bench shuffle` prints.
namespace nam::bench {

Json ShuffleRows(const ShuffleBench& bench);
/// Ratios are at 8 compute servers if these were measured, else at the most that were. With several numbers
/// of servers, efficiency is throughput a server over that with the fewest, of the most tables.
Json ShuffleSummary(const ShuffleBench& bench);
bool EqualAnswers(const ShuffleBench& bench);
PlotPage ShufflePage(const ShuffleBench& bench, const std::string& remarks);

}  // namespace nam::bench
