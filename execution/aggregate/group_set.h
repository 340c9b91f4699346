#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/aggregate_state.h"
#include "execution/aggregate/distinct_values.h"
#include "execution/aggregate/groups.h"

namespace nam::execution {

/// The rows that hold all threads' keys: of the groups, and of each count(distinct)'s pairs.
class AggregateRows {
 public:
  AggregateRows(const AggregatePlan& plan, MemoryBudget& budget);
  KeyRows& keys() { return keys_; }
  KeyRows& pairs(size_t distinct) { return *pairs_[distinct]; }

 private:
  KeyRows keys_;
  std::vector<std::unique_ptr<KeyRows>> pairs_;
};

/// Numbers sorted by bucket. A part is a run of buckets.
class Buckets {
 public:
  static constexpr uint32_t kBuckets = 64;

  explicit Buckets(MemoryBudget& budget) : members_(budget) {}
  bool made() const { return made_; }
  /// bucket_of(n) is below kBuckets, for n in [0, count); it is called twice for each.
  template <typename BucketOf>
  absl::Status Make(uint32_t count, BucketOf&& bucket_of) {
    if (absl::Status room = members_.Grow(count); !room.ok()) return room;
    std::fill_n(begin_, kBuckets + 1, 0);
    for (uint32_t n = 0; n < count; ++n) ++begin_[bucket_of(n) + 1];
    for (uint32_t b = 0; b < kBuckets; ++b) begin_[b + 1] += begin_[b];
    uint32_t at[kBuckets];
    std::copy_n(begin_, kBuckets, at);
    for (uint32_t n = 0; n < count; ++n) members_[at[bucket_of(n)]++] = n;
    made_ = true;
    return absl::OkStatus();
  }
  /// `parts` is a power of two, at most kBuckets.
  std::span<const uint32_t> of(uint32_t part, uint32_t parts) const {
    const uint32_t of_each = kBuckets / parts;
    const uint32_t first = begin_[part * of_each], end = begin_[(part + 1) * of_each];
    return {members_.data() + first, end - first};
  }

 private:
  BudgetArray<uint32_t> members_;
  bool made_ = false;
  uint32_t begin_[kBuckets + 1] = {};
};

/// The groups and aggregates of one thread, or of one part after threads' groups are combined. One thread at
/// a time; several may read it at once where noted.
class GroupSet {
 public:
  GroupSet(const AggregatePlan& plan, AggregateRows& rows, MemoryBudget& budget, Groups::Range range = {});

  absl::Status Consume(const Chunk& chunk);
  /// For a plan of AggregateInput::kGroups: takes in unaggregated rows as they were written
  /// (AggregatePlan::row_schema). Reading them may fail as the aggregates' sums do.
  absl::Status ConsumeRows(const Chunk& chunk);
  /// The groups of the last chunk's tuples.
  const uint32_t* group_of() const { return group_of_.get(); }

  /// Sorts groups and pairs by bucket, for MergePart.
  absl::Status Divide();
  bool divided() const { return buckets_.made(); }
  size_t PartSize(uint32_t part, uint32_t parts) const { return buckets_.of(part, parts).size(); }
  /// Takes in one of `parts` parts of another set of the same form. Several threads may do so, into different
  /// sets and with different parts.
  absl::Status MergePart(GroupSet& other, uint32_t part, uint32_t parts);
  absl::Status ChangeToRows() { return groups_.ChangeToRows(); }
  /// Forgets all groups and keeps the memory. Not for a set that was divided, or that has distinct
  /// aggregates.
  void Reset();
  void Reset(Groups::Range range);

  uint32_t size() const { return groups_.size(); }
  /// See Groups: with keys of a domain some groups are absent.
  uint32_t SelectPresent(uint32_t first, uint32_t count, uint32_t* positions) const {
    return groups_.SelectPresent(first, count, positions);
  }
  /// Memory that grows with the values of groups, and not with their number alone: rows of keys and texts.
  uint64_t value_bytes() const;
  GroupForm form() const { return groups_.form(); }
  DistinctValues& distinct(size_t i) { return *distinct_[i]; }

  /// Memory for results as columns.
  struct Memory {
    Groups::KeyColumns keys;
    std::vector<AggregateState::Memory> states;
    std::vector<uint32_t> groups;
    // By distinct aggregate, for ReadFinal: one of the two.
    std::vector<BudgetArray<int64_t>> distinct_counts;
    std::vector<std::unique_ptr<AggregateState>> distinct_states;
    int64_t nothing = 0;
  };
  /// Reads the groups first, first + 1, …, at most kChunkRows, as a chunk of the partial schema.
  void ReadPartial(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const;
  /// The same for the final schema, after FinishDistinct. OUT_OF_RANGE if a number has more than 38 digits.
  absl::Status ReadFinal(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const;
  absl::Status FinishDistinct(Memory& memory);
  /// For a set without groups: makes ReadAggregates(0, count, …) the aggregates of groups without rows.
  absl::Status AddEmptyGroups(uint32_t count);
  /// ReadFinal without the columns of keys.
  absl::Status ReadAggregates(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const;

 private:
  absl::Status Grow();
  void ResetStates();
  void ReadKeys(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const;

  const AggregatePlan& plan_;
  MemoryBudget& budget_;
  Groups groups_;
  std::vector<AggregateState> states_;  // by aggregate
  std::vector<std::unique_ptr<DistinctValues>> distinct_;
  Frame frame_;
  std::optional<Frame> rows_frame_;  // for ConsumeRows
  uint32_t grown_ = 0;               // groups with states
  std::unique_ptr<uint32_t[]> group_of_;

  Buckets buckets_;
  std::vector<Buckets> pair_buckets_;
  BudgetArray<uint32_t> merged_as_;  // by group: its number in the set of its part
};

}  // namespace nam::execution
