#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "execution/join/direct_build.h"
#include "execution/join/row_build.h"
#include "execution/partition/parted_groups.h"
#include "execution/partition/partition_sink.h"
#include "execution/pipeline_preparation.h"
#include "execution/rows/row_appender.h"
#include "execution/sort/result_sink.h"
#include "execution/sort/run_sink.h"
#include "execution/sort/scratch_run.h"
#include "execution/sort/top_rows.h"
#include "execution/table_sink.h"
#include "plan/flow.h"
#include "plan/join_algorithm.h"
#include "plan/slot_of.h"

/// Prepares the sinks of pipelines.
namespace nam::execution {
namespace {

absl::Status NoScratch() {
  return absl::InvalidArgumentError("a stage that writes to scratch memory has none");
}

}  // namespace

absl::Status PipelinePreparation::MakeSink() {
  const plan::SinkNode& sink = out_.absorbed.pipeline.sink;
  if (const auto* build = std::get_if<plan::BuildSink>(&sink)) return MakeBuild(*build);
  if (claimed_ && stage_.of_session_) {
    NAM_ASSIGN_OR_RETURN(out_.sink, stage_.inputs().client_sink(schema(), stage_.result_budget_));
    return absl::OkStatus();
  }
  if (claimed_ && stage_.inputs().table_target.has_value()) return MakeTable(sink);
  if (const auto* aggregate = std::get_if<plan::AggregateSink>(&sink)) return MakeAggregate(*aggregate);
  if (const auto* parts = std::get_if<plan::PartitionSink>(&sink)) return MakePartitions(*parts);
  if (const auto* send = std::get_if<plan::ExchangeSend>(&sink)) return MakeExchangeSink(*send);
  if (const auto* result = std::get_if<plan::ResultSink>(&sink))
    return MakeRows({.order = result->order, .limit = result->limit, .runs = result->runs});
  if (const auto* sort = std::get_if<plan::SortSink>(&sink)) return MakeRows(*sort);
  if (const auto* feed = std::get_if<plan::FeedSink>(&sink)) {
    if (!stage_.of_session_) return NotRun("pipelines that feed others on compute servers");
    // That one is prepared later.
    out_.feeds = &stage_.pipelines_[feed->pipeline];
    return absl::OkStatus();
  }
  return NotRun("this sink of a pipeline");
}

absl::StatusOr<std::vector<bool>> PipelinePreparation::IgnoresBlanks(const plan::BuildSink& sink) const {
  std::vector<bool> ignores(sink.keys.size());
  bool first = true;
  for (const plan::Pipeline& pipeline : stage_.plan().pipelines) {
    for (const plan::StepNode& node : pipeline.steps) {
      const auto* probe = std::get_if<plan::ProbeStep>(&node);
      if (probe == nullptr || probe->build != number_) continue;
      for (size_t k = 0; k < sink.keys.size(); ++k) {
        const bool blanks = BlanksDiffer(probe->keys[k].type, sink.keys[k].type);
        if (!first && ignores[k] != blanks)
          return NotRun("two probes of one build side, one of which takes blanks into account");
        ignores[k] = blanks;
      }
      first = false;
    }
  }
  return ignores;
}

bool PipelinePreparation::IsDrained() const {
  for (const plan::Pipeline& pipeline : stage_.plan().pipelines) {
    for (const plan::StepNode& node : pipeline.steps) {
      const auto* probe = std::get_if<plan::ProbeStep>(&node);
      if (probe != nullptr && probe->build == number_ &&
          (probe->kind == plan::JoinKind::kRight || probe->kind == plan::JoinKind::kFull))
        return true;
    }
  }
  return false;
}

std::optional<DirectTable::Options> PipelinePreparation::DirectOptions(const plan::BuildSink& sink) const {
  if (sink.keys.size() != 1) return std::nullopt;
  const std::optional<uint32_t> slot = plan::BareSlot(sink.keys[0]);
  if (!slot.has_value()) return std::nullopt;
  if (out_.scan == nullptr && !receives()) return std::nullopt;  // the number of rows is unknown
  DirectTable::Options options{.rows = out_.scan != nullptr ? RowsHere() : RowsReceived(),
                               .unique = sink.unique};
  if (PhysicalOf(sink.keys[0].type) == Physical::kText) {
    const CodeMeaning* const meaning = meanings_[*slot];
    if (meaning == nullptr || meaning->dictionary == nullptr || meaning->dictionary->size() == 0)
      return std::nullopt;
    options.key_max = static_cast<int64_t>(meaning->dictionary->size()) - 1;
    return options;
  }
  const plan::Bounds& bounds = schema()[*slot].bounds;
  if (!bounds.narrow()) return std::nullopt;
  options.key_min = static_cast<int64_t>(bounds.low);
  options.key_max = static_cast<int64_t>(bounds.high);
  if (out_.scan == nullptr) return options;
  // A table that is split by this key has a share of the numbers for each part.
  const plan::Pipeline& pipeline = out_.absorbed.pipeline;
  const auto& scan = std::get<plan::BlockScan>(pipeline.source);
  const proto::Table& table = *table_;
  if (!pipeline.steps.empty() || table.partitioning_size() != 1) return options;
  const ScanOutput& from = out_.absorbed.outputs[*slot];
  if (from.probe != ScanOutput::kScanned) return options;
  const proto::PartitionKey& by = table.partitioning(0);
  const std::string& column = table.columns(static_cast<int>(scan.columns[from.column])).name();
  if (by.function() != proto::MODULO || by.column() != column || !std::has_single_bit(by.parts()))
    return options;
  options.parts = by.parts();
  std::vector<uint32_t> here;
  for (const uint32_t chain : out_.partitions) here.push_back(chain % by.parts());
  std::sort(here.begin(), here.end());
  here.erase(std::unique(here.begin(), here.end()), here.end());
  if (here.size() < by.parts()) options.here = std::move(here);
  return options;
}

absl::Status PipelinePreparation::MakeBuild(const plan::BuildSink& sink) {
  std::optional<DirectTable::Options> direct = DirectOptions(sink);
  if (direct.has_value() && !DirectTable::Fits(*direct)) direct.reset();
  // The number of received rows was a guess, and must not fail a join that fits otherwise.
  const uint64_t received_bytes_max = stage_.build_budget().bytes() / 4;
  if (direct.has_value() && receives() &&
      (direct->unique || DirectTable::BytesNeeded(*direct) > received_bytes_max))
    direct.reset();
  const bool text = !sink.keys.empty() && PhysicalOf(sink.keys[0].type) == Physical::kText;
  const bool codes = std::all_of(sink.payload.begin(), sink.payload.end(),
                                 [&](uint32_t slot) { return meanings_[slot] != nullptr; });
  if (direct.has_value() && sink.unique && codes && !IsDrained())
    return MakeDirectBuild(sink, *std::move(direct), text);
  if (direct.has_value()) {
    direct->unique = false;
    if (!DirectTable::Fits(*direct)) direct.reset();
  }
  return MakeRowBuild(sink, std::move(direct));
}

absl::Status PipelinePreparation::MakeDirectBuild(const plan::BuildSink& sink, DirectTable::Options table,
                                                  bool text) {
  DirectBuild::Options options{.table = std::move(table), .payload = sink.payload};
  NAM_ASSIGN_OR_RETURN(options.key, Compile(sink.keys, schema()));
  if (text) {
    options.texts = std::make_unique<TextKeys>(*meanings_[*plan::BareSlot(sink.keys[0])], false);
  }
  for (const uint32_t slot : sink.payload) options.meanings.push_back(meanings_[slot]);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<DirectBuild> made,
                       DirectBuild::Make(std::move(options), stage_.build_budget()));
  out_.build = made.get();
  out_.sink = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<RowBuild::Options> PipelinePreparation::RowBuildOptions(
    const plan::BuildSink& sink, const plan::Schema& input, const std::vector<const CodeMeaning*>& codes) {
  std::vector<plan::Expr> outputs = sink.keys;
  for (const uint32_t slot : sink.payload) outputs.push_back(plan::SlotExpr(input, slot));
  plan::Schema fields;
  std::vector<const CodeMeaning*> meanings;
  for (const plan::Expr& output : outputs) {
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOf(output, input));
    const std::optional<uint32_t> bare = plan::BareSlot(output);
    const CodeMeaning* meaning = bare.has_value() ? codes[*bare] : nullptr;
    // A number key is compared by its value, and lies at rest as such.
    const bool number_key = fields.size() < sink.keys.size() && PhysicalOf(output.type) != Physical::kText;
    fields.push_back(std::move(slot));
    meanings.push_back(number_key ? nullptr : meaning);
  }
  NAM_ASSIGN_OR_RETURN(RowLayout layout, RowLayout::Local(fields, meanings, RowLayout::kMostPageBytes));
  RowBuild::Options options{.keys = static_cast<uint32_t>(sink.keys.size()), .layout = std::move(layout)};
  NAM_ASSIGN_OR_RETURN(options.program, Compile(outputs, input));
  return options;
}

absl::Status PipelinePreparation::MakeRowBuild(const plan::BuildSink& sink,
                                               std::optional<DirectTable::Options> direct) {
  NAM_ASSIGN_OR_RETURN(RowBuild::Options options, RowBuildOptions(sink, schema(), meanings_));
  options.direct = std::move(direct);
  options.match_bits = IsDrained();
  if (FiltersRows()) options.false_positives = plan::kBloomError;
  NAM_ASSIGN_OR_RETURN(options.ignores_blanks, IgnoresBlanks(sink));
  options.pages_max = PagesMax(options.layout, stage_.build_budget());
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowBuild> made,
                       RowBuild::Make(std::move(options), stage_.build_budget()));
  out_.build = made.get();
  out_.sink = std::move(made);
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeAggregate(const plan::AggregateSink& sink) {
  using Phase = plan::AggregateSink::Phase;
  if (sink.phase == Phase::kMerge) return NotRun("merges of groups that are merged again");
  std::unique_ptr<const AggregatePlan> made;
  if (sink.phase == Phase::kFinal) {
    const auto* const pages = std::get_if<plan::PageSource>(&plan_.source);
    if (pages == nullptr || out_.source != nullptr) return NotRun("a merge of groups of its own stage");
    const plan::Pipeline& from = stage_.plan().pipelines[pages->pipeline];
    const auto* const partial = std::get_if<plan::AggregateSink>(&from.sink);
    if (partial == nullptr) return NotRun("a merge of what are no groups");
    NAM_ASSIGN_OR_RETURN(made, MergeOf(*partial, from.schemas.back(), /*part_by_part=*/false));
  } else {
    NAM_ASSIGN_OR_RETURN(made, AggregatePlan::Make({.group_by = sink.group_by,
                                                    .aggregates = sink.aggregates,
                                                    .schema = schema(),
                                                    .meanings = meanings_,
                                                    .parts = sink.parts,
                                                    .memos = &stage_.memos_}));
  }
  const AggregatePlan& plan = Keep(std::move(made));
  if (sink.parts > 0) return MakePartedGroups(sink, plan);
  auto groups = std::make_unique<AggregateSink>(plan, stage_.result_budget_, sink.totals);
  if (plan.input() == AggregateInput::kGroups) out_.groups = groups.get();
  out_.sink = std::move(groups);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const AggregatePlan>> PipelinePreparation::MergeOf(
    const plan::AggregateSink& partial, const plan::Schema& rows, bool part_by_part) {
  return AggregatePlan::Make({.group_by = partial.group_by,
                              .aggregates = partial.aggregates,
                              .schema = rows,
                              .meanings = {},
                              .input = AggregateInput::kGroups,
                              .parts = partial.parts,
                              .part_by_part = part_by_part});
}

absl::Status PipelinePreparation::MakePartedGroups(const plan::AggregateSink& sink,
                                                   const AggregatePlan& plan) {
  const StageInputs& inputs = stage_.inputs();
  if (!plan::GoesByParts(sink)) return NotRun("such groups by parts");
  if (inputs.scratch == nullptr) return NoScratch();
  PartedGroups::Options options{.parts = sink.parts, .attempt = inputs.attempt, .threads = inputs.threads};
  if (inputs.always_by_parts) options.few_groups = 0;
  out_.sink = std::make_unique<PartedGroups>(plan, options, *inputs.scratch, stage_.result_budget_);
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakePartitions(const plan::PartitionSink& sink) {
  const StageInputs& inputs = stage_.inputs();
  if (inputs.scratch == nullptr) return NoScratch();
  NAM_ASSIGN_OR_RETURN(out_.sink, PartitionSink::Make({.rows = schema(),
                                                       .by = {sink.keys, sink.parts, sink.domain},
                                                       .counts_nulls = sink.counts_nulls,
                                                       .attempt = inputs.attempt,
                                                       .threads = inputs.threads},
                                                      *inputs.scratch, stage_.result_budget_));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeTable(const plan::SinkNode& sink) {
  const auto* const result = std::get_if<plan::ResultSink>(&sink);
  if (result == nullptr || !result->order.empty() || result->limit >= 0 || result->runs != plan::Runs::kNever)
    return absl::InvalidArgumentError("rows of a table that are not all rows of a result");
  const StageInputs& inputs = stage_.inputs();
  NAM_ASSIGN_OR_RETURN(
      out_.sink, TableSink::Make(schema(), *inputs.table_target, inputs.threads, stage_.result_budget_));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeRows(const plan::SortSink& sink) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const RowsPlan> made, RowsPlan::Make(schema()));
  const RowsPlan& rows = Keep(std::move(made));
  MemoryBudget& budget = stage_.result_budget_;
  std::vector<OrderSlot> order;
  for (const plan::Order& by : sink.order) order.push_back(SlotOf(by));
  if (sink.runs != plan::Runs::kNever && !stage_.of_session_) return MakeRuns(rows, sink.runs, order);
  const auto offset = static_cast<uint64_t>(sink.offset);
  int64_t wanted = -1;
  if (sink.limit >= 0 && __builtin_add_overflow(sink.limit, sink.offset, &wanted)) wanted = -1;
  if (order.empty() && offset == 0 && !IsWindowed()) {
    const std::optional<uint64_t> limit =
        sink.limit < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(sink.limit));
    const uint64_t window_bytes = claimed_ ? stage_.inputs().window_bytes : 0;
    NAM_ASSIGN_OR_RETURN(out_.sink, ResultSink::Make(rows, limit, budget, window_bytes));
  } else if (wanted >= 0 && !order.empty()) {
    NAM_ASSIGN_OR_RETURN(out_.sink,
                         TopRows::Make(rows, order, static_cast<uint64_t>(wanted), budget, offset));
  } else if (sink.limit >= 0) {
    return NotRun("some rows behind others without an order");
  } else {
    return MakeSorter(rows, sink.runs, order, offset);
  }
  return absl::OkStatus();
}

/// An attempt writes runs to the scratch memory of its stage.
absl::Status PipelinePreparation::MakeRuns(const RowsPlan& rows, plan::Runs runs,
                                           std::span<const OrderSlot> order) {
  const StageInputs& inputs = stage_.inputs();
  if (inputs.scratch == nullptr) return NoScratch();
  RunOptions options{.runs = runs, .attempt = inputs.attempt, .threads = inputs.threads};
  NAM_ASSIGN_OR_RETURN(options.plan, KeepRunsPlan());
  options.place = [space = inputs.scratch.get()](TaskContext& context) -> absl::StatusOr<RunPlace> {
    return RunPlace{space, context.channels().scratch};
  };
  NAM_ASSIGN_OR_RETURN(out_.sink, RunSink::Make(rows, order, options, stage_.result_budget_));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeSorter(const RowsPlan& rows, plan::Runs runs,
                                             std::span<const OrderSlot> order, uint64_t offset) {
  const SortScratch& scratch = stage_.inputs().sort_scratch;
  RunOptions options;
  if (runs != plan::Runs::kNever && scratch.place) {
    options = {.runs = runs, .place = scratch.place, .attempt = scratch.attempt};
    NAM_ASSIGN_OR_RETURN(options.plan, KeepRunsPlan());
  }
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<Sorter> made,
      Sorter::Make(rows, order, stage_.result_budget_, std::move(options), scratch.channel, offset));
  out_.sorter = made.get();
  out_.sink = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<const RowsPlan*> PipelinePreparation::KeepRunsPlan() {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const RowsPlan> plan,
                       MakeRunsPlan(schema(), stage_.inputs().settings.result_bytes_max()));
  return &Keep(std::move(plan));
}

bool PipelinePreparation::IsWindowed() const {
  for (const plan::Pipeline& pipeline : stage_.plan().pipelines) {
    const auto* window = std::get_if<plan::WindowSource>(&pipeline.source);
    if (window != nullptr && window->pipeline == number_) return true;
  }
  return false;
}

}  // namespace nam::execution
