#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/aggregate_state.h"
#include "execution/aggregate/groups.h"

namespace nam::execution {

/// The state of a distinct aggregate: the pairs of a group and one of its values, as groups of their own. One
/// thread.
class DistinctValues {
 public:
  /// `number` is the aggregate's in its plan. All outlive this.
  DistinctValues(const AggregatePlan::Aggregate& aggregate, size_t number, KeyRows& rows,
                 MemoryBudget& budget);

  /// Takes in the selected tuples that have a value: the i-th belongs to groups[i].
  absl::Status Consume(const Program& program, Frame& frame, const Chunk& chunk, const uint32_t* groups);
  /// Takes in pairs in the pairs' schema. Their group g is group_of[g] here. DATA_LOSS if one is not below
  /// `groups`.
  absl::Status ConsumePairs(const Chunk& pairs, const uint32_t* group_of, uint64_t groups);
  /// The same for some pairs of another thread.
  absl::Status Merge(const DistinctValues& other, std::span<const uint32_t> pairs, const uint32_t* group_of,
                     uint64_t groups);

  uint32_t size() const { return pairs_.size(); }
  /// Sets groups[p] to the group of pair p, for all pairs.
  absl::Status AllGroups(uint32_t* groups);
  /// Sets groups[i] to the group of pairs[i], for at most kChunkRows.
  absl::Status GroupsOf(std::span<const uint32_t> pairs, uint32_t* groups);
  /// Reads some pairs as a chunk of their schema with groups from `base` on. Valid until the next call.
  absl::StatusOr<const Chunk*> Read(std::span<const uint32_t> pairs, uint64_t base);
  /// Sets counts[g] to the number of values of group g.
  absl::Status Count(int64_t* counts);

  /// Feeds all pairs to a state of the aggregate over their values, which has the groups.
  absl::Status Feed(AggregateState& state);

  const GroupKeys& keys() const { return *aggregate_.pairs; }

 private:
  absl::Status ReadNumbers(const Chunk& pairs, uint32_t* groups);

  const AggregatePlan::Aggregate& aggregate_;
  const int64_t number_;
  Groups pairs_;
  Frame frame_;         // for pairs->slots()
  Chunk chunk_, read_;  // group, value
  Groups::KeyColumns memory_;
  std::unique_ptr<int64_t[]> numbers_;  // by position: group + number_
  std::unique_ptr<uint32_t[]> kept_;    // positions with a value
  std::unique_ptr<uint32_t[]> assigned_;
};

}  // namespace nam::execution
