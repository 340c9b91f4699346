#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataset/generator.h"
#include "dataset/table.h"

namespace nam {

struct BenchmarkQuery {
  std::string id;   // `Q2.1`
  std::string sql;  // without a closing semicolon
};

/// Parameters of a benchmark's query texts.
struct QueryParameters {
  double scale_factor = 1;
  std::optional<uint64_t> seed;  // for random parameters; none: those of the specification's example answers
};

/// A benchmark for commands: its tables, rows and queries.
struct Benchmark {
  struct Index {
    std::string table;
    std::string column;
  };

  std::string name;                   // `ssb`, as in `nam ssb`
  std::string title;                  // `the Star Schema Benchmark`
  std::string largest_table;          // its row count measures loads
  double bytes_per_scale_factor = 0;  // of memory servers, including the queries' scratch memory
  std::string query_names;            // for messages: `Q1 to Q22`
  const std::vector<dataset::Table>& (*tables)();
  std::unique_ptr<dataset::Generator> (*make_generator)(const dataset::GeneratorOptions&);
  /// Data of `refreshes` refreshes; null if the benchmark has none.
  absl::StatusOr<std::unique_ptr<dataset::Generator>> (*make_refresh)(const dataset::GeneratorOptions&,
                                                                      uint64_t refreshes) = nullptr;
  std::vector<BenchmarkQuery> (*queries)(const QueryParameters&);
  // For the comparison with SQLite:
  std::string (*sqlite_sql)(const std::string& sql);
  std::vector<Index> sqlite_keys;     // integer columns without duplicates
  std::vector<Index> sqlite_indexes;  // other columns by which SQLite should join
  int peer_digits = 0;                // like sqlite_digits, for other peers
  int sqlite_digits = 0;              // digits that must be equal; 0: all, and the type
};

const Benchmark& SsbBenchmark();
const Benchmark& TpchBenchmark();

/// The queries with these names, or all if empty; accepts `q2.1` and `2.1` for Q2.1. INVALID_ARGUMENT for an
/// unknown name.
absl::StatusOr<std::vector<BenchmarkQuery>> SelectQueries(const Benchmark& benchmark,
                                                          const std::vector<std::string>& names,
                                                          const QueryParameters& parameters);

}  // namespace nam
