#include "bench/turns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "bench/report.h"
#include "terminal/plot.h"

namespace nam::bench {

double ContenderTimes::median_ms() const {
  return Median(times_ms);
}

double ContenderTimes::min_ms() const {
  NAM_CHECK(!times_ms.empty());
  return *std::min_element(times_ms.begin(), times_ms.end());
}

absl::StatusOr<std::vector<ContenderTimes>> TakeTurns(const std::vector<Contender>& contenders,
                                                      const std::function<bool(const Rows&)>& right,
                                                      const TurnsOptions& options) {
  std::vector<ContenderTimes> all;
  for (const Contender& contender : contenders) all.push_back({.name = contender.name});
  for (int round = 0; round <= options.repeat; ++round) {
    const size_t turns = round == 0 ? std::min(options.warm_up, contenders.size()) : contenders.size();
    for (size_t i = 0; i < turns; ++i) {
      if (!options.proceed(round == 0 ? absl::StrCat(all[i].name, ", to warm up")
                                      : absl::StrFormat("%s, %d of %d", all[i].name, round, options.repeat)))
        return absl::CancelledError("interrupted");
      if (!all[i].refusal.empty()) continue;
      const absl::StatusOr<Turn> turn = contenders[i].take();
      if (all[i].times_ms.empty() && absl::IsResourceExhausted(turn.status())) {
        all[i].refusal = std::string(turn.status().message());
        continue;
      }
      if (!turn.ok()) {
        return absl::Status(turn.status().code(), absl::StrCat(all[i].name, ": ", turn.status().message()));
      }
      if (contenders[i].answers) all[i].equal &= right(turn->rows);
      if (round > 0) all[i].times_ms.push_back(turn->elapsed_ms);
    }
  }
  return all;
}

std::optional<double> CaseFigures::median_ms(std::string_view contender) const {
  for (const ContenderTimes& times : contenders) {
    if (times.name == contender) return times.median_ms();
  }
  return std::nullopt;
}

std::optional<double> CaseFigures::Ratio(std::string_view slower, std::string_view faster) const {
  return RatioOf(median_ms(slower), median_ms(faster));
}

bool CaseFigures::equal() const {
  return std::all_of(contenders.begin(), contenders.end(),
                     [](const ContenderTimes& times) { return times.equal; });
}

bool AllEqual(const std::vector<CaseFigures>& cases) {
  return std::all_of(cases.begin(), cases.end(), [](const CaseFigures& each) { return each.equal(); });
}

std::string CaseChart(const std::string& title, const std::string& y_label,
                      const std::vector<CaseFigures>& cases,
                      const std::function<double(const CaseFigures&, double ms)>& height) {
  BarPlot plot{.title = title, .y_label = y_label, .categories = {}, .series = {}};
  for (size_t i = 0; i < cases.size(); ++i) {
    plot.categories.push_back(cases[i].title);
    for (const ContenderTimes& times : cases[i].contenders) {
      auto series = std::find_if(plot.series.begin(), plot.series.end(),
                                 [&](const BarPlot::Series& s) { return s.name == times.name; });
      if (series == plot.series.end()) {
        if (plot.series.size() == kPlotSeriesMax) continue;
        series = plot.series.insert(plot.series.end(), {times.name, std::vector<double>(cases.size()),
                                                        std::vector<std::optional<Spread>>(cases.size())});
      }
      series->values[i] = height(cases[i], times.median_ms());
      std::vector<double> runs;
      for (const double ms : times.times_ms) runs.push_back(height(cases[i], ms));
      series->spread[i] = SpreadOf(runs);
    }
  }
  return SvgOf(plot);
}

std::string TimeChart(const std::string& title, const std::vector<CaseFigures>& cases) {
  return CaseChart(title, "ms", cases, [](const CaseFigures&, double ms) { return ms; });
}

}  // namespace nam::bench
