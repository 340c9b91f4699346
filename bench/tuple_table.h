#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/duckdb.h"
#include "bench/join_input.h"
#include "catalog/attachment.h"
#include "dataset/chunk_run.h"

namespace nam::bench {

/// Parses numbers of tuples and groups: `16M`, `1K`, `1000`. K is 1,024 and M its square, as in Balkesen's
/// workloads. INVALID_ARGUMENT, with the option's name, unless they are 1 to `most`.
absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most);
/// `16M`, `1K`; plain digits if it is not a multiple.
std::string CountLabel(uint64_t count);

/// A table of two SQL `integer` columns with the given tuples. Numbers have 31 bits.
struct TupleTable {
  std::string name;
  std::string key = "k", payload = "p";  // the columns
  std::vector<JoinTuple> tuples;
};

/// Loads into the cluster, partitioned by the payload, never by the key: no join finds its sides partitioned
/// alike. Until it returns, it needs as much memory again as the tuples.
absl::Status LoadTuples(catalog::Attachment& attachment, const TupleTable& table,
                        const dataset::WorkOptions& options);

/// Loads into DuckDB, by files in a temporary directory; returns DuckDB's seconds.
absl::StatusOr<double> LoadTuples(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                                  const std::atomic<bool>& cancelled);

}  // namespace nam::bench
