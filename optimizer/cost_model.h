#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/assignment.h"
#include "optimizer/plan.h"

namespace nam::optimizer {

/// The estimated time of one plan on the busiest compute server. Computing and moving overlap, so the longer
/// of the two counts.
struct ModelCost {
  double compute_ms = 0;
  double network_ms = 0;
  double ms() const { return compute_ms > network_ms ? compute_ms : network_ms; }
};

/// The pipelined plan beside the shuffle-based one: the same join order, but both inputs of every join are
/// repartitioned by its key among the compute servers, while the pipelined one reads build sides wherever
/// they are needed (docs/design/join-order.md).
struct PlanCosts {
  ModelCost pipelined;
  ModelCost shuffle;
  double replicated_bytes = 0;  // of build sides that further servers read again
  double shuffled_bytes = 0;    // sent from one compute server to another
  bool pipelined_is_cheaper() const { return pipelined.ms() <= shuffle.ms(); }
};

/// `shares` are those of the compute servers with work, `threads` of each. Counts the costs of work_cost.h
/// and a card of kCardBytesPerUs, not those of a fabric on one host: compare, do not predict.
PlanCosts CostsOf(const Plan& plan, const TableRefs& tables, const std::vector<Assignment::Share>& shares,
                  int threads);

/// Build sides that every compute server needs whole.
struct ReplicatedSides {
  double rows = 0;
  double bytes = 0;      // read from them
  double datagrams = 0;  // for these bytes
  int senders = 1;       // memory servers that hold them
  int servers = 1;       // that need them
  int threads = 1;       // of each
};

/// The time until every server has built its join tables of them: each READs them, or memory servers
/// multicast them.
struct ReplicationCosts {
  double read_ms = 0;
  double multicast_ms = 0;
};
ReplicationCosts CostsOf(const ReplicatedSides& sides);

/// Two ports of FDR InfiniBand, the simulator's default card.
inline constexpr double kCardBytesPerUs = 13'600;

}  // namespace nam::optimizer
