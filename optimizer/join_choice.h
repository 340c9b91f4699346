#pragma once

#include <cstdint>

#include "optimizer/join_cost.h"
#include "plan/join_algorithm.h"

namespace nam::optimizer {

/// Why a join or groups are made as they are: for EXPLAIN.
enum class Why : uint8_t {
  kCheapest,
  kSafe,            // a streamed join would be cheaper, but not by so much that it is worth its risks
  kCheapestOfMost,  // groups, if they and their rows are as many as they may be
  kForced,          // by a setting
  kOnly,            // no other can make it, the forced one included
  kTooLarge,        // a pipelined join's build side exceeds nam.build_mib_max
  kTooMany,         // rows for the session, which would make a pipelined join, or groups for it to merge
  kFew,             // groups, whose keys have few values
};

/// Why a join cannot be streamed between servers.
enum class NoExchange : uint8_t {
  kPossible,
  kInSession,  // a side comes to the session
  kNoScan,     // a side is no columnar table, of which each server reads a share
  kTooLarge,   // its build side, which servers would have in memory, is expected to be
  kAsksAll,    // NOT IN and the like: no server alone knows whether the build side is empty, or has a NULL
};

/// How a join of two flows of servers is made.
struct JoinChoice {
  plan::JoinAlgorithm algorithm = plan::JoinAlgorithm::kPipelined;
  Why why = Why::kOnly;
  /// What nam.join says, if that is not how it is made.
  plan::JoinAlgorithm refused = plan::JoinAlgorithm::kAuto;
  NoExchange no_exchange = NoExchange::kPossible;
  bool drops_probe = true;  // or there is nothing to do for the filters of ghj_bloom
  JoinCosts costs{};        // infinite: it cannot be made so
  uint32_t build = 0;       // the pipeline that its build side ends with
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
  bool by_parts = true;  // its keys have hashes
  NoExchange no_exchange = NoExchange::kPossible;
  bool drops_probe = true;         // rows of the probe side without a partner leave no row
  bool build_too_large = false;    // for a server's memory
  bool session_too_small = false;  // the session would make it, and there are more rows than it is to hold
};
/// Of a join that the session makes, which nobody has estimated.
JoinChoice InSession(plan::JoinAlgorithm wanted);
/// A streamed join is chosen if it is so many times as cheap as any other. It waits for the slowest of its
/// servers, begins anew without one that ends, and has its build side in memory.
inline constexpr double kStreamedGain = 2;
JoinChoice ChooseJoin(plan::JoinAlgorithm wanted, const JoinPossibilities& can, JoinCosts costs);

}  // namespace nam::optimizer
