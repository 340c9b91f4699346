#pragma once

#include <string>
#include <vector>

#include "bench/turns.h"
#include "terminal/json_report.h"

/// Figures and layout of `nam bench join` and `nam bench aggregate`. In every ratio more is better.
namespace nam::bench {

/// One row per case and contender: settings, medians, speed, times of all rounds.
Json FigureRows(const std::vector<CaseFigures>& figures);

/// Bars of speeds, one group per case.
std::string SpeedChart(const std::string& title, const std::vector<CaseFigures>& figures);

// Summaries. Settings of the figures are those of JoinWorkload and AggregateWorkload.

/// Ratios of the case with the most tuples, the highest selectivity and the least skew. If there are several
/// sizes, each also has its own keys (`rrj_over_ghj_16m`). `uniform_over_zipf_1` compares Zipf 0 and 1.
Json JoinSummary(const std::vector<CaseFigures>& figures);
/// Ratios of the cases with the most tuples; keys contain the number of groups.
Json AggregateSummary(const std::vector<CaseFigures>& figures);

}  // namespace nam::bench
