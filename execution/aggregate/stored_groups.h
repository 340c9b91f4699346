#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/budget_array.h"
#include "execution/task.h"

namespace nam::execution {

/// Takes the pages of AggregateSink::Store from other servers into a sink of the same aggregation, whose plan
/// is prepared for AggregateInput::kGroups. Each thread has its own; the sink combines them at the end as it
/// combines tasks.
class StoredGroups {
 public:
  /// Both outlive this.
  StoredGroups(AggregateSink& sink, MemoryBudget& budget);

  /// Adds the consecutive pages of one attempt. Trusts nothing in them: DATA_LOSS if they are not of this
  /// aggregation and attempt. After an error the sink is unusable. CANCELLED soon after the query is.
  absl::Status Add(TaskContext& context, std::span<const std::byte> stored, uint64_t attempt);

  /// The groups added so far, over all attempts.
  uint64_t groups() const { return groups_taken_; }

 private:
  absl::Status AddPage(TaskContext& context, std::span<const std::byte> page, uint64_t attempt);
  absl::Status AddGroups(TaskContext& context, std::span<const std::byte> page);
  absl::Status AddPairs(TaskContext& context, std::span<const std::byte> page, size_t distinct);

  const AggregatePlan& plan_;
  GroupSet& set_;
  Chunk groups_;
  Chunk pairs_;
  std::vector<uint32_t> places_;
  BudgetArray<uint32_t> group_of_;  // by group of the attempt: its group here
  uint64_t group_count_ = 0;
  uint64_t groups_taken_ = 0;
};

}  // namespace nam::execution
