#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::fabric::sim {

/// What goes wrong in a world. Moments are on the world's clock, which begins at World::kStartNs.
/// Probabilities are drawn from the world's seed, so the same plan and seed give the same faults.
struct FaultPlan {
  /// An operation, or a datagram, is under way for up to `delay_ns_max` longer: queue pairs overtake each
  /// other (never operations of one queue pair).
  double delay_probability = 0;
  int64_t delay_ns_max = 0;

  double datagram_loss = 0;       // each receiver of a multicast draws for itself
  double datagram_duplicate = 0;  // arrives twice
  double datagram_reorder = 0;    // arrives up to datagram_reorder_ns_max late
  int64_t datagram_reorder_ns_max = 20'000;

  /// A work request breaks its connection: before it had an effect, or after, when only the answer is lost.
  double queue_pair_error = 0;

  /// Operations of more than 8 bytes that take effect in two parts, split at a word, in either order.
  double torn_operation = 0;
  int64_t torn_ns_max = 2'000;  // between the parts

  /// A READ of more than 8 bytes is fetched in many parts, at moments of their own and in any order; what is
  /// posted behind it, unless it READs, takes effect meanwhile.
  double overtaking_fetch = 0;
  int64_t overtaking_ns_max = 2'000;  // between its first part and its last

  /// A thread that could go on does so up to this late.
  int64_t wake_delay_ns_max = 0;

  /// Control-plane calls: one way, drawn evenly.
  int64_t rpc_delay_ns_min = 20'000;
  int64_t rpc_delay_ns_max = 60'000;

  /// Every connection between the two hosts breaks at this moment.
  struct QueuePairError {
    int64_t at_ns = 0;
    std::string a, b;
  };
  /// Nothing passes between the two hosts meanwhile, either way.
  struct Partition {
    int64_t from_ns = 0;
    int64_t until_ns = 0;
    std::string a, b;
  };
  /// The host loses power, and starts again, empty, unless restart_ns is 0.
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
