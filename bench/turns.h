#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::bench {

/// The numbers of a query's only row. Answers are equal if all numbers are.
using Answer = std::vector<__int128>;

struct Turn {
  Answer answer;
  double elapsed_ms = 0;
};

/// A system that answers the measured question.
struct Contender {
  std::string name;
  std::function<absl::StatusOr<Turn>()> take;
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
  /// Called before every turn with its description.
  std::function<void(const std::string&)> show = [](const std::string&) {};
  const std::atomic<bool>* cancelled = nullptr;
};

/// All contenders in turn, round after round, so that other load on the machine affects all alike:
///
///     warm-up of each ─▶ a, b, c ─▶ a, b, c ─▶ …
///
/// A contender whose first turn exceeds its memory limit (RESOURCE_EXHAUSTED) has no more turns. Any other
/// error ends the run; CANCELLED between two turns.
absl::StatusOr<std::vector<ContenderTimes>> TakeTurns(const std::vector<Contender>& contenders,
                                                      const Answer& expected, const TurnsOptions& options);

}  // namespace nam::bench
