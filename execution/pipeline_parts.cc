#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "execution/join/row_build.h"
#include "execution/partition/partition_join.h"
#include "execution/partition/partition_source.h"
#include "execution/partition/parts.h"
#include "execution/pipeline_preparation.h"
#include "plan/flow.h"

/// Prepares sources over the parts of earlier stages.
namespace nam::execution {

absl::Status PipelinePreparation::MakePartitionSource(const plan::PartitionSource& parts) {
  if (stage_.of_session_) return NotRun("parts in the session");
  const StageInputs& inputs = stage_.inputs();
  const plan::Pipeline& from = stage_.plan().pipelines[parts.pipeline];
  PartBy by;
  const AggregatePlan* merge = nullptr;
  const plan::Schema& rows = from.schemas.back();
  if (parts.merge.has_value()) {
    const auto& partial = std::get<plan::AggregateSink>(from.sink);
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<const AggregatePlan> made,
                         MergeOf(partial, rows, /*part_by_part=*/true));
    merge = &Keep(std::move(made));
    for (uint32_t k = 0; k < partial.group_by.size(); ++k) by.keys.push_back(k);
    by.parts = partial.parts;
    by.domain = merge->domain();
  } else {
    const auto& sink = std::get<plan::PartitionSink>(from.sink);
    by = {sink.keys, sink.parts, sink.domain};
  }
  absl::StatusOr<RowLayout> layout = merge != nullptr ? merge->partial_layout() : PartLayout(rows, by.parts);
  NAM_RETURN_IF_ERROR(layout.status());
  std::vector<partitioner::Piece> all;
  for (uint32_t part = 0; !claimed_ && part < by.parts; ++part) all.push_back({part, 0, 1});
  PieceQueue& pieces = claimed_ ? ClaimedPieces() : Keep(std::make_unique<PieceQueue>(std::move(all)));
  NAM_ASSIGN_OR_RETURN(out_.source, PartitionSource::Make({.layout = *std::move(layout),
                                                           .by = std::move(by),
                                                           .pipeline = parts.pipeline,
                                                           .directories = inputs.directories,
                                                           .merge = merge},
                                                          pieces, stage_.result_budget_));
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeJoinSource(const plan::JoinSource& join) {
  if (stage_.of_session_ || !claimed_) return NotRun("joins by parts that no server claims");
  const StageInputs& inputs = stage_.inputs();
  NAM_ASSIGN_OR_RETURN(const plan::JoinSchemas schemas, plan::SchemasOf(stage_.plan(), join));
  const auto side = [&](uint32_t pipeline, const plan::Schema& rows) -> absl::StatusOr<PartitionJoin::Side> {
    const auto& sink = std::get<plan::PartitionSink>(stage_.plan().pipelines[pipeline].sink);
    NAM_ASSIGN_OR_RETURN(RowLayout layout, PartLayout(rows, sink.parts));
    return PartitionJoin::Side{
        std::move(layout), {sink.keys, sink.parts, sink.domain}, pipeline, sink.counts_nulls};
  };
  NAM_ASSIGN_OR_RETURN(PartitionJoin::Side probed, side(join.probed, schemas.probed));
  NAM_ASSIGN_OR_RETURN(PartitionJoin::Side built, side(join.probe.build, schemas.built));
  const std::vector<const CodeMeaning*> no_codes(schemas.built.size());
  NAM_ASSIGN_OR_RETURN(RowBuild::Options build, RowBuildOptions(join.build, schemas.built, no_codes));
  std::vector<uint32_t> fields = built.by.keys;
  fields.insert(fields.end(), join.build.payload.begin(), join.build.payload.end());
  build.layout = built.layout.Selected(fields);
  build.match_bits = join.probe.kind == plan::JoinKind::kRight || join.probe.kind == plan::JoinKind::kFull;
  build.pages_max = UINT64_MAX;
  for (size_t k = 0; k < join.build.keys.size(); ++k)
    build.ignores_blanks.push_back(BlanksDiffer(join.probe.keys[k].type, join.build.keys[k].type));
  NAM_ASSIGN_OR_RETURN(ProbeOptions probe, ProbeOptionsOf(join.probe, schemas.probed, schemas.partners));
  probe.rows_ascend = true;
  if (probed.by.domain.known()) {
    const plan::KeyDomain& domain = probed.by.domain;
    const plan::Bounds& keys = schemas.probed[probed.by.keys[0]].bounds;
    probe.keys_in_domain =
        keys.low >= domain.low && keys.high - domain.low < static_cast<__int128>(domain.size());
  }
  PartitionJoin::Options options{.probed = std::move(probed),
                                 .built = std::move(built),
                                 .directories = inputs.directories,
                                 .build = std::move(build),
                                 .probe = std::move(probe),
                                 .threads = inputs.threads,
                                 .grant = inputs.memory.get()};
  if (!PassesOwnTuples(join.probe.kind)) row_sets_ += 2;
  NAM_ASSIGN_OR_RETURN(out_.source,
                       PartitionJoin::Make(std::move(options), ClaimedPieces(), stage_.build_budget()));
  return absl::OkStatus();
}

}  // namespace nam::execution
