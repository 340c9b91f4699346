#include "bench/query_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

std::string Key(QueryContender contender, const char* what) {
  return absl::StrCat(Name(contender), what);
}

/// A ratio of every query, by its name.
struct NamedRatio {
  const char* name;
  std::optional<double> (*of)(const QueryTimes&);
  bool has_mean;
};
constexpr NamedRatio kRatios[] = {
    {"speedup_over_duckdb_in_place",
     [](const QueryTimes& q) { return q.Ratio(QueryContender::kDuckDb, QueryContender::kInPlace); }, true},
    {"speedup_over_duckdb_copy",
     [](const QueryTimes& q) { return q.Ratio(QueryContender::kDuckDb, QueryContender::kCopy); }, true},
    {"loop_over_ours", [](const QueryTimes& q) { return q.LoopOverOurs(); }, false},
    // 1: a query takes no longer than its bytes.
    {"read_over_copy",
     [](const QueryTimes& q) { return q.Ratio(QueryContender::kRead, QueryContender::kCopy); }, true},
};

}  // namespace

const char* Name(QueryContender contender) {
  constexpr std::array kNames = {"in_place", "copy", "duckdb", "loop", "read"};
  return kNames[static_cast<size_t>(contender)];
}

std::optional<double> QueryTimes::median_ms(QueryContender contender) const {
  const std::vector<double>& times = times_ms[static_cast<size_t>(contender)];
  if (times.empty()) return std::nullopt;
  return Median(times);
}

std::optional<double> QueryTimes::Ratio(QueryContender slower, QueryContender faster) const {
  return RatioOf(median_ms(slower), median_ms(faster));
}

std::optional<double> QueryTimes::LoopOverOurs() const {
  const auto in_place = Ratio(QueryContender::kLoop, QueryContender::kInPlace);
  return in_place.has_value() ? in_place : Ratio(QueryContender::kLoop, QueryContender::kCopy);
}

Json QueryRows(const std::vector<QueryTimes>& queries) {
  Json rows = Json::array();
  for (const QueryTimes& query : queries) {
    Json row{{"query", query.id}, {"rows", query.rows}, {"equal_rows", query.wrong.empty()}};
    for (const QueryContender contender : query.wrong) row["wrong"].push_back(Name(contender));
    for (const QueryContender contender : kContenders)
      SetIf(row, Key(contender, "_median_ms"), query.median_ms(contender));
    for (const NamedRatio& ratio : kRatios) SetIf(row, ratio.name, ratio.of(query));
    for (const QueryContender contender : kContenders) {
      const std::vector<double>& times = query.times_ms[static_cast<size_t>(contender)];
      if (!times.empty()) row[Key(contender, "_ms")] = Rounded(times);
    }
    if (!query.plan.empty()) row["plan"] = query.plan;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json QuerySummary(const std::vector<QueryTimes>& queries) {
  Json summary{{"queries", queries.size()},
               {"correct_queries", std::count_if(queries.begin(), queries.end(), [](const QueryTimes& query) {
                  return query.wrong.empty();
                })}};
  for (const NamedRatio& ratio : kRatios) {
    std::vector<double> all;
    for (const QueryTimes& query : queries) {
      if (const auto one = ratio.of(query)) all.push_back(*one);
    }
    if (all.empty()) continue;
    if (ratio.has_mean) SetIf(summary, absl::StrCat(ratio.name, "_geomean"), GeometricMean(all));
    SetIf(summary, absl::StrCat(ratio.name, "_min"), *std::min_element(all.begin(), all.end()));
  }
  return summary;
}

std::string QueryChart(const std::string& title, const std::vector<QueryTimes>& queries) {
  BarPlot plot{.title = title, .y_label = "ms", .categories = {}, .series = {}};
  for (const QueryTimes& query : queries) plot.categories.push_back(query.id);
  for (const QueryContender contender : kContenders) {
    BarPlot::Series series{.name = Name(contender)};
    for (const QueryTimes& query : queries) {
      series.values.push_back(query.median_ms(contender).value_or(0));
      series.spread.push_back(SpreadOf(query.times_ms[static_cast<size_t>(contender)]));
    }
    const bool ran =
        std::any_of(series.values.begin(), series.values.end(), [](double ms) { return ms > 0; });
    if (ran) plot.series.push_back(std::move(series));
  }
  return SvgOf(plot);
}

ComparedFigures ComparedQueryTimes() {
  ComparedFigures compared{.settings = {"query"}, .figures = {}, .times = true};
  for (const QueryContender contender : kContenders) compared.figures.push_back(Key(contender, "_median_ms"));
  return compared;
}

}  // namespace nam::bench
