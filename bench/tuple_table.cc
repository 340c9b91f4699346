#include "bench/tuple_table.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/on_threads.h"
#include "localcluster/state_directory.h"
#include "partitioner/column_batch.h"
#include "partitioner/loader.h"

namespace nam::bench {
namespace {

constexpr uint64_t kBatchTuples = 1 << 16;
constexpr uint32_t kParts = 32;  // each written by one thread at a time
constexpr uint8_t kIntegerBytes = 4;
constexpr int64_t kAppendTimeoutMs = 600'000;

bool Cancelled(const TupleLoadOptions& options) {
  return options.cancelled != nullptr && *options.cancelled;
}

partitioner::TableSchema SchemaOf(const TupleTable& table) {
  const Type integer = {.kind = TypeKind::kInteger, .precision = kIntegerBytes};
  return {.name = table.name,
          .columns = {{table.key, integer}, {table.payload, integer}},
          .partitioning = {{table.payload, kParts}},
          .sort_column = {}};
}

/// Appends batches of a table's tuples, which threads claim; used by one thread each.
class Appender {
 public:
  Appender(const TupleTable& table, partitioner::TableLoader& loader, const TupleLoadOptions& options)
      : table_(table), loader_(loader), options_(options) {}

  /// The body of each thread.
  void Run(int thread) {
    partitioner::ColumnBatch batch(2);
    for (;;) {
      const uint64_t first = kBatchTuples * next_.fetch_add(1, std::memory_order_relaxed);
      if (first >= table_.tuples.size() || stop_) return;
      const uint64_t tuples = std::min<uint64_t>(kBatchTuples, table_.tuples.size() - first);
      Fill(table_.tuples.subspan(first, tuples), batch);
      const absl::Status status =
          Cancelled(options_) ? absl::CancelledError("interrupted") : loader_.Append(batch);
      if (!status.ok()) return Fail(status);
      const uint64_t done = done_.fetch_add(tuples, std::memory_order_relaxed) + tuples;
      if (thread == 0) options_.progress(done);
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  static void Fill(std::span<const JoinTuple> tuples, partitioner::ColumnBatch& batch) {
    std::vector<int64_t>& keys = batch.column(0).numbers;
    std::vector<int64_t>& payloads = batch.column(1).numbers;
    keys.resize(tuples.size());
    payloads.resize(tuples.size());
    for (size_t i = 0; i < tuples.size(); ++i) {
      keys[i] = tuples[i].key;
      payloads[i] = tuples[i].payload;
    }
    batch.set_rows(tuples.size());
  }
  void Fail(const absl::Status& status) {
    stop_ = true;
    const std::lock_guard lock(mutex_);
    status_.Update(status);
  }

  const TupleTable& table_;
  partitioner::TableLoader& loader_;
  const TupleLoadOptions& options_;
  std::atomic<uint64_t> next_ = 0, done_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  absl::Status status_;
};

/// Writes one member of every tuple as four bytes in native byte order.
absl::Status WriteColumn(const std::string& path, std::span<const JoinTuple> tuples,
                         uint32_t JoinTuple::*member, const TupleLoadOptions& options) {
  const auto failed = [&] { return absl::InternalError(absl::StrCat("cannot write ", path)); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), &std::fclose);
  if (file == nullptr) return failed();
  std::vector<uint32_t> numbers;
  for (uint64_t first = 0; first < tuples.size(); first += kBatchTuples) {
    if (Cancelled(options)) return absl::CancelledError("interrupted");
    const auto batch = tuples.subspan(first, std::min<uint64_t>(kBatchTuples, tuples.size() - first));
    numbers.clear();
    for (const JoinTuple& tuple : batch) numbers.push_back(tuple.*member);
    if (std::fwrite(numbers.data(), sizeof(uint32_t), numbers.size(), file.get()) != numbers.size())
      return failed();
  }
  return std::fflush(file.get()) == 0 ? absl::OkStatus() : failed();
}

absl::StatusOr<double> Append(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                              const TupleLoadOptions& options) {
  NAM_RETURN_IF_ERROR(
      WriteColumn(absl::StrCat(directory, "/", table.key), table.tuples, &JoinTuple::key, options));
  NAM_RETURN_IF_ERROR(
      WriteColumn(absl::StrCat(directory, "/", table.payload), table.tuples, &JoinTuple::payload, options));
  return duckdb.Load(
      {{"op", "append"},
       {"directory", directory},
       {"table", table.name},
       {"rows", table.tuples.size()},
       {"columns",
        {{{"name", table.key}, {"file", table.key}}, {{"name", table.payload}, {"file", table.payload}}}}},
      kAppendTimeoutMs);
}

}  // namespace

absl::Status LoadTuples(catalog::Attachment& attachment, const TupleTable& table,
                        const TupleLoadOptions& options) {
  NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment, SchemaOf(table),
                                                                 {.expected_rows = table.tuples.size(),
                                                                  .threads = options.threads}));
  Appender appender(table, *loader, options);
  OnThreads(options.threads, [&](int thread) { appender.Run(thread); });
  NAM_RETURN_IF_ERROR(appender.status());
  return loader->Commit().status();
}

absl::StatusOr<double> LoadTuples(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                                  const TupleLoadOptions& options) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return absl::InternalError(absl::StrCat("cannot create ", directory, ": ", error.message()));
  const absl::StatusOr<double> seconds = Append(duckdb, table, directory, options);
  RemoveTree(directory);
  return seconds;
}

}  // namespace nam::bench
