#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/exchange/exchange_sink.h"
#include "execution/exchange/exchange_source.h"
#include "execution/exchange/key_filters.h"
#include "execution/join/direct_build.h"
#include "execution/join/row_build.h"
#include "execution/partition/parted_groups.h"
#include "execution/partition/partition_join.h"
#include "execution/partition/partition_sink.h"
#include "execution/partition/partition_source.h"
#include "execution/scan/absorb.h"
#include "execution/scan/block_scan.h"
#include "execution/scan/record_scan.h"
#include "execution/scan/record_select.h"
#include "execution/sort/result_sink.h"
#include "execution/sort/run_sink.h"
#include "execution/sort/scratch_run.h"
#include "execution/sort/sorter.h"
#include "execution/sort/top_rows.h"
#include "execution/stage_inputs.h"
#include "execution/table_sink.h"
#include "execution/task.h"
#include "plan/physical.h"

namespace nam::execution {

/// A prepared pipeline: source, steps and sink that all threads of the server share.
struct PreparedPipeline {
  struct StepAndChunk {
    std::unique_ptr<StepOperator> step;
    /// The chunk that its tasks fill.
    std::function<std::unique_ptr<Chunk>()> new_chunk;
  };

  /// After its source has absorbed what it can. `probes` counts those.
  AbsorbedPipeline absorbed;
  uint32_t table = 0;                // in the plan: the source scans it
  std::vector<uint32_t> partitions;  // of the table; those that this server needs
  std::unique_ptr<PieceQueue> pieces;
  std::unique_ptr<Source> source;                       // null: rows of another stage, which the caller feeds
  BlockScan* scan = nullptr;                            // the source, if it is one
  RecordScan* record_scan = nullptr;                    // likewise
  PartitionSource* parts = nullptr;                     // likewise
  PartitionJoin* join = nullptr;                        // likewise
  ExchangeSource* received = nullptr;                   // likewise
  const plan::PageSource* foreign = nullptr;            // without a source: one of these two
  std::optional<RecordSelect> records;                  // a transaction's rows, which the caller feeds
  std::deque<CodeMeaning> meanings;                     // the scan's columns, by group of chains, then slot
  std::deque<std::unique_ptr<const Program>> programs;  // of probes and builds
  std::unique_ptr<const AggregatePlan> merge_plan;      // of a source that merges states
  std::vector<StepAndChunk> steps;
  bool drains_build = false;  // has a right or full join: all tasks are made before one ends
  size_t by_row_nodes = 0;

  // One of:
  std::unique_ptr<Sink> client_sink;
  std::unique_ptr<DirectBuild> direct_build;
  std::unique_ptr<RowBuild> row_build;
  std::unique_ptr<const AggregatePlan> aggregate_plan;
  std::unique_ptr<AggregateSink> aggregate;
  std::unique_ptr<PartedGroups> parted_groups;
  std::unique_ptr<PartitionSink> partition_sink;
  std::unique_ptr<KeyFilters> key_filters;  // of an exchange_sink that asks them
  std::unique_ptr<ExchangeSink> exchange_sink;
  std::unique_ptr<const RowsPlan> rows_plan;
  std::unique_ptr<const RowsPlan> runs_plan;  // of a sink that may make runs
  std::unique_ptr<ResultSink> result;
  std::unique_ptr<TableSink> table_sink;
  std::unique_ptr<RunSink> run_sink;
  std::unique_ptr<TopRows> top_rows;
  std::unique_ptr<Sorter> sorter;
  uint64_t offset = 0;                 // of sorted rows: the first that is read
  std::vector<uint32_t> group_totals;  // plan::AggregateSink::totals
  PreparedPipeline* feeds = nullptr;   // its sink is this one's; it completes the sink

  /// Makes the task of one thread. The source is this pipeline's, or one with the same rows.
  std::unique_ptr<PipelineTask> NewTask(TaskContext& context, std::unique_ptr<SourceTask> source) const;
  /// Whether the source scans a table, and what its tasks have done.
  bool scans() const { return scan != nullptr || record_scan != nullptr; }
  ScanTotals totals() const;
  Sink& sink() const;
  /// The pages and bytes that the source has READ from scratch memory; nullopt if it reads none.
  std::optional<PartitionSource::Totals> scratch_read() const;
  /// Whether the sink writes to scratch memory.
  bool writes_scratch() const {
    return parted_groups != nullptr || partition_sink != nullptr || run_sink != nullptr;
  }
  /// The complete sink's output in scratch memory, by parts; null if it has none, or if its groups were few.
  const ScratchOutput* scratch_output() const;
  const BuildSide* build() const;
  /// Frees the sink's memory.
  void ReleaseSink();
  /// The sink's ordered rows once it is complete; nullptr: it has none.
  const OrderedRows* ordered() const;
  /// A source over the complete sink's rows. Null for a build.
  std::unique_ptr<Source> RowsAtRest(bool in_order) const;
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
