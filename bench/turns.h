#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::bench {

/// The numbers of a query's only row. Two answers are equal if all numbers are.
using Answer = std::vector<__int128>;

struct Turn {
  Answer answer;
  double elapsed_ms = 0;
};

/// Somebody who answers the question that is measured.
struct Contender {
  std::string name;
  std::function<absl::StatusOr<Turn>()> take;
};

struct ContenderTimes {
  std::string name;
  std::vector<double> times_ms;
  bool equal = true;    // to what was expected, in every turn
  std::string refusal;  // why there are no times

  double median_ms() const;
  double min_ms() const;
};

struct TurnsOptions {
  int repeat = 3;  // of each contender, after a turn to warm up
  /// That warm up: the first ones. In virtual time one does for all.
  size_t warm_up = std::numeric_limits<size_t>::max();
  /// Called before every turn with what it is.
  std::function<void(const std::string&)> show = [](const std::string&) {};
  const std::atomic<bool>* cancelled = nullptr;
};

/// All contenders in turn, round after round, so that whatever the machine does besides meets all of them:
///
///     warm-up of each ─▶ a, b, c ─▶ a, b, c ─▶ …
///
/// One whose first turn takes more memory than it may have (RESOURCE_EXHAUSTED) has none from then on. Any
/// other error ends it; CANCELLED between two turns.
absl::StatusOr<std::vector<ContenderTimes>> TakeTurns(const std::vector<Contender>& contenders,
                                                      const Answer& expected, const TurnsOptions& options);

}  // namespace nam::bench
