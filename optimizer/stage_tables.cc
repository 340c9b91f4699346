#include "optimizer/stage_tables.h"

#include <algorithm>
#include <variant>

#include "partitioner/pieces.h"
#include "plan/flow.h"

namespace nam::optimizer {
namespace {

bool Probes(const plan::Pipeline& pipeline) {
  return std::any_of(pipeline.steps.begin(), pipeline.steps.end(), [](const plan::StepNode& step) {
    return std::holds_alternative<plan::ProbeStep>(step);
  });
}

}  // namespace

std::vector<uint32_t> StageTables::NeededOf(const Build& build,
                                            const std::vector<uint32_t>& partitions) const {
  return partitioner::NeededPartitions(*claimed->table, *build.table, build.co_partitioned_key, partitions);
}

StageTables StageTablesOf(const plan::PhysicalPlan& plan, const TableRefs& tables, uint32_t stage) {
  StageTables out;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const plan::Pipeline& pipeline = plan.pipelines[p];
    const plan::TableScan* scan = plan::ScanOf(pipeline);
    if (pipeline.stage != stage || scan == nullptr) continue;
    StageTables::Side side{p, scan->table, tables[scan->table], scan->columns};
    if (plan.stages[stage].claimed == p) {
      out.claimed = std::move(side);
    } else if (std::holds_alternative<plan::BuildSink>(pipeline.sink)) {
      const auto* blocks = std::get_if<plan::BlockScan>(&pipeline.source);
      StageTables::Build& build = out.builds.emplace_back(StageTables::Build{std::move(side)});
      if (blocks != nullptr && blocks->co_partitioned_key >= 0)
        build.co_partitioned_key = blocks->co_partitioned_key;
      build.probes = Probes(pipeline);
    }
  }
  return out;
}

}  // namespace nam::optimizer
