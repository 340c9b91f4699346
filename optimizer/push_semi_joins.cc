#include "optimizer/push_semi_joins.h"

#include <algorithm>
#include <utility>

#include "optimizer/filtered_scan.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::Expr;
using plan::JoinKind;

namespace {

/// The table with the keys has less than this share of the rows of the largest one.
constexpr double kSmall = 0.5;

/// Scans, and what servers make of them in the stage that scans.
bool IsOfScans(const lg::Node& node) {
  const auto* join = node.As<lg::Join>();
  if (join != nullptr && join->kind != JoinKind::kInner) return false;
  if (join == nullptr && node.As<lg::Scan>() == nullptr && node.As<lg::Filter>() == nullptr &&
      node.As<lg::Project>() == nullptr) {
    return false;
  }
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const lg::NodePtr& input) { return IsOfScans(*input); });
}

/// Columns of the left input that the join compares.
lg::ColumnSet KeysOf(const lg::Node& node) {
  lg::ColumnSet keys;
  for (const Expr& condition : node.As<lg::Join>()->conditions) {
    for (const plan::ColumnRef column : plan::ColumnsOf(condition)) {
      if (lg::FindColumn(node.input(0).columns, column) != nullptr) keys.insert(column);
    }
  }
  return keys;
}

/// Of a tree of inner joins: the scan with the keys, and how many rows the largest one has.
struct Leaves {
  lg::NodePtr* with_keys = nullptr;
  double key_rows = 0, most_rows = 0;
};

/// False: something else is below.
bool Collect(lg::NodePtr& node, const lg::ColumnSet& keys, Leaves& leaves) {
  if (const std::optional<FilteredScan> scan = AsFilteredScan(*node); scan.has_value()) {
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
                     [&](lg::NodePtr& input) { return Collect(input, keys, leaves); });
}

void Push(lg::NodePtr& node) {
  for (lg::NodePtr& input : node->inputs) Push(input);
  const auto* join = node->As<lg::Join>();
  if (join == nullptr || join->dependent || !join->compared.empty()) return;
  if (join->kind != JoinKind::kSemi && join->kind != JoinKind::kAnti) return;
  if (IsOfScans(node->input(1))) return;
  const lg::ColumnSet keys = KeysOf(*node);
  Leaves leaves;
  if (keys.empty() || !Collect(node->inputs[0], keys, leaves) || leaves.with_keys == nullptr) return;
  // The scan that is the whole left input is its largest, too.
  if (leaves.key_rows >= kSmall * leaves.most_rows) return;
  lg::NodePtr left = std::move(node->inputs[0]);
  node->inputs[0] = std::move(*leaves.with_keys);
  lg::DeriveColumns(*node);
  *leaves.with_keys = std::move(node);
  node = std::move(left);
}

}  // namespace

void PushSemiJoins(lg::Query& query) {
  Push(query.root);
}

}  // namespace nam::optimizer
