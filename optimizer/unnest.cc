#include "optimizer/unnest.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "optimizer/alternatives.h"
#include "optimizer/join_sides.h"
#include "optimizer/unnest_domain.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {
namespace {

using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;
using plan::logical::Aggregate;
using plan::logical::Column;
using plan::logical::ColumnSet;
using plan::logical::CteScan;
using plan::logical::DeriveColumns;
using plan::logical::Distinct;
using plan::logical::Filter;
using plan::logical::FindColumn;
using plan::logical::FreeColumns;
using plan::logical::Join;
using plan::logical::MakeColumn;
using plan::logical::MakeFilter;
using plan::logical::MakeNode;
using plan::logical::Names;
using plan::logical::Node;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::Query;
using plan::logical::Series;
using plan::logical::Sort;
using plan::logical::Values;
using plan::logical::With;

bool IsOneRow(const Node& node) {
  const auto* values = node.As<Values>();
  return values != nullptr && node.columns.empty() && values->rows.size() == 1;
}

bool IsPlainDistinct(const Node& node) {
  const auto* distinct = node.As<Distinct>();
  return distinct != nullptr && distinct->on.empty();
}

/// Moves conditions that name `outer` from below a node to its user; their columns stay visible.
class PullUp {
 public:
  /// `only_existence`: the user ignores how often a row occurs.
  PullUp(const ColumnSet& outer, bool only_existence) : outer_(outer), only_existence_(only_existence) {}

  std::vector<Expr> From(NodePtr& node) {
    while (node->As<Sort>() != nullptr || (only_existence_ && IsPlainDistinct(*node)))
      node = NodePtr(std::move(node->inputs[0]));
    std::vector<Expr> pulled;
    if (auto* filter = node->As<Filter>()) {
      pulled = From(node->inputs[0]);
      Take(filter->conditions, pulled);
      if (filter->conditions.empty()) node = NodePtr(std::move(node->inputs[0]));
    } else if (node->As<Project>() != nullptr) {
      pulled = From(node->inputs[0]);
      Expose(*node, pulled);
    } else if (auto* join = node->As<Join>();
               join != nullptr && !join->dependent && FiltersLeft(join->kind)) {
      pulled = From(node->inputs[0]);
      if (join->kind == JoinKind::kInner) {
        for (Expr& condition : From(node->inputs[1])) pulled.push_back(std::move(condition));
        Take(join->conditions, pulled);
      }
    } else if (node->As<With>() != nullptr) {
      pulled = From(node->inputs[1]);
    }
    DeriveColumns(*node);
    return pulled;
  }

 private:
  void Take(std::vector<Expr>& conditions, std::vector<Expr>& pulled) const {
    const auto stays =
        std::stable_partition(conditions.begin(), conditions.end(),
                              [&](const Expr& condition) { return !Names(condition, outer_); });
    for (auto it = stays; it != conditions.end(); ++it) pulled.push_back(std::move(*it));
    conditions.erase(stays, conditions.end());
  }

  static void Expose(Node& node, const std::vector<Expr>& pulled) {
    for (const Expr& condition : pulled) {
      for (const ColumnRef ref : ColumnsOf(condition)) {
        const Column* column = FindColumn(node.input().columns, ref);
        if (column == nullptr || FindColumn(node.columns, ref) != nullptr) continue;
        node.As<Project>()->outputs.push_back(MakeColumn(*column));
        node.columns.push_back(*column);
      }
    }
  }

  const ColumnSet& outer_;
  const bool only_existence_;
};

/// The sides of `inner = outer`, where groups by the inner one are what the comparison distinguishes.
struct KeyEquality {
  Expr condition;
  size_t inner = 0;
};

std::optional<KeyEquality> KeyEqualityOf(const Expr& condition, const ColumnSet& outer,
                                         const ColumnSet& inner) {
  if (condition.op != Op::kEqual) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Expr &own = condition.children[i], &other = condition.children[1 - i];
    if (Names(own, outer) || Names(other, inner) || !Names(own, inner)) continue;
    if (plan::IgnoresBlanks(own.type, other.type)) continue;
    return KeyEquality{condition, i};
  }
  return std::nullopt;
}

class Unnester {
 public:
  explicit Unnester(Query& query) : query_(query) {}

  absl::Status Run() {
    if (!HasWork(*query_.root)) return absl::OkStatus();
    DeriveAllColumns(*query_.root);
    CountUses(*query_.root);
    FilterByJoins(query_.root);
    DeriveAllColumns(*query_.root);
    Sink(query_.root);
    NAM_RETURN_IF_ERROR(Visit(query_.root));
    DeriveAllColumns(*query_.root);
    return absl::OkStatus();
  }

 private:
  static bool HasWork(const Node& node) {
    const auto* join = node.As<Join>();
    return (join != nullptr && (join->dependent || join->kind == JoinKind::kMark)) ||
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [](const NodePtr& input) { return HasWork(*input); });
  }

  // ─── Marks that only filter

  void CountUses(const Node& node) {
    ForExpressions(node, [&](const Expr& expr) { CountUses(expr); });
    for (const NodePtr& input : node.inputs) CountUses(*input);
  }
  void CountUses(const Expr& expr) {
    if (expr.op == Op::kColumn) ++uses_[expr.column];
    for (const Expr& child : expr.children) CountUses(child);
  }

  void FilterByJoins(NodePtr& node) {
    if (auto* filter = node->As<Filter>()) {
      std::erase_if(filter->conditions,
                    [&](const Expr& condition) { return FilterByJoin(*node, condition); });
      if (filter->conditions.empty()) {
        node = NodePtr(std::move(node->inputs[0]));
        return FilterByJoins(node);
      }
    }
    for (NodePtr& input : node->inputs) FilterByJoins(input);
  }

  /// Whether a semi or anti join below replaces the condition.
  bool FilterByJoin(Node& filter, const Expr& condition) {
    const bool negated = condition.op == Op::kNot;
    const Expr& mark = negated ? condition.children[0] : condition;
    if (mark.op != Op::kColumn || uses_[mark.column] != 1) return false;
    Node* node = FindMark(filter.input(), mark.column);
    if (node == nullptr) return false;
    Join& join = *node->As<Join>();
    if (negated) {
      join.kind = MayCompareNull(*node) ? JoinKind::kNullAwareAnti : JoinKind::kAnti;
      if (join.kind == JoinKind::kNullAwareAnti) return true;
    } else {
      join.kind = JoinKind::kSemi;
    }
    for (Expr& compared : join.compared) join.conditions.push_back(std::move(compared));
    join.compared.clear();
    return true;
  }

  static bool MayCompareNull(const Node& node) {
    std::vector<Column> columns = node.input(0).columns;
    columns.insert(columns.end(), node.input(1).columns.begin(), node.input(1).columns.end());
    const auto& compared = node.As<Join>()->compared;
    return std::any_of(compared.begin(), compared.end(),
                       [&](const Expr& expr) { return plan::logical::MayBeNull(expr, columns); });
  }

  /// The join that makes the mark, if `node` would also drop the rows that it would drop.
  static Node* FindMark(Node& node, ColumnRef mark) {
    if (node.As<Filter>() != nullptr) return FindMark(node.input(), mark);
    if (node.As<With>() != nullptr) return FindMark(node.input(1), mark);
    auto* join = node.As<Join>();
    if (join == nullptr || !FiltersLeft(join->kind)) return nullptr;
    if (join->kind == JoinKind::kMark && join->mark == mark) return &node;
    Node* found = FindMark(node.input(0), mark);
    return found == nullptr && join->kind == JoinKind::kInner ? FindMark(node.input(1), mark) : found;
  }

  // ─── Subqueries of one side

  /// Joins that keep or drop a row of the left input, or add a column to it.
  static bool SaysOfLeft(JoinKind kind) {
    return kind == JoinKind::kSemi || kind == JoinKind::kAnti || kind == JoinKind::kNullAwareAnti ||
           kind == JoinKind::kMark || kind == JoinKind::kSingle;
  }

  /// Whether the join reads columns of `node`.
  static bool LooksAt(const Node& join, const Node& node) {
    const ColumnSet columns = ColumnsIn(node);
    const Join& parts = *join.As<Join>();
    const auto names = [&](const Expr& expr) { return Names(expr, columns); };
    if (std::any_of(parts.conditions.begin(), parts.conditions.end(), names)) return true;
    if (std::any_of(parts.compared.begin(), parts.compared.end(), names)) return true;
    const ColumnSet free = FreeColumns(join.input(1));
    return std::any_of(free.begin(), free.end(), [&](ColumnRef ref) { return columns.count(ref) > 0; });
  }

  /// Whether it may fail for a row of the left input that an earlier condition would have dropped.
  static bool MayFailOfLeft(const Node& join) {
    const ColumnSet left = ColumnsIn(join.input(0));
    bool may_fail = false;
    const auto look = [&](const Expr& expr) { may_fail = may_fail || (Names(expr, left) && MayFail(expr)); };
    ForExpressions(join, look);
    const std::function<void(const Node&)> below = [&](const Node& node) {
      ForExpressions(node, look);
      for (const NodePtr& input : node.inputs) below(*input);
    };
    below(join.input(1));
    return may_fail;
  }

  /// A left join has each row of its left input, perhaps many times: a subquery about that row alone is
  /// evaluated first. So is one if the joined input is one value for all rows.
  ///
  ///     semi(left(A, B), Q)  ──►  left(semi(A, Q), B)
  static void Sink(NodePtr& node) {
    for (NodePtr& input : node->inputs) Sink(input);
    const auto* subquery = node->As<Join>();
    if (subquery == nullptr || !SaysOfLeft(subquery->kind)) return;
    const auto* outer = node->input(0).As<Join>();
    if (outer == nullptr || outer->dependent) return;
    const bool one_value = outer->kind == JoinKind::kSingle && subquery->kind != JoinKind::kSingle;
    if (outer->kind != JoinKind::kLeft && !one_value) return;
    if (LooksAt(*node, node->input(0).input(1)) || MayFailOfLeft(*node)) return;
    NodePtr join = std::move(node->inputs[0]);
    node->inputs[0] = std::move(join->inputs[0]);
    join->inputs[0] = std::move(node);
    node = std::move(join);
    Sink(node->inputs[0]);
    DeriveColumns(*node->inputs[0]);
    DeriveColumns(*node);
  }

  // ─── Dependent joins

  /// Visits inner joins first: an eliminated one contains no dependent join.
  absl::Status Visit(NodePtr& node) {
    for (NodePtr& input : node->inputs) NAM_RETURN_IF_ERROR(Visit(input));
    if (auto* join = node->As<Join>(); join != nullptr && join->dependent)
      NAM_RETURN_IF_ERROR(Eliminate(node));
    DeriveColumns(*node);
    return absl::OkStatus();
  }

  absl::Status Eliminate(NodePtr& node) {
    if (AsProjection(node) || AsSeries(node) || AsGroups(node)) return absl::OkStatus();
    Join& join = *node->As<Join>();
    const ColumnSet outer = ColumnsIn(node->input(0));
    const bool existence = join.kind == JoinKind::kMark || join.kind == JoinKind::kSemi ||
                           join.kind == JoinKind::kAnti || join.kind == JoinKind::kNullAwareAnti;
    if (existence && join.compared.empty() && join.conditions.empty()) {  // EXISTS reads no column
      NodePtr& right = node->inputs[1];
      while (right->As<Project>() != nullptr || right->As<Sort>() != nullptr || IsPlainDistinct(*right))
        right = NodePtr(std::move(right->inputs[0]));
    }
    for (Expr& condition : PullUp(outer, existence).From(node->inputs[1]))
      join.conditions.push_back(std::move(condition));
    std::vector<Column> named;
    for (const ColumnRef ref : FreeColumns(node->input(1))) {
      if (const Column* column = FindColumn(node->input(0).columns, ref)) named.push_back(*column);
    }
    if (!named.empty()) return PushDown(node, std::move(named));
    join.dependent = false;
    DeriveColumns(*node);
    return absl::OkStatus();
  }

  /// (SELECT expression) beside its left input is an expression over it.
  static bool AsProjection(NodePtr& node) {
    const Join& join = *node->As<Join>();
    const auto* computed = node->input(1).As<Project>();
    if (computed == nullptr || !IsOneRow(node->input(1).input()) || !join.conditions.empty()) return false;
    if (join.kind != JoinKind::kSingle && join.kind != JoinKind::kLeft && join.kind != JoinKind::kInner)
      return false;
    AddOutputs(node->inputs[0], *computed, node->input(1).columns);
    node = NodePtr(std::move(node->inputs[0]));
    return true;
  }

  /// A series beside its left input repeats the rows of it.
  static bool AsSeries(NodePtr& node) {
    const Join& join = *node->As<Join>();
    if (join.kind != JoinKind::kInner || node->input(1).As<Series>() == nullptr ||
        !IsOneRow(node->input(1).input())) {
      return false;
    }
    std::vector<Expr> conditions = join.conditions;
    NodePtr series = std::move(node->inputs[1]);
    series->inputs[0] = std::move(node->inputs[0]);
    DeriveColumns(*series);
    node = MakeFilter(std::move(series), std::move(conditions));
    return true;
  }

  /// Puts a projection on the node that adds these columns to its own.
  static void AddOutputs(NodePtr& node, const Project& added, const std::vector<Column>& names) {
    Project project;
    std::vector<Column> columns = node->columns;
    for (const Column& column : columns) project.outputs.push_back(MakeColumn(column));
    for (size_t i = 0; i < names.size(); ++i) {
      if (FindColumn(columns, names[i].ref) != nullptr) continue;
      project.outputs.push_back(added.outputs[i]);
      columns.push_back(names[i]);
    }
    node = MakeNode(std::move(project), std::move(columns), std::move(node));
  }

  /// A scalar aggregate over `inner = outer`: groups by the inner sides, which the left input looks up.
  bool AsGroups(NodePtr& node) {
    const Join& join = *node->As<Join>();
    if (join.kind != JoinKind::kSingle && join.kind != JoinKind::kLeft && join.kind != JoinKind::kInner)
      return false;
    if (join.kind != JoinKind::kInner && !join.conditions.empty()) return false;
    NodePtr* place = &node->inputs[1];
    while ((*place)->As<Project>() != nullptr) place = &(*place)->inputs[0];
    auto* aggregate = (*place)->As<Aggregate>();
    if (aggregate == nullptr || !aggregate->keys.empty() || !aggregate->sets.empty()) return false;
    const ColumnSet outer = ColumnsIn(node->input(0));
    NodePtr& rows = (*place)->inputs[0];
    std::vector<Expr> pulled = PullUp(outer, false).From(rows);
    const std::optional<std::vector<KeyEquality>> keys = KeysOf(**place, pulled, outer);
    if (!keys.has_value()) {
      rows = MakeFilter(std::move(rows), std::move(pulled));
      return false;
    }
    std::vector<Expr> conditions = join.conditions;
    NodePtr grouped = std::move(*place);
    const std::vector<Column> results = grouped->columns;
    NodePtr joined = JoinGroups(std::move(node->inputs[0]), std::move(grouped), *keys, results);
    std::vector<NodePtr> projections;
    for (NodePtr below = std::move(node->inputs[1]); below != nullptr;) {
      NodePtr next = std::move(below->inputs[0]);
      projections.push_back(std::move(below));
      below = std::move(next);
    }
    for (auto it = projections.rbegin(); it != projections.rend(); ++it)
      AddOutputs(joined, *(*it)->As<Project>(), (*it)->columns);
    node = MakeFilter(std::move(joined), std::move(conditions));
    return true;
  }

  /// The keys to group by; nullopt if the aggregate has further correlation.
  static std::optional<std::vector<KeyEquality>> KeysOf(const Node& aggregate,
                                                        const std::vector<Expr>& pulled,
                                                        const ColumnSet& outer) {
    const ColumnSet inner = ColumnsIn(aggregate.input());
    for (const ColumnRef ref : FreeColumns(aggregate)) {
      if (outer.count(ref) > 0) return std::nullopt;
    }
    std::vector<KeyEquality> keys;
    for (const Expr& condition : pulled) {
      std::optional<KeyEquality> key = KeyEqualityOf(condition, outer, inner);
      if (!key.has_value()) return std::nullopt;
      keys.push_back(*std::move(key));
    }
    return keys;
  }

  /// left ⟕ groups, with `results` as the aggregates' columns: counts of missing groups are 0.
  NodePtr JoinGroups(NodePtr left, NodePtr grouped, const std::vector<KeyEquality>& keys,
                     const std::vector<Column>& results) {
    Aggregate& aggregate = *grouped->As<Aggregate>();
    const int relation = query_.relations++;
    std::vector<Column> columns;
    std::vector<Expr> conditions;
    for (const KeyEquality& key : keys) {
      Expr condition = key.condition;
      Expr& inner = condition.children[key.inner];
      columns.push_back({{relation, static_cast<int>(columns.size())}, "", inner.type, true});
      aggregate.keys.push_back(inner);
      inner = MakeColumn(columns.back());
      conditions.push_back(std::move(condition));
    }
    Project counted;
    for (size_t i = 0; i < results.size(); ++i) {
      Column own = results[i];
      own.ref = {relation, static_cast<int>(columns.size())};
      columns.push_back(own);
      own.nullable = true;
      const bool groupings = i >= aggregate.aggregates.size();
      const AggregateFunction function =
          groupings ? AggregateFunction::kCountRows : aggregate.aggregates[i].function;
      const bool counts = function == AggregateFunction::kCountRows || function == AggregateFunction::kCount;
      counted.outputs.push_back(counts ? CountOrZero(own) : MakeColumn(own));
    }
    grouped->columns = std::move(columns);
    DeriveColumns(*grouped);
    NodePtr joined =
        plan::logical::MakeJoin(JoinKind::kLeft, std::move(left), std::move(grouped), std::move(conditions));
    AddOutputs(joined, counted, results);
    return joined;
  }

  /// The general case.
  absl::Status PushDown(NodePtr& node, std::vector<Column> named) {
    Join& join = *node->As<Join>();
    const std::vector<Column> left = node->input(0).columns;
    const int cte = query_.ctes++;
    CteScan scan{cte, {}};
    std::vector<uint32_t> fields;
    for (uint32_t i = 0; i < left.size(); ++i) scan.fields.push_back(i);
    for (const Column& column : named) {
      const auto same = [&](const Column& other) { return other.ref == column.ref; };
      fields.push_back(static_cast<uint32_t>(std::find_if(left.begin(), left.end(), same) - left.begin()));
    }
    DomainPush push(query_, named, cte, std::move(fields));
    NAM_ASSIGN_OR_RETURN(DomainPush::Pushed right, push.Push(std::move(node->inputs[1])));
    for (size_t i = 0; i < named.size(); ++i) {
      join.conditions.push_back(plan::logical::MakeNotDistinct(
          MakeColumn(named[i]), named[i].nullable, MakeColumn(right.domain[i]), right.domain[i].nullable));
    }
    join.dependent = false;
    NodePtr definition = std::move(node->inputs[0]);
    node->inputs[0] = MakeNode(std::move(scan), left);
    node->inputs[1] = std::move(right.node);
    DeriveColumns(*node);
    node = push.Define(std::move(node));
    node = MakeNode(With{cte, "outer"}, {}, std::move(definition), std::move(node));
    return absl::OkStatus();
  }

  Query& query_;
  std::map<ColumnRef, int> uses_;
};

}  // namespace

absl::Status Unnest(Query& query) {
  return Unnester(query).Run();
}

}  // namespace nam::optimizer
