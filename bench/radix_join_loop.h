#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/join_input.h"
#include "bench/radix_partition.h"

namespace nam::bench {

struct RadixJoinOptions {
  int threads = 1;
  int radix_bits = 0;  // total of all passes; 0: by R's size
  int passes = 0;      // 1 or 2; 0: by radix_bits
};

/// The physical bound for NAM's joins: a parallel radix hash join, hand-written for one process, which
/// Balkesen et al. call PRO. All threads partition R and S by the lowest key bits until the hash table of a
/// partition of R fits a cache. Then they claim partitions and join each separately. It has no network, no
/// types and no wide rows.
class RadixJoinLoop {
 public:
  /// `r` and `s` must outlive the loop. Maps the memory for partitions in advance, as memory servers map
  /// theirs before queries run.
  RadixJoinLoop(std::span<const JoinTuple> r, std::span<const JoinTuple> s, const RadixJoinOptions& options);

  /// Starts the threads, joins R and S, and joins the threads. R may have duplicate keys. Not reentrant.
  JoinAnswer Run();

  /// The bits of each pass, by the size of R and the open options.
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
