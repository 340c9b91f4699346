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

/// What the texts of a benchmark's queries depend on.
struct QueryParameters {
  double scale_factor = 1;
  std::optional<uint64_t> seed;  // of random parameters; none: those of the specification's example answers
};

/// A benchmark as commands know it: its tables, rows and queries.
struct Benchmark {
  struct Index {
    std::string table;
    std::string column;
  };

  std::string name;                   // `ssb`, as in `nam ssb`
  std::string title;                  // `the Star Schema Benchmark`
  std::string largest_table;          // by whose rows loads are told
  double bytes_per_scale_factor = 0;  // of memory servers, with room for what queries keep there
  std::string query_names;            // for messages: `Q1 to Q22`
  const std::vector<dataset::Table>& (*tables)();
  std::unique_ptr<dataset::Generator> (*make_generator)(const dataset::GeneratorOptions&);
  /// Data of so many refreshes; null if the benchmark has none.
  absl::StatusOr<std::unique_ptr<dataset::Generator>> (*make_refresh)(const dataset::GeneratorOptions&,
                                                                      uint64_t refreshes) = nullptr;
  std::vector<BenchmarkQuery> (*queries)(const QueryParameters&);
  // For the second opinion:
  std::string (*sqlite_sql)(const std::string& sql);
  std::vector<Index> sqlite_keys;     // columns of integers without duplicates
  std::vector<Index> sqlite_indexes;  // others by which SQLite had better join
  int peer_digits = 0;                // as sqlite_digits, of other peers
  int sqlite_digits = 0;              // of numbers that must be equal; 0: all, and the type
};

const Benchmark& SsbBenchmark();
const Benchmark& TpchBenchmark();

/// The queries of these names, all if there are none; `q2.1` and `2.1` are understood as Q2.1.
/// INVALID_ARGUMENT for a name that is none's.
absl::StatusOr<std::vector<BenchmarkQuery>> SelectQueries(const Benchmark& benchmark,
                                                          const std::vector<std::string>& names,
                                                          const QueryParameters& parameters);

}  // namespace nam
