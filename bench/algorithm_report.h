#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/turns.h"
#include "terminal/json_report.h"
#include "terminal/plot.h"

/// Figures and layout of `nam bench join` and `nam bench aggregate`. In every ratio more is better.
namespace nam::bench {

/// The measurements of a case.
struct CaseFigures {
  std::string title;    // Workload::TitleOf
  Json settings;        // Workload::SettingsOf
  uint64_t tuples = 0;  // Workload::TuplesOf
  std::vector<ContenderTimes> contenders;

  /// Empty if the contender took no part.
  std::optional<double> median_ms(std::string_view contender) const;
  /// The time of `slower` over that of `faster`; empty unless both took part.
  std::optional<double> Ratio(std::string_view slower, std::string_view faster) const;
};

/// True if all answers were the expected ones.
bool AllEqual(const std::vector<CaseFigures>& figures);

/// One row per case and contender: settings, medians, speed, times of all rounds.
Json FigureRows(const std::vector<CaseFigures>& figures);

/// Bars of speeds, one group per case.
std::string SpeedPlot(const std::string& title, const std::vector<CaseFigures>& figures);
/// Bars of medians, one group per case.
std::string TimePlot(const std::string& title, const std::vector<CaseFigures>& figures);

// Summaries. Settings of the figures are those of JoinWorkload and AggregateWorkload.

/// Ratios of the case with the most tuples, the highest selectivity and the least skew. If there are several
/// sizes, each also has its own keys (`rrj_over_ghj_16m`). `uniform_over_zipf_1` compares Zipf 0 and 1.
Json JoinSummary(const std::vector<CaseFigures>& figures);
/// Ratios of the cases with the most tuples; keys contain the number of groups.
Json AggregateSummary(const std::vector<CaseFigures>& figures);

}  // namespace nam::bench
