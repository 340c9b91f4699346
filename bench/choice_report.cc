#include "bench/choice_report.h"

#include <algorithm>
#include <cmath>

#include "bench/report.h"

namespace nam::bench {
namespace {

constexpr char kAuto[] = "auto";

std::optional<double> OverBest(std::optional<double> ms, const std::optional<ChoiceResult::Fastest>& best) {
  return best.has_value() ? RatioOf(ms, best->ms) : std::nullopt;
}

}  // namespace

std::optional<double> ChoiceResult::MedianMs(const std::string& contender) const {
  for (const ContenderTimes& times : contenders) {
    if (times.name == contender) return times.median_ms();
  }
  return std::nullopt;
}

std::optional<ChoiceResult::Fastest> ChoiceResult::Best() const {
  std::optional<Fastest> best;
  for (const ContenderTimes& times : contenders) {
    if (times.name == kAuto) continue;
    if (!best.has_value() || times.median_ms() < best->ms) best = {times.name, times.median_ms()};
  }
  return best;
}

std::optional<double> ChoiceResult::ChosenMs() const {
  const std::optional<double> forced = MedianMs(chosen);
  return forced.has_value() ? forced : MedianMs(kAuto);
}

Json ChoiceRows(const std::vector<ChoiceResult>& results) {
  Json rows = Json::array();
  for (const ChoiceResult& each : results) {
    const auto best = each.Best();
    Json& row = rows.emplace_back(Json{{"fabric", each.point.fabric},
                                       {"r_tuples", each.point.join.tuples},
                                       {"s_tuples", each.point.join.s_tuples},
                                       {"selectivity", each.point.join.selectivity},
                                       {"zipf", each.point.join.zipf},
                                       {"chosen", each.chosen},
                                       {"best", best.has_value() ? best->name : ""}});
    SetIf(row, "chosen_over_best", OverBest(each.ChosenMs(), best));
    SetIf(row, "auto_over_best", OverBest(each.MedianMs(kAuto), best));
    for (const ContenderTimes& times : each.contenders) row[times.name + "_ms"] = Rounded(times.median_ms());
    for (const auto& [name, ms] : each.estimated_ms) row[name + "_estimated_ms"] = Rounded(ms);
    const bool equal = std::all_of(each.contenders.begin(), each.contenders.end(),
                                   [](const ContenderTimes& times) { return times.equal; });
    row["answers"] = equal ? "equal" : "DIFFERENT";
  }
  return rows;
}

Json ChoiceSummary(const std::vector<ChoiceResult>& results) {
  int points = 0, within = 0, auto_within = 0, always_within = 0;
  std::map<std::string, int> always;
  double worst = 1, logarithms = 0;
  for (const ChoiceResult& each : results) {
    const auto best = each.Best();
    const auto chosen = OverBest(each.ChosenMs(), best), run = OverBest(each.MedianMs(kAuto), best);
    if (!chosen.has_value()) continue;
    ++points;
    within += *chosen <= kGoodChoice;
    auto_within += run.has_value() && *run <= kGoodChoice;
    for (const ContenderTimes& times : each.contenders) {
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

bool AllEqual(const std::vector<ChoiceResult>& results) {
  return std::all_of(results.begin(), results.end(), [](const ChoiceResult& each) {
    return std::all_of(each.contenders.begin(), each.contenders.end(),
                       [](const ContenderTimes& times) { return times.equal; });
  });
}

}  // namespace nam::bench
