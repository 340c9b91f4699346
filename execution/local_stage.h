#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/local_progress.h"
#include "execution/task.h"
#include "execution/thread_team.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::execution {

// The session's sources include this header: its operators stay out of it.
struct PreparedPipeline;
class PreparedStage;
struct StageInputs;

/// Runs a stage where the client is, on the calling thread, and on further ones where the rows are many:
///
///     Add   pages of rows and groups from other stages ──▶ the pipelines that read them, as they come
///     AddRecords   rows of tables that the session's transaction has found ──▶ their scans, as they come
///     Run   the others, in the plan's order ──▶ … ──▶ StageInputs::client_sink
///
/// If rows come for a pipeline that waits for others, these run first: their input must have come before.
///
/// A call returns when all threads have ended its work. A thread that is free takes the next pages of an
/// attempt, the next range of rows at rest, or the next part to combine. One thread alone runs what keeps an
/// order, or reaches the client; and groups, if tables of several threads might not fit the budget.
class LocalStage {
 public:
  /// `inputs.stage` is one of the session's, and has the most threads. All references outlive this.
  static absl::StatusOr<std::unique_ptr<LocalStage>> Make(StageInputs inputs, fabric::Fabric& fabric,
                                                          const std::atomic<bool>& cancel);
  ~LocalStage();

  /// Takes in the consecutive pages that one attempt at another stage stored (Attempt::Store), as the output
  /// of `pipeline`. Keeps no pointers into them. Trusts nothing in them: DATA_LOSS if they are not of this
  /// plan and attempt. CANCELLED soon after `cancel` is set; RESOURCE_EXHAUSTED with 53200 beyond the budget,
  /// which they count against during the call. After an error every call returns that error.
  absl::Status Add(uint32_t pipeline, std::span<const std::byte> pages, uint64_t attempt);

  /// Takes in the sorted runs that an attempt at another stage left in scratch memory, as the output of
  /// `pipeline`. DATA_LOSS if they are not of this plan.
  absl::Status AddRuns(uint32_t pipeline, const proto::Directory& runs);

  /// Whether more output of `pipeline` can still change the result.
  bool Wants(uint32_t pipeline) const;

  /// RESOURCE_EXHAUSTED with 53200 if the budget has no room for so many bytes of pages. Called before they
  /// are fetched.
  absl::Status CheckRoom(uint64_t bytes) const;

  /// Takes in at most kChunkRows rows as their table stores them, for the pipeline that scans it. Keeps no
  /// pointers into them. False: it wants no more. Errors as of Add.
  absl::StatusOr<bool> AddRecords(uint32_t pipeline, std::span<const std::byte* const> rows);

  /// Reports, now and then, how many rows have left the sources and steps of all its pipelines together.
  /// Called before rows are added.
  void OnProgress(std::function<void(uint64_t rows)> report);

  /// Ends the stage, once; nothing may be added any more. Errors as of Add, and those of the query's
  /// expressions.
  absl::Status Run();

  /// After Run, by pipeline of the plan: the rows that left the source, then each step after it. For
  /// pipelines that take in groups: the groups. Empty for pipelines of other stages.
  const std::vector<std::vector<uint64_t>>& rows() const { return rows_; }

  /// The threads that have been started for its work.
  uint64_t threads_started() const { return team_.started(); }

  /// After Run, by pipeline of the plan: what its source and sink have counted.
  const std::vector<proto::PipelineCounters>& counters() const { return counters_; }

  /// The peak of memory held.
  uint64_t bytes_most() const;

 private:
  struct Fed;

  LocalStage(std::unique_ptr<PreparedStage> stage, fabric::Fabric& fabric, const std::atomic<bool>& cancel);
  /// The pipeline whose rows it reads; of a scan of records itself.
  uint32_t KeyOf(uint32_t number) const;
  absl::Status PrepareFed(uint32_t number);
  /// Makes the tasks of so many threads, once the pipelines that they wait for are complete.
  absl::Status Start(Fed& fed, size_t threads);
  absl::Status End(Fed& fed);
  absl::Status Feed(Fed& fed, std::span<const std::byte> pages, uint64_t attempt);
  absl::Status FeedThread(Fed& fed, size_t thread, std::span<const std::byte> pages, uint64_t attempt);
  absl::Status RunFed(Fed& fed, size_t thread);
  /// Runs a pipeline of the stage, and those that it waits for, unless they have run. Nothing more may be fed
  /// to them.
  absl::Status Complete(uint32_t number);
  absl::Status Run(uint32_t number);
  absl::Status Combine(Sink& sink);
  std::unique_ptr<PipelineTask> NewTask(PreparedPipeline& pipeline, size_t thread,
                                        std::unique_ptr<SourceTask> source);
  void AddRows(uint32_t number, const PipelineTask& task);
  /// The pipeline that completes the sink of this one.
  uint32_t LastOf(uint32_t number) const;
  /// The threads that may take part in a pipeline, of which each gets enough to do.
  size_t ThreadsFor(uint32_t number, uint64_t rows) const;
  /// The rows that wait for the pipeline's source, if that may be read in any order; 0: unknown.
  uint64_t RowsBefore(uint32_t number) const;
  /// Whether what so many threads keep beside each other fits the budget: groups, and first rows of an order.
  bool TablesFit(uint32_t number, uint64_t rows, size_t threads) const;

  const std::unique_ptr<PreparedStage> stage_;
  ThreadTeam team_;
  absl::Status error_;
  bool finished_ = false;
  std::vector<bool> complete_;  // by pipeline
  std::vector<std::vector<uint64_t>> rows_;
  std::vector<uint64_t> sunk_;  // rows that the pipeline's sink has taken, from all that feed it
  std::vector<proto::PipelineCounters> counters_;
  LocalProgress progress_;
  std::map<uint32_t, std::unique_ptr<Fed>> fed_;  // by KeyOf
};

}  // namespace nam::execution
