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

// Summaries. Settings of the figures are those of AlgorithmCase.

/// Ratios of the case with the most tuples, the highest selectivity and the least skew. If there are several
/// sizes, each also has its own keys (`rrj_over_ghj_16m`). `uniform_over_zipf_1` compares Zipf 0 and 1.
Json JoinSummary(const std::vector<CaseFigures>& figures);
/// Ratios of the cases with the most tuples; keys contain the number of groups.
Json AggregateSummary(const std::vector<CaseFigures>& figures);

// Figure 8 of Binnig et al., "The End of Slow Networks: It's Time for a Redesign", in `sim`. The expected
// orders are those of the paper's sections 5.1.3 and 5.4; `paper_order_…` says whether the participating
// algorithms keep them.

/// Joins by selectivity: RRJ, then the RDMA GHJ, then the classical ones. A semi-join reduction pays below a
/// selectivity of 0.7, not at 1; in between, the paper's equations and its text differ. Keys end with the
/// selectivity in percent: `paper_order_at_25`.
Json Figure8aSummary(const std::vector<CaseFigures>& figures);

/// Aggregation by the number of groups: up to 1K, RDMA AGG is at most 10 % slower; beyond, it is faster. Keys
/// end with the number: `paper_order_1m`.
Json Figure8bSummary(const std::vector<CaseFigures>& figures);

}  // namespace nam::bench
