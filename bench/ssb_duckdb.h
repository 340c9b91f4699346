#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "ssb/generator.h"

namespace nam::bench {

/// SSB in DuckDB. Used by one thread, but for Cancel.
class SsbDuckDb {
 public:
  /// `sorted`: lineorder by lo_orderdate, as ours is clustered; otherwise as generated.
  SsbDuckDb(std::unique_ptr<DuckDb> duckdb, bool sorted) : duckdb_(std::move(duckdb)), sorted_(sorted) {}

  /// From dbgen's files of the generator's data. The seconds that it took.
  absl::StatusOr<double> Load(const std::string& tbl_directory, const ssb::Generator& generator);
  absl::StatusOr<DuckDb::Answer> Query(const std::string& sql) { return duckdb_->Query(sql); }
  void Cancel() { duckdb_->Cancel(); }
  /// `v1.5.6`, once it is loaded.
  const std::string& version() const { return duckdb_->version(); }

 private:
  const std::unique_ptr<DuckDb> duckdb_;
  const bool sorted_;
};

}  // namespace nam::bench
