#include "optimizer/push_semi_joins.h"

#include <algorithm>
#include <utility>

#include "optimizer/alternatives.h"
#include "optimizer/filtered_scan.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::Expr;
using plan::JoinKind;

namespace {

/// The table with the keys has less than this share of the rows of the largest one.
constexpr double kSmall = 0.5;

/// Columns of the left input that the join compares.
lg::ColumnSet ComparedColumnsOf(const lg::Node& node) {
  lg::ColumnSet keys;
  for (const Expr& condition : node.As<lg::Join>()->conditions) {
    for (const plan::ColumnRef column : plan::ColumnsOf(condition)) {
      if (lg::FindColumn(node.input(0).columns, column) != nullptr) keys.insert(column);
    }
  }
  return keys;
}

/// The leaves of a tree of inner joins: the scan with the keys, and the rows of the largest scan.
struct Leaves {
  lg::NodePtr* with_keys = nullptr;
  double key_rows = 0, most_rows = 0;
};

/// False: something else is below.
bool CollectLeaves(lg::NodePtr& node, const lg::ColumnSet& keys, Leaves& leaves) {
  if (const std::optional<FilteredScan> scan = AsFilteredScan(*node); scan.has_value()) {
    if (scan->scan->table->has_record()) return false;
    leaves.most_rows = std::max(leaves.most_rows, scan->rows);
    const bool has_all = std::all_of(keys.begin(), keys.end(), [&](plan::ColumnRef column) {
      return lg::FindColumn(node->columns, column) != nullptr;
    });
    if (!has_all) return true;
    leaves.with_keys = &node;
    leaves.key_rows = scan->rows;
    return true;
  }
  const auto* join = node->As<lg::Join>();
  if (node->As<lg::Filter>() == nullptr && (join == nullptr || join->kind != JoinKind::kInner)) return false;
  return std::all_of(node->inputs.begin(), node->inputs.end(),
                     [&](lg::NodePtr& input) { return CollectLeaves(input, keys, leaves); });
}

}  // namespace

lg::NodePtr WithSemiJoinFirst(const lg::Node& node, lg::NodePtr right) {
  const lg::Join& join = *node.As<lg::Join>();
  if (!join.compared.empty() || (join.kind != JoinKind::kSemi && join.kind != JoinKind::kAnti))
    return nullptr;
  // The inner joins may guard it.
  if (std::any_of(join.conditions.begin(), join.conditions.end(), MayFail)) return nullptr;
  const lg::ColumnSet keys = ComparedColumnsOf(node);
  lg::NodePtr tree = lg::Clone(node.input(0));
  Leaves leaves;
  if (keys.empty() || !CollectLeaves(tree, keys, leaves) || leaves.with_keys == nullptr) return nullptr;
  // A scan that is the whole left input is its largest, too.
  if (leaves.key_rows >= kSmall * leaves.most_rows) return nullptr;
  *leaves.with_keys =
      lg::MakeJoin(join.kind, std::move(*leaves.with_keys), std::move(right), join.conditions);
  return tree;
}

}  // namespace nam::optimizer
