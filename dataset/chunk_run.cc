#include "dataset/chunk_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::dataset {
namespace {

constexpr int kThreadsMax = 1024;
constexpr uint32_t kBatchRowsMax = 1 << 24;
constexpr uint32_t kReadBytesMax = 1 << 30;

absl::Status CancelledByCaller() {
  return absl::CancelledError("cancelled");
}

}  // namespace

absl::Status Validate(const WorkOptions& options) {
  const auto in_range = [](const char* name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat("%s is %d, must be %d to %d", name, value, low, high));
  };
  NAM_RETURN_IF_ERROR(in_range("threads", options.threads, 1, kThreadsMax));
  NAM_RETURN_IF_ERROR(in_range("batch_rows", options.batch_rows, 1, kBatchRowsMax));
  return in_range("read_bytes", options.read_bytes, 1, kReadBytesMax);
}

ChunkRun::ChunkRun(fabric::Fabric& fabric, const WorkOptions& options, std::string_view table)
    : fabric_(fabric),
      options_(options),
      table_(table),
      start_ns_(fabric.clock().NowNs()),
      next_progress_ns_(start_ns_ + options.progress_interval_us * 1000) {}

absl::Status ChunkRun::Run(uint64_t chunks,
                           const std::function<std::unique_ptr<ChunkWorker>()>& make_worker) {
  const auto thread_count =
      static_cast<size_t>(std::min<uint64_t>(options_.threads, std::max<uint64_t>(chunks, 1)));
  {
    std::vector<std::unique_ptr<ChunkWorker>> workers;
    std::vector<std::unique_ptr<fabric::Thread>> threads;  // joined before the workers are destroyed
    for (size_t i = 0; i < thread_count; ++i) workers.push_back(make_worker());
    for (size_t i = 0; i < thread_count; ++i) {
      auto started =
          fabric_.TryStartThread(absl::StrFormat("dataset-%d", i), [&, i] { Work(chunks, *workers[i]); });
      if (!started.ok()) break;
      threads.push_back(*std::move(started));
    }
    if (threads.empty()) Work(chunks, *workers[0]);  // this thread is better than none
  }
  if (failed_chunk_ != kNone) {
    const MutexLock lock(error_mutex_);
    return error_;
  }
  if (options_.cancelled && *options_.cancelled && next_chunk_ < chunks) return CancelledByCaller();
  if (options_.progress) {
    const MutexLock lock(progress_mutex_);
    CallProgress(rows_done(), true);
  }
  return absl::OkStatus();
}

void ChunkRun::Work(uint64_t chunks, ChunkWorker& worker) {
  while (failed_chunk_ == kNone && !(options_.cancelled && *options_.cancelled)) {
    uint64_t chunk = next_chunk_;
    do {
      if (chunk >= chunks) return;
    } while (!next_chunk_.compare_exchange_weak(chunk, chunk + 1));
    if (absl::Status status = worker.Run(chunk); !status.ok()) Fail(chunk, std::move(status));
  }
}

void ChunkRun::Fail(uint64_t chunk, absl::Status status) {
  const MutexLock lock(error_mutex_);
  if (chunk >= failed_chunk_) return;
  error_ = std::move(status);
  failed_chunk_ = chunk;
}

absl::Status ChunkRun::Check(uint64_t chunk) const {
  if (options_.cancelled && *options_.cancelled) return CancelledByCaller();
  if (failed_chunk_ < chunk) return absl::CancelledError("an earlier part of the table failed");
  return absl::OkStatus();
}

absl::Status ChunkRun::Emit(uint64_t chunk, const Sink& sink, const partitioner::ColumnBatch& batch) const {
  NAM_RETURN_IF_ERROR(Check(chunk));
  if (failed_chunk_ != kNone) return absl::OkStatus();
  return sink(batch);
}

void ChunkRun::Report(uint64_t rows, uint64_t rows_expected) {
  rows_done_.fetch_add(rows, std::memory_order_relaxed);
  if (!options_.progress) return;
  if (!progress_mutex_.TryLock()) return;
  const MutexLock lock(progress_mutex_, std::adopt_lock);
  if (fabric_.clock().NowNs() < next_progress_ns_) return;
  CallProgress(rows_expected, false);
  next_progress_ns_ = fabric_.clock().NowNs() + options_.progress_interval_us * 1000;
}

void ChunkRun::CallProgress(uint64_t rows_expected, bool finished) {
  Progress progress{.table = table_, .rows_done = rows_done(), .finished = finished};
  progress.rows_expected = std::max(rows_expected, progress.rows_done);
  const auto elapsed_ns = static_cast<double>(fabric_.clock().NowNs() - start_ns_);
  if (elapsed_ns > 0) progress.rows_per_second = static_cast<double>(progress.rows_done) * 1e9 / elapsed_ns;
  if (progress.rows_per_second > 0) {
    progress.seconds_left =
        static_cast<double>(progress.rows_expected - progress.rows_done) / progress.rows_per_second;
  }
  options_.progress(progress);
}

}  // namespace nam::dataset
