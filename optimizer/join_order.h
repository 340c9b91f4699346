#pragma once

#include <vector>

#include "optimizer/plan.h"

namespace nam::optimizer {

/// One of the query's edges, as a key of a join.
struct JoinKey {
  plan::ColumnRef build;  // column of the table
  plan::ColumnRef probe;  // column of an earlier one
  size_t edge = 0;        // in the query's joins
};

/// Joins the table to those before it: by all edges to them, or by one whose column is unique in the table.
/// An array by a unique key costs less than a hash table by several, and leaves one candidate at most.
struct JoinStep {
  int table = -1;
  std::vector<JoinKey> keys;
  double rows_after = 0;
};

/// The streamed table, and the order in which the others are probed.
struct JoinOrder {
  int driving = 0;
  std::vector<JoinStep> steps;
  double cost_ns = 0;  // estimate for one thread; to compare orders by
};

/// Returns the order with the fewest estimated rows between the joins. `tables` have rows and selectivities.
/// Orders are left-deep: one pipeline, in which every other table is a build side
/// (docs/design/join-order.md). Compares all orders up to 8 build sides; beyond that each step takes the
/// table that leaves fewest rows. Streams the largest table unless another one, at least a quarter as large,
/// costs a fifth less. Between equal orders that of FROM decides, so that the same statistics give the same
/// plan. `workers`: the threads of all compute servers. INTERNAL for tables that are not connected.
absl::StatusOr<JoinOrder> ChooseJoinOrder(const StarQuery& query, const std::vector<Plan::Table>& tables,
                                          double workers);

}  // namespace nam::optimizer
