#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::fabric::sim {

/// The faults of a simulated world. Times are on the world's clock, which begins at World::kStartNs.
/// Probabilities are drawn from the world's seed, so the same plan and seed give the same faults.
struct FaultPlan {
  /// An operation or datagram takes up to `delay_ns_max` longer, so queue pairs overtake each other.
  /// Operations of one queue pair never do.
  double delay_probability = 0;
  int64_t delay_ns_max = 0;

  double datagram_loss = 0;       // drawn per receiver of a multicast
  double datagram_duplicate = 0;  // arrives twice
  double datagram_reorder = 0;    // arrives up to datagram_reorder_ns_max late
  int64_t datagram_reorder_ns_max = 20'000;

  /// A work request breaks its connection: either before its effect, or after it, so that only the answer is
  /// lost.
  double queue_pair_error = 0;

  /// An operation of more than 8 bytes takes effect in two parts, split at a word, in either order.
  double torn_operation = 0;
  int64_t torn_ns_max = 2'000;  // between the parts

  /// A READ of more than 8 bytes is fetched in many parts, at different times and in any order. Meanwhile,
  /// later requests other than READs take effect.
  double overtaking_fetch = 0;
  int64_t overtaking_ns_max = 2'000;  // between its first part and its last

  /// The longest delay of a thread that could continue.
  int64_t wake_delay_ns_max = 0;

  /// One-way delay of control-plane calls, uniform.
  int64_t rpc_delay_ns_min = 20'000;
  int64_t rpc_delay_ns_max = 60'000;

  /// Every connection between the two hosts breaks at this moment.
  struct QueuePairError {
    int64_t at_ns = 0;
    std::string a, b;
  };
  /// Nothing passes between the two hosts meanwhile, in either direction.
  struct Partition {
    int64_t from_ns = 0;
    int64_t until_ns = 0;
    std::string a, b;
  };
  /// The host loses power. It restarts empty, unless restart_ns is 0.
  struct Death {
    int64_t at_ns = 0;
    int64_t restart_ns = 0;
    std::string host;
  };
  std::vector<QueuePairError> queue_pair_errors;
  std::vector<Partition> partitions;
  std::vector<Death> deaths;
};

}  // namespace nam::fabric::sim
