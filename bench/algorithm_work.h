#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/algorithm.h"
#include "bench/duckdb.h"
#include "bench/turns.h"
#include "bench/workload.h"
#include "catalog/attachment.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "session/session.h"
#include "terminal/progress_line.h"

namespace nam::bench {

struct AlgorithmWorkOptions {
  std::vector<Algorithm> algorithms;
  int repeat = 3;
  size_t warm_up = TurnsOptions().warm_up;  // contenders
  int threads = 2;                          // that load; servers, peer and bound have been told theirs
  uint64_t query_mib_max = 4096;            // the session's bounds of what a query holds
  std::string directory;                    // for what the peer reads
  DuckDb* duckdb = nullptr;                 // if it takes part
  std::string explained;                    // an algorithm whose plan of each case is kept; empty: none
};

/// Runs each case: the data go to all contenders, then algorithms, DuckDB and the loop by hand take turns,
/// then all of them forget the data. An algorithm that the engine refuses to be told is left out, and named;
/// nothing runs in its place.
class AlgorithmWork final : public ClusterWork {
 public:
  struct Skipped {
    std::string algorithm;
    std::string why;
  };
  struct Case {
    size_t index = 0;  // the workload's
    Json plan;         // EXPLAIN's, of the algorithm that is explained
    std::vector<ContenderTimes> contenders;
  };

  /// `workload` outlives the work.
  AlgorithmWork(ClusterOptions cluster, Workload& workload, const AlgorithmWorkOptions& options)
      : cluster_(std::move(cluster)),
        workload_(workload),
        options_(options),
        algorithms_(options.algorithms) {}

  /// In the cluster that `cluster` names.
  absl::Status Run() override;
  absl::Status RunOn(catalog::Attachment& attachment);
  void Cancel() override;

  // After Run:
  const std::vector<Case>& cases() const { return cases_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }

 private:
  absl::Status Prepare(session::Session& session);
  /// Those that cannot be told, or not for the query.
  absl::Status LeaveOutRefused(session::Session& session, const std::optional<std::string>& query);
  absl::StatusOr<Json> Explain(session::Session& session) const;
  absl::Status RunCase(catalog::Attachment& attachment, session::Session& session, size_t index);
  absl::Status Load(catalog::Attachment& attachment, const std::string& title);
  absl::Status DropTables(session::Session& session);
  std::vector<Contender> MakeContenders(session::Session& session);
  absl::StatusOr<Turn> Ask(session::Session& session, const Algorithm& algorithm);
  absl::StatusOr<Turn> AskDuckDb();
  TupleLoadOptions LoadOptions(const std::string& doing, uint64_t tuples);
  void SetSession(session::Session* session);

  const ClusterOptions cluster_;
  Workload& workload_;
  const AlgorithmWorkOptions options_;
  ProgressLine progress_;
  std::vector<Algorithm> algorithms_;  // that are not left out
  std::vector<Skipped> skipped_;
  std::vector<Case> cases_;
  std::atomic<bool> cancelled_ = false;
  std::mutex session_mutex_;
  session::Session* session_ = nullptr;  // while Run runs
};

}  // namespace nam::bench
