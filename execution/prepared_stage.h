#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/join/direct_build.h"
#include "execution/join/row_build.h"
#include "execution/scan/absorb.h"
#include "execution/scan/block_scan.h"
#include "execution/sort/result_sink.h"
#include "execution/sort/sorter.h"
#include "execution/sort/top_rows.h"
#include "execution/task.h"
#include "partitioner/pieces.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "proto/compute.pb.h"
#include "storage/known_blocks.h"

namespace nam::execution {

/// The dictionary of a table's text column.
using DictionaryLoader = std::function<absl::StatusOr<std::shared_ptr<const storage::Dictionary>>(
    const proto::Table& table, uint32_t column)>;

/// What an attempt is given.
struct StageInputs {
  plan::PhysicalPlan plan;      // passed plan::Check and plan::CheckTables
  plan::TableMetadata tables;   // of the plan
  std::vector<std::shared_ptr<storage::KnownBlocks>> known;  // as tables; may be null
  proto::StreamSettings settings;
  std::vector<partitioner::Piece> pieces;  // of the claimed pipeline's table
  std::optional<storage::WorkCounter> counter;  // what claims them; none: all of them are this server's
  DictionaryLoader load_dictionary;
  int threads = 1;
};

/// A pipeline made ready: source, steps and sink that all threads of the server share.
struct PreparedPipeline {
  struct StepAndChunk {
    std::unique_ptr<StepOperator> step;
    /// The chunk that its tasks fill.
    std::function<std::unique_ptr<Chunk>()> new_chunk;
  };

  /// After its source has taken over what it can. `probes` counts those.
  AbsorbedPipeline absorbed;
  uint32_t table = 0;                       // of the plan, that the source scans
  std::vector<uint32_t> partitions;         // of the table that this server needs
  std::unique_ptr<PieceQueue> pieces;
  std::unique_ptr<BlockScan> scan;
  std::deque<CodeMeaning> meanings;         // of the scan's columns, by slot
  std::deque<std::unique_ptr<const Program>> programs;  // of probes and builds
  std::vector<StepAndChunk> steps;
  bool drains_build = false;                // has a right or full join: all tasks are made before one ends
  size_t by_row_nodes = 0;

  // One of:
  std::unique_ptr<DirectBuild> direct_build;
  std::unique_ptr<RowBuild> row_build;
  std::unique_ptr<const AggregatePlan> aggregate_plan;
  std::unique_ptr<AggregateSink> aggregate;
  std::unique_ptr<const RowsPlan> rows_plan;
  std::unique_ptr<ResultSink> result;
  std::unique_ptr<TopRows> top_rows;
  std::unique_ptr<Sorter> sorter;

  Sink& sink() const;
  const BuildSide* build() const;
};

/// All operators of one attempt: checked against the tables, dictionaries loaded, conditions and programs
/// compiled, and tables of joins sized by the parts of build sides that the pieces need. Made by one thread,
/// then shared by the attempt's threads.
///
///     plan ──▶ Absorb, by what is direct here ──▶ PreparedPipeline, in the plan's order
class PreparedStage {
 public:
  /// INVALID_ARGUMENT for what is no plan over these tables; UNIMPLEMENTED for nodes that this version does
  /// not run; RESOURCE_EXHAUSTED if tables of joins are larger than the settings allow.
  static absl::StatusOr<std::unique_ptr<PreparedStage>> Make(StageInputs inputs,
                                                             const std::atomic<bool>& leaving);

  const StageInputs& inputs() const { return inputs_; }
  const plan::PhysicalPlan& plan() const { return inputs_.plan; }
  uint32_t claimed() const { return claimed_; }
  size_t size() const { return pipelines_.size(); }
  PreparedPipeline& pipeline(size_t i) { return pipelines_[i]; }
  const PreparedPipeline& pipeline(size_t i) const { return pipelines_[i]; }

  /// Of build sides, and of what the claimed pipeline's sink holds.
  MemoryBudget& build_budget() { return build_budget_; }
  MemoryBudget& result_budget() { return result_budget_; }
  /// The error of a pipeline; where it asked for too much memory, with the setting that bounds it.
  absl::Status Explained(size_t pipeline, const absl::Status& status) const;

 private:
  friend class PipelinePreparation;
  PreparedStage(StageInputs inputs, const std::atomic<bool>& leaving);

  const StageInputs inputs_;
  const std::atomic<bool>& leaving_;
  const uint32_t claimed_;
  // Before what takes from them.
  MemoryBudget build_budget_;
  MemoryBudget result_budget_;
  std::deque<PreparedPipeline> pipelines_;
};

}  // namespace nam::execution
