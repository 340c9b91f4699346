#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "csv/portion_reader.h"
#include "execution/task.h"
#include "fabric/fabric.h"
#include "partitioner/column_batch.h"
#include "plan/schema.h"
#include "session/copied_columns.h"
#include "session/copied_rows.h"
#include "sql/bound_query.h"

namespace nam::session {

/// The rows of a query's files, in their order, read no further than they are wanted. Tasks parse portions
/// (csv/portion_reader.h) themselves; while they are fewer than the host's processors, threads of the source
/// parse ahead of them, as soon as more than the first portion is wanted.
///
///     files ──▶ 4 taken   5 parsed   6 under way   7 parsed   …   a bounded number of portions
///                 │          └ the next that a task takes
///                 ▼
///               chunks: columns of a portion, uncopied
///
/// A row that cannot be read is an error once all rows before it are taken, so that a LIMIT before it holds.
class FileRows final : public execution::Source {
 public:
  struct Options {
    const sql::CopyStatement& statement;  // outlives the source
    std::vector<uint32_t> columns;        // of its table; those that flow
    plan::Schema rows;                    // as columns
    int tasks = 1;                        // that may run at once
    fabric::Fabric& fabric;
    const std::atomic<bool>& cancel;
    size_t portion_bytes = csv::PortionReader::kPortionBytes;
  };
  explicit FileRows(Options options);
  ~FileRows() override;
  std::unique_ptr<execution::SourceTask> NewTask(execution::TaskContext& context) override;

  uint64_t bytes_read() const { return reader_.bytes_read(); }

 private:
  class Task;
  /// A portion and its rows, reused for others.
  struct Parsed {
    explicit Parsed(FileRows& of);
    CopiedRows rows;
    CopiedColumns columns;
    partitioner::ColumnBatch batch;
    absl::Status error;  // of what stands behind the batch's rows
  };

  /// The next portion in order, for the caller until Release; null: there is no more.
  absl::StatusOr<Parsed*> Take();
  void Release(Parsed* portion);
  /// Reads and parses the next portion of the files, if there is one.
  void ParseInto(Parsed& portion);
  static void Parse(Parsed& portion);
  /// Runs on a thread of the source.
  void ParseAhead();
  /// A place for a portion; null: all are in use.
  Parsed* Reserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<fabric::Event> Await() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wait(const std::shared_ptr<fabric::Event>& event);
  void StartThreads();

  const Options options_;
  std::vector<partitioner::Form> forms_;  // of the batches' columns, as options_.columns
  csv::PortionReader reader_;
  const size_t places_max_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Parsed>> places_ ABSL_GUARDED_BY(mutex_);
  std::vector<Parsed*> free_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Parsed*> parsed_ ABSL_GUARDED_BY(mutex_);  // by number
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;                   // the portion that is taken next
  uint64_t read_ ABSL_GUARDED_BY(mutex_) = 0;                   // portions
  int reading_ ABSL_GUARDED_BY(mutex_) = 0;                     // threads that ask for a portion
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;                  // the files have no more, or cannot be read
  absl::Status error_ ABSL_GUARDED_BY(mutex_);                  // why they cannot
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;                // nothing more is wanted
  std::vector<std::shared_ptr<fabric::Event>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<fabric::Thread>> threads_;  // last: joined first
};

}  // namespace nam::session
