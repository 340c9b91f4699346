#include "optimizer/join_choice.h"

#include <limits>

namespace nam::optimizer {

using plan::JoinAlgorithm;

JoinChoice ChooseJoin(JoinAlgorithm wanted, const JoinPossibilities& can, JoinCosts costs) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!can.by_parts) CostOf(JoinAlgorithm::kRrj, costs) = CostOf(JoinAlgorithm::kRdmaGhj, costs) = kNever;
  if (!can.by_parts || !can.exchange)
    CostOf(JoinAlgorithm::kGhj, costs) = CostOf(JoinAlgorithm::kGhjBloom, costs) = kNever;
  if (!can.drops_probe) CostOf(JoinAlgorithm::kGhjBloom, costs) = kNever;
  if (!can.by_parts) return {.algorithm = JoinAlgorithm::kPipelined, .why = Why::kOnly, .costs = costs};
  // Where no row may be dropped there is nothing for a filter to do.
  if (wanted == JoinAlgorithm::kGhjBloom && !can.drops_probe) wanted = JoinAlgorithm::kGhj;
  if (plan::IsStreamed(wanted) && !can.exchange) wanted = JoinAlgorithm::kAuto;
  if (wanted != JoinAlgorithm::kAuto) return {.algorithm = wanted, .why = Why::kForced, .costs = costs};
  Why why = Why::kCheapest;
  if (can.build_too_large || can.session_too_small) {
    why = can.build_too_large ? Why::kTooLarge : Why::kTooMany;
    CostOf(JoinAlgorithm::kPipelined, costs) = kNever;
  }
  return {.algorithm = CheapestOf(costs), .why = why, .costs = costs};
}

}  // namespace nam::optimizer
