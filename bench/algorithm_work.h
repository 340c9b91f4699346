#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/algorithm_case.h"
#include "bench/command.h"
#include "bench/duckdb.h"
#include "bench/turns.h"
#include "catalog/attachment.h"
#include "session/session.h"

namespace nam::bench {

/// A way to run a query, forced by the session's settings.
struct Algorithm {
  std::string name;  // `rrj`
  std::vector<std::pair<std::string, std::string>> settings;
};

/// `rrj`, `rdma_ghj`, `ghj` and `ghj_bloom` over sockets, `ghj_fabric` and `ghj_bloom_fabric` over the
/// fabric, `pipelined`, and at last `auto`.
const std::vector<Algorithm>& JoinAlgorithms();
/// `rdma`, `dist`, `auto`.
const std::vector<Algorithm>& AggregateAlgorithms();
std::vector<std::string> NamesOf(const std::vector<Algorithm>& algorithms);
/// Those with the names, which must be among them.
std::vector<Algorithm> Named(const std::vector<Algorithm>& algorithms, const std::vector<std::string>& names);

/// Forces it from the next statement on, with one SET per setting. After an error some of them are set.
absl::Status Force(session::Session& session, const Algorithm& algorithm);

struct AlgorithmWorkOptions {
  std::vector<Algorithm> algorithms;
  int repeat = 3;
  size_t warm_up = TurnsOptions().warm_up;  // contenders with a warm-up turn
  int threads = 2;                          // for loading; servers and peer have their own
  uint64_t query_mib_max = 4096;            // the session's limit per query
  std::string directory;                    // for the peer's input files
  DuckDb* duckdb = nullptr;                 // null: takes no part
  std::string explained;                    // algorithm whose plan of each case is kept; empty: none
};

/// Runs each case: all contenders load the data; algorithms and DuckDB take turns; then all drop the data.
/// An algorithm that takes more memory than it may have is skipped and reported; nothing runs in its place.
class AlgorithmWork {
 public:
  struct Skipped {
    std::string algorithm;
    std::string why;
  };

  /// `run` must outlive this object.
  AlgorithmWork(Run& run, std::vector<AlgorithmCase> cases, const AlgorithmWorkOptions& options)
      : run_(run), cases_(std::move(cases)), options_(options) {}

  absl::Status RunOn(catalog::Attachment& attachment);

  // After RunOn:
  /// In the order of the cases; with the plan of the explained algorithm.
  const std::vector<CaseFigures>& figures() const { return figures_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }

 private:
  absl::Status Prepare(session::Session& session);
  absl::StatusOr<Json> Explain(session::Session& session, const std::string& sql) const;
  absl::Status RunCase(catalog::Attachment& attachment, session::Session& session, const AlgorithmCase& of);
  absl::Status Load(catalog::Attachment& attachment, const std::string& title, const TupleTable& table);
  absl::Status Drop(session::Session& session, const TupleTable& table);
  std::vector<Contender> MakeContenders(session::Session& session, const std::string& sql);

  Run& run_;
  const std::vector<AlgorithmCase> cases_;
  const AlgorithmWorkOptions options_;
  std::vector<Skipped> skipped_;
  std::vector<CaseFigures> figures_;
};

}  // namespace nam::bench
