#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

/// The payload of an error that memory servers have no room for a table.
inline constexpr char kTableMemoryFull[] = "nam/table-memory-full";

/// Where an attempt writes rows of a columnar table.
struct TableTarget {
  catalog::Attachment* attachment = nullptr;
  AllocationId allocation;  // the session's, for this attempt alone
  proto::Table table;       // as it is described, without chains
  std::vector<partitioner::GivenColumn> given;
};

/// Rows of a query that become groups of a columnar table, all of one allocation:
///
///     each task   chunk ─▶ values as the columns have them ─▶ batch ─┐
///     the sink    staged rows of all tasks, within the budget ◀──────┘
///                     │ full: tasks wait at the gate        │ all tasks have ended
///                     └─▶ a group in memory servers ◀───────┘
///
/// So a group has as many rows as the attempt may hold, and the last one what is left. What is written is
/// nobody's until the session commits it.
class TableSink final : public Sink {
 public:
  /// INVALID_ARGUMENT: no such rows, or no such table. `budget` outlives the sink.
  static absl::StatusOr<std::unique_ptr<TableSink>> Make(const plan::Schema& rows, TableTarget target,
                                                         int threads, MemoryBudget& budget);
  ~TableSink() override;

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  uint32_t CombineParts() override { return 1; }
  absl::Status Combine(TaskContext& context, uint32_t part) override;

  // Once it is complete:
  const std::vector<proto::Table>& groups() const { return groups_; }
  const std::map<MemoryServerId, uint64_t>& written_bytes() const { return written_bytes_; }

 private:
  class Task;
  TableSink(TableTarget target, partitioner::TableSchema schema, std::unique_ptr<const Program> values,
            int threads, MemoryBudget& budget);
  /// Stages the batch, which takes so many bytes; or blocks the task, which then tries again.
  Step Add(TaskContext& context, const partitioner::ColumnBatch& batch, uint64_t bytes);
  /// A batch of so many bytes may be staged, which is then under way; or it has to wait for the gate; or the
  /// caller is to write the group that is in its way, and to come again.
  enum class Entry : uint8_t { kEntered, kWait, kWrite };
  absl::StatusOr<Entry> Enter(uint64_t bytes, const std::atomic<bool>& cancel, const Gate*& gate);
  /// Behind it; whether the caller is to write the group.
  bool Leave();
  /// Makes a group of what is staged, lets the tasks go on.
  absl::Status WriteGroup(TaskContext& context);

  const TableTarget target_;
  const partitioner::TableSchema schema_;
  const partitioner::AssignedRows assigned_;
  const std::unique_ptr<const Program> values_;
  std::vector<Type> types_;  // of the values
  const int threads_;
  MemoryBudget& budget_;
  const uint64_t group_bytes_;  // from which on a group is written
  const uint64_t batch_bytes_;  // from which on a batch is staged

  std::mutex mutex_;                                  // guards what follows while tasks run
  std::unique_ptr<partitioner::GroupWriter> writer_;  // of the rows that are staged; used outside of the lock
  uint64_t charged_ = 0;                              // for them
  int entered_ = 0;                                   // tasks that stage rows just now
  bool full_ = false;                                 // none enters
  std::deque<Gate> gates_;                            // the last one opens when the group is written
  std::vector<proto::Table> groups_;
  std::map<MemoryServerId, uint64_t> written_bytes_;
};

}  // namespace nam::execution
