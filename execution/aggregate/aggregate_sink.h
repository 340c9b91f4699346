#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/group_set.h"
#include "execution/rows/row_table.h"
#include "execution/task.h"

namespace nam::execution {

/// GROUP BY and aggregates. Each task has groups of its own; then the threads combine them, by parts of the
/// groups' numbers or hashes if they are many. The result is either
///
///   - stored as pages for another server, which takes them in by a StoredGroups, or
///   - read here as rows of the final schema (AggregateSource).
///
/// The budget pays for all memory that grows with the number of groups.
class AggregateSink final : public Sink {
 public:
  /// Plan and budget outlive the sink. `totals`: see plan::AggregateSink.
  AggregateSink(const AggregatePlan& plan, MemoryBudget& budget, std::vector<uint32_t> totals = {});
  ~AggregateSink() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;

  std::unique_ptr<Source> RowsAtRest(bool in_order) override;
  /// Groups as pages of plan.partial_layout(), then the pairs of each distinct aggregate. Pairs number their
  /// groups over all pages from 0 on.
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override;
  void Count(proto::PipelineCounters& out) const override;

  const AggregatePlan& plan() const { return plan_; }

  /// Adds the groups of one more thread, to be combined with the others. Any thread.
  GroupSet& NewSet();

 private:
  friend class AggregateSource;

  absl::Status PrepareCombine();
  absl::Status StoreGroups(TaskContext& context);
  absl::Status StorePairs(TaskContext& context, size_t distinct, const GroupKeys& keys);

  const AggregatePlan& plan_;
  MemoryBudget& budget_;
  const std::vector<uint32_t> totals_;
  AggregateRows rows_;
  Mutex mutex_;                                     // guards sets_ while there are tasks
  std::vector<std::unique_ptr<GroupSet>> sets_;     // by task
  std::vector<std::unique_ptr<GroupSet>> results_;  // by part
  uint32_t parts_ = 0;
  std::atomic<uint32_t> parts_left_ = 0;
  absl::Status combine_error_;
  std::vector<std::unique_ptr<RowTable>> stored_;
};

/// The groups of a sink whose parts are combined, as chunks of the final schema. Without keys there is one
/// row, even if no rows have come. The sink outlives the source; tasks share the work by parts.
class AggregateSource final : public Source {
 public:
  /// `totals`: see plan::AggregateSink.
  explicit AggregateSource(AggregateSink& sink, std::span<const uint32_t> totals = {})
      : sink_(sink), totals_(totals.begin(), totals.end()) {}
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;

 private:
  class Task;
  AggregateSink& sink_;
  const std::vector<int64_t> totals_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace nam::execution
