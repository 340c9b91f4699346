#include "execution/pipeline_preparation.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "execution/budget_array.h"
#include "execution/join/direct_build.h"
#include "execution/join/probe.h"
#include "execution/limit_step.h"
#include "execution/partition/parts.h"
#include "execution/rows/row_appender.h"
#include "execution/rows/values_source.h"
#include "execution/scan/record_scan.h"
#include "execution/series_step.h"
#include "execution/steps.h"
#include "execution/window/window_source.h"
#include "partitioner/table_metadata.h"
#include "plan/flow.h"
#include "plan/slot_of.h"
#include "txn/session.h"
#include "txn/snapshot_scan.h"
#include "types/wire.h"

namespace nam::execution {
namespace {

/// A build side is cut into so many pieces a thread, unless they would be small: this server may need a
/// single partition.
constexpr uint64_t kBuildPiecesOfAThread = 2;
constexpr uint64_t kBuildPieceRowsMin = 4'096;
/// A member's rows to send are cut into so many pieces a thread.
constexpr uint64_t kSentPiecesOfAThread = 8;

/// The memory of the session's rows, or keys: each is a text, a key in a set besides.
absl::StatusOr<uint64_t> BytesOfRows(const proto::RecordRows& rows, uint32_t row_bytes) {
  constexpr uint64_t kTextBytes = 96;
  uint64_t bytes = 0;
  for (const uint32_t page : rows.more().bytes()) bytes += page;
  if (rows.more().rows() > bytes / row_bytes) return BadRecordScan("more rows than their pages hold");
  return (rows.few().size() / row_bytes + rows.more().rows()) * (row_bytes + kTextBytes);
}

/// The table was dropped meanwhile: a retry of the statement will not find it.
template <typename T>
absl::StatusOr<T> UnlessDropped(absl::StatusOr<T> found, const std::string& table) {
  if (!absl::IsNotFound(found.status())) return found;
  return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                          absl::StrFormat("table %s was dropped while it was read", table));
}

/// Unique among the columns of all versions of tables; never 0.
uint64_t DictionaryId(const proto::Table& table, uint32_t group, uint32_t column) {
  return (catalog::GroupId(table, group) << 16) + column + 1;
}

absl::StatusOr<CodeMeaning> LoadMeaning(const proto::Table& table, uint32_t group, uint32_t column,
                                        const DictionaryLoader& load) {
  const proto::Column& described = table.columns(static_cast<int>(column));
  const proto::GroupColumn in = catalog::GroupColumnOf(table, group, column);
  CodeMeaning out;
  out.type = ColumnTypeOf(described.type());
  out.null_code = described.nullable();
  out.base = in.encoding().base();
  out.width = static_cast<uint8_t>(in.encoding().width());
  out.plain = in.encoding().plain();
  if (out.plain) {
    out.codes = 0;
    return out;
  }
  out.min = in.min();
  out.max = std::max(in.min(), in.max());
  const uint64_t spread = static_cast<uint64_t>(out.max) - static_cast<uint64_t>(out.min);
  out.codes = spread >= UINT64_MAX - 1 ? 0 : spread + 1 + out.null_code;
  if (PhysicalOf(out.type) != Physical::kText) return out;
  NAM_ASSIGN_OR_RETURN(out.dictionary, load(table, column, group));
  out.codes = std::max<uint64_t>(out.dictionary->size() + out.null_code, 1);
  out.dictionary_id = DictionaryId(table, group, column);
  return out;
}

}  // namespace

PipelinePreparation::PipelinePreparation(PreparedStage& stage, uint32_t number)
    : stage_(stage),
      number_(number),
      plan_(stage.plan().pipelines[number]),
      out_(stage.pipelines_[number]),
      claimed_(stage.claimed() == number) {}

absl::Status PipelinePreparation::Run() {
  for (size_t p = number_ + 1; claimed_ && p < stage_.plan().pipelines.size(); ++p) {
    if (stage_.plan().pipelines[p].stage == plan_.stage)
      return NotRun("a stage whose claimed pipeline is not its last");
  }
  const bool claims = plan::ScanOf(plan_) != nullptr ||
                      std::holds_alternative<plan::PartitionSource>(plan_.source) ||
                      std::holds_alternative<plan::JoinSource>(plan_.source) ||
                      std::holds_alternative<plan::ExchangeReceive>(plan_.source);
  if (claimed_ && !stage_.of_session_ && !claims) return NotRun("a stage that claims no table, nor parts");
  NAM_RETURN_IF_ERROR(MakeSource());
  const plan::Pipeline& pipeline = out_.absorbed.pipeline;
  for (size_t s = 0; s < pipeline.steps.size(); ++s)
    NAM_RETURN_IF_ERROR(MakeStep(pipeline.steps[s], pipeline.schemas[s], pipeline.schemas[s + 1]));
  return MakeSink();
}

absl::Status PipelinePreparation::MakeSource() {
  if (std::holds_alternative<plan::BlockScan>(plan_.source)) return MakeScan();
  out_.absorbed.pipeline = plan_;
  meanings_.resize(plan_.schemas[0].size());
  if (const auto* pages = std::get_if<plan::PageSource>(&plan_.source)) return MakePageSource(*pages);
  if (const auto* records = std::get_if<plan::RecordScan>(&plan_.source))
    return stage_.of_session_ ? MakeRecordFeed(*records) : MakeRecordScan(*records);
  if (const auto* window = std::get_if<plan::WindowSource>(&plan_.source)) return MakeWindowSource(*window);
  if (const auto* parts = std::get_if<plan::PartitionSource>(&plan_.source))
    return MakePartitionSource(*parts);
  if (const auto* join = std::get_if<plan::JoinSource>(&plan_.source)) return MakeJoinSource(*join);
  if (const auto* receive = std::get_if<plan::ExchangeReceive>(&plan_.source))
    return MakeExchangeSource(*receive);
  if (const auto* values = std::get_if<plan::ValuesSource>(&plan_.source)) {
    out_.source = std::make_unique<ValuesSource>(values->rows, plan_.schemas[0]);
    return absl::OkStatus();
  }
  if (const auto* files = std::get_if<plan::FileSource>(&plan_.source);
      files != nullptr && stage_.inputs().file_rows) {
    // The session reads files by one task, in their order.
    const int tasks = stage_.of_session_ ? 1 : stage_.inputs().threads;
    NAM_ASSIGN_OR_RETURN(out_.source, stage_.inputs().file_rows(*files, plan_.schemas[0], tasks));
    return absl::OkStatus();
  }
  return NotRun("this source of a pipeline");
}

absl::Status PipelinePreparation::MakeWindowSource(const plan::WindowSource& window) {
  const Sorter* const sorter = stage_.pipelines_[window.pipeline].sorter;
  if (sorter == nullptr) return NotRun("a window over rows without an order");
  const std::vector<plan::Order>& by =
      std::get<plan::SortSink>(stage_.plan().pipelines[window.pipeline].sink).order;
  WindowSource::Options options{.calls = window.calls};
  for (uint32_t k = 0; k < window.partition_keys + window.order_keys; ++k)
    (k < window.partition_keys ? options.partition : options.order).push_back(SlotOf(by[k]));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<WindowSource> made, WindowSource::Make(*sorter, std::move(options)));
  row_sets_ = made->row_sets();
  out_.source = std::move(made);
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeRecordFeed(const plan::RecordScan& scan) {
  NAM_ASSIGN_OR_RETURN(
      RecordSelect select,
      RecordSelect::Make(
          *stage_.inputs().tables[scan.table],
          {.columns = scan.columns, .schema = scan.slots, .filters = scan.filters, .outputs = scan.output}));
  out_.records = std::make_unique<const RecordSelect>(std::move(select));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakePageSource(const plan::PageSource& pages) {
  if (stage_.plan().pipelines[pages.pipeline].stage == stage_.inputs().stage) {
    Sink* const sink = stage_.pipelines_[pages.pipeline].sink.get();
    if (sink != nullptr) out_.source = sink->RowsAtRest(pages.in_order);
    return out_.source != nullptr ? absl::OkStatus() : NotRun("a pipeline over rows that are not kept");
  }
  return stage_.of_session_ ? absl::OkStatus() : NotRun("rows of other stages on compute servers");
}

absl::Status PipelinePreparation::MakeScan() {
  if (stage_.of_session_) return NotRun("scans of blocks in the session");
  std::vector<uint8_t> direct;
  for (const PreparedPipeline& before : stage_.pipelines_)
    direct.push_back(before.build != nullptr && before.build->direct_build() != nullptr);
  const auto& scanned = std::get<plan::BlockScan>(plan_.source);
  std::vector<uint8_t> plain;
  for (const uint32_t column : scanned.columns)
    plain.push_back(partitioner::IsPlain(*stage_.inputs().tables[scanned.table], column));
  out_.absorbed = Absorb(plan_, direct, plain);
  const auto& scan = std::get<plan::BlockScan>(out_.absorbed.pipeline.source);
  const StageInputs& inputs = stage_.inputs();
  table_ = inputs.tables[scan.table].get();
  NAM_ASSIGN_OR_RETURN(const std::deque<CodeMeaning>* const meanings, LoadMeanings(scan));
  NAM_RETURN_IF_ERROR(FindPartitions(scan));
  PieceQueue& pieces = claimed_
                           ? ClaimedPieces()
                           : Keep(std::make_unique<PieceQueue>(sends() ? PiecesOfMember() : PiecesOfBuild()));
  BlockScan::Options options{.table = inputs.tables[scan.table],
                             .columns = scan.columns,
                             .schema = scan.slots,
                             .filters = scan.filters,
                             .outputs = out_.absorbed.outputs,
                             .known = inputs.known[scan.table],
                             .window = inputs.settings.window(),
                             .in_place = inputs.settings.in_place(),
                             .verify = inputs.settings.verify(),
                             .slow_start = !claimed_ && !sends(),
                             .memos = &stage_.memos_};
  const proto::Table& table = *options.table;
  for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
    BlockScan::Group& group = options.groups.emplace_back();
    for (size_t slot = 0; slot < scan.columns.size(); ++slot)
      group.meanings.push_back(&(*meanings)[g * scan.columns.size() + slot]);
  }
  for (uint32_t c = 0; options.groups.size() > 1 && c < static_cast<uint32_t>(table.partitions_size()); ++c)
    options.group_of.push_back(partitioner::GroupOfChain(table, c));
  NAM_ASSIGN_OR_RETURN(options.probes, AbsorbedProbes(scan));
  for (const ScanOutput& output : out_.absorbed.outputs) {
    if (output.probe == ScanOutput::kScanned) {
      // In a table that was appended to, codes mean something else in each group.
      const CodeMeaning& meaning = (*meanings)[output.column];
      meanings_.push_back(meaning.plain || catalog::GroupCount(table) > 1 ? nullptr : &meaning);
      continue;
    }
    const uint32_t build = out_.absorbed.probes[static_cast<size_t>(output.probe)].build;
    meanings_.push_back(stage_.pipelines_[build].build->PayloadOf(output.column, nullptr).meaning);
  }
  row_sets_ = 1 + static_cast<uint32_t>(options.probes.size());
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<BlockScan> made, BlockScan::Make(std::move(options), pieces));
  out_.scan = made.get();
  out_.source = std::move(made);
  return absl::OkStatus();
}

PieceQueue& PipelinePreparation::ClaimedPieces() {
  const StageInputs& inputs = stage_.inputs();
  return Keep(std::make_unique<PieceQueue>(inputs.pieces, inputs.counter, &stage_.leaving_));
}

absl::StatusOr<const std::deque<CodeMeaning>*> PipelinePreparation::LoadMeanings(
    const plan::BlockScan& scan) {
  const proto::Table& table = *stage_.inputs().tables[scan.table];
  auto& meanings = Keep(std::make_unique<std::deque<CodeMeaning>>());
  for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
    for (const uint32_t column : scan.columns) {
      NAM_ASSIGN_OR_RETURN(CodeMeaning meaning,
                           LoadMeaning(table, g, column, stage_.inputs().load_dictionary));
      meanings.push_back(std::move(meaning));
    }
  }
  return &meanings;
}

absl::Status PipelinePreparation::FindPartitions(const plan::BlockScan& scan) {
  const StageInputs& inputs = stage_.inputs();
  if (claimed_) {
    out_.partitions = partitioner::PartitionsOf(inputs.pieces);
    return absl::OkStatus();
  }
  const plan::Pipeline& claims = stage_.plan().pipelines[stage_.claimed()];
  const plan::TableScan* const claimed = plan::ScanOf(claims);
  const proto::Table& table = *inputs.tables[scan.table];
  if (claimed == nullptr || std::holds_alternative<plan::RecordScan>(claims.source)) {
    // Extents and parts in scratch memory are not divided by any key of a table.
    for (int p = 0; p < table.partitions_size(); ++p) out_.partitions.push_back(static_cast<uint32_t>(p));
    return absl::OkStatus();
  }
  const proto::Table& driving = *inputs.tables[claimed->table];
  for (const partitioner::Piece& piece : inputs.pieces) {
    if (piece.partition >= static_cast<uint32_t>(driving.partitions_size()))
      return absl::InvalidArgumentError("no such partition");
  }
  const std::optional<int> key =
      scan.co_partitioned_key < 0 ? std::nullopt : std::optional<int>(scan.co_partitioned_key);
  out_.partitions =
      partitioner::NeededPartitions(driving, table, key, partitioner::PartitionsOf(inputs.pieces));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeRecordScan(const plan::RecordScan& scan) {
  const StageInputs& inputs = stage_.inputs();
  if (inputs.records == nullptr) return NotRun("scans of record tables here");
  const std::string& name = stage_.plan().tables[scan.table].name;
  NAM_ASSIGN_OR_RETURN(txn::TableDescription records, UnlessDropped(inputs.records->Find(name), name));
  NAM_ASSIGN_OR_RETURN(txn::TransactionState state, inputs.records->State());
  RecordScan::Options options{.table = inputs.tables[scan.table],
                              .records = std::move(records),
                              .state = std::move(state),
                              .snapshot = scan.snapshot,
                              .select = {.columns = scan.columns,
                                         .schema = scan.slots,
                                         .filters = scan.filters,
                                         .outputs = scan.output},
                              .range_low = scan.range_low,
                              .range_high = scan.range_high};
  NAM_RETURN_IF_ERROR(LoadRecordInput(options));
  std::vector<partitioner::Piece> of_build;
  if (!claimed_) {
    NAM_ASSIGN_OR_RETURN(of_build, RecordPiecesOfBuild(options));
  }
  PieceQueue& pieces = claimed_ ? ClaimedPieces() : Keep(std::make_unique<PieceQueue>(std::move(of_build)));
  NAM_ASSIGN_OR_RETURN(out_.source, RecordScan::Make(std::move(options), pieces));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::LoadRecordInput(RecordScan::Options& options) const {
  const StageInputs& inputs = stage_.inputs();
  const auto input = std::find_if(inputs.record_inputs.begin(), inputs.record_inputs.end(),
                                  [&](const proto::RecordInput& of) { return of.pipeline() == number_; });
  if (input == inputs.record_inputs.end()) return absl::OkStatus();
  options.own_rows_only = input->rows_only();
  const uint32_t row_bytes = options.records.row_bytes, key_bytes = options.records.key_bytes;
  NAM_ASSIGN_OR_RETURN(const uint64_t rows_bytes, BytesOfRows(input->rows(), row_bytes));
  NAM_ASSIGN_OR_RETURN(const uint64_t keys_bytes, BytesOfRows(input->hidden(), key_bytes));
  options.input_memory = HeldBytes::Take(stage_.result_budget_, rows_bytes + keys_bytes);
  if (options.input_memory == nullptr) return OverBudget(stage_.result_budget_);
  NAM_ASSIGN_OR_RETURN(options.own_rows, inputs.load_rows(input->rows(), row_bytes));
  NAM_ASSIGN_OR_RETURN(options.hidden_keys, inputs.load_rows(input->hidden(), key_bytes));
  return absl::OkStatus();
}

/// The whole table: extents with rows that the snapshot sees existed before the snapshot.
absl::StatusOr<std::vector<partitioner::Piece>> PipelinePreparation::RecordPiecesOfBuild(
    const RecordScan::Options& options) const {
  const txn::TableDescription& records = options.records;
  const auto own_rows = static_cast<uint32_t>(options.own_rows.size());
  if (options.own_rows_only) return partitioner::RecordPieces(0, 0, 0, own_rows);
  NAM_ASSIGN_OR_RETURN(const std::vector<txn::SpaceExtent> extents,
                       UnlessDropped(records.records->Extents(), records.name));
  const uint64_t chunks = txn::LayoutOf(records).chunks;
  const uint64_t pieces = kBuildPiecesOfAThread * static_cast<uint64_t>(stage_.inputs().threads);
  const uint64_t run =
      std::max(kBuildPieceRowsMin / partitioner::kRecordsOfChunk, extents.size() * chunks / pieces);
  return partitioner::RecordPieces(static_cast<uint32_t>(extents.size()), static_cast<uint32_t>(chunks),
                                   static_cast<uint32_t>(std::min(run, chunks)), own_rows);
}

uint64_t PipelinePreparation::RowsHere() const {
  uint64_t rows = 0;
  for (const uint32_t p : out_.partitions) rows += table_->partitions(static_cast<int>(p)).rows();
  return rows;
}

uint64_t PipelinePreparation::RowsReceived() const {
  return static_cast<uint64_t>(plan_.estimates[0].rows) / stage_.inputs().members;
}

std::vector<partitioner::Piece> PipelinePreparation::PiecesOfBuild() const {
  const uint64_t pieces = kBuildPiecesOfAThread * static_cast<uint64_t>(stage_.inputs().threads);
  return partitioner::PiecesOf(*table_, out_.partitions, std::max(kBuildPieceRowsMin, RowsHere() / pieces));
}

/// All members cut the table alike, since the plan gives its version and the numbers of members and of
/// threads.
std::vector<partitioner::Piece> PipelinePreparation::PiecesOfMember() const {
  const StageInputs& inputs = stage_.inputs();
  const uint64_t pieces = kSentPiecesOfAThread * static_cast<uint64_t>(inputs.threads) * inputs.members;
  const std::vector<partitioner::Piece> all = partitioner::PiecesOf(
      *table_, out_.partitions, std::max(kBuildPieceRowsMin, RowsHere() / std::max<uint64_t>(pieces, 1)));
  std::vector<partitioner::Piece> own;
  for (size_t i = inputs.member; i < all.size(); i += inputs.members) own.push_back(all[i]);
  return own;
}

absl::StatusOr<std::vector<BlockScan::Probe>> PipelinePreparation::AbsorbedProbes(
    const plan::BlockScan& scan) const {
  std::vector<BlockScan::Probe> probes;
  for (const AbsorbedPipeline::Probe& probe : out_.absorbed.probes) {
    const DirectBuild& build = *stage_.pipelines_[probe.build].build->direct_build();
    const auto& built = std::get<plan::BlockScan>(stage_.plan().pipelines[probe.build].source);
    const int32_t key = claimed_ ? built.co_partitioned_key : -1;
    probes.push_back({LookupOf(build.table(), probe.key, scan.columns[probe.key], key, *table_), &build});
  }
  return probes;
}

absl::StatusOr<const Program*> PipelinePreparation::Compile(std::span<const plan::Expr> outputs,
                                                            const plan::Schema& input) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program,
                       Program::Compile(outputs, input, &stage_.memos_));
  out_.by_row_nodes += program->by_row_nodes();
  return &Keep(std::move(program));
}

void PipelinePreparation::AddStep(std::unique_ptr<StepOperator> step, size_t columns) {
  out_.steps.push_back({std::move(step), [columns] { return std::make_unique<Chunk>(columns, 0); }});
}

absl::Status PipelinePreparation::MakeStep(const plan::StepNode& node, const plan::Schema& input,
                                           const plan::Schema& output) {
  if (const auto* filter = std::get_if<plan::FilterStep>(&node)) return MakeFilter(*filter, input);
  if (const auto* project = std::get_if<plan::ProjectStep>(&node)) return MakeProject(*project, input);
  if (const auto* probe = std::get_if<plan::ProbeStep>(&node)) return MakeProbeStep(*probe, input);
  if (const auto* expand = std::get_if<plan::ExpandStep>(&node)) return MakeExpand(*expand, input, output);
  if (const auto* repeat = std::get_if<plan::RepeatStep>(&node)) return MakeRepeat(*repeat, input);
  if (const auto* series = std::get_if<plan::SeriesStep>(&node)) return MakeSeries(*series, input);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<LimitOperator> limit,
                       LimitOperator::Make(std::get<plan::LimitStep>(node), input));
  AddStep(std::move(limit), output.size());
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeExpand(const plan::ExpandStep& expand, const plan::Schema& input,
                                             const plan::Schema& output) {
  // Keys are codes in some sets and NULL in others.
  meanings_.resize(output.size());
  AddStep(std::make_unique<ExpandOperator>(expand, input), output.size());
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeRepeat(const plan::RepeatStep& repeat, const plan::Schema& input) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RepeatOperator> step, RepeatOperator::Make(repeat, input, row_sets_));
  const RepeatOperator* const made = step.get();
  row_sets_ += 1;
  out_.steps.push_back({std::move(step), [made] { return made->NewChunk(); }});
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeSeries(const plan::SeriesStep& series, const plan::Schema& input) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<SeriesOperator> step,
                       SeriesOperator::Make(series, input, row_sets_, &stage_.memos_));
  const SeriesOperator* const made = step.get();
  out_.by_row_nodes += made->by_row_nodes();
  row_sets_ += 1;
  meanings_.push_back(nullptr);
  out_.steps.push_back({std::move(step), [made] { return made->NewChunk(); }});
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeFilter(const plan::FilterStep& filter, const plan::Schema& input) {
  NAM_ASSIGN_OR_RETURN(auto program, Program::Compile(filter.conditions, input, &stage_.memos_));
  out_.by_row_nodes += program->by_row_nodes();
  AddStep(std::make_unique<FilterOperator>(std::move(program)), input.size());
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeProject(const plan::ProjectStep& project, const plan::Schema& input) {
  NAM_ASSIGN_OR_RETURN(auto program, Program::Compile(project.outputs, input, &stage_.memos_));
  out_.by_row_nodes += program->by_row_nodes();
  std::vector<const CodeMeaning*> meanings;
  for (size_t i = 0; i < project.outputs.size(); ++i) {
    const std::optional<uint32_t> slot = program->slot_of(i);
    meanings.push_back(slot.has_value() ? meanings_[*slot] : nullptr);
  }
  meanings_ = std::move(meanings);
  AddStep(std::make_unique<ProjectOperator>(std::move(program)), project.outputs.size());
  return absl::OkStatus();
}

absl::StatusOr<ProbeOptions> PipelinePreparation::ProbeOptionsOf(const plan::ProbeStep& probe,
                                                                 const plan::Schema& input,
                                                                 const plan::Schema& partners) {
  ProbeOptions options{.kind = probe.kind,
                       .keep = probe.keep,
                       .fetch = probe.fetch,
                       .null_aware = probe.null_aware,
                       .input_row_sets = row_sets_,
                       .input = input};
  if (!probe.keys.empty()) {
    NAM_ASSIGN_OR_RETURN(options.keys, Compile(probe.keys, input));
  }
  if (!probe.residuals.empty()) {
    NAM_ASSIGN_OR_RETURN(options.residuals, Compile(probe.residuals, partners));
  }
  if (!probe.compared.empty()) {
    NAM_ASSIGN_OR_RETURN(options.compared, Compile(probe.compared, partners));
  }
  return options;
}

absl::Status PipelinePreparation::MakeProbeStep(const plan::ProbeStep& probe, const plan::Schema& input) {
  const BuildSide& build = *stage_.pipelines_[probe.build].build;
  NAM_ASSIGN_OR_RETURN(const plan::Schema partners, plan::PartnerSchema(stage_.plan(), probe, input));
  NAM_ASSIGN_OR_RETURN(ProbeOptions options, ProbeOptionsOf(probe, input, partners));
  const bool own = PassesOwnTuples(probe.kind);
  std::vector<const CodeMeaning*> meanings;
  for (const uint32_t slot : probe.keep) meanings.push_back(meanings_[slot]);
  if (probe.kind == plan::JoinKind::kMark) meanings.push_back(nullptr);
  for (size_t i = 0; i < probe.fetch.size() && !own; ++i) {
    const Column column = build.PayloadOf(probe.fetch[i], nullptr);
    meanings.push_back(column.kind == Column::Kind::kCodes ? column.meaning : column.field->meaning);
  }
  meanings_ = std::move(meanings);
  if (!own) row_sets_ += 2;
  out_.drains_build |= probe.kind == plan::JoinKind::kRight || probe.kind == plan::JoinKind::kFull;
  const ProbeOptions shape = options;
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<StepOperator> step, build.NewProbe(std::move(options)));
  out_.steps.push_back({std::move(step), [shape] { return NewProbeChunk(shape); }});
  return absl::OkStatus();
}

}  // namespace nam::execution
