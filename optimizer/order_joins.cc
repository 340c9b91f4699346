#include "optimizer/order_joins.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/alternatives.h"
#include "optimizer/filtered_scan.h"
#include "optimizer/tree_lowering.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::Expr;
using plan::JoinKind;

namespace {

bool IsInnerJoin(const lg::Node& node) {
  const auto* join = node.As<lg::Join>();
  return join != nullptr && join->kind == JoinKind::kInner && !join->dependent;
}

/// Inputs and conditions of inner joins.
struct JoinBlock {
  std::vector<lg::NodePtr> inputs;  // in FROM's order
  std::vector<Expr> conditions;
};

/// Whether inner joins begin below filters.
bool JoinsBelow(const lg::Node& node) {
  return IsInnerJoin(node) || (node.As<lg::Filter>() != nullptr && JoinsBelow(node.input()));
}

size_t CountInputs(const lg::Node& node) {
  if (!JoinsBelow(node)) return 1;
  size_t inputs = 0;
  for (const lg::NodePtr& input : node.inputs) inputs += CountInputs(*input);
  return inputs;
}

/// Whether all conditions of the block always have a value, and an input is no table.
bool IsWorthOrdering(const lg::Node& node, bool& other_than_table) {
  if (!JoinsBelow(node)) {
    other_than_table |= !AsFilteredScan(node).has_value();
    return true;
  }
  const auto* filter = node.As<lg::Filter>();
  const std::vector<Expr>& conditions =
      filter != nullptr ? filter->conditions : node.As<lg::Join>()->conditions;
  return std::none_of(conditions.begin(), conditions.end(), MayFail) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const lg::NodePtr& input) { return IsWorthOrdering(*input, other_than_table); });
}

void Take(lg::NodePtr node, JoinBlock& block) {
  if (!JoinsBelow(*node)) {
    block.inputs.push_back(std::move(node));
    return;
  }
  auto* filter = node->As<lg::Filter>();
  std::vector<Expr>& conditions = filter != nullptr ? filter->conditions : node->As<lg::Join>()->conditions;
  std::move(conditions.begin(), conditions.end(), std::back_inserter(block.conditions));
  for (lg::NodePtr& input : node->inputs) Take(std::move(input), block);
}

bool NamesColumnOf(const Expr& expr, const lg::Node& node) {
  lg::ColumnSet columns;
  for (const lg::Column& column : node.columns) columns.insert(column.ref);
  return lg::Names(expr, columns);
}

/// How a condition connects two inputs.
enum class Connection : uint8_t { kNone, kCondition, kEquality };

class Ordering {
 public:
  explicit Ordering(JoinBlock block) : block_(std::move(block)) {}

  lg::NodePtr Run() {
    JoinTables();
    size_t first = 0;
    for (size_t i = 1; i < block_.inputs.size(); ++i) {
      if (RowsOf(i) > RowsOf(first)) first = i;
    }
    lg::NodePtr joined = Remove(first);
    while (!block_.inputs.empty()) joined = Join(std::move(joined), Remove(Next(*joined)));
    return lg::MakeFilter(std::move(joined), std::move(block_.conditions));
  }

 private:
  double RowsOf(size_t input) const { return EstimatedRows(*block_.inputs[input]); }

  lg::NodePtr Remove(size_t input) {
    lg::NodePtr node = std::move(block_.inputs[input]);
    block_.inputs.erase(block_.inputs.begin() + static_cast<std::ptrdiff_t>(input));
    return node;
  }

  Connection ConnectionOf(const lg::Node& a, const lg::Node& b) const {
    Connection best = Connection::kNone;
    for (const Expr& condition : block_.conditions) {
      if (!NamesColumnOf(condition, a) || !NamesColumnOf(condition, b)) continue;
      best = std::max(best, Equates(condition, a, b) ? Connection::kEquality : Connection::kCondition);
    }
    return best;
  }

  /// Whether it is an equality with a side for each.
  static bool Equates(const Expr& condition, const lg::Node& a, const lg::Node& b) {
    if (condition.op != plan::Op::kEqual) return false;
    const Expr &left = condition.children[0], &right = condition.children[1];
    return (IsConditionOn(a.columns, left) && IsConditionOn(b.columns, right)) ||
           (IsConditionOn(b.columns, left) && IsConditionOn(a.columns, right));
  }

  /// Joins tables that equalities of columns connect. Their joins take the place of the first.
  void JoinTables() {
    std::vector<bool> table;
    for (const lg::NodePtr& input : block_.inputs) table.push_back(AsFilteredScan(*input).has_value());
    for (size_t i = 0; i < block_.inputs.size(); ++i) {
      for (size_t j = i + 1; table[i] && j < block_.inputs.size();) {
        if (!table[j] || !Star(*block_.inputs[i], *block_.inputs[j])) {
          ++j;
          continue;
        }
        table.erase(table.begin() + static_cast<std::ptrdiff_t>(j));
        lg::NodePtr other = Remove(j);
        block_.inputs[i] = Join(std::move(block_.inputs[i]), std::move(other));
        j = i + 1;  // those that were not connected before may be now
      }
    }
  }

  bool Star(const lg::Node& a, const lg::Node& b) const {
    return std::any_of(block_.conditions.begin(), block_.conditions.end(), [&](const Expr& condition) {
      return plan::EquatesTables(condition) && Equates(condition, a, b);
    });
  }

  /// The input to join next.
  size_t Next(const lg::Node& joined) const {
    size_t best = 0;
    Connection of_best = ConnectionOf(joined, *block_.inputs[0]);
    for (size_t i = 1; i < block_.inputs.size(); ++i) {
      const Connection connection = ConnectionOf(joined, *block_.inputs[i]);
      if (connection < of_best || (connection == of_best && RowsOf(i) >= RowsOf(best))) continue;
      best = i;
      of_best = connection;
    }
    return best;
  }

  /// With all conditions that name nothing else.
  lg::NodePtr Join(lg::NodePtr a, lg::NodePtr b) {
    std::vector<lg::Column> columns = a->columns;
    columns.insert(columns.end(), b->columns.begin(), b->columns.end());
    std::vector<Expr> mine, left;
    for (Expr& condition : block_.conditions)
      (IsConditionOn(columns, condition) ? mine : left).push_back(std::move(condition));
    block_.conditions = std::move(left);
    return lg::MakeJoin(JoinKind::kInner, std::move(a), std::move(b), std::move(mine));
  }

  JoinBlock block_;
};

/// Whether columns are known by their places above the node, and not by their names.
bool GivesPlaces(const lg::Node& node, bool above) {
  if (node.As<lg::Project>() != nullptr || node.As<lg::Aggregate>() != nullptr) return false;
  return above || node.As<lg::SetOperation>() != nullptr || node.As<lg::With>() != nullptr;
}

/// `places`: the order of its columns counts.
void Order(lg::NodePtr& node, bool places) {
  constexpr size_t kFewest = 3;  // of two the sides are chosen when they are joined
  bool other_than_table = false;
  if (JoinsBelow(*node) && CountInputs(*node) >= kFewest && IsWorthOrdering(*node, other_than_table) &&
      other_than_table) {
    const std::vector<lg::Column> columns = node->columns;
    JoinBlock block;
    Take(std::move(node), block);
    for (lg::NodePtr& input : block.inputs) Order(input, false);
    node = Ordering(std::move(block)).Run();
    if (!places) return;
    lg::Project project;
    for (const lg::Column& column : columns) project.outputs.push_back(lg::MakeColumn(column));
    node = lg::MakeNode(std::move(project), columns, std::move(node));
    return;
  }
  for (lg::NodePtr& input : node->inputs) Order(input, GivesPlaces(*node, places));
}

}  // namespace

void OrderJoins(lg::Query& query) {
  Order(query.root, true);
  lg::DeriveAllColumns(*query.root);
}

}  // namespace nam::optimizer
