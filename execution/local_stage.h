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
#include "base/clock.h"
#include "execution/local_progress.h"
#include "execution/task.h"
#include "proto/compute.pb.h"

namespace nam::execution {

// The session's sources include this header: its operators stay out of it.
struct PreparedPipeline;
class PreparedStage;
struct StageInputs;

/// Runs a stage where the client is, on the calling thread:
///
///     Add   pages of rows and groups from other stages ──▶ the pipelines that read them, as they come
///     AddRecords   rows of tables that the session's transaction has found ──▶ their scans, as they come
///     Run   the others, in the plan's order ──▶ … ──▶ StageInputs::client_sink
///
/// If rows come for a pipeline that waits for others, these run first: their input must have come before.
class LocalStage {
 public:
  /// `inputs.stage` is one of the session's. All references outlive this.
  static absl::StatusOr<std::unique_ptr<LocalStage>> Make(StageInputs inputs, Clock& clock,
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

  /// After Run, by pipeline of the plan: what its source and sink have counted.
  const std::vector<proto::PipelineCounters>& counters() const { return counters_; }

  /// The peak of memory held.
  uint64_t bytes_most() const;

 private:
  struct Fed;

  LocalStage(std::unique_ptr<PreparedStage> stage, Clock& clock, const std::atomic<bool>& cancel);
  /// The pipeline whose rows it reads; of a scan of records itself.
  uint32_t KeyOf(uint32_t number) const;
  absl::Status PrepareFed(uint32_t number);
  /// Makes the task, once the pipelines that it waits for are complete.
  absl::Status Start(Fed& fed);
  absl::Status End(Fed& fed);
  absl::Status Feed(Fed& fed, std::span<const std::byte> pages, uint64_t attempt);
  absl::Status RunFed(Fed& fed);
  /// Runs a pipeline of the stage, and those that it waits for, unless they have run. Nothing more may be fed
  /// to them.
  absl::Status Complete(uint32_t number);
  absl::Status Run(uint32_t number);
  absl::Status Combine(Sink& sink);
  std::unique_ptr<PipelineTask> NewTask(PreparedPipeline& pipeline, std::unique_ptr<SourceTask> source);

  const std::unique_ptr<PreparedStage> stage_;
  TaskContext context_;
  absl::Status error_;
  bool finished_ = false;
  std::vector<bool> complete_;  // by pipeline
  std::vector<std::vector<uint64_t>> rows_;
  std::vector<proto::PipelineCounters> counters_;
  LocalProgress progress_;
  std::map<uint32_t, std::unique_ptr<Fed>> fed_;  // by KeyOf
};

}  // namespace nam::execution
