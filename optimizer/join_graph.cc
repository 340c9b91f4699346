#include "optimizer/join_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "optimizer/alternatives.h"
#include "optimizer/join_keys.h"
#include "optimizer/join_order.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using InputKind = JoinGraph::Kind;

namespace {

/// a = b, with a column of one input on either side.
struct Equality {
  const Expr* sides[2] = {nullptr, nullptr};
  size_t inputs[2] = {0, 0};
};

bool IsInnerJoin(const lg::Node& node) {
  const auto* join = node.As<lg::Join>();
  return join != nullptr && join->kind == JoinKind::kInner && !join->dependent;
}

/// Constants, and what is computed from them row by row.
bool IsOfConstants(const lg::Node& node) {
  if (node.As<lg::Values>() != nullptr) return true;
  const bool by_row = node.As<lg::Filter>() != nullptr || node.As<lg::Project>() != nullptr ||
                      node.As<lg::Series>() != nullptr;
  return by_row && IsOfConstants(node.input());
}

bool SameSides(const Expr& a, const Expr& b) {
  return a.op == plan::Op::kEqual && b.op == plan::Op::kEqual &&
         plan::SameExpr(a.children[0], b.children[1]) && plan::SameExpr(a.children[1], b.children[0]);
}

/// Whether the condition repeats one of the last. Repeats only cost time, but so does a search among all of
/// the hundred thousands that a statement may have.
bool IsAmongLast(const std::vector<Expr>& conditions, const Expr& condition) {
  constexpr size_t kMostCompared = 256;
  const size_t compared = std::min(conditions.size(), kMostCompared);
  return std::any_of(
      conditions.end() - static_cast<std::ptrdiff_t>(compared), conditions.end(),
      [&](const Expr& other) { return plan::SameExpr(other, condition) || SameSides(other, condition); });
}

/// The equalities of a condition between two inputs, if they can be keys.
template <typename Visit>
void ForEqualities(const std::map<ColumnRef, size_t>& input_of, const Expr& condition, Visit visit) {
  for (const Expr& equality : EqualitiesOf(condition)) {
    if (equality.op != plan::Op::kEqual) continue;
    Equality out;
    bool two = CanBeKey(equality.children[0].type, equality.children[1].type);
    for (size_t side = 0; side < 2; ++side) {
      const std::vector<ColumnRef> columns = plan::ColumnsOf(equality.children[side]);
      out.sides[side] = &equality.children[side];
      two = two && !columns.empty() && input_of.contains(columns[0]);
      if (!two) break;
      out.inputs[side] = input_of.at(columns[0]);
      two = std::all_of(columns.begin(), columns.end(), [&](ColumnRef column) {
        const auto found = input_of.find(column);
        return found != input_of.end() && found->second == out.inputs[side];
      });
    }
    if (two && out.inputs[0] != out.inputs[1]) visit(out);
  }
}

std::map<ColumnRef, size_t> InputOfColumns(const JoinGraph& graph) {
  std::map<ColumnRef, size_t> input_of;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    for (const lg::Column& column : graph.inputs[i].node->columns) input_of[column.ref] = i;
  }
  return input_of;
}

class Collection {
 public:
  Collection(const lg::Node& block, bool servers_read_records) : servers_read_records_(servers_read_records) {
    Collect(block);
  }

  JoinGraph Run() {
    input_of_ = InputOfColumns(graph_);
    FindKinds();
    tables_alone_ =
        std::all_of(graph_.inputs.begin(), graph_.inputs.end(),
                    [](const JoinGraph::Input& input) { return input.kind == InputKind::kTable; });
    for (Expr& condition : conditions_) Place(std::move(condition));
    return std::move(graph_);
  }

 private:
  void Add(const std::vector<Expr>& conditions, std::vector<Expr>& to) {
    for (const Expr& condition : conditions) {
      if (!IsAmongLast(to, condition)) to.push_back(condition);
    }
  }

  void Collect(const lg::Node& node) {
    const auto* filter = node.As<lg::Filter>();
    if (IsInnerJoin(node) || (filter != nullptr && IsJoinBlock(node) && !IsScan(node.input()))) {
      Add(filter != nullptr ? filter->conditions : node.As<lg::Join>()->conditions, conditions_);
      for (const lg::NodePtr& input : node.inputs) Collect(*input);
      return;
    }
    JoinGraph::Input& input = graph_.inputs.emplace_back();
    const bool filters = filter != nullptr && IsScan(node.input());
    input.node = filters ? &node.input() : &node;
    if (filters) Add(filter->conditions, input.filters);
    if (input.scan() != nullptr) input.table = input.scan()->table;
  }
  static bool IsScan(const lg::Node& node) { return node.As<lg::Scan>() != nullptr; }

  void FindKinds() {
    std::vector<bool> joined(graph_.inputs.size());
    const auto scans = [&](size_t i) { return graph_.inputs[i].scan() != nullptr; };
    for (const Expr& condition : conditions_) {
      ForEqualities(input_of_, condition, [&](const Equality& equality) {
        for (const size_t i : equality.inputs) {
          if (scans(equality.inputs[0]) && scans(equality.inputs[1])) joined[i] = true;
        }
      });
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      JoinGraph::Input& input = graph_.inputs[i];
      if (input.scan() != nullptr) {
        const bool served = !input.table->has_record() || (servers_read_records_ && joined[i]);
        input.kind = served ? InputKind::kTable : InputKind::kOther;
      } else if (IsOfConstants(*input.node) &&
                 Cardinalities(*input.node).RowsOf(*input.node) <= kMostConstants) {
        input.kind = InputKind::kConstants;
      }
    }
  }

  void Place(Expr expr) {
    JoinGraph::Condition condition;
    bool known = true;
    for (const ColumnRef column : plan::ColumnsOf(expr)) {
      const auto input = input_of_.find(column);
      known = known && input != input_of_.end();
      if (known) condition.inputs.insert(input->second);
    }
    const bool fails = MayFail(expr);
    const auto filtered = FilterOf(condition, known, fails);
    if (filtered != graph_.inputs.end()) {
      filtered->filters.push_back(std::move(expr));
      return;
    }
    condition.last = !known || fails || condition.inputs.empty();
    condition.expr = std::move(expr);
    graph_.conditions.push_back(std::move(condition));
  }

  /// The table whose filter the condition becomes. One without columns holds for every row or none.
  std::vector<JoinGraph::Input>::iterator FilterOf(const JoinGraph::Condition& condition, bool known,
                                                   bool fails) {
    std::vector<JoinGraph::Input>& inputs = graph_.inputs;
    if (inputs.size() == 1) return inputs.begin();
    if (!known || condition.inputs.size() > 1 || (fails && !tables_alone_)) return inputs.end();
    if (condition.inputs.size() == 1) {
      const auto input = inputs.begin() + static_cast<std::ptrdiff_t>(*condition.inputs.begin());
      return input->scan() != nullptr ? input : inputs.end();
    }
    return std::find_if(inputs.begin(), inputs.end(),
                        [](const JoinGraph::Input& input) { return input.kind == InputKind::kTable; });
  }

  const bool servers_read_records_;
  JoinGraph graph_;
  std::vector<Expr> conditions_;  // above the inputs
  std::map<ColumnRef, size_t> input_of_;
  bool tables_alone_ = false;
};

class Ordering {
 public:
  Ordering(const JoinGraph& graph, const Cardinalities& cardinalities, double workers)
      : graph_(graph),
        cardinalities_(cardinalities),
        workers_(workers),
        input_of_(InputOfColumns(graph)),
        placed_(graph.conditions.size()) {}

  JoinTree Run() {
    std::vector<JoinTree> trees;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) trees.push_back(Leaf(i));
    std::vector<JoinTree> groups;
    for (const std::vector<size_t>& members : Groups()) {
      std::vector<JoinTree> group;
      for (const size_t i : members) group.push_back(std::move(trees[i]));
      groups.push_back(Join(std::move(group)));
    }
    return Join(std::move(groups));
  }

 private:
  JoinTree Leaf(size_t i) const {
    const JoinGraph::Input& input = graph_.inputs[i];
    JoinTree leaf;
    leaf.inputs.insert(i);
    leaf.read = leaf.rows = input.kind == InputKind::kTable ? static_cast<double>(input.table->rows())
                                                            : cardinalities_.RowsOf(*input.node);
    if (input.kind != InputKind::kTable) return leaf;
    leaf.rows = leaf.read * cardinalities_.ShareOf(input.filters);
    leaf.partitions = input.table->partitions_size();
    return leaf;
  }

  /// Tables that equalities connect, with their constants, or any other input, in FROM's order.
  std::vector<std::vector<size_t>> Groups() const {
    std::vector<size_t> first(graph_.inputs.size());  // of the group
    for (size_t i = 0; i < first.size(); ++i) first[i] = i;
    const auto kind = [&](size_t i) { return graph_.inputs[i].kind; };
    for (const JoinGraph::Condition& condition : graph_.conditions) {
      ForEqualities(input_of_, condition.expr, [&](const Equality& equality) {
        const auto [a, b] = equality.inputs;
        if (kind(a) == InputKind::kOther || kind(b) == InputKind::kOther) return;
        if (kind(a) == InputKind::kConstants && kind(b) == InputKind::kConstants) return;
        const auto [least, other] = std::minmax(first[a], first[b]);
        std::replace(first.begin(), first.end(), size_t{other}, size_t{least});
      });
    }
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < first.size(); ++i) members[first[i]].push_back(i);
    std::vector<std::vector<size_t>> groups;
    for (auto& [of, inputs] : members) groups.push_back(std::move(inputs));
    return groups;
  }

  /// Constants alone are only built.
  bool MayStream(const JoinTree& tree) const {
    return std::any_of(tree.inputs.begin(), tree.inputs.end(),
                       [&](size_t i) { return graph_.inputs[i].kind != InputKind::kConstants; });
  }

  JoinTree Join(std::vector<JoinTree> trees) {
    std::vector<JoinInput> inputs;
    std::map<size_t, size_t> tree_of;
    const bool streams =
        std::any_of(trees.begin(), trees.end(), [&](const JoinTree& t) { return MayStream(t); });
    for (const JoinTree& tree : trees) {
      for (const size_t i : tree.inputs) tree_of[i] = inputs.size();
      inputs.push_back({tree.read, tree.rows, tree.partitions, !streams || MayStream(tree)});
    }
    const JoinOrder order = ChooseJoinOrder(inputs, EdgesOf(trees, tree_of), workers_);
    JoinTree joined = std::move(trees[order.driving]);
    for (const JoinStep& step : order.steps) {
      JoinTree both;
      both.unique = step.unique;
      both.values = step.values;
      both.read = both.rows = step.rows_after;
      both.partitions = joined.partitions;
      both.inputs = joined.inputs;
      both.inputs.insert(trees[step.input].inputs.begin(), trees[step.input].inputs.end());
      both.left = std::make_unique<JoinTree>(std::move(joined));
      both.right = std::make_unique<JoinTree>(std::move(trees[step.input]));
      TakeConditions(both);
      joined = std::move(both);
    }
    return joined;
  }

  std::vector<JoinEdge> EdgesOf(const std::vector<JoinTree>& trees,
                                const std::map<size_t, size_t>& tree_of) const {
    std::vector<JoinEdge> edges;
    for (const JoinGraph::Condition& condition : graph_.conditions) {
      ForEqualities(input_of_, condition.expr, [&](const Equality& equality) {
        JoinEdge edge;
        for (size_t side = 0; side < 2; ++side) {
          const auto tree = tree_of.find(equality.inputs[side]);
          if (tree == tree_of.end()) return;
          JoinEdge::End& end = side == 0 ? edge.left : edge.right;
          const Expr &key = *equality.sides[side], &other = *equality.sides[1 - side];
          const StoredColumn* const stored = cardinalities_.StoredOf(key);
          end.input = tree->second;
          end.values = cardinalities_.ValuesOfKey(key, trees[end.input].read, other);
          end.unique = stored != nullptr && stored->column->unique() &&
                       graph_.inputs[equality.inputs[side]].kind == InputKind::kTable &&
                       trees[end.input].left == nullptr;
        }
        if (edge.left.input != edge.right.input) edges.push_back(edge);
      });
    }
    return edges;
  }

  /// Those that name no other input and are in no tree yet. The root has all others.
  void TakeConditions(JoinTree& tree) {
    const bool root = tree.inputs.size() == graph_.inputs.size();
    for (const bool last : {false, true}) {
      for (size_t c = 0; c < placed_.size(); ++c) {
        const JoinGraph::Condition& condition = graph_.conditions[c];
        if (placed_[c] || condition.last != last || (last && !root)) continue;
        if (!std::includes(tree.inputs.begin(), tree.inputs.end(), condition.inputs.begin(),
                           condition.inputs.end()))
          continue;
        placed_[c] = true;
        tree.conditions.push_back(condition.expr);
      }
    }
  }

  const JoinGraph& graph_;
  const Cardinalities& cardinalities_;
  const double workers_;
  const std::map<ColumnRef, size_t> input_of_;
  std::vector<bool> placed_;
};

}  // namespace

bool IsJoinBlock(const lg::Node& node) {
  return node.As<lg::Scan>() != nullptr || IsInnerJoin(node) ||
         (node.As<lg::Filter>() != nullptr && IsJoinBlock(node.input()));
}

JoinGraph JoinGraphOf(const lg::Node& block, bool servers_read_records) {
  return Collection(block, servers_read_records).Run();
}

JoinTree OrderJoins(const JoinGraph& graph, const Cardinalities& cardinalities, double workers) {
  return Ordering(graph, cardinalities, workers).Run();
}

}  // namespace nam::optimizer
