#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/algorithm_case.h"
#include "bench/turns.h"
#include "terminal/json_report.h"

namespace nam::bench {

/// Names the algorithm that the optimizer chooses.
inline constexpr char kAuto[] = "auto";

/// A join for whose algorithm the optimizer must decide.
struct ChoicePoint {
  std::string fabric;
  JoinCase join;
};

struct ChoicePointOptions {
  uint32_t points = 60;
  uint64_t seed = 1;
  // Bounds of each relation's size, which is drawn evenly over orders of magnitude.
  uint64_t tuples_min = uint64_t{64} << 10;
  uint64_t tuples_max = uint64_t{32} << 20;
  std::vector<std::string> fabrics = {"shm", "tcp"};  // take turns
};

/// Draws points; equal options give equal points. Sizes, selectivity (0.05 to 1) and skew are independent:
/// half of the points are uniform, the others follow Zipf 0.25 to 1.
std::vector<ChoicePoint> DrawChoicePoints(const ChoicePointOptions& options);

/// The measurements of a point, with every algorithm that can be forced, and `auto`.
struct ChoiceResult {
  CaseFigures figures;                              // its settings are the point's
  std::string chosen;                               // by the optimizer, as named in EXPLAIN
  std::map<std::string, double> estimated_ms = {};  // the optimizer's, by possible algorithm

  struct Fastest {
    std::string name;
    double ms = 0;
  };
  /// The fastest forced algorithm; empty if none took part.
  std::optional<Fastest> Best() const;
  /// The time of the optimizer's choice, when forced; otherwise that of `auto`.
  std::optional<double> ChosenMs() const;
};
/// `measured` has the plan of `auto`.
ChoiceResult ResultOf(const ChoicePoint& point, CaseFigures measured);

/// A choice is good if its time over the best is at most this.
inline constexpr double kGoodChoice = 1.15;

/// One row per point: `chosen`, `best`, their ratio, `auto`'s ratio, and for each algorithm its time and its
/// estimated time, in ms.
Json ChoiceRows(const std::vector<ChoiceResult>& results);
/// `within_15_percent` of `points`; the same for `auto` as it ran, and for the single algorithm that would
/// score best if always used; the worst ratio, and the geometric mean.
Json ChoiceSummary(const std::vector<ChoiceResult>& results);

}  // namespace nam::bench
