#include "session/explained_choice.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace nam::session {
namespace {

using optimizer::Why;
using plan::AggregateAlgorithm;
using plan::JoinAlgorithm;

std::string Figures(const char* algorithm, const char* why, double estimated_ms,
                    const std::optional<double>& actual_ms,
                    const std::vector<std::pair<const char*, double>>& others) {
  std::string out = absl::StrFormat("%s, %s: estimated %.3g ms", algorithm, why, estimated_ms);
  if (actual_ms.has_value()) absl::StrAppend(&out, absl::StrFormat(", actual %.3g ms", *actual_ms));
  const auto print = [](std::string* to, const std::pair<const char*, double>& other) {
    absl::StrAppend(to, other.first, absl::StrFormat(" %.3g ms", other.second));
  };
  if (!others.empty()) absl::StrAppend(&out, "; ", absl::StrJoin(others, ", ", print));
  return out;
}

}  // namespace

const char* WhyText(const optimizer::JoinChoice& join) {
  switch (join.why) {
    case Why::kForced:
      return "forced by nam.join";
    case Why::kOnly:
      return "the only one possible";
    case Why::kTooLarge:
      return "since its build side is too large for a server";
    case Why::kTooMany:
      return "since its rows are too many for the session";
    case Why::kFew:
    case Why::kCheapest:
      break;
  }
  return "the cheapest";
}

const char* WhyText(const optimizer::GroupChoice& groups) {
  switch (groups.why) {
    case Why::kForced:
      return "forced by nam.aggregate";
    case Why::kOnly:
      return "the only one possible";
    case Why::kFew:
      return "since groups are few";
    case Why::kTooMany:
      return "since groups may be too many for the session";
    case Why::kTooLarge:
    case Why::kCheapest:
      break;
  }
  return "the cheapest";
}

std::string Describe(const optimizer::JoinChoice& join, std::optional<double> actual_ms) {
  std::vector<std::pair<const char*, double>> others;
  for (size_t a = 0; a < join.costs.size(); ++a) {
    const auto algorithm = static_cast<JoinAlgorithm>(a);
    if (algorithm != join.algorithm && std::isfinite(join.costs[a]))
      others.emplace_back(plan::NameOf(algorithm), join.costs[a]);
  }
  return Figures(plan::NameOf(join.algorithm), WhyText(join), optimizer::CostOf(join.algorithm, join.costs),
                 actual_ms, others);
}

std::string Describe(const optimizer::GroupChoice& groups, std::optional<double> actual_ms) {
  const bool rdma = groups.algorithm == AggregateAlgorithm::kRdma;
  const auto other = rdma ? AggregateAlgorithm::kDist : AggregateAlgorithm::kRdma;
  std::vector<std::pair<const char*, double>> others;
  if (groups.why != Why::kOnly)
    others.emplace_back(plan::NameOf(other), rdma ? groups.costs.dist_ms : groups.costs.rdma_ms);
  return Figures(plan::NameOf(groups.algorithm), WhyText(groups),
                 rdma ? groups.costs.rdma_ms : groups.costs.dist_ms, actual_ms, others);
}

}  // namespace nam::session
