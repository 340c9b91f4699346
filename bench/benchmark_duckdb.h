#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "dataset/generator.h"

namespace nam::bench {

/// A benchmark's tables in DuckDB. Used by one thread, except Cancel.
class BenchmarkDuckDb {
 public:
  /// `sorted`: tables in the order in which NAM clusters them; otherwise as generated.
  BenchmarkDuckDb(std::unique_ptr<DuckDb> duckdb, bool sorted)
      : duckdb_(std::move(duckdb)), sorted_(sorted) {}

  /// Loads the generator's data from dbgen's files; returns the seconds taken.
  absl::StatusOr<double> Load(const std::string& tbl_directory, const dataset::Generator& generator);
  absl::StatusOr<DuckDb::Answer> Query(const std::string& sql) { return duckdb_->Query(sql); }
  void Cancel() { duckdb_->Cancel(); }
  /// `v1.5.6`, once loaded.
  const std::string& version() const { return duckdb_->version(); }

 private:
  const std::unique_ptr<DuckDb> duckdb_;
  const bool sorted_;
};

}  // namespace nam::bench
