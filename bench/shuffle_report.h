#pragma once

#include <string>

#include "bench/plot.h"
#include "bench/shuffle_bench.h"
#include "cli/json_report.h"

/// What `nam bench shuffle` prints.
namespace nam::bench {

cli::Json ShuffleRows(const ShuffleBench& bench);
/// Ratios are at 8 compute servers if these were measured, else at the most that were. With several numbers
/// of servers, efficiency is throughput a server over that with the fewest, of the most tables.
cli::Json ShuffleSummary(const ShuffleBench& bench);
bool EqualAnswers(const ShuffleBench& bench);
PlotPage ShufflePage(const ShuffleBench& bench, const std::string& remarks);

}  // namespace nam::bench
