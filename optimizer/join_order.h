#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::optimizer {

/// An input of inner joins, by its estimates.
struct JoinInput {
  double read = 0;         // rows that are read for its rows
  double rows = 0;         // that it has
  double partitions = 1;   // that workers share
  bool may_stream = true;  // otherwise it is only built
};

/// left = right between two inputs.
struct JoinEdge {
  struct End {
    size_t input = 0;
    double values = 1;    // of its key, if this input is built
    bool unique = false;  // a key of the input's table
  };
  End left, right;
};

/// Joins the input to those before it.
struct JoinStep {
  size_t input = 0;
  /// The edge whose key is unique in the input, if any: the only key then. An array by a unique key costs
  /// less than a hash table by several, and leaves one candidate at most.
  bool unique = false;
  double values = 1;  // of its keys: each row meets rows / values of the input's
  double rows_after = 0;
};

/// The streamed input, and the order in which the others are probed.
struct JoinOrder {
  size_t driving = 0;
  std::vector<JoinStep> steps;
  double cost_ns = 0;  // estimate for one thread; to compare orders by
};

/// Returns the order with the fewest estimated rows between the joins. Orders are left-deep: one pipeline, in
/// which every other input is a build side (docs/design/join-order.md). Compares all orders up to 8 build
/// sides; beyond that each step takes the input that leaves fewest rows. Streams the largest input unless
/// another one, at least a quarter as large, costs a fifth less. Between equal orders that of `inputs`
/// decides, so that the same statistics give the same plan. Inputs that no edge connects with those before
/// them are crossed. `workers`: the threads of all compute servers.
JoinOrder ChooseJoinOrder(const std::vector<JoinInput>& inputs, const std::vector<JoinEdge>& edges,
                          double workers);

}  // namespace nam::optimizer
