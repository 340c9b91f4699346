#pragma once

#include <cstdint>

#include "optimizer/join_cost.h"
#include "plan/join_algorithm.h"

namespace nam::optimizer {

/// Why a join or groups are made as they are: for EXPLAIN.
enum class Why : uint8_t {
  kCheapest,
  kForced,    // by a setting
  kOnly,      // no other can make it, the forced one included
  kTooLarge,  // a pipelined join's build side exceeds nam.build_mib_max
  kTooMany,   // rows for the session, which would make a pipelined join, or groups for it to merge
  kFew,       // of groups: their keys have few values
};

/// How a join of two flows of servers is made.
struct JoinChoice {
  plan::JoinAlgorithm algorithm = plan::JoinAlgorithm::kPipelined;
  Why why = Why::kOnly;
  JoinCosts costs;     // infinite: it cannot be made so
  uint32_t build = 0;  // the pipeline that its build side ends with
};

/// How the groups of servers become one.
struct GroupChoice {
  plan::AggregateAlgorithm algorithm = plan::AggregateAlgorithm::kDist;
  Why why = Why::kOnly;
  GroupCosts costs;
  uint32_t pipeline = 0;  // that servers group at its end
};

/// What can be done of a join.
struct JoinPossibilities {
  bool by_parts = true;            // its keys have hashes
  bool exchange = false;           // rows can be sent to the owner of their part
  bool drops_probe = true;         // rows of the probe side without a partner leave no row
  bool build_too_large = false;    // for a server's memory
  bool session_too_small = false;  // the session would make it, and there are more rows than it is to hold
};
JoinChoice ChooseJoin(plan::JoinAlgorithm wanted, const JoinPossibilities& can, JoinCosts costs);

}  // namespace nam::optimizer
