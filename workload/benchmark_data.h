#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"
#include "partitioner/loader.h"
#include "terminal/progress_line.h"
#include "workload/benchmark.h"
#include "workload/sqlite_oracle.h"

namespace nam {

/// The source of a benchmark's rows: the generator, or dbgen's files in a directory.
struct DataSource {
  double scale_factor = 1;
  uint64_t seed = 1;
  std::string from;  // empty: generated
  int threads = 0;   // 0: one per processor

  int threads_used() const;
};

/// INVALID_ARGUMENT if the scale factor or the number of threads is out of range.
absl::Status Validate(const DataSource& source);

struct LoadedTable {
  std::string name;
  uint64_t rows = 0;
  double seconds = 0;
  proto::Table table;
};

/// Loads the benchmark's tables, one after the other. Each becomes visible only when complete.
/// FAILED_PRECONDITION before it loads anything if one of their names belongs to a table with other columns:
/// another benchmark's, or a user's.
absl::StatusOr<std::vector<LoadedTable>> LoadBenchmark(catalog::Attachment& attachment,
                                                       const Benchmark& benchmark, const DataSource& source,
                                                       const partitioner::LoadOptions& options,
                                                       ProgressLine& progress,
                                                       const std::atomic<bool>& cancelled);

/// The same rows in SQLite, for `queries`.
absl::StatusOr<std::unique_ptr<SqliteOracle>> LoadOracle(fabric::Fabric& fabric, const Benchmark& benchmark,
                                                         const DataSource& source,
                                                         const std::vector<BenchmarkQuery>& queries,
                                                         ProgressLine& progress,
                                                         const std::atomic<bool>& cancelled);

}  // namespace nam
