#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "execution/expression/program.h"
#include "execution/memory_budget.h"
#include "execution/task.h"
#include "partitioner/assigned_rows.h"
#include "partitioner/group_writer.h"
#include "plan/schema.h"
#include "proto/catalog.pb.h"

namespace nam::execution {

/// The payload of an error: memory servers have no room for a table.
inline constexpr char kTableMemoryFull[] = "nam/table-memory-full";

/// The columnar table that an attempt writes rows into.
struct TableTarget {
  catalog::Attachment* attachment = nullptr;
  AllocationId allocation;  // the session began it for this attempt alone
  proto::Table table;       // its description, without chains
  std::vector<partitioner::GivenColumn> given;
};

/// Writes a query's rows as groups of a columnar table, all in one allocation:
///
///     each task   chunk ─▶ values as the columns take them ─▶ batch ─┐
///     the sink    staged rows of all tasks, within the budget ◀──────┘
///                     │ full: tasks wait at the gate        │ all tasks have ended
///                     └─▶ a group in memory servers ◀───────┘
///
/// So each group has as many rows as the attempt may hold; the last one has the rest. No statement sees the
/// groups until the session commits them.
class TableSink final : public Sink {
 public:
  /// INVALID_ARGUMENT: the target does not fit the rows, or describes no valid table. `budget` outlives the
  /// sink.
  static absl::StatusOr<std::unique_ptr<TableSink>> Make(const plan::Schema& rows, TableTarget target,
                                                         int threads, MemoryBudget& budget);
  ~TableSink() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override { return 1; }
  absl::Status Combine(TaskContext& context, uint32_t part) override;
  /// Its groups, and the bytes of all of them.
  void Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const override;

  /// A group is written when it would exceed so many bytes, by the attempt's budget.
  static constexpr uint64_t GroupBytes(uint64_t budget_bytes) {
    return std::min(kGroupBytesMax, budget_bytes / 2);
  }

 private:
  /// Large enough that encodings and dictionaries pay, and that large tables have few groups.
  static constexpr uint64_t kGroupBytesMax = uint64_t{512} << 20;

  class Task;
  TableSink(TableTarget target, partitioner::TableSchema schema, std::unique_ptr<const Program> values,
            int threads, MemoryBudget& budget);
  /// Stages the batch of `bytes`, or blocks the task, which then tries again.
  Step Add(TaskContext& context, const partitioner::ColumnBatch& batch, uint64_t bytes);
  /// kEntered: the caller stages its batch of `bytes` and then calls Leave. kWait: it waits for the gate.
  /// kWrite: it writes the full group and tries again.
  enum class Entry : uint8_t { kEntered, kWait, kWrite };
  absl::StatusOr<Entry> Enter(uint64_t bytes, const std::atomic<bool>& cancel, const Gate*& gate);
  /// Ends an entry. True: the caller must write the group.
  bool Leave();
  /// Writes the staged rows as a group and lets the tasks go on.
  absl::Status WriteGroup(TaskContext& context);

  const TableTarget target_;
  const partitioner::TableSchema schema_;
  const partitioner::AssignedRows assigned_;
  const std::unique_ptr<const Program> values_;
  std::vector<Type> types_;  // of the values
  const int threads_;
  MemoryBudget& budget_;
  const uint64_t group_bytes_;  // a group is written when it would exceed this
  const uint64_t batch_bytes_;  // a batch is staged from this size on

  Mutex mutex_;  // guards what follows while tasks run
  // Has the staged rows; used outside of the lock.
  std::unique_ptr<partitioner::GroupWriter> writer_;
  uint64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;    // bytes taken from the budget for them
  int entered_ ABSL_GUARDED_BY(mutex_) = 0;         // tasks that are staging rows
  bool full_ ABSL_GUARDED_BY(mutex_) = false;       // no task may enter
  std::deque<Gate> gates_ ABSL_GUARDED_BY(mutex_);  // the last one opens when the group is written
  std::vector<proto::Table> groups_;
  std::map<MemoryServerId, uint64_t> written_bytes_;
};

}  // namespace nam::execution
