#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "dataset/generator.h"

namespace nam::bench {

/// Opens DuckDB and loads a benchmark's tables from dbgen's files with the generator's data; returns the
/// seconds taken. `sorted`: tables in the order in which NAM clusters them; otherwise as generated.
absl::StatusOr<double> LoadIntoDuckDb(DuckDb& duckdb, const std::string& tbl_directory,
                                      const dataset::Generator& generator, bool sorted);

}  // namespace nam::bench
