#include "optimizer/join_choice.h"

#include <limits>

namespace nam::optimizer {

using plan::JoinAlgorithm;

JoinChoice InSession(JoinAlgorithm wanted) {
  JoinChoice choice{.refused = wanted, .no_exchange = NoExchange::kInSession};
  choice.costs.fill(std::numeric_limits<double>::infinity());
  return choice;
}

JoinChoice ChooseJoin(JoinAlgorithm wanted, const JoinPossibilities& can, JoinCosts costs) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!can.by_parts) CostOf(JoinAlgorithm::kRrj, costs) = CostOf(JoinAlgorithm::kRdmaGhj, costs) = kNever;
  const bool exchange = can.no_exchange == NoExchange::kPossible;
  if (!can.by_parts || !exchange)
    CostOf(JoinAlgorithm::kGhj, costs) = CostOf(JoinAlgorithm::kGhjBloom, costs) = kNever;
  if (!can.drops_probe) CostOf(JoinAlgorithm::kGhjBloom, costs) = kNever;
  JoinChoice choice{.no_exchange = can.no_exchange, .drops_probe = can.drops_probe};
  const auto made = [&](JoinAlgorithm algorithm, Why why) {
    choice.algorithm = algorithm;
    choice.why = why;
    choice.costs = costs;
    if (algorithm != wanted) choice.refused = wanted;
    return choice;
  };
  if (!can.by_parts) return made(JoinAlgorithm::kPipelined, Why::kOnly);
  if (plan::IsStreamed(wanted) && exchange) {
    // Where no row may be dropped, a filter is useless.
    return made(can.drops_probe ? wanted : JoinAlgorithm::kGhj, Why::kForced);
  }
  if (wanted != JoinAlgorithm::kAuto && !plan::IsStreamed(wanted)) return made(wanted, Why::kForced);
  Why why = Why::kCheapest;
  if (can.build_too_large || can.session_too_small) {
    why = can.build_too_large ? Why::kTooLarge : Why::kTooMany;
    CostOf(JoinAlgorithm::kPipelined, costs) = kNever;
  }
  const JoinAlgorithm cheapest = CheapestOf(costs);
  if (!plan::IsStreamed(cheapest)) return made(cheapest, why);
  JoinCosts safe = costs;
  CostOf(JoinAlgorithm::kGhj, safe) = CostOf(JoinAlgorithm::kGhjBloom, safe) = kNever;
  const JoinAlgorithm other = CheapestOf(safe);
  if (kStreamedGain * CostOf(cheapest, costs) <= CostOf(other, costs)) return made(cheapest, why);
  return made(other, why == Why::kCheapest ? Why::kSafe : why);
}

}  // namespace nam::optimizer
