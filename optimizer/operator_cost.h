#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "optimizer/stage_tables.h"
#include "plan/physical.h"

namespace nam::optimizer {

/// The workers of a pipeline: servers share its claimed rows, and a server's threads all of its rows.
struct Workers {
  int servers = 1;
  int threads = 1;  // of each
};

/// The estimated rows that a pipeline's sink leaves: groups of an aggregation, the first rows of an order.
double RowsLeft(const plan::PhysicalPlan& plan, uint32_t pipeline);

/// The estimated time of each operator of a pipeline on one of the servers, in ms: its source, its steps, its
/// sink. Rows are the plan's estimates; costs a row are plan/work_cost.h's, and blocks come over a card of
/// kCardBytesPerUs, whichever takes longer. nullopt for what the model does not cover. It ignores windows'
/// frames, and all expressions cost the same: compare, do not predict.
std::vector<std::optional<double>> OperatorCosts(const plan::PhysicalPlan& plan, uint32_t pipeline,
                                                 const TableRefs& tables, const Workers& workers);

}  // namespace nam::optimizer
