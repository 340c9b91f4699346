#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/partition/scratch_output.h"
#include "execution/task.h"
#include "plan/physical.h"

namespace nam::execution {

/// GROUP BY of groups that may be many (plan::AggregateSink::parts). Each task keeps a table of groups of a
/// bounded size. When it is full, it writes their states to scratch memory by parts, and begins anew:
///
///     rows ──▶ table ── full, or the end of many ─▶ states by parts ──▶ scratch memory
///       └── rows that the table does not reduce ─▶ rows by parts ───────┘
///
/// At the end either all groups of the attempt are few, and combined as AggregateSink combines them; or all
/// states and rows of all its tasks are in scratch memory. Memory grows neither with the number of groups nor
/// with the length of their texts.
class PartedGroups final : public Sink {
 public:
  /// An attempt with at most so many groups in each task keeps them, unless they have long texts.
  static constexpr uint32_t kFewGroups = 16'384;
  /// The most groups of a task's table.
  static constexpr uint32_t kTableGroups = 131'072;
  /// The number of groups at which a task decides whether its table reduces rows.
  static constexpr uint32_t kSampleGroups = 16'384;
  /// The number of rows that a task writes unaggregated, after its table did not reduce rows, before it tries
  /// a table again.
  static constexpr uint64_t kRowsWithoutTable = uint64_t{1} << 20;

  struct Options {
    uint32_t parts = 1;
    uint64_t attempt = 0;
    int threads = 1;
    // For tests.
    uint32_t few_groups = kFewGroups;
    uint32_t table_groups = kTableGroups;
    uint32_t sample_groups = kSampleGroups;
    uint64_t rows_without_table = kRowsWithoutTable;
  };
  /// `plan` is made for these parts, of AggregateInput::kRows, by keys and without distinct aggregates
  /// (plan::GoesByParts). All references outlive the sink.
  PartedGroups(const AggregatePlan& plan, const Options& options, storage::ScratchSpace& space,
               MemoryBudget& budget);

  /// Tasks write over the context's channel for scratch memory.
  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;
  bool writes_scratch() const override { return true; }

  // After all parts are combined:
  absl::Status Store(TaskContext& context, uint64_t attempt, StoredPages& pages) override {
    return parted_ ? absl::OkStatus() : groups_.Store(context, attempt, pages);
  }
  void Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const override {
    if (parted_) output_.Report(attempt, pipeline, out);
  }
  void Count(proto::PipelineCounters& out) const override;
  /// Whether all is in scratch memory. Otherwise groups() has them.
  bool parted() const { return parted_; }
  const ScratchOutput& output() const { return output_; }
  AggregateSink& groups() { return groups_; }

 private:
  class Task;
  /// A task's writers to scratch memory.
  struct Writers {
    Writers(PartedGroups& sink, TaskContext& context);
    absl::Status Finish(TaskContext& context, ScratchOutput& output);

    storage::ScratchWriter scratch;
    PartitionWriter states, rows;
  };
  /// Whether the set's texts fit the table's bound. Texts of keys that are codes are materialized only when
  /// they leave.
  absl::StatusOr<bool> IsSmall(GroupSet& set) const;
  /// Writes all states of the set, and empties it.
  absl::Status Write(TaskContext& context, GroupSet& set, PartitionWriter& writer);

  const AggregatePlan& plan_;
  const Options options_;
  const PartedRows states_, rows_;
  const uint64_t table_bytes_;   // a task's share of the budget
  const uint32_t table_groups_;  // by that share, too
  storage::ScratchSpace& space_;
  MemoryBudget& budget_;
  AggregateSink groups_;
  std::atomic<bool> parted_ = false;  // a task has written
  Mutex mutex_;
  std::vector<GroupSet*> sets_;  // by task; guarded by mutex_ while there are some
  ScratchOutput output_;
};

/// Writes groups that attempts have kept to scratch memory by parts, as PartedGroups would have: for the
/// coordinator, once another attempt has left its groups there. Immutable.
class KeptGroups {
 public:
  /// `sink` has groups by parts; `rows` is the schema of the rows that it aggregates.
  static absl::StatusOr<std::unique_ptr<const KeptGroups>> Make(const plan::AggregateSink& sink,
                                                                const plan::Schema& rows);

  /// Writes the consecutive pages of one attempt (AggregateSink::Store) over the context's channel for
  /// scratch memory. Open pages take at most an eighth of the context's budget, or one page. Trusts nothing
  /// in what it gets: DATA_LOSS if it is not of this aggregation and attempt. 53200 if scratch memory is
  /// full.
  absl::StatusOr<PartDirectory> Write(TaskContext& context, std::span<const std::byte> pages,
                                      uint64_t attempt, storage::ScratchSpace& space) const;

 private:
  KeptGroups(std::unique_ptr<const AggregatePlan> plan, uint32_t parts)
      : plan_(std::move(plan)), parts_(parts) {}

  const std::unique_ptr<const AggregatePlan> plan_;
  const uint32_t parts_;
};

}  // namespace nam::execution
