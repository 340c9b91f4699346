#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/algorithm.h"
#include "bench/command.h"
#include "bench/duckdb.h"
#include "bench/turns.h"
#include "bench/workload.h"
#include "catalog/attachment.h"
#include "session/session.h"

namespace nam::bench {

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

  /// `run` and `workload` must outlive this object.
  AlgorithmWork(Run& run, Workload& workload, const AlgorithmWorkOptions& options)
      : run_(run), workload_(workload), options_(options) {}

  absl::Status RunOn(catalog::Attachment& attachment);

  // After RunOn:
  /// In the workload's order; with the plan of the explained algorithm.
  const std::vector<CaseFigures>& cases() const { return cases_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }

 private:
  absl::Status Prepare(session::Session& session);
  absl::StatusOr<Json> Explain(session::Session& session) const;
  absl::Status RunCase(catalog::Attachment& attachment, session::Session& session, size_t index);
  absl::Status Load(catalog::Attachment& attachment, const std::string& title);
  absl::Status DropTables(session::Session& session);
  std::vector<Contender> MakeContenders(session::Session& session);
  absl::StatusOr<Turn> Ask(session::Session& session, const Algorithm& algorithm);
  absl::StatusOr<Turn> AskDuckDb();

  Run& run_;
  Workload& workload_;
  const AlgorithmWorkOptions options_;
  std::vector<Skipped> skipped_;
  std::vector<CaseFigures> cases_;
};

}  // namespace nam::bench
