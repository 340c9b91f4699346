#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "dataset/generator.h"

namespace nam::bench {

/// A benchmark's tables in DuckDB. Used by one thread, but for Cancel.
class BenchmarkDuckDb {
 public:
  /// `sorted`: tables in the order by which ours are clustered; otherwise as generated.
  BenchmarkDuckDb(std::unique_ptr<DuckDb> duckdb, bool sorted)
      : duckdb_(std::move(duckdb)), sorted_(sorted) {}

  /// From dbgen's files of the generator's data. The seconds that it took.
  absl::StatusOr<double> Load(const std::string& tbl_directory, const dataset::Generator& generator);
  absl::StatusOr<DuckDb::Answer> Query(const std::string& sql) { return duckdb_->Query(sql); }
  void Cancel() { duckdb_->Cancel(); }
  /// `v1.5.6`, once it is loaded.
  const std::string& version() const { return duckdb_->version(); }

 private:
  const std::unique_ptr<DuckDb> duckdb_;
  const bool sorted_;
};

}  // namespace nam::bench
