#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "optimizer/lower_tree.h"
#include "plan/logical.h"
#include "proto/compute.pb.h"
#include "session/queried_files.h"
#include "session/record_reads.h"
#include "session/session.h"
#include "session/settings.h"
#include "session/stage_run.h"

namespace nam::execution {
class LocalStage;
}

namespace nam::session {

class LoadedRows;

/// Runs a query's tree, from its plan to its rows.
///
///     plan ─▶ a stage that is a barrier ─▶ what came of it ─▶ plan anew ─▶ … ─▶ the other stages
///                                                                                │ rows, as they come
///             pages are kept, or lie by parts in scratch memory ───────────────▶ the session's stage
///
/// Its parts outlive it. One thread, once.
class TreeRun {
 public:
  struct Options {
    catalog::Attachment& attachment;
    StageRunner& stages;
    /// For queries that read record tables; null: the session runs no transactions.
    RecordAccess* access = nullptr;
    QueriedFiles& files;
    const QueriedFiles::Report& report;  // of files that are loaded
    const SessionSettings& settings;
    const std::atomic<bool>& cancel;
  };
  /// The start of a run: the plan by estimates. Copies are cheap and share what no run changes. The start of
  /// a query without record tables may begin many runs, while the catalog is unchanged.
  struct Start {
    std::vector<ResultSet::Column> columns;
    std::shared_ptr<const plan::logical::Query> query;  // without dependent joins
    optimizer::LoweringOptions lowering;
    std::shared_ptr<const optimizer::LoweredTree> tree;
    std::vector<PlacedStage> stages;  // the servers', as in the plan
  };

  static bool ReadsRecords(const plan::logical::Node& root);
  /// Makes the plan, and finds servers for its stages. A query that reads record tables does so in the
  /// transaction in which it runs.
  static absl::StatusOr<std::unique_ptr<TreeRun>> Make(const Options& options, plan::logical::Query query);
  TreeRun(const Options& options, Start start) : options_(options), current_(std::move(start)) {}

  /// The start of the run; called before it runs.
  const Start& start() const { return current_; }

  /// Runs the query, and passes its rows to the receiver.
  absl::StatusOr<ResultSet> Run(RowReceiver& receiver);
  /// Runs the query, and makes its rows the table's. If they are many, servers write those that need no work
  /// of the session.
  absl::StatusOr<ResultSet> RunInto(LoadedRows& table);
  /// The lines of EXPLAIN, or its JSON document; with `analyze` it runs first, and they describe the run.
  absl::StatusOr<std::vector<std::string>> Explain(bool analyze, bool json);
  /// The same for a query that has run, or (nullopt) has not.
  struct Ran {
    size_t rows = 0;
    double ms = 0;
  };
  std::vector<std::string> Describe(const std::optional<Ran>& ran, bool json) const;

 private:
  /// The output of attempts at a barrier's stage.
  struct Left {
    struct Pages {
      std::string bytes;
      uint64_t attempt = 0;
    };
    std::vector<Pages> pages;
    std::vector<proto::Directory> directories;
  };

  /// Plans with current knowledge. Stages up to the barrier stay as they are.
  absl::Status Plan(size_t stages_kept);
  absl::Status OrWithoutScratch(const absl::Status& error) const;
  absl::StatusOr<ResultSet> RunStages(RowReceiver& receiver);
  /// If the session had too little memory and reads files: loads these. Whether it has.
  absl::StatusOr<bool> LoadsFilesFor(const absl::Status& error);
  absl::StatusOr<ResultSet> TryStages(RowReceiver& receiver);
  /// Runs the stage, notes its fact, and plans the rest again.
  absl::Status RunBarrier(uint32_t number);
  absl::StatusOr<optimizer::StageFact> FactOf(uint32_t number, Left& left);
  /// Writes the groups that attempts have kept by parts, beside those of other attempts.
  absl::Status WriteKept(uint32_t pipeline, Left& left);
  /// Feeds servers' output to the session's stage, in its pipelines' order, so that each pipeline's
  /// prerequisites have run.
  absl::Status FeedSession(execution::LocalStage& local);
  absl::Status FeedStage(uint32_t number, uint32_t pipeline, execution::LocalStage& local);
  absl::Status RunServers(uint32_t number, const plan::PhysicalPlan& plan, const StageOutput& output);
  /// The plan by which servers write what `pipeline` makes into the table; nothing: it comes to the session.
  std::optional<plan::PhysicalPlan> PlanOfWriters(uint32_t pipeline) const;
  const optimizer::LoweredPlan& lowered() const { return current_.tree->lowered; }
  const plan::PhysicalPlan& plan() const { return lowered().plan; }
  /// Reports the progress of the session's stage, from now on.
  void TellProgress(execution::LocalStage& local) const;

  const Options options_;
  Start current_;                     // replaced as far as the plan changes; stages keep their work
  std::optional<RecordReads> reads_;  // for a query that reads record tables
  optimizer::StageFacts facts_;
  uint64_t kept_bytes_ = 0;        // of the pages in left_
  std::map<uint32_t, Left> left_;  // by barrier that has run
  std::vector<std::string> replanned_;
  // Set once it has run: LocalStage's.
  std::vector<std::vector<uint64_t>> session_rows_;
  std::vector<proto::PipelineCounters> session_counters_;
  QueryWork work_;
  LoadedRows* table_ = nullptr;  // that the rows become; null: of none
};

}  // namespace nam::session
