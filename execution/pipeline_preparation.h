#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "execution/join/probe.h"
#include "execution/join/row_build.h"
#include "execution/prepared_stage.h"
#include "execution/scan/record_scan.h"

namespace nam::execution {

/// UNIMPLEMENTED, with the name of what is not run.
inline absl::Status NotRun(const char* what) {
  return absl::UnimplementedError(absl::StrFormat("this version of NAM does not run %s", what));
}

inline OrderSlot SlotOf(const plan::Order& by) {
  return {by.slot, by.descending, by.nulls_first};
}

/// For two compared keys: whether one of them may end in blanks that are ignored.
inline bool BlanksDiffer(const Type& probed, const Type& built) {
  return plan::IsChar(probed) != plan::IsChar(built) && plan::IgnoresBlanks(probed, built);
}

/// The probe's output tuples are the input's own.
inline bool PassesOwnTuples(plan::JoinKind kind) {
  return kind == plan::JoinKind::kSemi || kind == plan::JoinKind::kAnti ||
         kind == plan::JoinKind::kNullAwareAnti || kind == plan::JoinKind::kMark;
}

/// Prepares one pipeline of a stage, after those before it.
class PipelinePreparation {
 public:
  PipelinePreparation(PreparedStage& stage, uint32_t number);
  absl::Status Run();

 private:
  // Source
  absl::Status MakeSource();
  absl::Status MakeScan();
  absl::Status MakeRecordFeed(const plan::RecordScan& scan);
  absl::Status MakePageSource(const plan::PageSource& pages);
  absl::Status MakeWindowSource(const plan::WindowSource& window);
  absl::Status MakePartitionSource(const plan::PartitionSource& parts);
  absl::Status MakeJoinSource(const plan::JoinSource& join);
  absl::Status MakeExchangeSource(const plan::ExchangeReceive& receive);
  absl::Status MakeRecordScan(const plan::RecordScan& scan);
  /// READs what the transaction adds to the scan.
  absl::Status LoadRecordInput(RecordScan::Options& options) const;
  absl::StatusOr<std::vector<partitioner::Piece>> RecordPiecesOfBuild(
      const RecordScan::Options& options) const;
  /// The pieces that servers claim, or share.
  PieceQueue& ClaimedPieces();
  /// The scan's columns, by group of chains, then slot.
  absl::StatusOr<const std::deque<CodeMeaning>*> LoadMeanings(const plan::BlockScan& scan);
  absl::Status FindPartitions(const plan::BlockScan& scan);
  std::vector<partitioner::Piece> PiecesOfBuild() const;
  /// For a scan whose rows are sent: this member's share of the table.
  std::vector<partitioner::Piece> PiecesOfMember() const;
  absl::StatusOr<std::vector<BlockScan::Probe>> AbsorbedProbes(const plan::BlockScan& scan) const;

  // Steps
  absl::Status MakeStep(const plan::StepNode& node, const plan::Schema& input, const plan::Schema& output);
  absl::Status MakeFilter(const plan::FilterStep& filter, const plan::Schema& input);
  absl::Status MakeProject(const plan::ProjectStep& project, const plan::Schema& input);
  absl::Status MakeProbeStep(const plan::ProbeStep& probe, const plan::Schema& input);
  absl::StatusOr<ProbeOptions> ProbeOptionsOf(const plan::ProbeStep& probe, const plan::Schema& input,
                                              const plan::Schema& partners);
  absl::Status MakeExpand(const plan::ExpandStep& expand, const plan::Schema& input,
                          const plan::Schema& output);
  absl::Status MakeRepeat(const plan::RepeatStep& repeat, const plan::Schema& input);
  absl::Status MakeSeries(const plan::SeriesStep& series, const plan::Schema& input);
  void AddStep(std::unique_ptr<StepOperator> step, size_t columns);
  absl::StatusOr<const Program*> Compile(std::span<const plan::Expr> outputs, const plan::Schema& input);

  // Sinks
  absl::Status MakeSink();
  absl::Status MakeBuild(const plan::BuildSink& sink);
  absl::Status MakeDirectBuild(const plan::BuildSink& sink, DirectTable::Options table, bool text);
  absl::Status MakeRowBuild(const plan::BuildSink& sink, std::optional<DirectTable::Options> direct);
  /// The options of a build over these rows, whose codes have these meanings, except those that depend on its
  /// probes.
  absl::StatusOr<RowBuild::Options> RowBuildOptions(const plan::BuildSink& sink, const plan::Schema& input,
                                                    const std::vector<const CodeMeaning*>& codes);
  absl::Status MakeAggregate(const plan::AggregateSink& sink);
  absl::Status MakePartedGroups(const plan::AggregateSink& sink, const AggregatePlan& plan);
  absl::Status MakePartitions(const plan::PartitionSink& sink);
  absl::Status MakeExchangeSink(const plan::ExchangeSend& sink);
  /// The plan that merges states of groups over these rows, of the layout that their producer derived from
  /// the rows.
  static absl::StatusOr<std::unique_ptr<const AggregatePlan>> MergeOf(const plan::AggregateSink& partial,
                                                                      const plan::Schema& rows,
                                                                      bool part_by_part);
  absl::Status MakeTable(const plan::SinkNode& sink);
  /// The sink of rows that stay rows, sorted or cut by a limit; -1: none.
  absl::Status MakeRows(const plan::SortSink& sink);
  absl::Status MakeRuns(const RowsPlan& rows, plan::Runs runs, std::span<const OrderSlot> order);
  absl::Status MakeSorter(const RowsPlan& rows, plan::Runs runs, std::span<const OrderSlot> order,
                          uint64_t offset);
  absl::StatusOr<const RowsPlan*> KeepRunsPlan();
  /// What the pipeline's operators refer to lives as long as they do.
  template <typename T>
  T& Keep(std::unique_ptr<T> made) {
    T& kept = *made;
    out_.kept.push_back(std::move(made));
    return kept;
  }
  /// Whether a window reads this pipeline's rows.
  bool IsWindowed() const;

  /// How the key of a build side numbers its rows, if it is one dense number or text of one dictionary.
  std::optional<DirectTable::Options> DirectOptions(const plan::BuildSink& sink) const;
  /// For each key of the build side whether blanks at its end are ignored.
  absl::StatusOr<std::vector<bool>> IgnoresBlanks(const plan::BuildSink& sink) const;
  bool IsDrained() const;
  /// Whether Bloom filters of this pipeline's build side decide which rows are sent.
  bool FiltersRows() const;
  uint64_t RowsHere() const;
  /// An estimate of the received rows that reach this member, if all get as many.
  uint64_t RowsReceived() const;
  bool receives() const { return std::holds_alternative<plan::ExchangeReceive>(plan_.source); }
  bool sends() const { return std::holds_alternative<plan::ExchangeSend>(plan_.sink); }
  const plan::Schema& schema() const { return out_.absorbed.pipeline.schemas.back(); }

  PreparedStage& stage_;
  const uint32_t number_;
  const plan::Pipeline& plan_;  // the original
  PreparedPipeline& out_;
  const bool claimed_;
  const proto::Table* table_ = nullptr;  // that a block scan reads
  /// The meaning of each slot's codes after the steps so far; nullptr: no codes.
  std::vector<const CodeMeaning*> meanings_;
  uint32_t row_sets_ = 1;  // the most that the columns so far share
};

}  // namespace nam::execution
