#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/join_input.h"

/// Radix partitioning: each pass splits partitions by some bits of the key.
namespace nam::bench {

/// The bits of a key that number its partition. The workload's keys are dense and fill all partitions alike,
/// so they are not hashed.
struct Radix {
  uint32_t Of(uint32_t key) const { return (key >> shift) & ((uint32_t{1} << bits) - 1); }
  size_t fan_out() const { return size_t{1} << bits; }

  int shift = 0;
  int bits = 0;
};

/// Consecutive ranges of an array.
struct Partitions {
  size_t size() const { return bounds.size() - 1; }
  std::span<const JoinTuple> operator[](size_t i) const {
    return {tuples + bounds[i], bounds[i + 1] - bounds[i]};
  }

  const JoinTuple* tuples = nullptr;
  std::vector<uint32_t> bounds = {0};
};

/// Copies tuples to their partitions through software write-combining buffers, one cache line for each
/// partition. A full buffer goes to memory by non-temporal stores, so the processor does not read the line
/// first and keeps the buffers cached. It also needs a partition's page in the TLB once for 8 tuples, not
/// once for each. Owned by one thread.
class WriteCombiner {
 public:
  explicit WriteCombiner(int bits_max);
  WriteCombiner(WriteCombiner&&) = default;

  /// Copies the tuples of partition p to out[starts[p]] and up. `out` is aligned to a cache line. Other
  /// threads may write other elements at the same time, even of the same line. The stores are ordered before
  /// any later one.
  void Scatter(std::span<const JoinTuple> from, Radix radix, std::span<const uint32_t> starts,
               JoinTuple* out);

 private:
  static constexpr uint32_t kLineTuples = 64 / sizeof(JoinTuple);
  struct alignas(64) Line {
    JoinTuple tuples[kLineTuples];
  };
  void CopyPart(size_t partition, uint32_t line_start, uint32_t end, JoinTuple* out) const;

  std::vector<Line> lines_;
  std::vector<uint32_t> next_;   // by partition: where its next tuple goes
  std::vector<uint32_t> first_;  // by partition: where its first tuple went
};

/// One pass over one relation, in three phases:
///
///     Count      all threads: claim pieces of large partitions and make their histograms
///     Place      one thread: computes by prefix sums where the tuples of each piece go
///     Scatter    all threads: claim those pieces again and copy them, then claim small partitions and do all
///                three steps for each at once, while its tuples are cached
///
/// A partition is large if a thread that claimed all of it could keep the others waiting: the whole relation
/// in the first pass, the partitions of popular keys in the second.
class PartitionPass {
 public:
  /// `in` outlives the pass. `out` has room for all of its tuples. Each partition's tuples stay in its range.
  PartitionPass(const Partitions& in, JoinTuple* out, Radix radix, uint32_t piece_tuples);

  void Count();
  void Place();
  void Scatter(WriteCombiner& combiner);
  /// The new partitions, ordered by old partition, then by radix. Called once, after Scatter.
  Partitions Take();

 private:
  struct Piece {
    std::span<const JoinTuple> tuples;
    size_t partition;
  };
  std::span<uint32_t> CountsOf(size_t piece) {
    return {counts_.data() + piece * radix_.fan_out(), radix_.fan_out()};
  }
  void CountTuples(std::span<const JoinTuple> tuples, std::span<uint32_t> counts) const;
  void SplitSmall(size_t partition, WriteCombiner& combiner);

  const Partitions& in_;
  JoinTuple* const out_;
  const Radix radix_;
  Partitions result_;
  std::vector<Piece> pieces_;     // of large partitions; those of a partition are consecutive
  std::vector<size_t> small_;     // numbers of small partitions
  std::vector<uint32_t> counts_;  // by piece and radix; Place turns them into starts
  std::atomic<size_t> next_counted_ = 0, next_scattered_ = 0, next_small_ = 0;
};

}  // namespace nam::bench
