#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "optimizer/tree_lowering.h"
#include "plan/flow.h"
#include "plan/slot_of.h"

/// Common table expressions, which several consumers read.
///
///     few rows   servers or session ──▶ the session's memory ──▶ each consumer, in the session
///     many       servers ──▶ parts in scratch memory ──▶ each consumer, a stage of servers of its own
namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinAlgorithm;

namespace {

/// Servers read more rows faster than the session.
constexpr double kMostRowsOfSessionTable = 10'000;

/// All columns, so that parts are even: no common property is needed.
std::vector<uint32_t> KeysOfRows(const plan::Schema& rows) {
  std::vector<uint32_t> keys;
  for (uint32_t slot = 0; slot < rows.size(); ++slot) {
    if (CheckKey(rows[slot].type).ok()) keys.push_back(slot);
  }
  return keys;
}

}  // namespace

bool TreeLowering::IsShared(const Flow& flow) const {
  if (!flow.on_servers() || options_.join == JoinAlgorithm::kPipelined || KeysOfRows(flow.schema()).empty())
    return false;
  if (options_.join != JoinAlgorithm::kAuto || flow.rows() > kMostRowsOfSessionTable) return true;
  const double most = std::min(RowsMost(flow, builder_.tables()), flow.rows() * kGuessesAreOff);
  return BytesOfRows(most, flow.schema()) > static_cast<double>(options_.top_bytes_max);
}

absl::StatusOr<Flow> TreeLowering::LowerWith(const Node& node, const ColumnSet& needed, int64_t rows_wanted) {
  const auto& with = *node.As<lg::With>();
  ColumnSet columns;
  for (const Column& column : node.input(0).columns) columns.insert(column.ref);
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(node.input(0), columns));
  CommonTable& table = common_tables_[with.cte];
  table.columns = node.input(0).columns.size();
  NAM_RETURN_IF_ERROR(Arrange(node.input(0).columns, flow));
  if (IsShared(flow)) {
    table = ToParts(std::move(flow));
  } else {
    NAM_ASSIGN_OR_RETURN(flow, ToSession(std::move(flow)));
    table.pipeline = builder_.Close(std::move(flow), plan::SortSink{});
  }
  return Lower(node.input(1), needed, rows_wanted);
}

TreeLowering::CommonTable TreeLowering::ToParts(Flow flow) {
  CommonTable table{.columns = flow.layout.size(), .parts = PartsOfRows(flow.rows(), flow.schema())};
  const double rows = flow.rows();
  const uint32_t stage = flow.pipeline.stage;
  plan::PartitionSink sink{KeysOfRows(flow.schema()), table.parts};
  table.pipeline = builder_.Close(std::move(flow), std::move(sink));
  table.rows = End(stage, {.rows = rows, .by_parts = true}, /*barrier=*/true).rows;
  return table;
}

bool TreeLowering::CanBeWhole(const Flow& flow) const {
  return options_.join == JoinAlgorithm::kAuto && !KeysOfRows(flow.schema()).empty();
}

bool TreeLowering::IsOfParts(const Flow& flow) {
  return flow.on_servers() && builder_.stage(flow.pipeline.stage).parts > 0;
}

absl::StatusOr<Flow> TreeLowering::ToAllServers(Flow flow) {
  const auto* const parts = std::get_if<plan::PartitionSource>(&flow.pipeline.source);
  if (parts != nullptr && !parts->merge.has_value()) return flow;
  Layout layout = flow.layout;
  NAM_ASSIGN_OR_RETURN(Flow whole, OpenCommonTable(ToParts(std::move(flow))));
  whole.layout = std::move(layout);
  return whole;
}

absl::StatusOr<Flow> TreeLowering::OpenCommonTable(const CommonTable& table) {
  if (table.parts == 0) return builder_.Open(table.pipeline, Flow::kSession, Layout(table.columns));
  const plan::PartitionSource source{table.pipeline, {}};
  NAM_ASSIGN_OR_RETURN(plan::Schema rows, plan::PartitionOutput(builder_.draft(), source));
  return Flow{.pipeline = {.source = source,
                           .steps = {},
                           .sink = {},
                           .schemas = {std::move(rows)},
                           .estimates = {{table.rows, 1}},
                           .after = {table.pipeline},
                           .stage = builder_.AddStage({.parts = table.parts})},
              .layout = Layout(table.columns)};
}

absl::StatusOr<Flow> TreeLowering::LowerCteScan(const Node& node, const ColumnSet& needed) {
  const auto& scan = *node.As<lg::CteScan>();
  NAM_ASSIGN_OR_RETURN(Flow flow, OpenCommonTable(common_tables_.at(scan.cte)));
  const std::vector<Expr> slots = plan::SlotExprs(flow.schema());
  plan::ProjectStep project;
  Layout layout;
  for (size_t i = 0; i < scan.fields.size(); ++i) {
    if (!needed.contains(node.columns[i].ref)) continue;
    project.outputs.push_back(slots[scan.fields[i]]);
    layout.push_back(node.columns[i].ref);
  }
  NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), std::move(layout), flow.rows(), flow));
  return flow;
}

}  // namespace nam::optimizer
