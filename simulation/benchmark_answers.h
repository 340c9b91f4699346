#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "partitioner/column_batch.h"
#include "workload/benchmark.h"
#include "workload/sqlite_oracle.h"

namespace nam::simulation {

/// A small benchmark's data and SQLite's answers; created once, used by many runs.
class BenchmarkAnswers {
 public:
  struct Query {
    std::string id;
    std::string sql;
    SqliteOracle::Rows rows;
  };

  static absl::StatusOr<std::unique_ptr<BenchmarkAnswers>> Make(const Benchmark& benchmark,
                                                                double scale_factor);

  const Benchmark& benchmark() const { return benchmark_; }
  const std::vector<Query>& queries() const { return queries_; }
  /// The rows of a table, by its index in Benchmark::tables.
  const partitioner::ColumnBatch& rows(size_t table) const { return tables_[table]; }
  bool AreRight(const Query& query, const SqliteOracle::Rows& rows) const;

 private:
  explicit BenchmarkAnswers(const Benchmark& benchmark) : benchmark_(benchmark) {}

  const Benchmark& benchmark_;
  std::unique_ptr<dataset::Generator> generator_;  // may own texts of the rows
  std::deque<partitioner::ColumnBatch> tables_;    // never moved: rows point into them
  std::vector<Query> queries_;
};

struct LoadShape {
  uint32_t fan_out = 2;  // parts per join key
  uint32_t block_bytes = 16 << 10;
  uint32_t pointer_group = 4;
};

/// Loads all tables, replacing existing ones.
absl::Status LoadTables(catalog::Attachment& attachment, const BenchmarkAnswers& answers,
                        const LoadShape& shape);

}  // namespace nam::simulation
