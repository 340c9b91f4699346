#include "optimizer/push_filters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::Expr;
using plan::JoinKind;

namespace {

/// Takes those that look at columns of the node alone.
std::vector<Expr> TakeThoseOf(const lg::Node& node, std::vector<Expr>& conditions) {
  std::vector<Expr> taken, left;
  for (Expr& condition : conditions) {
    const std::vector<plan::ColumnRef> names = plan::ColumnsOf(condition);
    const bool all = !names.empty() && std::all_of(names.begin(), names.end(), [&](plan::ColumnRef name) {
      return lg::FindColumn(node.columns, name) != nullptr;
    });
    (all ? taken : left).push_back(std::move(condition));
  }
  conditions = std::move(left);
  return taken;
}

/// Whether a row of the left input that does not meet a condition on it may be left out before the join.
bool FiltersLeft(JoinKind kind) {
  return kind != JoinKind::kRight && kind != JoinKind::kFull;
}

void Push(lg::NodePtr& node, std::vector<Expr> conditions) {
  if (auto* filter = node->As<lg::Filter>(); filter != nullptr) {
    conditions.insert(conditions.end(), std::make_move_iterator(filter->conditions.begin()),
                      std::make_move_iterator(filter->conditions.end()));
    lg::NodePtr input = std::move(node->inputs[0]);
    node = std::move(input);
    return Push(node, std::move(conditions));
  }
  if (auto* join = node->As<lg::Join>(); join != nullptr && !join->dependent) {
    const bool inner = join->kind == JoinKind::kInner;
    if (inner) {
      conditions.insert(conditions.begin(), std::make_move_iterator(join->conditions.begin()),
                        std::make_move_iterator(join->conditions.end()));
    }
    std::vector<Expr> left, right;
    if (FiltersLeft(join->kind)) left = TakeThoseOf(node->input(0), conditions);
    if (inner) {
      right = TakeThoseOf(node->input(1), conditions);
      join->conditions = std::exchange(conditions, {});
    }
    Push(node->inputs[0], std::move(left));
    Push(node->inputs[1], std::move(right));
  } else {
    for (lg::NodePtr& input : node->inputs) Push(input, {});
  }
  if (!conditions.empty()) node = lg::MakeFilter(std::move(node), std::move(conditions));
}

}  // namespace

void PushFilters(lg::Query& query) {
  Push(query.root, {});
}

}  // namespace nam::optimizer
