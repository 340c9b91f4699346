#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/join_workload.h"

namespace nam::bench {

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

/// Draws points; equal options give equal points. Sizes, selectivity (0.05 to 1) and skew (uniform for half
/// of the points, otherwise Zipf 0.25 to 1) are independent.
std::vector<ChoicePoint> DrawChoicePoints(const ChoicePointOptions& options);

}  // namespace nam::bench
