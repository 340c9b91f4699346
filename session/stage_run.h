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
#include "optimizer/plan.h"
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

/// The sides of the join that a stage makes of parts, by pipelines of its plan.
struct JoinedParts {
  uint32_t probed = 0, built = 0;
  plan::JoinKind kind = plan::JoinKind::kInner;
};

/// A stage of compute servers: what is known of it before it runs, and which servers have work of it.
struct PlacedStage {
  optimizer::Plan plan;
  optimizer::TableRefs tables;
  uint32_t first_table = 0;            // of the physical plan: where `tables` begin
  bool extended = false;               // has build sides that `plan` does not know
  double pairs = 0;                    // estimate of those that its joins without keys compare
  uint32_t parts = 0;                  // that it claims instead of the driving table: there is no `plan` then
  std::optional<JoinedParts> join;     // if it claims parts of two sides
  execution::ExchangeShape exchanges;  // of a streamed stage: nothing is claimed, and there is no `plan`
  bool streamed() const { return exchanges.exchanges > 0; }
  std::vector<proto::Directory> inputs;  // where they are
  std::vector<ServerReport> servers;     // those with work
  std::vector<std::string> why_read;     // once it has run: of each join; empty if it was multicast
};

/// Runs stages of compute servers for a session, with what it keeps for them from query to query:
/// connections, multicast groups, words to claim work from. All that it is made of outlives it. One thread.
class StageRunner {
 public:
  static absl::StatusOr<std::unique_ptr<StageRunner>> Open(catalog::Attachment& attachment,
                                                           CatalogTables& tables,
                                                           const SessionSettings& settings,
                                                           const std::atomic<bool>& cancel);

  /// Everything that was the former member's is given up.
  absl::Status BeginAnew();
  void OnProgress(std::function<void(const QueryProgress&)> report) { progress_ = std::move(report); }
  bool tells_progress() const { return progress_ != nullptr; }
  /// Of a query whose rows the session works on: so many have come through its operators. Tells so now and
  /// then, unless servers run, which tell of themselves.
  void TellFinishing(uint64_t rows);
  /// A query begins.
  void BeginQuery();

  /// Who works on queries, as the catalog has told last: for estimates, which are not worth waiting for it.
  optimizer::ClusterShape Shape() const;
  /// Living compute servers, and what each does of the stage.
  absl::Status FindServers(PlacedStage& placed, const RecordReads* records);
  /// What attempts at stages of the plan have alike.
  /// `tables`: the plan's. Those of version 0 are known to this session alone.
  proto::AttemptRequest RequestOf(const plan::PhysicalPlan& plan, const optimizer::TableRefs& tables) const;
  /// Runs stage `number` of the request's plan.
  absl::Status Run(proto::AttemptRequest request, uint32_t number, PlacedStage& placed,
                   const StageOutput& output);
  /// Of the session.
  QueryScratch& scratch() { return scratch_; }

 private:
  StageRunner(catalog::Attachment& attachment, std::unique_ptr<ComputeClients> clients, CatalogTables& tables,
              const SessionSettings& settings, const std::atomic<bool>& cancel);
  absl::StatusOr<std::vector<proto::Member>> ComputeServers();
  absl::Status RunStreamed(proto::AttemptRequest request, PlacedStage& placed, const StageOutput& output);
  static optimizer::Assignment Share(const PlacedStage& placed, const RecordReads* records, size_t servers,
                                     uint32_t threads);
  /// `pipelines`: the stage's, of which the first build the star's joins.
  absl::Status StartMulticast(PlacedStage& placed, std::vector<uint32_t> pipelines);
  /// What QueryRun tells, as our caller wants to hear it.
  std::function<void(uint64_t)> ProgressOf(const PlacedStage& placed);
  /// Words to claim work from, if the query is large enough for that to pay and memory can be had.
  WorkCounters* CountersFor(const PlacedStage& placed);
  /// What an attempt that does not count has written.
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
  int64_t catalog_silent_until_ns_ = 0;     // and not asked who has joined, or has scratch memory
  uint64_t attempt_;                        // ids start at random, so that sessions do not meet
  std::function<void(const QueryProgress&)> progress_;
  bool running_ = false;        // servers do
  int64_t began_ns_ = 0;        // the query
  int64_t next_report_ns_ = 0;  // of the session's own work: not before
};

/// What the stage's servers did, in addition.
void AddWork(const PlacedStage& placed, QueryWork& work);

}  // namespace nam::session
