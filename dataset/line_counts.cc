#include "dataset/line_counts.h"

#include <array>

namespace nam::dataset {

LineCounts::LineCounts(uint64_t first_order) : state_(kSeed) {
  uint64_t power = kMultiplier;
  for (uint64_t n = first_order; n != 0; n >>= 1) {
    if (n & 1) state_ = state_ * power % kModulus;
    power = power * power % kModulus;
  }
}

uint64_t CountLines(uint64_t first_order, uint64_t orders) {
  // Four ranges at once: a single one would wait for its own multiplication.
  const uint64_t stretch = orders / 4;
  std::array<LineCounts, 4> lanes = {LineCounts(first_order), LineCounts(first_order + stretch),
                                     LineCounts(first_order + 2 * stretch),
                                     LineCounts(first_order + 3 * stretch)};
  std::array<uint64_t, 4> lines = {};
  for (uint64_t i = 0; i < stretch; ++i) {
    for (int lane = 0; lane < 4; ++lane) lines[lane] += lanes[lane].Next();
  }
  for (uint64_t i = 4 * stretch; i < orders; ++i) lines[3] += lanes[3].Next();
  return lines[0] + lines[1] + lines[2] + lines[3];
}

}  // namespace nam::dataset
