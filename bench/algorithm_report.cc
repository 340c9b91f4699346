#include "bench/algorithm_report.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "bench/report.h"
#include "bench/tuple_table.h"

namespace nam::bench {
namespace {

double SpeedOf(const CaseFigures& figures, double ms) {
  return static_cast<double>(figures.tuples) / 1e3 / std::max(ms, 1e-6);  // millions per second
}

uint64_t TuplesIn(const CaseFigures& figures) {
  return figures.settings.value("tuples", uint64_t{0});
}

std::string KeySuffix(uint64_t tuples) {
  return absl::StrCat("_", absl::AsciiStrToLower(CountLabel(tuples)));
}

/// The cases by size.
std::set<uint64_t> SizesOf(const std::vector<CaseFigures>& figures) {
  std::set<uint64_t> sizes;
  for (const CaseFigures& each : figures) sizes.insert(TuplesIn(each));
  return sizes;
}

/// The case with `tuples`, this skew and the highest selectivity; without a skew, the least skewed one.
const CaseFigures* JoinCaseOf(const std::vector<CaseFigures>& figures, uint64_t tuples,
                              std::optional<double> zipf) {
  const CaseFigures* best = nullptr;
  const auto rank = [](const CaseFigures& each) {
    return std::pair(-each.settings.value("selectivity", 0.0), each.settings.value("zipf", 0.0));
  };
  for (const CaseFigures& each : figures) {
    if (TuplesIn(each) != tuples) continue;
    if (zipf.has_value() && each.settings.value("zipf", 0.0) != *zipf) continue;
    if (best == nullptr || rank(each) < rank(*best)) best = &each;
  }
  return best;
}

void AddJoinRatios(const std::vector<CaseFigures>& figures, uint64_t tuples, const std::string& suffix,
                   Json& summary) {
  const CaseFigures* const base = JoinCaseOf(figures, tuples, std::nullopt);
  if (base == nullptr) return;
  for (const char* slower : {"ghj", "ghj_bloom", "rdma_ghj", "duckdb"})
    SetIf(summary, absl::StrCat("rrj_over_", slower, suffix), base->Ratio(slower, "rrj"));
  const CaseFigures* const uniform = JoinCaseOf(figures, tuples, 0.0);
  const CaseFigures* const skewed = JoinCaseOf(figures, tuples, 1.0);
  if (uniform == nullptr || skewed == nullptr) return;
  SetIf(summary, absl::StrCat("uniform_over_zipf_1", suffix),
        RatioOf(uniform->median_ms("rrj"), skewed->median_ms("rrj")));
}

constexpr char kRrj[] = "rrj", kRdmaGhj[] = "rdma_ghj", kGhj[] = "ghj", kBloom[] = "ghj_bloom";
constexpr double kReductionPaysBelow = 0.7;
constexpr uint64_t kFewGroups = 1'024;
constexpr double kAlike = 1.1;

/// `faster` takes at most `most` times as long as `slower`.
struct Order {
  const char* faster;
  const char* slower;
  double most = 1;
};

std::vector<Order> JoinOrder(double selectivity) {
  std::vector<Order> order = {
      {kRrj, kRdmaGhj}, {kRdmaGhj, kGhj}, {kRrj, kGhj}, {kRdmaGhj, kBloom}, {kRrj, kBloom}};
  if (selectivity < kReductionPaysBelow) order.push_back({kBloom, kGhj});
  if (selectivity == 1) order.push_back({kGhj, kBloom});
  return order;
}

std::vector<Order> GroupOrder(uint64_t groups) {
  return {{"rdma", "dist", groups <= kFewGroups ? kAlike : 1}};
}

/// Adds whether the participants keep the orders of a case, and of all cases together; nothing if fewer than
/// two took part.
void AddOrder(const CaseFigures& figures, const std::vector<Order>& orders, const std::string& suffix,
              Json& summary) {
  std::optional<bool> keeps;
  for (const Order& order : orders) {
    const std::optional<double> ratio = figures.Ratio(order.faster, order.slower);
    if (ratio.has_value()) keeps = keeps.value_or(true) && *ratio <= order.most;
  }
  if (!keeps.has_value()) return;
  summary[absl::StrCat("paper_order_", suffix)] = *keeps;
  summary["paper_order"] = summary.value("paper_order", true) && *keeps;
}

}  // namespace

Json FigureRows(const std::vector<CaseFigures>& figures) {
  Json rows = Json::array();
  for (const CaseFigures& each : figures) {
    for (const ContenderTimes& times : each.contenders) {
      Json& row = rows.emplace_back(each.settings);
      row["algorithm"] = times.name;
      row["median_ms"] = Rounded(times.median_ms());
      row["min_ms"] = Rounded(times.min_ms());
      row["million_tuples_per_second"] = Rounded(SpeedOf(each, times.median_ms()));
      row["answer"] = times.equal ? "equal" : "DIFFERENT";
      row["rounds_ms"] = Rounded(times.times_ms);
    }
  }
  return rows;
}

std::string SpeedChart(const std::string& title, const std::vector<CaseFigures>& figures) {
  return CaseChart(title, "million tuples per second", figures, SpeedOf);
}

Json JoinSummary(const std::vector<CaseFigures>& figures) {
  Json summary = Json::object();
  const std::set<uint64_t> sizes = SizesOf(figures);
  if (!sizes.empty()) AddJoinRatios(figures, *sizes.rbegin(), "", summary);
  if (sizes.size() > 1) {
    for (const uint64_t tuples : sizes) AddJoinRatios(figures, tuples, KeySuffix(tuples), summary);
  }
  return summary;
}

Json AggregateSummary(const std::vector<CaseFigures>& figures) {
  Json summary = Json::object();
  const std::set<uint64_t> sizes = SizesOf(figures);
  if (sizes.empty()) return summary;
  std::optional<double> few_ms, many_ms;
  for (const char* peer : {"dist", "duckdb"}) {
    for (const CaseFigures& each : figures) {
      const std::string groups = KeySuffix(each.settings.value("groups", uint64_t{0}));
      if (TuplesIn(each) != *sizes.rbegin()) continue;
      SetIf(summary, absl::StrCat("rdma_over_", peer, groups), each.Ratio(peer, "rdma"));
      if (groups == "_1k") few_ms = each.median_ms("rdma");
      if (groups == "_64m") many_ms = each.median_ms("rdma");
    }
  }
  SetIf(summary, "time_1k_over_64m", RatioOf(few_ms, many_ms));
  return summary;
}

Json Figure8aSummary(const std::vector<CaseFigures>& figures) {
  Json summary = Json::object();
  for (const CaseFigures& each : figures) {
    const double selectivity = each.settings.value("selectivity", 0.0);
    const std::string suffix = absl::StrCat("at_", std::llround(100 * selectivity));
    for (const char* slower : {kRdmaGhj, kGhj, kBloom})
      SetIf(summary, absl::StrCat("rrj_over_", slower, "_", suffix), each.Ratio(slower, kRrj));
    AddOrder(each, JoinOrder(selectivity), suffix, summary);
  }
  return summary;
}

Json Figure8bSummary(const std::vector<CaseFigures>& figures) {
  Json summary = Json::object();
  for (const CaseFigures& each : figures) {
    const auto groups = each.settings.value("groups", uint64_t{0});
    const std::string suffix = absl::AsciiStrToLower(CountLabel(groups));
    SetIf(summary, absl::StrCat("rdma_over_dist_", suffix), each.Ratio("dist", "rdma"));
    AddOrder(each, GroupOrder(groups), suffix, summary);
  }
  return summary;
}

}  // namespace nam::bench
