#include "bench/choice_points.h"

#include <cmath>

#include "base/random.h"

namespace nam::bench {
namespace {

uint64_t DrawTuples(RandomStream& random, const ChoicePointOptions& options) {
  const double least = std::log2(static_cast<double>(options.tuples_min));
  const double most = std::log2(static_cast<double>(options.tuples_max));
  return static_cast<uint64_t>(std::exp2(least + random.Fraction() * (most - least)));
}

/// Rounds so that a report shows the exact number.
double InHundredths(double value) {
  return std::round(value * 100) / 100;
}

}  // namespace

std::vector<ChoicePoint> DrawChoicePoints(const ChoicePointOptions& options) {
  RandomStream random(options.seed);
  std::vector<ChoicePoint> points;
  for (uint32_t i = 0; i < options.points; ++i) {
    ChoicePoint& point = points.emplace_back();
    point.fabric = options.fabrics[i % options.fabrics.size()];
    point.join.tuples = DrawTuples(random, options);
    point.join.s_tuples = DrawTuples(random, options);
    point.join.selectivity = InHundredths(0.05 + 0.95 * random.Fraction());
    const bool skewed = random.Below(2) == 1;
    const double zipf = InHundredths(0.25 + 0.75 * random.Fraction());
    point.join.zipf = skewed ? zipf : 0;
  }
  return points;
}

}  // namespace nam::bench
