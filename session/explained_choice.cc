#include "session/explained_choice.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace nam::session {
namespace {

using optimizer::NoExchange;
using optimizer::Why;
using plan::AggregateAlgorithm;
using plan::JoinAlgorithm;

/// Skips an infinite estimate.
std::string Figures(const char* algorithm, const std::string& why, double estimated_ms,
                    const std::optional<double>& actual_ms,
                    const std::vector<std::pair<const char*, double>>& others) {
  std::string out = absl::StrCat(algorithm, ", ", why);
  if (std::isfinite(estimated_ms))
    absl::StrAppend(&out, absl::StrFormat(": estimated %.3g ms", estimated_ms));
  if (actual_ms.has_value()) absl::StrAppend(&out, absl::StrFormat(", actual %.3g ms", *actual_ms));
  const auto print = [](std::string* to, const std::pair<const char*, double>& other) {
    absl::StrAppend(to, other.first, absl::StrFormat(" %.3g ms", other.second));
  };
  if (!others.empty()) absl::StrAppend(&out, "; ", absl::StrJoin(others, ", ", print));
  return out;
}

const char* WhyOf(const optimizer::JoinChoice& join) {
  switch (join.why) {
    case Why::kForced:
      return "forced by nam.join";
    case Why::kOnly:
      return "the only one possible";
    case Why::kSafe:
      return "as a streamed join would not be twice as fast";
    case Why::kTooLarge:
      return "since its build side is too large for a server";
    case Why::kTooMany:
      return "since its rows are too many for the session";
    case Why::kFew:
    case Why::kCheapestOfMost:
    case Why::kCheapest:
      break;
  }
  return "the cheapest";
}

/// Why it is not made as nam.join says; empty if that is clear.
std::string WhyRefused(const optimizer::JoinChoice& join) {
  const char* const refused = plan::NameOf(join.refused);
  if (join.no_exchange != NoExchange::kInSession && !plan::IsStreamed(join.refused)) return "";
  switch (join.no_exchange) {
    case NoExchange::kInSession:
      return ", as a side comes to the session";
    case NoExchange::kNoScan:
      return absl::StrCat(", as ", refused, " joins columnar tables alone");
    case NoExchange::kAsksAll:
      return absl::StrCat(", as of ", refused, " no server knows the whole build side");
    case NoExchange::kTooLarge:  // for auto only
    case NoExchange::kPossible:
      break;
  }
  return "";
}

}  // namespace

std::string WhyText(const optimizer::JoinChoice& join) {
  if (join.refused == JoinAlgorithm::kAuto) return WhyOf(join);
  if (join.refused == JoinAlgorithm::kGhjBloom && join.algorithm == JoinAlgorithm::kGhj)
    return "instead of ghj_bloom, which has no rows to drop";
  return WhyOf(join) + WhyRefused(join);
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
    case Why::kCheapestOfMost:
      return "the cheapest if rows and groups are as many as they may be";
    case Why::kSafe:
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
  std::string out = Figures(plan::NameOf(join.algorithm), WhyText(join),
                            optimizer::CostOf(join.algorithm, join.costs), actual_ms, others);
  const bool streams = std::isfinite(optimizer::CostOf(JoinAlgorithm::kGhj, join.costs));
  if (streams && !join.drops_probe && join.refused != JoinAlgorithm::kGhjBloom)
    absl::StrAppend(&out, "; ghj_bloom has no rows to drop");
  return out;
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
