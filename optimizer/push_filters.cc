#include "optimizer/push_filters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/alternatives.h"
#include "optimizer/join_sides.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;

namespace {

/// Conditions do not grow beyond this when names are replaced by what they stand for: doubled at each of many
/// levels, they would fill memory.
constexpr size_t kMostNodes = 256;

/// Takes the conditions on columns of the node alone.
std::vector<Expr> TakeThoseOf(const lg::Node& node, std::vector<Expr>& conditions) {
  std::vector<Expr> taken, left;
  for (Expr& condition : conditions) {
    const bool all = IsConditionOn(node.columns, condition);
    (all ? taken : left).push_back(std::move(condition));
  }
  conditions = std::move(left);
  return taken;
}

/// Takes those that `below` turns into conditions on the input. One that may fail does not pass one that
/// stays, which may guard it.
template <typename Below>
std::vector<Expr> TakeBelow(std::vector<Expr>& conditions, const Below& below) {
  std::vector<Expr> taken, left;
  for (Expr& condition : conditions) {
    std::optional<Expr> moved;
    if (left.empty() || !MayFail(condition)) moved = below(condition);
    if (moved.has_value()) {
      taken.push_back(*std::move(moved));
    } else {
      left.push_back(std::move(condition));
    }
  }
  conditions = std::move(left);
  return taken;
}

/// The expressions below a node for its columns.
using Meanings = std::map<ColumnRef, const Expr*>;

bool Replace(const Meanings& meanings, Expr& expr) {
  if (expr.op == Op::kColumn) {
    const auto found = meanings.find(expr.column);
    // Comparisons of texts depend on their types, which must not change.
    if (found == meanings.end() || found->second->type != expr.type) return false;
    expr = *found->second;
    return true;
  }
  return std::all_of(expr.children.begin(), expr.children.end(),
                     [&](Expr& child) { return Replace(meanings, child); });
}

/// The condition on the input; nullopt if it has no form there.
std::optional<Expr> ConditionBelow(const Meanings& meanings, const Expr& condition) {
  if (plan::IsConstant(condition)) return std::nullopt;
  Expr below = condition;
  if (!Replace(meanings, below)) return std::nullopt;
  if (plan::CountNodes(below) > std::max(kMostNodes, plan::CountNodes(condition))) return std::nullopt;
  if (!plan::IsConstant(below)) return below;
  const absl::StatusOr<Value> value = plan::Evaluate(below, plan::Resolver());
  if (!value.ok()) return std::nullopt;
  return plan::MakeLiteral(Value::Bool(!value->null && value->number != 0), condition.position);
}

void Push(lg::NodePtr& node, std::vector<Expr> conditions);

/// Whether the node or one below it filters by this condition.
bool Filters(const lg::Node& node, const Expr& condition) {
  const auto has = [&](const std::vector<Expr>& conditions) {
    return std::any_of(conditions.begin(), conditions.end(),
                       [&](const Expr& other) { return plan::SameExpr(other, condition); });
  };
  if (const auto* filter = node.As<lg::Filter>(); filter != nullptr && has(filter->conditions)) return true;
  if (const auto* join = node.As<lg::Join>(); join != nullptr && has(join->conditions)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const lg::NodePtr& input) { return Filters(*input, condition); });
}

/// Adds the conditions on one input alone that a join implies.
void AddImplied(const lg::Node& input, const std::vector<Expr>& conditions, std::vector<Expr>& of_input) {
  for (const Expr& condition : conditions) {
    std::optional<Expr> implied = ImpliedOn(input.columns, condition);
    if (implied.has_value() && !Filters(input, *implied)) of_input.push_back(*std::move(implied));
  }
}

void PushIntoJoin(lg::Node& node, std::vector<Expr>& conditions) {
  auto& join = *node.As<lg::Join>();
  const bool inner = join.kind == JoinKind::kInner;
  if (inner) {
    conditions.insert(conditions.begin(), std::make_move_iterator(join.conditions.begin()),
                      std::make_move_iterator(join.conditions.end()));
    FactorAlternatives(conditions);
  }
  std::vector<Expr> left, right;
  if (FiltersLeft(join.kind)) left = TakeThoseOf(node.input(0), conditions);
  if (inner) {
    right = TakeThoseOf(node.input(1), conditions);
    AddImplied(node.input(0), conditions, left);
    AddImplied(node.input(1), conditions, right);
    join.conditions = std::exchange(conditions, {});
  } else if (FiltersLeft(join.kind)) {
    // Rows without a match.
    right = TakeThoseOf(node.input(1), join.conditions);
  }
  Push(node.inputs[0], std::move(left));
  Push(node.inputs[1], std::move(right));
}

void PushIntoProject(lg::Node& node, std::vector<Expr>& conditions) {
  const auto& outputs = node.As<lg::Project>()->outputs;
  Meanings meanings;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!MayFail(outputs[i])) meanings[node.columns[i].ref] = &outputs[i];
  }
  Push(node.inputs[0],
       TakeBelow(conditions, [&](const Expr& condition) { return ConditionBelow(meanings, condition); }));
}

void PushIntoUnion(lg::Node& node, std::vector<Expr>& conditions) {
  std::vector<std::vector<Expr>> columns;
  std::vector<Meanings> meanings;
  for (const lg::NodePtr& input : node.inputs) {
    std::vector<Expr>& of_input = columns.emplace_back();
    for (const lg::Column& column : input->columns) of_input.push_back(lg::MakeColumn(column));
  }
  for (const std::vector<Expr>& of_input : columns) {
    Meanings& to = meanings.emplace_back();
    for (size_t i = 0; i < of_input.size(); ++i) to[node.columns[i].ref] = &of_input[i];
  }
  std::vector<std::vector<Expr>> below(node.inputs.size());
  TakeBelow(conditions, [&](const Expr& condition) -> std::optional<Expr> {
    std::vector<Expr> of_inputs;
    for (const Meanings& to : meanings) {
      std::optional<Expr> moved = ConditionBelow(to, condition);
      if (!moved.has_value()) return std::nullopt;
      of_inputs.push_back(*std::move(moved));
    }
    for (size_t i = 0; i < below.size(); ++i) below[i].push_back(std::move(of_inputs[i]));
    return condition;
  });
  for (size_t i = 0; i < below.size(); ++i) Push(node.inputs[i], std::move(below[i]));
}

/// Passes conditions on these columns through a node that leaves each row as it is.
void PushPast(lg::Node& node, std::vector<Expr>& conditions, const std::vector<lg::Column>& columns) {
  Push(node.inputs[0], TakeBelow(conditions, [&](const Expr& condition) {
         return IsConditionOn(columns, condition) ? std::optional(condition) : std::nullopt;
       }));
}

/// Columns that are equal in all rows of a partition.
std::vector<lg::Column> PartitionColumns(const lg::Node& node) {
  std::vector<lg::Column> columns;
  for (const Expr& key : node.As<lg::Window>()->partition) {
    if (key.op == Op::kColumn) columns.push_back({key.column, "", key.type, true});
  }
  return columns;
}

void Push(lg::NodePtr& node, std::vector<Expr> conditions) {
  if (auto* filter = node->As<lg::Filter>(); filter != nullptr) {
    // The inner ones come first: they may guard the others.
    conditions.insert(conditions.begin(), std::make_move_iterator(filter->conditions.begin()),
                      std::make_move_iterator(filter->conditions.end()));
    lg::NodePtr input = std::move(node->inputs[0]);
    node = std::move(input);
    return Push(node, std::move(conditions));
  }
  std::erase_if(conditions, [](const Expr& condition) { return plan::IsBoolLiteral(condition, true); });
  const auto* join = node->As<lg::Join>();
  const auto* distinct = node->As<lg::Distinct>();
  const auto* set = node->As<lg::SetOperation>();
  if (join != nullptr && !join->dependent) {
    PushIntoJoin(*node, conditions);
  } else if (node->As<lg::Project>() != nullptr) {
    PushIntoProject(*node, conditions);
  } else if (node->As<lg::Window>() != nullptr) {
    PushPast(*node, conditions, PartitionColumns(*node));
  } else if (node->As<lg::Sort>() != nullptr || node->As<lg::Series>() != nullptr ||
             (distinct != nullptr && distinct->on.empty())) {
    const std::vector<lg::Column> columns = node->input().columns;
    PushPast(*node, conditions, columns);
  } else if (set != nullptr && set->kind == lg::SetOperation::Kind::kUnion && set->all) {
    PushIntoUnion(*node, conditions);
  } else if (node->As<lg::With>() != nullptr) {
    // A definition replaces its only scan, unless the CTE must be computed whole.
    Push(node->inputs[0], {});
    Push(node->inputs[1], std::exchange(conditions, {}));
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
