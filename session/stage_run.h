#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "execution/exchange/exchange_layout.h"
#include "optimizer/assignment.h"
#include "optimizer/join_cost.h"
#include "optimizer/stage_tables.h"
#include "plan/physical.h"
#include "session/catalog_tables.h"
#include "session/compute_clients.h"
#include "session/explain.h"
#include "session/multicast_coordinator.h"
#include "session/query_run.h"
#include "session/query_scratch.h"
#include "session/record_reads.h"
#include "session/session.h"
#include "session/settings.h"
#include "session/stage_output.h"
#include "session/work_counters.h"

namespace nam::session {

/// The sides of a join by parts, as pipelines of its plan.
struct JoinedParts {
  uint32_t probed = 0, built = 0;
  plan::JoinKind kind = plan::JoinKind::kInner;
};

/// A stage of compute servers before it runs: its properties, and the servers with work.
struct PlacedStage {
  optimizer::StageTables tables;
  double tuples = 0;                // estimated: rows behind its joins, pairs that those without keys compare
  uint64_t first_rows = 0;          // so many of the claimed table's are enough, if they are its first
  uint32_t parts = 0;               // claimed instead of a table
  std::optional<JoinedParts> join;  // if it claims parts of two sides
  execution::ExchangeShape exchanges;  // of a streamed stage: nothing is claimed
  bool streamed() const { return exchanges.exchanges > 0; }
  std::vector<proto::Directory> inputs;     // their places
  std::vector<proto::RecordInput> records;  // what the transaction adds to its scans of record tables
  std::vector<ServerReport> servers;        // those with work
  std::vector<std::string> why_read;        // after the run, by build side; empty if it was multicast
};

/// Runs stages of compute servers for a session, and keeps resources for them from query to query:
/// connections, multicast groups, words to claim work from. Its parts outlive it. One thread.
class StageRunner {
 public:
  static absl::StatusOr<std::unique_ptr<StageRunner>> Open(catalog::Attachment& attachment,
                                                           CatalogTables& tables,
                                                           const SessionSettings& settings,
                                                           const std::atomic<bool>& cancel);

  /// Gives up all resources of the former member.
  absl::Status BeginAnew();
  void OnProgress(std::function<void(const QueryProgress&)> report) { progress_ = std::move(report); }
  bool tells_progress() const { return progress_ != nullptr; }
  /// Reports that so many rows have passed the session's operators, now and then, unless servers run, which
  /// report themselves.
  void TellFinishing(uint64_t rows);
  /// Called when a query begins.
  void BeginQuery();

  /// The workers of queries, by the catalog's last answer: for estimates, which are not worth a wait.
  optimizer::ClusterShape Shape() const;
  /// Finds living compute servers, and their shares of the stage.
  absl::Status FindServers(PlacedStage& placed, const RecordReads* records);
  /// The common part of requests for attempts at stages of the plan. `tables`: the plan's. Those of version 0
  /// are known to this session alone.
  proto::AttemptRequest RequestOf(const plan::PhysicalPlan& plan, const optimizer::TableRefs& tables) const;
  /// Runs stage `number` of the request's plan.
  absl::Status Run(proto::AttemptRequest request, uint32_t number, PlacedStage& placed,
                   const StageOutput& output);
  /// The session's.
  QueryScratch& scratch() { return scratch_; }

 private:
  StageRunner(catalog::Attachment& attachment, std::unique_ptr<ComputeClients> clients, CatalogTables& tables,
              const SessionSettings& settings, const std::atomic<bool>& cancel);
  absl::StatusOr<std::vector<proto::Member>> ComputeServers();
  absl::Status RunStreamed(proto::AttemptRequest request, PlacedStage& placed, const StageOutput& output);
  static optimizer::Assignment Share(const PlacedStage& placed, const RecordReads* records, size_t servers,
                                     uint32_t threads);
  absl::Status StartMulticast(PlacedStage& placed);
  /// Translates QueryRun's progress for the session's caller.
  std::function<void(uint64_t)> ProgressOf(const PlacedStage& placed);
  /// Words to claim work from, if the query is large enough and memory is available.
  WorkCounters* CountersFor(const PlacedStage& placed);
  /// Drops the pages of an attempt that does not count.
  void DropScratch(uint64_t attempt);
  /// Compute servers that may join a query under way.
  absl::StatusOr<std::vector<proto::Member>> NewMembers();

  catalog::Attachment& attachment_;
  std::unique_ptr<ComputeClients> clients_;
  CatalogTables& tables_;
  const SessionSettings& settings_;
  const std::atomic<bool>& cancel_;
  std::optional<MulticastCoordinator> multicast_;
  QueryScratch scratch_;
  std::unique_ptr<WorkCounters> counters_;  // made for the first query that needs them
  int64_t catalog_silent_until_ns_ = 0;     // until then it is not asked for new members or scratch memory
  uint64_t attempt_;                        // ids start at random, so that sessions' ids differ
  std::function<void(const QueryProgress&)> progress_;
  bool running_ = false;        // servers run
  int64_t began_ns_ = 0;        // of the query
  int64_t next_report_ns_ = 0;  // for the session's own work: the earliest time
};

/// Adds the work of the stage's servers.
void AddWork(const PlacedStage& placed, QueryWork& work);

}  // namespace nam::session
