#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/turns.h"
#include "terminal/json_report.h"
#include "terminal/plot.h"

/// The arithmetic and the looks of `nam bench join` and `nam bench aggregate`. In every ratio more is better.
namespace nam::bench {

/// What was measured of a case.
struct CaseFigures {
  std::string title;    // Workload::TitleOf
  Json settings;        // Workload::SettingsOf
  uint64_t tuples = 0;  // Workload::TuplesOf
  std::vector<ContenderTimes> contenders;

  /// Nothing if it took no part.
  std::optional<double> median_ms(std::string_view contender) const;
  /// How many times as long `slower` takes as `faster`; nothing unless both took part.
  std::optional<double> Ratio(std::string_view slower, std::string_view faster) const;
};

/// Whether all have answered as was expected.
bool AllEqual(const std::vector<CaseFigures>& figures);

/// One row for each case and contender: settings, medians, speed, times of all rounds.
Json FigureRows(const std::vector<CaseFigures>& figures);
/// Without what a table has no room for.
Json WithoutRounds(Json rows);

/// Bars of speeds: a group for each case.
std::string SpeedPlot(const std::string& title, const std::vector<CaseFigures>& figures);
/// Likewise of medians.
std::string TimePlot(const std::string& title, const std::vector<CaseFigures>& figures);

/// Sets the key to three decimals, or leaves it out.
void SetRatio(Json& summary, const std::string& key, const std::optional<double>& ratio);

// Summaries. Settings of the figures are those of JoinWorkload and AggregateWorkload.

/// Ratios of the case with the most tuples, the highest selectivity and the least skew. If there are several
/// sizes, each has keys that end with it besides (`rrj_over_ghj_16m`). `uniform_over_zipf_1` compares Zipf 0
/// and 1.
Json JoinSummary(const std::vector<CaseFigures>& figures);
/// Ratios of the cases with the most tuples; keys name the number of groups.
Json AggregateSummary(const std::vector<CaseFigures>& figures);

}  // namespace nam::bench
