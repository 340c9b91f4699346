#include "bench/figure8.h"

#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "bench/report.h"
#include "bench/tuple_count.h"

namespace nam::bench {
namespace {

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

/// True if the participants keep the orders. Empty if fewer than two took part.
std::optional<bool> Keeps(const CaseFigures& figures, const std::vector<Order>& orders) {
  std::optional<bool> keeps;
  for (const Order& order : orders) {
    const std::optional<double> ratio = figures.Ratio(order.faster, order.slower);
    if (ratio.has_value()) keeps = keeps.value_or(true) && *ratio <= order.most;
  }
  return keeps;
}

/// Adds the orders of a case, and of all cases together.
void AddOrder(const CaseFigures& figures, const std::vector<Order>& orders, const std::string& suffix,
              Json& summary) {
  const std::optional<bool> keeps = Keeps(figures, orders);
  if (!keeps.has_value()) return;
  summary[absl::StrCat("paper_order_", suffix)] = *keeps;
  summary["paper_order"] = summary.value("paper_order", true) && *keeps;
}

}  // namespace

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
