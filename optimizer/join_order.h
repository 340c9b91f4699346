#pragma once

#include <vector>

#include "optimizer/plan.h"

namespace nam::optimizer {

/// A join of the table into those before it, by one of the query's edges.
struct JoinStep {
  int table = -1;
  plan::ColumnRef build;  // of the table
  plan::ColumnRef probe;  // of one before it
  size_t edge = 0;        // of the query's joins
  double rows_after = 0;
};

/// Which table is streamed, and in which order the others are probed.
struct JoinOrder {
  int driving = 0;
  std::vector<JoinStep> steps;
  double cost_ns = 0;  // estimated, of one thread; to compare orders by
};

/// The order that is estimated to cost least. `tables` have rows and selectivities. Orders are left-deep: one
/// pipeline, in which every other table is a build side (docs/design/join-order.md). Up to 8 build sides all
/// orders are compared, beyond that each step takes what leaves fewest rows. The largest table is streamed
/// unless another one, at least a quarter as large, costs a fifth less. Of equal costs the order of FROM
/// decides, so that the same statistics give the same plan. INTERNAL for tables that are not connected.
absl::StatusOr<JoinOrder> ChooseJoinOrder(const StarQuery& query, const std::vector<Plan::Table>& tables);

}  // namespace nam::optimizer
