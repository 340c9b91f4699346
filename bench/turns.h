#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "terminal/json_report.h"
#include "types/value.h"

/// Contenders that answer the same questions in turn, and their times.
namespace nam::bench {

using Rows = std::vector<std::vector<Value>>;

struct Turn {
  Rows rows;
  double elapsed_ms = 0;
};

/// A system that answers the measured question.
struct Contender {
  std::string name;
  std::function<absl::StatusOr<Turn>()> take;
  bool answers = true;  // false: a bound, which has no rows
};

struct ContenderTimes {
  std::string name;
  std::vector<double> times_ms;
  bool equal = true;    // to the expected answer, in every turn
  std::string refusal;  // why there are no times

  double median_ms() const;
  double min_ms() const;
};

struct TurnsOptions {
  int repeat = 3;  // turns per contender, after a warm-up turn
  /// The number of contenders, from the first, that warm up. In virtual time one suffices.
  size_t warm_up = std::numeric_limits<size_t>::max();
  /// Called before every turn with its description; false ends the work with CANCELLED.
  std::function<bool(const std::string& turn)> proceed = [](const std::string&) { return true; };
};

/// All contenders in turn, round after round, so that other load on the machine affects all alike:
///
///     warm-up of each ─▶ a, b, c ─▶ a, b, c ─▶ …
///
/// `right` says whether rows are the expected ones. A contender whose first turn exceeds its memory limit
/// (RESOURCE_EXHAUSTED) has no more turns. Any other error ends the run.
absl::StatusOr<std::vector<ContenderTimes>> TakeTurns(const std::vector<Contender>& contenders,
                                                      const std::function<bool(const Rows&)>& right,
                                                      const TurnsOptions& options);

/// The measurements of one question.
struct CaseFigures {
  std::string title;
  Json settings;        // what identifies it, as columns of the report
  uint64_t tuples = 0;  // the measure of speed, if any
  std::vector<ContenderTimes> contenders;
  Json plan;  // EXPLAIN's, if it was asked for

  /// Empty if the contender took no part.
  std::optional<double> median_ms(std::string_view contender) const;
  /// The time of `slower` over that of `faster`; empty unless both took part.
  std::optional<double> Ratio(std::string_view slower, std::string_view faster) const;
  /// True if all answers were the expected ones.
  bool equal() const;
};

bool AllEqual(const std::vector<CaseFigures>& cases);
/// Bars of `height` of each case and median, one group per case.
std::string CaseChart(const std::string& title, const std::string& y_label,
                      const std::vector<CaseFigures>& cases,
                      const std::function<double(const CaseFigures&, double ms)>& height);
/// Bars of medians.
std::string TimeChart(const std::string& title, const std::vector<CaseFigures>& cases);

}  // namespace nam::bench
