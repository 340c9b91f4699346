#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/query_work.h"

namespace nam::bench {
namespace {

/// A ratio of every query, by its name.
struct NamedRatio {
  const char* name;
  const char* slower;
  const char* faster;
};
constexpr NamedRatio kRatios[] = {{"speedup_over_duckdb_in_place", kDuckDb, kInPlace},
                                  {"speedup_over_duckdb_copy", kDuckDb, kCopy},
                                  {"read_over_copy", kRead, kCopy}};  // 1: takes no longer than its bytes

}  // namespace

Json QueryRows(const std::vector<CaseFigures>& queries) {
  Json rows = Json::array();
  for (const CaseFigures& query : queries) {
    Json& row = rows.emplace_back(query.settings);
    row["equal_rows"] = query.equal();
    for (const ContenderTimes& times : query.contenders) {
      if (!times.equal) row["wrong"].push_back(times.name);
    }
    for (const ContenderTimes& times : query.contenders)
      row[absl::StrCat(times.name, "_median_ms")] = Rounded(times.median_ms());
    for (const NamedRatio& ratio : kRatios) SetIf(row, ratio.name, query.Ratio(ratio.slower, ratio.faster));
    for (const ContenderTimes& times : query.contenders)
      row[absl::StrCat(times.name, "_ms")] = Rounded(times.times_ms);
    if (!query.plan.empty()) row["plan"] = query.plan;
  }
  return rows;
}

Json QuerySummary(const std::vector<CaseFigures>& queries) {
  Json summary{{"queries", queries.size()},
               {"correct_queries", std::count_if(queries.begin(), queries.end(),
                                                 [](const CaseFigures& query) { return query.equal(); })}};
  for (const NamedRatio& ratio : kRatios) {
    std::vector<double> all;
    for (const CaseFigures& query : queries) {
      if (const auto one = query.Ratio(ratio.slower, ratio.faster)) all.push_back(*one);
    }
    if (all.empty()) continue;
    SetIf(summary, absl::StrCat(ratio.name, "_geomean"), GeometricMean(all));
    SetIf(summary, absl::StrCat(ratio.name, "_min"), *std::min_element(all.begin(), all.end()));
  }
  return summary;
}

}  // namespace nam::bench
