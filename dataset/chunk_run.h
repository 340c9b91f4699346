#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

/// Takes runs of rows from several threads at once. The batch and its text belong to the caller again when it
/// returns.
using Sink = std::function<absl::Status(const partitioner::ColumnBatch&)>;

struct Progress {
  std::string_view table;
  uint64_t rows_done = 0;
  uint64_t rows_expected = 0;  // files: estimated from the bytes read so far
  double rows_per_second = 0;
  double seconds_left = 0;
  bool finished = false;  // the last report of a table that completed without error
};

/// Options for a pass over a table, whatever the source and target of its rows.
struct WorkOptions {
  int threads = 2;
  uint32_t batch_rows = 32 * 1024;  // approximate maximum of rows per sink call
  uint32_t read_bytes = 1 << 20;    // of a file, per read of a thread
  /// Called on working threads, one at a time; at most once per interval, and at the end.
  std::function<void(const Progress&)> progress;
  int64_t progress_interval_us = 200'000;
  /// Owned by the caller; any thread or signal handler may set it. The work then ends with CANCELLED.
  const std::atomic<bool>* cancelled = nullptr;
};

/// INVALID_ARGUMENT if a number is out of range.
absl::Status Validate(const WorkOptions& options);

/// Processes chunks of a table, one after the other; belongs to one thread.
class ChunkWorker {
 public:
  virtual ~ChunkWorker() = default;
  virtual absl::Status Run(uint64_t chunk) = 0;
};

/// One parallel pass over chunks 0 … n - 1, which threads claim in order. When chunk k fails,
///
///     0 … k - 1   were claimed before it: they run to their end, so that the returned error is always
///                 that of the lowest failing chunk, however threads are scheduled
///     k           failed
///     k + 1 …     stop at their next Check(); no more are claimed
///
/// and the sink gets no more rows.
class ChunkRun {
 public:
  /// `table` is the name for reports.
  ChunkRun(fabric::Fabric& fabric, const WorkOptions& options, std::string_view table);

  /// Starts the threads and joins them. Called once.
  absl::Status Run(uint64_t chunks, const std::function<std::unique_ptr<ChunkWorker>()>& make_worker);

  // For workers, any thread:
  /// CANCELLED if chunk `chunk` need not continue.
  absl::Status Check(uint64_t chunk) const;
  /// Calls Check(), then the sink unless some chunk has failed.
  absl::Status Emit(uint64_t chunk, const Sink& sink, const partitioner::ColumnBatch& batch) const;
  /// Adds to the rows done; `rows_expected` is the current estimate of all rows.
  void Report(uint64_t rows, uint64_t rows_expected);
  uint64_t rows_done() const { return rows_done_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  void Work(uint64_t chunks, ChunkWorker& worker);
  void Fail(uint64_t chunk, absl::Status status);
  void CallProgress(uint64_t rows_expected, bool finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(progress_mutex_);

  fabric::Fabric& fabric_;
  const WorkOptions& options_;
  const std::string table_;
  const int64_t start_ns_;
  std::atomic<uint64_t> next_chunk_ = 0;
  std::atomic<uint64_t> failed_chunk_ = kNone;  // the lowest; written under error_mutex_
  Mutex error_mutex_;
  absl::Status error_ ABSL_GUARDED_BY(error_mutex_);  // of failed_chunk_
  std::atomic<uint64_t> rows_done_ = 0;
  Mutex progress_mutex_;
  int64_t next_progress_ns_ ABSL_GUARDED_BY(progress_mutex_);
};

}  // namespace nam::dataset
