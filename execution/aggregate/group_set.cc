#include "execution/aggregate/group_set.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/positions.h"

namespace nam::execution {

AggregateRows::AggregateRows(const AggregatePlan& plan, MemoryBudget& budget) : keys_(plan.keys(), budget) {
  for (size_t a = 0; a < plan.size(); ++a) {
    if (plan.aggregate(a).pairs != nullptr) {
      pairs_.push_back(std::make_unique<KeyRows>(*plan.aggregate(a).pairs, budget));
    }
  }
}

GroupSet::GroupSet(const AggregatePlan& plan, AggregateRows& rows, MemoryBudget& budget, Groups::Range range)
    : plan_(plan),
      budget_(budget),
      groups_(plan.keys(), rows.keys(), budget, range),
      frame_(plan.program().NewFrame()),
      group_of_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      buckets_(budget),
      merged_as_(budget) {
  for (size_t a = 0; a < plan.size(); ++a) {
    states_.emplace_back(plan.aggregate(a), budget);
    if (plan.aggregate(a).pairs == nullptr) continue;
    distinct_.push_back(
        std::make_unique<DistinctValues>(plan.aggregate(a), a, rows.pairs(distinct_.size()), budget));
    pair_buckets_.emplace_back(budget);
  }
}

absl::Status GroupSet::Grow() {
  if (groups_.size() <= grown_) return absl::OkStatus();
  for (AggregateState& state : states_) NAM_RETURN_IF_ERROR(state.Grow(groups_.size()));
  grown_ = groups_.size();
  return absl::OkStatus();
}

absl::Status GroupSet::Consume(const Chunk& chunk) {
  NAM_RETURN_IF_ERROR(groups_.Assign(chunk, group_of_.get()));
  NAM_RETURN_IF_ERROR(Grow());
  const bool single = plan_.keys().size() == 0;
  size_t distinct = 0;
  for (size_t a = 0; a < states_.size(); ++a) {
    if (plan_.input() == AggregateInput::kGroups) {
      NAM_RETURN_IF_ERROR(states_[a].ConsumeGroups(plan_.program(), frame_, chunk, group_of_.get()));
    } else if (plan_.aggregate(a).pairs != nullptr) {
      NAM_RETURN_IF_ERROR(distinct_[distinct++]->Consume(plan_.program(), frame_, chunk, group_of_.get()));
    } else {
      NAM_RETURN_IF_ERROR(
          states_[a].Consume(plan_.aggregate(a), plan_.program(), frame_, chunk, group_of_.get(), single));
    }
  }
  return absl::OkStatus();
}

absl::Status GroupSet::ConsumeRows(const Chunk& chunk) {
  const AggregatePlan& rows = *plan_.rows();
  if (!rows_frame_.has_value()) rows_frame_.emplace(rows.program().NewFrame());
  NAM_RETURN_IF_ERROR(groups_.Assign(chunk, group_of_.get()));
  NAM_RETURN_IF_ERROR(Grow());
  for (size_t a = 0; a < states_.size(); ++a) {
    NAM_RETURN_IF_ERROR(states_[a].Consume(rows.aggregate(a), rows.program(), *rows_frame_, chunk,
                                           group_of_.get(), /*single=*/false));
  }
  return absl::OkStatus();
}

uint64_t GroupSet::value_bytes() const {
  uint64_t bytes = groups_.row_bytes();
  for (const AggregateState& state : states_) bytes += state.text_bytes();
  return bytes;
}

void GroupSet::Reset() {
  groups_.Reset();
  ResetStates();
}

void GroupSet::Reset(Groups::Range range) {
  groups_.Reset(range);
  ResetStates();
}

void GroupSet::ResetStates() {
  NAM_CHECK(distinct_.empty() && !buckets_.made());
  for (AggregateState& state : states_) state.Reset(grown_);
  grown_ = 0;
}

absl::Status GroupSet::Divide() {
  const auto bucket_of = [&](uint32_t group) { return groups_.PartOf(group, Buckets::kBuckets); };
  NAM_RETURN_IF_ERROR(buckets_.Make(size(), bucket_of));
  if (distinct_.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(merged_as_.Grow(size()));
  for (size_t d = 0; d < distinct_.size(); ++d) {
    BudgetArray<uint32_t> group_of(budget_);
    const uint32_t pairs = distinct_[d]->size();
    NAM_RETURN_IF_ERROR(group_of.Resize(pairs));
    NAM_RETURN_IF_ERROR(distinct_[d]->AllGroups(group_of.data()));
    NAM_RETURN_IF_ERROR(
        pair_buckets_[d].Make(pairs, [&](uint32_t pair) { return bucket_of(group_of[pair]); }));
  }
  return absl::OkStatus();
}

absl::Status GroupSet::MergePart(GroupSet& other, uint32_t part, uint32_t parts) {
  for (std::span<const uint32_t> left = other.buckets_.of(part, parts); !left.empty();) {
    const std::span<const uint32_t> theirs = left.first(std::min<size_t>(left.size(), kChunkRows));
    left = left.subspan(theirs.size());
    NAM_RETURN_IF_ERROR(groups_.Adopt(other.groups_, theirs, group_of_.get()));
    NAM_RETURN_IF_ERROR(Grow());
    for (size_t a = 0; a < states_.size(); ++a) {
      NAM_RETURN_IF_ERROR(states_[a].Merge(other.states_[a], theirs, group_of_.get()));
    }
    if (distinct_.empty()) continue;
    for (size_t j = 0; j < theirs.size(); ++j) other.merged_as_[theirs[j]] = group_of_[j];
  }
  for (size_t d = 0; d < distinct_.size(); ++d) {
    for (std::span<const uint32_t> left = other.pair_buckets_[d].of(part, parts); !left.empty();) {
      const std::span<const uint32_t> pairs = left.first(std::min<size_t>(left.size(), kChunkRows));
      left = left.subspan(pairs.size());
      NAM_RETURN_IF_ERROR(
          distinct_[d]->Merge(*other.distinct_[d], pairs, other.merged_as_.data(), other.size()));
    }
  }
  return absl::OkStatus();
}

void GroupSet::ReadKeys(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const {
  memory.groups.resize(kChunkRows);
  memory.states.resize(states_.size());
  std::iota(memory.groups.begin(), memory.groups.begin() + count, first);
  groups_.Read({memory.groups.data(), count}, memory.keys, out.columns().data());
  out.SelectAll(count);
}

void GroupSet::ReadPartial(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const {
  ReadKeys(first, count, memory, out);
  for (size_t a = 0; a < states_.size(); ++a) {
    states_[a].ReadPartial(first, count, memory.states[a],
                           out.columns().data() + plan_.aggregate(a).partial_slot);
  }
  if (plan_.only_pairs()) {
    out.columns()[0] = {.kind = Column::Kind::kConstant,
                        .base = reinterpret_cast<const std::byte*>(&memory.nothing)};
  }
}

absl::Status GroupSet::FinishDistinct(Memory& memory) {
  memory.distinct_counts.clear();
  memory.distinct_states.clear();
  const uint32_t groups = std::max<uint32_t>(grown_, 1);
  for (size_t a = 0, distinct = 0; a < plan_.size(); ++a) {
    const AggregatePlan::Aggregate& aggregate = plan_.aggregate(a);
    if (aggregate.pairs == nullptr) continue;
    DistinctValues& values = *distinct_[distinct++];
    BudgetArray<int64_t>& counts = memory.distinct_counts.emplace_back(budget_);
    std::unique_ptr<AggregateState>& state = memory.distinct_states.emplace_back();
    if (aggregate.of_values == nullptr) {
      NAM_RETURN_IF_ERROR(counts.Resize(groups));
      NAM_RETURN_IF_ERROR(values.Count(counts.data()));
      continue;
    }
    state = std::make_unique<AggregateState>(*aggregate.of_values, budget_);
    NAM_RETURN_IF_ERROR(state->Grow(groups));
    NAM_RETURN_IF_ERROR(values.Feed(*state));
  }
  return absl::OkStatus();
}

absl::Status GroupSet::ReadFinal(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const {
  ReadKeys(first, count, memory, out);
  return ReadAggregates(first, count, memory, out);
}

absl::Status GroupSet::ReadAggregates(uint32_t first, uint32_t count, Memory& memory, Chunk& out) const {
  memory.states.resize(states_.size());
  size_t distinct = 0;
  for (size_t a = 0; a < states_.size(); ++a) {
    Column& column = out.columns()[plan_.keys().size() + a];
    if (plan_.aggregate(a).pairs == nullptr) {
      NAM_RETURN_IF_ERROR(states_[a].ReadFinal(first, count, memory.states[a], column));
      continue;
    }
    const AggregateState* const state = memory.distinct_states[distinct].get();
    const BudgetArray<int64_t>& counts = memory.distinct_counts[distinct++];
    if (state != nullptr) {
      NAM_RETURN_IF_ERROR(state->ReadFinal(first, count, memory.states[a], column));
    } else {
      column = {.kind = Column::Kind::kValues,
                .base = reinterpret_cast<const std::byte*>(counts.data() + first)};
    }
  }
  return absl::OkStatus();
}

absl::Status GroupSet::AddEmptyGroups(uint32_t count) {
  NAM_CHECK(size() == 0);
  for (AggregateState& state : states_) NAM_RETURN_IF_ERROR(state.Grow(count));
  grown_ = count;
  return absl::OkStatus();
}

}  // namespace nam::execution
