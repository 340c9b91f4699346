#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/push_semi_joins.h"
#include "optimizer/tree_lowering.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/table_schema.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;

namespace {

lg::ColumnSet ColumnsBelow(const lg::Node& node) {
  lg::ColumnSet columns;
  for (const lg::Column& column : node.columns) columns.insert(column.ref);
  return columns;
}

ColumnSet ColumnsOf(const JoinGraph& graph, const JoinTree& tree) {
  ColumnSet columns;
  for (const size_t i : tree.inputs) columns.merge(ColumnsBelow(*graph.inputs[i].node));
  return columns;
}

/// Estimates are for readers: replaces invalid numbers of rows.
double ValidEstimate(double estimate) {
  return std::isfinite(estimate) ? std::max(0.0, estimate) : 0;
}

}  // namespace

absl::StatusOr<Flow> TreeLowering::LowerJoinBlock(const Node& node, const ColumnSet& needed,
                                                  int64_t rows_wanted) {
  JoinGraph graph = JoinGraphOf(node, options_.records != nullptr && options_.records->servers_read());
  if (graph.inputs.size() == 1 && graph.inputs[0].kind != JoinGraph::Kind::kTable)
    return LowerTableScan(*graph.inputs[0].node, needed, graph.inputs[0].filters, rows_wanted);
  NAM_RETURN_IF_ERROR(AddTables(graph));
  return LowerJoinTree(graph, OrderJoins(graph, cardinalities_, options_.cluster.workers()), needed,
                       /*driving=*/true);
}

TreeLowering::JoinOf TreeLowering::JoinBy(JoinKind kind, JoinKeys keys, const ColumnSet& needed,
                                          ColumnSet& below) const {
  JoinOf join{.kind = kind, .behind = needed, .heaviest = cardinalities_.HeaviestOf(keys.left)};
  AddColumns(keys.residuals, join.behind);
  below = join.behind;
  AddColumns(keys.left, below);
  AddColumns(keys.right, below);
  join.left = std::move(keys.left);
  join.right = std::move(keys.right);
  join.residuals = std::move(keys.residuals);
  return join;
}

absl::StatusOr<Flow> TreeLowering::LowerJoinTree(const JoinGraph& graph, const JoinTree& tree,
                                                 const ColumnSet& needed, bool driving) {
  if (tree.left == nullptr) {
    const JoinGraph::Input& input = graph.inputs[*tree.inputs.begin()];
    if (input.kind == JoinGraph::Kind::kTable) return LowerServersScan(input, needed, driving);
    if (input.scan() != nullptr) return LowerTableScan(*input.node, needed, input.filters, -1);
    return Lower(*input.node, needed);
  }
  JoinKeys keys = JoinKeysOf(tree.conditions, ColumnsOf(graph, *tree.left), ColumnsOf(graph, *tree.right),
                             cardinalities_, tree.unique);
  ColumnSet below;
  JoinOf join = JoinBy(JoinKind::kInner, std::move(keys), needed, below);
  join.values = tree.values;
  NAM_ASSIGN_OR_RETURN(Flow build, LowerJoinTree(graph, *tree.right, below, /*driving=*/false));
  NAM_ASSIGN_OR_RETURN(Flow flow, LowerJoinTree(graph, *tree.left, below, driving));
  return Join(std::move(join), std::move(flow), std::move(build));
}

absl::StatusOr<Flow> TreeLowering::LowerServersScan(const JoinGraph::Input& input, const ColumnSet& needed,
                                                    bool driving) {
  const proto::Table& table = *input.table;
  plan::TableScan scan;
  scan.table = input.number;
  ColumnSet wanted = needed;
  AddColumns(input.filters, wanted);
  Layout read;
  for (int column = 0; column < table.columns_size(); ++column) {
    const ColumnRef ref{input.scan()->relation, column};
    if (!wanted.contains(ref) && !(options_.whole_tuples && driving)) continue;
    read.push_back(ref);
    scan.columns.push_back(static_cast<uint32_t>(column));
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(table, scan.columns.back()));
    scan.slots.push_back(std::move(slot));
  }
  NAM_ASSIGN_OR_RETURN(scan.filters, OverSlots(input.filters, read));
  scan.output = SlotsWhere(read, needed);
  Flow flow;
  for (const uint32_t slot : scan.output) flow.layout.push_back(read[slot]);
  NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::ScanOutput(scan));
  const double share = cardinalities_.ShareOf(input.filters);
  flow.pipeline.schemas.push_back(std::move(flows));
  flow.pipeline.estimates.push_back(
      {ValidEstimate(static_cast<double>(table.rows()) * share), ValidEstimate(share)});
  flow.pipeline.stage = builder_.AddStage({});
  if (table.has_record()) {
    flow.pipeline.source = plan::RecordScan{std::move(scan)};
  } else {
    flow.pipeline.source = plan::BlockScan{std::move(scan)};
  }
  return flow;
}

namespace {

/// Over columns of table 0.
std::vector<Expr> OfTheOnlyTable(std::vector<Expr> conditions) {
  for (Expr& condition : conditions) {
    std::vector<Expr*> open{&condition};
    while (!open.empty()) {
      Expr& e = *open.back();
      open.pop_back();
      if (e.op == Op::kColumn) e.column.table = 0;
      for (Expr& child : e.children) open.push_back(&child);
    }
  }
  return conditions;
}

}  // namespace

absl::Status TreeLowering::AddTables(JoinGraph& graph) {
  for (JoinGraph::Input& input : graph.inputs) {
    if (input.kind != JoinGraph::Kind::kTable) continue;
    std::shared_ptr<const proto::Table> stored = input.table;
    if (stored->has_record()) {
      std::vector<Expr> conditions;
      for (const Expr& condition : input.filters) {
        if (!plan::ColumnsOf(condition).empty()) conditions.push_back(condition);
      }
      NAM_ASSIGN_OR_RETURN(input.table,
                           options_.records->Prepare(stored, OfTheOnlyTable(std::move(conditions))));
      // Rows of a load of the transaction lie in another table.
      if (input.table->allocation() != stored->allocation()) stored = input.table;
      cardinalities_.SetTable(*input.node, input.table);
      prepared_tables_.push_back(static_cast<uint32_t>(builder_.tables().size()));
    }
    input.number = builder_.AddTable(std::move(stored));
  }
  return absl::OkStatus();
}

absl::StatusOr<Flow> TreeLowering::LowerTableScan(const Node& node, const ColumnSet& needed,
                                                  const std::vector<Expr>& conditions, int64_t rows_wanted) {
  const auto& scan = *node.As<lg::Scan>();
  NAM_CHECK(scan.table->has_record(), "columnar tables are stars");
  TransactionScan found{.conditions = OfTheOnlyTable(conditions),
                        .layout = std::make_shared<const partitioner::RecordLayout>(*scan.table),
                        .path = {},
                        .rows_wanted = rows_wanted};
  const bool wished = wish_.has_value() && wish_->relation == scan.relation;
  if (options_.records != nullptr) {
    sql::AccessWishes wishes{.snapshot = options_.records->snapshot()};
    if (wished) wishes.order = wish_->columns;
    found.path = sql::ChooseAccessPath(*scan.table, *found.layout, found.conditions, wishes);
  } else {
    found.path.ranges.emplace_back();
    for (const Expr& condition : found.conditions) found.path.filter.push_back(&condition);
  }
  if (wished) {
    wish_->met = found.path.ordered;
    if (!wish_->met) found.rows_wanted = -1;
  }
  std::vector<Expr> left;
  for (const Expr* condition : found.path.filter)
    left.push_back(conditions[static_cast<size_t>(condition - found.conditions.data())]);

  ColumnSet wanted = needed;
  AddColumns(left, wanted);
  plan::RecordScan source;
  found.table = source.table = builder_.AddTable(scan.table);
  Layout read;
  for (const Column& column : node.columns) {
    if (wanted.contains(column.ref)) read.push_back(column.ref);
  }
  std::sort(read.begin(), read.end());
  for (const ColumnRef column : read) {
    source.columns.push_back(static_cast<uint32_t>(column.column));
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(*scan.table, source.columns.back()));
    source.slots.push_back(std::move(slot));
  }
  NAM_ASSIGN_OR_RETURN(source.filters, OverSlots(left, read));
  source.output = SlotsWhere(read, needed);
  Flow flow;
  for (const uint32_t slot : source.output) flow.layout.push_back(read[slot]);
  NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::ScanOutput(source));
  auto rows = static_cast<double>(scan.table->rows());
  if (!found.path.keys.empty()) rows = static_cast<double>(found.path.keys.size());
  transaction_scans_.push_back(std::move(found));
  flow.pipeline.source = std::move(source);
  flow.pipeline.schemas.push_back(std::move(flows));
  flow.pipeline.estimates.push_back({rows, 1});
  flow.pipeline.stage = Flow::kSession;
  return flow;
}

absl::StatusOr<Flow> TreeLowering::LowerJoin(const Node& node, const ColumnSet& needed) {
  const auto& join = *node.As<lg::Join>();
  const Node *probe_side = &node.input(0), *build_side = &node.input(1);
  JoinKind kind = join.kind;
  // A right join is a left one from the other side, which servers can make alone.
  if (kind == JoinKind::kRight) {
    kind = JoinKind::kLeft;
    std::swap(probe_side, build_side);
  }
  const ColumnSet left = ColumnsBelow(*probe_side), right = ColumnsBelow(*build_side);
  JoinKeys keys = JoinKeysOf(join.conditions, left, right, cardinalities_);
  std::vector<Expr> compared = join.compared;
  bool null_aware = false;
  if (compared.size() == 1 && join.conditions.empty()) {
    // IN over one comparison: its key.
    JoinKeys of_in = JoinKeysOf(compared, left, right, cardinalities_);
    if (of_in.residuals.empty()) {
      keys = std::move(of_in);
      compared.clear();
      null_aware = kind == JoinKind::kMark;
    }
  }
  ColumnSet read = needed, below;
  AddColumns(compared, read);
  JoinOf out = JoinBy(kind, std::move(keys), read, below);
  out.null_aware = null_aware;
  out.mark = join.mark;
  out.compared = std::move(compared);
  NAM_ASSIGN_OR_RETURN(Flow build, Lower(*build_side, below));
  if (IsOfParts(build)) {
    if (auto first = LowerSemiJoinFirst(node, needed, build); first.has_value()) return *std::move(first);
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(*probe_side, below));
  return Join(std::move(out), std::move(flow), std::move(build));
}

std::optional<absl::StatusOr<Flow>> TreeLowering::LowerSemiJoinFirst(const Node& node,
                                                                     const ColumnSet& needed, Flow& build) {
  if (!CanBeWhole(build)) return std::nullopt;
  // The lowered input already has a name.
  lg::CteScan scan{.cte = -1 - static_cast<int>(common_tables_.size()), .fields = {}};
  std::vector<Column> columns;
  for (uint32_t i = 0; i < build.layout.size(); ++i) {
    const Column* column = lg::FindColumn(node.input(1).columns, build.layout[i]);
    if (column == nullptr) continue;
    scan.fields.push_back(i);
    columns.push_back(*column);
  }
  const int cte = scan.cte;
  const lg::NodePtr tree = WithSemiJoinFirst(node, lg::MakeNode(std::move(scan), std::move(columns)));
  if (tree == nullptr) return std::nullopt;
  common_tables_[cte] = ToParts(std::move(build));
  cardinalities_.SetRows(cte, common_tables_[cte].rows);
  return Lower(*tree, needed);
}

}  // namespace nam::optimizer
