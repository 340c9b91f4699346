#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/join_workload.h"

namespace nam::bench {

/// A join of which the optimizer chooses the algorithm.
struct ChoicePoint {
  std::string fabric;
  JoinCase join;
};

struct ChoicePointOptions {
  uint32_t points = 60;
  uint64_t seed = 1;
  // Each relation has so many tuples, drawn evenly over orders of magnitude.
  uint64_t tuples_min = uint64_t{64} << 10;
  uint64_t tuples_max = uint64_t{32} << 20;
  std::vector<std::string> fabrics = {"shm", "tcp"};  // which take turns
};

/// Equal options give equal points. Sizes, selectivity (0.05 to 1) and skew (half of the points: uniform; the
/// others: Zipf 0.25 to 1) are drawn independently of each other.
std::vector<ChoicePoint> DrawChoicePoints(const ChoicePointOptions& options);

}  // namespace nam::bench
