#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/assignment.h"
#include "optimizer/plan.h"

namespace nam::optimizer {

/// What one way to run a plan is estimated to take on the compute server that has most to do. Computing and
/// moving overlap, so the longer of the two counts.
struct ModelCost {
  double compute_ms = 0;
  double network_ms = 0;
  double ms() const { return compute_ms > network_ms ? compute_ms : network_ms; }
};

/// The pipelined plan beside the shuffle-based one: the same join order, but both inputs of every join are
/// repartitioned by its key among the compute servers instead of build sides being read wherever they are
/// needed (docs/design/join-order.md).
struct PlanCosts {
  ModelCost pipelined;
  ModelCost shuffle;
  double replicated_bytes = 0;  // of build sides that are read again by further servers
  double shuffled_bytes = 0;    // that would go from one compute server to another
  bool pipelined_is_cheaper() const { return pipelined.ms() <= shuffle.ms(); }
};

/// `shares` are those of the compute servers with work, `threads` of each. Counts what work_cost.h and a card
/// of kCardBytesPerUs say; what a fabric on one host does is not known here, so compare, do not predict.
PlanCosts CostsOf(const Plan& plan, const TableRefs& tables, const std::vector<Assignment::Share>& shares,
                  int threads);

/// Build sides that compute servers need alike, whole.
struct ReplicatedSides {
  double rows = 0;
  double bytes = 0;      // that are read of them
  double datagrams = 0;  // that these take
  int senders = 1;       // memory servers that hold them
  int servers = 1;       // that need them
  int threads = 1;       // of each
};

/// Until every server has built its join tables of them: each READs them, or memory servers multicast them.
struct ReplicationCosts {
  double read_ms = 0;
  double multicast_ms = 0;
};
ReplicationCosts CostsOf(const ReplicatedSides& sides);

/// Two ports of FDR InfiniBand, as the simulator's default card has.
inline constexpr double kCardBytesPerUs = 13'600;

}  // namespace nam::optimizer
