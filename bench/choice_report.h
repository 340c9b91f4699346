#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/choice_points.h"
#include "bench/turns.h"
#include "terminal/json_report.h"

namespace nam::bench {

/// What was measured of a point: every algorithm that can be forced, and `auto`.
struct ChoiceResult {
  ChoicePoint point;
  std::string chosen;  // by the optimizer, as EXPLAIN names it
  std::vector<ContenderTimes> contenders;
  std::map<std::string, double> estimated_ms = {};  // of each algorithm that can make it, by the optimizer

  struct Fastest {
    std::string name;
    double ms = 0;
  };
  /// The fastest of the forced ones; nothing if none took part.
  std::optional<Fastest> Best() const;
  /// The time of the algorithm that the optimizer has chosen: forced, or else that of `auto`.
  std::optional<double> ChosenMs() const;
  std::optional<double> MedianMs(const std::string& contender) const;
};

/// The choice counts if it takes at most so many times as long as the best.
inline constexpr double kGoodChoice = 1.15;

/// One row a point: `chosen`, `best`, their ratio, `auto`'s ratio, and for each algorithm what it took and,
/// if they are asked for, was estimated to take, in ms.
Json ChoiceRows(const std::vector<ChoiceResult>& results, bool estimates);
/// `within_15_percent` of `points`; of `auto` as it ran; of the one algorithm that would have most if it were
/// always taken; the worst ratio, and the geometric mean.
Json ChoiceSummary(const std::vector<ChoiceResult>& results);
bool AllEqual(const std::vector<ChoiceResult>& results);

}  // namespace nam::bench
