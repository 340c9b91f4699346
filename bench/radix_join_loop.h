#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/join_input.h"
#include "bench/radix_partition.h"

namespace nam::bench {

struct RadixJoinOptions {
  int threads = 1;
  int radix_bits = 0;  // of all passes together; 0: chosen by R's size
  int passes = 0;      // 1 or 2; 0: chosen by radix_bits
};

/// The physical bound that NAM's joins are compared with: a parallel radix hash join written by hand for one
/// process, which Balkesen et al. call PRO. All threads partition R and S by the lowest bits of the key until
/// the hash table of a partition of R fits a cache. Then they claim partitions and join each on their own. It
/// has no network, no types and no wide rows.
class RadixJoinLoop {
 public:
  /// `r` and `s` outlive the loop. Maps the memory that Run partitions into, as memory servers map theirs
  /// before queries run.
  RadixJoinLoop(std::span<const JoinTuple> r, std::span<const JoinTuple> s, const RadixJoinOptions& options);

  /// Starts the threads, joins R and S, and joins the threads. R may have duplicate keys. Not reentrant.
  JoinAnswer Run();

  /// The bits of each pass, by the size of R and what `options` leaves open.
  static std::vector<Radix> ChoosePasses(uint64_t r_tuples, const RadixJoinOptions& options);

 private:
  class Attempt;

  std::span<const JoinTuple> r_, s_;
  int threads_;
  std::vector<Radix> passes_;
  std::vector<TupleArray> r_parts_, s_parts_;  // by pass: its output
  std::vector<WriteCombiner> combiners_;       // by thread
};

}  // namespace nam::bench
