#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "optimizer/plan.h"
#include "plan/physical.h"

namespace nam::optimizer {

/// Where a pipeline runs: its claimed rows are shared by the servers, and all rows of a server by its
/// threads.
struct Workers {
  int servers = 1;
  int threads = 1;  // of each
};

/// How many rows a pipeline's sink is estimated to leave: groups of an aggregation, the first rows of an
/// order.
double RowsLeft(const plan::PhysicalPlan& plan, uint32_t pipeline);

/// What each operator of a pipeline is estimated to take on one of the servers, in ms: its source, its steps,
/// its sink. The rows are the plan's estimates; what a row costs is plan/work_cost.h's, and blocks come over
/// a card of kCardBytesPerUs, whichever of both takes longer. Nothing of what the model does not know:
/// windows' frames are not told apart, and what an expression costs is that of any. Compare, do not predict.
std::vector<std::optional<double>> OperatorCosts(const plan::PhysicalPlan& plan, uint32_t pipeline,
                                                 const TableRefs& tables, const Workers& workers);

}  // namespace nam::optimizer
