#include "bench/shuffle_plan.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/exchange/endpoint.h"
#include "optimizer/plan_query.h"
#include "optimizer/stage_tables.h"

namespace nam::bench {
namespace {

using execution::PreparedPipeline;
using execution::PreparedStage;
using execution::ScanOutput;

constexpr uint64_t kBuildBytesMax = uint64_t{4} << 30;
constexpr uint64_t kResultBytesMax = uint64_t{256} << 20;

uint32_t AlignUp8(uint32_t n) {
  return (n + 7) & ~7u;
}

const plan::BlockScan& ScanOf(const PreparedStage& stage, uint32_t pipeline) {
  return std::get<plan::BlockScan>(stage.pipeline(pipeline).absorbed.pipeline.source);
}

absl::Status CheckStar(const PreparedStage& stage) {
  const execution::AbsorbedPipeline& probing = stage.pipeline(stage.claimed()).absorbed;
  if (!probing.pipeline.steps.empty())
    return absl::InvalidArgumentError("the shuffle-based plan joins a star by its dense, unique keys");
  if (probing.probes.empty()) return absl::InvalidArgumentError("there is nothing to join");
  if (!std::holds_alternative<plan::AggregateSink>(stage.plan().pipelines[stage.claimed()].sink))
    return absl::InvalidArgumentError("the shuffle-based plan aggregates what it joins");
  for (const uint32_t p : stage.numbers()) {
    if (!ScanOf(stage, p).filters.empty())
      return absl::InvalidArgumentError("the shuffle-based plan has no filters");
  }
  return absl::OkStatus();
}

/// Makes the legs of a stage that passed CheckStar.
class Legs {
 public:
  Legs(const PreparedStage& stage, uint32_t batch_bytes)
      : stage_(stage), batch_bytes_(batch_bytes), probing_(stage.pipeline(stage.claimed()).absorbed) {}

  absl::StatusOr<std::vector<ShufflePlan::Join>> Run() {
    std::vector<ShufflePlan::Join> joins(probing_.probes.size());
    std::vector<ScanOutput> flows = FirstColumns();
    for (size_t j = 0; j < joins.size(); ++j) {
      ShufflePlan::Join& join = joins[j];
      join.pipeline = probing_.probes[j].build;
      NAM_ASSIGN_OR_RETURN(join.build, BuildLeg(join.pipeline));
      const ScanOutput key{ScanOutput::kScanned, probing_.probes[j].key};
      NAM_ASSIGN_OR_RETURN(join.probe, LayOut(stage_.claimed(), flows, key));
      PassOn(j, join, flows);
    }
    if (flows != probing_.outputs) return absl::InternalError("the legs do not end at the sink's columns");
    return joins;
  }

 private:
  /// The driving table's needed columns, or all of them, ascending. Tuples that are read whole are sent
  /// whole.
  std::vector<ScanOutput> FirstColumns() const {
    std::vector<ScanOutput> columns;
    for (uint32_t slot = 0; slot < ScanOf(stage_, stage_.claimed()).slots.size(); ++slot) {
      const ScanOutput column{ScanOutput::kScanned, slot};
      if (IsWanted(column, 0)) columns.push_back(column);
    }
    return columns;
  }

  /// True if join `next` or a later one needs the column; after the last join, the sink.
  bool IsWanted(const ScanOutput& column, size_t next) const {
    const std::vector<ScanOutput>& sink = probing_.outputs;
    if (std::find(sink.begin(), sink.end(), column) != sink.end()) return true;
    if (column.probe != ScanOutput::kScanned || next == probing_.probes.size()) return false;
    const plan::BlockScan& scan = ScanOf(stage_, stage_.claimed());
    const proto::Table& table = *stage_.inputs().tables[scan.table];
    const bool whole = scan.columns.size() == static_cast<size_t>(table.columns_size());
    return whole || std::any_of(probing_.probes.begin() + static_cast<ptrdiff_t>(next), probing_.probes.end(),
                                [&](const auto& probe) { return probe.key == column.column; });
  }

  absl::StatusOr<ShuffleLeg> BuildLeg(uint32_t pipeline) const {
    const execution::AbsorbedPipeline& build = stage_.pipeline(pipeline).absorbed;
    const plan::Expr& key = std::get<plan::BuildSink>(build.pipeline.sink).keys[0];
    return LayOut(pipeline, build.outputs, build.outputs[static_cast<size_t>(key.column.column)]);
  }

  /// Lays the columns out in messages of at most `batch_bytes`.
  absl::StatusOr<ShuffleLeg> LayOut(uint32_t pipeline, const std::vector<ScanOutput>& columns,
                                    const ScanOutput& key) const {
    ShuffleLeg leg;
    uint32_t row_bytes = 0;
    for (const ScanOutput& column : columns) {
      const uint8_t width = ShufflePlan::MeaningOf(stage_, pipeline, column)->width;
      leg.columns.push_back({column, width});
      row_bytes += width;
    }
    leg.key = static_cast<uint32_t>(std::find(columns.begin(), columns.end(), key) - columns.begin());
    leg.key_base = ShufflePlan::MeaningOf(stage_, pipeline, key)->base;
    const uint32_t payload_bytes = batch_bytes_ - static_cast<uint32_t>(sizeof(execution::MessageHeader));
    leg.capacity = payload_bytes / row_bytes;
    while (leg.capacity > 0 && leg.BytesOf(leg.capacity) > payload_bytes) --leg.capacity;
    if (leg.capacity == 0) return absl::InvalidArgumentError("a row does not fit a batch");
    leg.offsets.resize(leg.columns.size());
    leg.OffsetsOf(leg.capacity, leg.offsets.data());
    return leg;
  }

  /// The columns of `flows` and of the build side that continue after the join.
  void PassOn(size_t j, ShufflePlan::Join& join, std::vector<ScanOutput>& flows) const {
    std::vector<ScanOutput> next;
    for (uint32_t c = 0; c < flows.size(); ++c) {
      if (!IsWanted(flows[c], j + 1)) continue;
      join.keep.push_back(c);
      next.push_back(flows[c]);
    }
    const size_t payload = stage_.pipeline(join.pipeline).build->payload_columns();
    for (uint32_t c = 0; c < payload; ++c) {
      const ScanOutput column{static_cast<int32_t>(j), c};
      if (!IsWanted(column, j + 1)) continue;
      join.fetch.push_back(c);
      next.push_back(column);
    }
    flows = std::move(next);
  }

  const PreparedStage& stage_;
  const uint32_t batch_bytes_;
  const execution::AbsorbedPipeline& probing_;
};

}  // namespace

uint32_t ShuffleLeg::BytesOf(uint32_t rows) const {
  uint32_t at = 0;
  for (const Column& column : columns) at = AlignUp8(at + rows * column.width);
  return at;
}

void ShuffleLeg::OffsetsOf(uint32_t rows, uint32_t* at) const {
  uint32_t next = 0;
  for (const Column& column : columns) {
    *at++ = next;
    next = AlignUp8(next + rows * column.width);
  }
}

const execution::CodeMeaning* ShufflePlan::MeaningOf(const PreparedStage& stage, uint32_t pipeline,
                                                     const ScanOutput& column) {
  const PreparedPipeline& of = stage.pipeline(pipeline);
  if (column.probe == ScanOutput::kScanned) return of.scan->meaning(column.column);
  const uint32_t build = of.absorbed.probes[static_cast<size_t>(column.probe)].build;
  return stage.pipeline(build).build->PayloadOf(column.column, nullptr).meaning;
}

absl::StatusOr<ShufflePlan> ShufflePlan::Make(const PreparedStage& stage, uint32_t batch_bytes) {
  NAM_RETURN_IF_ERROR(CheckStar(stage));
  ShufflePlan plan;
  NAM_ASSIGN_OR_RETURN(plan.joins, Legs(stage, batch_bytes).Run());
  return plan;
}

absl::StatusOr<ShuffleQuery> ShuffleQuery::Bind(const std::string& sql, sql::TableSource& tables,
                                                const execution::DictionaryLoader& load_dictionary,
                                                uint32_t batch_bytes, bool whole_tuples) {
  NAM_ASSIGN_OR_RETURN(sql::Statement statement, sql::Bind(sql, tables));
  const auto* select = std::get_if<sql::TreeStatement>(&statement);
  if (select == nullptr) return absl::InvalidArgumentError(absl::StrCat("not a SELECT: ", sql));
  ShuffleQuery bound;
  for (const plan::logical::Column& column : select->tree->root->columns)
    bound.columns.push_back({column.name, column.type});
  NAM_ASSIGN_OR_RETURN(optimizer::LoweredTree lowered,
                       optimizer::PlanQuery(std::move(*select->tree), {.whole_tuples = whole_tuples}));
  const optimizer::StageTables star =
      optimizer::StageTablesOf(lowered.lowered.plan, lowered.lowered.tables, 0);
  if (lowered.lowered.stages.size() != 1 || !star.claimed.has_value() ||
      lowered.lowered.plan.stages[0].claimed != star.builds.size())
    return absl::InvalidArgumentError(absl::StrCat("not a star: ", sql));
  execution::StageInputs& stage = bound.stage;
  stage.tables = std::move(lowered.lowered.tables);
  stage.plan = std::move(lowered.lowered.plan);
  stage.known.resize(stage.tables.size());
  stage.settings.set_build_bytes_max(kBuildBytesMax);
  stage.settings.set_result_bytes_max(kResultBytesMax);
  const proto::Table& driving = *star.claimed->table;
  for (int p = 0; p < driving.partitions_size(); ++p)
    stage.pieces.push_back({static_cast<uint32_t>(p), 0, driving.partitions(p).blocks()});
  stage.load_dictionary = load_dictionary;
  const std::atomic<bool> leaving = false;
  NAM_ASSIGN_OR_RETURN(const auto prepared, PreparedStage::Make(stage, leaving));
  NAM_ASSIGN_OR_RETURN(bound.plan, ShufflePlan::Make(*prepared, batch_bytes));
  return bound;
}

}  // namespace nam::bench
