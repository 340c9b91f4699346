#include "bench/choice_report.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "bench/report.h"

namespace nam::bench {
namespace {

std::optional<double> OverBest(std::optional<double> ms, const std::optional<ChoiceResult::Fastest>& best) {
  return best.has_value() ? RatioOf(ms, best->ms) : std::nullopt;
}

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

ChoiceResult ResultOf(const ChoicePoint& point, CaseFigures measured) {
  const Json::json_pointer chosen("/0/joins/0/algorithm"), estimates("/0/joins/0/estimated_ms");
  ChoiceResult result{.figures = std::move(measured)};
  const Json& plan = result.figures.plan;
  result.figures.settings = {{"fabric", point.fabric},
                             {"r_tuples", point.join.tuples},
                             {"s_tuples", point.join.s_tuples},
                             {"selectivity", point.join.selectivity},
                             {"zipf", point.join.zipf}};
  if (plan.contains(chosen)) result.chosen = plan.at(chosen).get<std::string>();
  if (!plan.contains(estimates)) return result;
  for (const auto& [name, ms] : plan.at(estimates).items()) result.estimated_ms[name] = ms.get<double>();
  return result;
}

std::optional<ChoiceResult::Fastest> ChoiceResult::Best() const {
  std::optional<Fastest> best;
  for (const ContenderTimes& times : figures.contenders) {
    if (times.name == kAuto) continue;
    if (!best.has_value() || times.median_ms() < best->ms) best = {times.name, times.median_ms()};
  }
  return best;
}

std::optional<double> ChoiceResult::ChosenMs() const {
  const std::optional<double> forced = figures.median_ms(chosen);
  return forced.has_value() ? forced : figures.median_ms(kAuto);
}

Json ChoiceRows(const std::vector<ChoiceResult>& results) {
  Json rows = Json::array();
  for (const ChoiceResult& each : results) {
    const auto best = each.Best();
    Json& row = rows.emplace_back(each.figures.settings);
    row["chosen"] = each.chosen;
    row["best"] = best.has_value() ? best->name : "";
    SetIf(row, "chosen_over_best", OverBest(each.ChosenMs(), best));
    SetIf(row, "auto_over_best", OverBest(each.figures.median_ms(kAuto), best));
    for (const ContenderTimes& times : each.figures.contenders)
      row[times.name + "_ms"] = Rounded(times.median_ms());
    for (const auto& [name, ms] : each.estimated_ms) row[name + "_estimated_ms"] = Rounded(ms);
    row["answers"] = each.figures.equal() ? "equal" : "DIFFERENT";
  }
  return rows;
}

Json ChoiceSummary(const std::vector<ChoiceResult>& results) {
  int points = 0, within = 0, auto_within = 0, always_within = 0;
  std::map<std::string, int> always;
  double worst = 1, logarithms = 0;
  for (const ChoiceResult& each : results) {
    const auto best = each.Best();
    const auto chosen = OverBest(each.ChosenMs(), best), run = OverBest(each.figures.median_ms(kAuto), best);
    if (!chosen.has_value()) continue;
    ++points;
    within += *chosen <= kGoodChoice;
    auto_within += run.has_value() && *run <= kGoodChoice;
    for (const ContenderTimes& times : each.figures.contenders) {
      if (times.name == kAuto) continue;
      int& of = always[times.name];
      of += *OverBest(times.median_ms(), best) <= kGoodChoice;
      always_within = std::max(always_within, of);
    }
    worst = std::max(worst, *chosen);
    logarithms += std::log(*chosen);
  }
  Json summary{{"points", points},
               {"within_15_percent", within},
               {"auto_within_15_percent", auto_within},
               {"always_one_within_15_percent", always_within}};
  if (points == 0) return summary;
  summary["worst_over_best"] = Rounded(worst);
  summary["mean_over_best"] = Rounded(std::exp(logarithms / points));
  return summary;
}

}  // namespace nam::bench
