#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/exchange/key_filters.h"
#include "execution/join/build_side.h"
#include "execution/scan/absorb.h"
#include "execution/scan/block_scan.h"
#include "execution/scan/record_select.h"
#include "execution/sort/sorter.h"
#include "execution/stage_inputs.h"
#include "execution/task.h"
#include "plan/physical.h"
#include "proto/compute.pb.h"

namespace nam::execution {

/// A prepared pipeline: source, steps and sink that all threads of the server share.
struct PreparedPipeline {
  struct StepAndChunk {
    std::unique_ptr<StepOperator> step;
    /// The chunk that its tasks fill.
    std::function<std::unique_ptr<Chunk>()> new_chunk;
  };

  /// What source, steps and sink refer to: pieces, programs, plans, meanings of codes.
  std::vector<std::shared_ptr<const void>> kept;
  AbsorbedPipeline absorbed;                    // after its source has absorbed what it can
  std::unique_ptr<Source> source;               // null: rows come from outside (StageDriver), perhaps …
  std::unique_ptr<const RecordSelect> records;  // … those of a transaction
  BlockScan* scan = nullptr;                    // the source, if blocks may come to it by multicast
  std::vector<uint32_t> partitions;             // of its table: those that this server needs
  std::vector<StepAndChunk> steps;
  bool drains_build = false;  // has a right or full join: all tasks are made before one ends
  size_t by_row_nodes = 0;    // of the steps' expressions

  std::unique_ptr<Sink> sink;         // null: …
  PreparedPipeline* feeds = nullptr;  // … it is this one's, which completes it
  // The sink as what it is, for those that depend on that:
  BuildSide* build = nullptr;
  Sorter* sorter = nullptr;
  AggregateSink* groups = nullptr;          // takes in groups of other stages
  std::unique_ptr<KeyFilters> key_filters;  // decide which rows it sends

  /// Makes the task of one thread. The source is this pipeline's, or one with the same rows.
  std::unique_ptr<PipelineTask> NewTask(TaskContext& context, std::unique_ptr<SourceTask> source) const;
  Sink& last_sink() const { return feeds != nullptr ? feeds->last_sink() : *sink; }
  /// Its counters but for those of its tasks' rows.
  proto::PipelineCounters Counters() const;
};

/// All operators of one stage on one site: checked against the tables, with dictionaries loaded, conditions
/// and programs compiled, and join tables sized by the parts of build sides that the pieces need. One thread
/// makes it; the attempt's threads share it.
///
///     plan ──▶ Absorb, by what is direct here ──▶ PreparedPipeline, in the plan's order
class PreparedStage {
 public:
  /// INVALID_ARGUMENT if the plan does not fit these tables; UNIMPLEMENTED for nodes that this version does
  /// not run; RESOURCE_EXHAUSTED if join tables are larger than the settings allow; DATA_LOSS if the stage
  /// reads no parts of a directory's pipeline.
  static absl::StatusOr<std::unique_ptr<PreparedStage>> Make(StageInputs inputs,
                                                             const std::atomic<bool>& leaving);

  const StageInputs& inputs() const { return inputs_; }
  const plan::PhysicalPlan& plan() const { return inputs_.plan; }
  uint32_t claimed() const { return claimed_; }
  /// The stage's pipelines, as the plan numbers them; ascending.
  const std::vector<uint32_t>& numbers() const { return numbers_; }
  /// Only its own pipelines.
  PreparedPipeline& pipeline(size_t i) { return pipelines_[i]; }
  const PreparedPipeline& pipeline(size_t i) const { return pipelines_[i]; }

  /// The budget of build sides and of sinks' memory other than results. The session has one budget for all.
  MemoryBudget& build_budget() { return of_session_ ? result_budget_ : build_budget_; }
  MemoryBudget& result_budget() { return result_budget_; }
  /// Frees the memory of a pipeline's sink if all its readers are complete.
  void ReleaseIfRead(uint32_t number, const std::vector<bool>& complete);
  /// The pipeline's error. If it needed too much memory, names the setting that bounds it.
  absl::Status Explained(size_t pipeline, const absl::Status& status) const;

 private:
  friend class PipelinePreparation;
  PreparedStage(StageInputs inputs, const std::atomic<bool>& leaving);
  absl::Status CheckDirectories() const;

  const StageInputs inputs_;
  const std::atomic<bool>& leaving_;
  const uint32_t claimed_;
  const bool of_session_;
  std::vector<uint32_t> numbers_;
  // Destroyed after its users.
  MemoryBudget build_budget_;
  MemoryBudget result_budget_;
  MemoShare memos_;
  std::deque<PreparedPipeline> pipelines_;  // as in the plan; those of other stages are empty
};

}  // namespace nam::execution
