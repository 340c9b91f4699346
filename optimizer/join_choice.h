#pragma once

#include <cstdint>

#include "optimizer/join_cost.h"
#include "plan/join_algorithm.h"

namespace nam::optimizer {

/// The reason for a join's or groups' algorithm: for EXPLAIN.
enum class Why : uint8_t {
  kCheapest,
  kSafe,            // a streamed join would be cheaper, but not enough for its risks
  kCheapestOfMost,  // for groups, if they and their rows are as many as possible
  kForced,          // by a setting
  kOnly,            // no other is possible, including the forced one
  kTooLarge,        // a pipelined join's build side exceeds nam.build_mib_max
  kTooMany,         // too many rows for the session, which would make a pipelined join, or merge the groups
  kFew,             // groups whose keys have few values
};

/// The reason why a join cannot be streamed between servers, if any.
enum class NoExchange : uint8_t {
  kPossible,
  kInSession,  // a side comes to the session
  kNoScan,     // a side is not a columnar table of which each server reads a share
  kTooLarge,   // its build side is expected to exceed servers' memory
  kAsksAll,    // NOT IN and similar: no single server knows whether the build side is empty, or has a NULL
};

/// The chosen algorithm for a join of two flows of servers.
struct JoinChoice {
  plan::JoinAlgorithm algorithm = plan::JoinAlgorithm::kPipelined;
  Why why = Why::kOnly;
  /// nam.join's value, if it was refused.
  plan::JoinAlgorithm refused = plan::JoinAlgorithm::kAuto;
  NoExchange no_exchange = NoExchange::kPossible;
  bool drops_probe = true;  // or the filters of ghj_bloom have nothing to do
  JoinCosts costs{};        // infinite: impossible
  uint32_t build = 0;       // the last pipeline of its build side
};

/// The chosen algorithm for the groups of servers.
struct GroupChoice {
  plan::AggregateAlgorithm algorithm = plan::AggregateAlgorithm::kDist;
  Why why = Why::kOnly;
  GroupCosts costs;
  uint32_t pipeline = 0;  // servers group at its end
};

/// The possible algorithms of a join.
struct JoinPossibilities {
  bool by_parts = true;  // its keys have hashes
  NoExchange no_exchange = NoExchange::kPossible;
  bool drops_probe = true;         // rows of the probe side without a partner leave no row
  bool build_too_large = false;    // for a server's memory
  bool session_too_small = false;  // the session would join, and has room for fewer rows
};
/// For a join in the session, which has no estimate.
JoinChoice InSession(plan::JoinAlgorithm wanted);
/// A streamed join is chosen if it is so many times cheaper than any other. It waits for the slowest of its
/// servers, begins anew if one ends, and has its build side in memory.
inline constexpr double kStreamedGain = 2;
JoinChoice ChooseJoin(plan::JoinAlgorithm wanted, const JoinPossibilities& can, JoinCosts costs);

}  // namespace nam::optimizer
