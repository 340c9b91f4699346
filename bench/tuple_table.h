#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "bench/join_input.h"
#include "catalog/attachment.h"

namespace nam::bench {

/// A table of two columns of SQL's `integer`, by the tuples that it gets. Numbers have 31 bits.
struct TupleTable {
  std::string name;
  std::string key = "k", payload = "p";  // the columns
  std::span<const JoinTuple> tuples;     // the caller's
};

struct TupleLoadOptions {
  int threads = 2;
  /// Called with the rows done, by one thread.
  std::function<void(uint64_t)> progress = [](uint64_t) {};
  const std::atomic<bool>* cancelled = nullptr;
};

/// Into the cluster, split by the payload, never by the key: no join by keys finds its sides split alike.
/// Takes as much memory beside the tuples as they do until it returns.
absl::Status LoadTuples(catalog::Attachment& attachment, const TupleTable& table,
                        const TupleLoadOptions& options);

/// Into DuckDB, by files in a folder that is made and removed. The seconds that DuckDB took.
absl::StatusOr<double> LoadTuples(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                                  const TupleLoadOptions& options);

}  // namespace nam::bench
