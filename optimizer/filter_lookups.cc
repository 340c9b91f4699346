#include "optimizer/filter_lookups.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/alternatives.h"
#include "optimizer/filtered_scan.h"
#include "optimizer/join_graph.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;

namespace {

/// A scan that leaves a larger share of its rows is not worth the join. Without statistics a third is
/// assumed.
constexpr double kFewOfRows = 0.35;
/// The filtered input has at least so many times the scan's remaining rows.
constexpr double kManyTimes = 4;

bool IsColumn(const Expr& expr) {
  return expr.op == Op::kColumn;
}

/// Whether rows of the right input without a match do not matter.
bool LooksUpRight(const lg::Join& join) {
  return !join.dependent && join.kind != JoinKind::kRight && join.kind != JoinKind::kFull;
}

/// Common properties of a tree's rows: the scans in which each of them has a partner, and columns that are
/// equal in all of them.
class Partners {
 public:
  /// Of the rows of all inputs that meet the conditions.
  Partners(const std::vector<const lg::Node*>& inputs, const std::vector<Expr>& conditions) {
    for (const lg::Node* input : inputs) Collect(*input);
    AddEqualities(conditions);
  }

  /// The smallest scan, and its unique column, which has all values of `column`; nullopt if no scan filters.
  std::optional<std::pair<FilteredScan, ColumnRef>> KeysOf(ColumnRef column) const {
    std::optional<std::pair<FilteredScan, ColumnRef>> least;
    for (const ColumnRef same : SameAs(column)) {
      const auto found = std::find_if(scans_.begin(), scans_.end(), [&](const FilteredScan& of) {
        return of.scan->relation == same.table;
      });
      if (found == scans_.end() || !found->scan->table->columns(same.column).unique()) continue;
      if (!least.has_value() || found->rows < least->first.rows) least = {*found, same};
    }
    return least;
  }

 private:
  void Collect(const lg::Node& node) {
    if (const std::optional<FilteredScan> scan = AsFilteredScan(node); scan.has_value())
      return AddScan(*scan);
    if (const auto* filter = node.As<lg::Filter>(); filter != nullptr) {
      AddEqualities(filter->conditions);
      return Collect(node.input());
    }
    if (const auto* project = node.As<lg::Project>(); project != nullptr) {
      for (size_t i = 0; i < project->outputs.size(); ++i) {
        if (IsColumn(project->outputs[i]))
          equal_.push_back({node.columns[i].ref, project->outputs[i].column});
      }
      return Collect(node.input());
    }
    const auto* join = node.As<lg::Join>();
    if (join == nullptr || join->dependent || join->kind == JoinKind::kRight || join->kind == JoinKind::kFull)
      return;
    Collect(node.input(0));
    if (join->kind != JoinKind::kInner && join->kind != JoinKind::kSemi) return;
    AddEqualities(join->conditions);
    Collect(node.input(1));
  }

  void AddScan(const FilteredScan& scan) {
    const auto* filter = scan.node->As<lg::Filter>();
    if (filter == nullptr || scan.scan->table->has_record() || scan.share > kFewOfRows) return;
    if (std::none_of(filter->conditions.begin(), filter->conditions.end(), MayFail)) scans_.push_back(scan);
  }

  void AddEqualities(const std::vector<Expr>& conditions) {
    for (const Expr& condition : conditions) {
      if (condition.op != Op::kEqual || !IsColumn(condition.children[0]) || !IsColumn(condition.children[1]))
        continue;
      if (condition.children[0].type == condition.children[1].type)
        equal_.push_back({condition.children[0].column, condition.children[1].column});
    }
  }

  std::vector<ColumnRef> SameAs(ColumnRef column) const {
    std::vector<ColumnRef> same{column};
    for (size_t i = 0; i < same.size(); ++i) {
      for (const auto& [a, b] : equal_) {
        if (a != same[i] && b != same[i]) continue;
        const ColumnRef other = a == same[i] ? b : a;
        if (std::find(same.begin(), same.end(), other) == same.end()) same.push_back(other);
      }
    }
    return same;
  }

  std::vector<FilteredScan> scans_;
  std::vector<std::pair<ColumnRef, ColumnRef>> equal_;
};

/// A copy whose columns are those of another relation.
lg::NodePtr CopyAs(const FilteredScan& keys, int relation) {
  lg::NodePtr copy = lg::Clone(*keys.node);
  const int from = keys.scan->relation;
  for (Expr& condition : copy->As<lg::Filter>()->conditions) RenameRelation(condition, from, relation);
  copy->input().As<lg::Scan>()->relation = relation;
  for (lg::Node* node : {&copy->input(), copy.get()}) {
    for (lg::Column& column : node->columns) column.ref.table = relation;
  }
  return copy;
}

class LookupFilter {
 public:
  explicit LookupFilter(lg::Query& query) : query_(query) {}

  void Visit(lg::NodePtr& node) {
    if (IsJoinBlock(*node)) return VisitBlock(node);
    for (lg::NodePtr& input : node->inputs) Visit(input);
    const auto* join = node->As<lg::Join>();
    if (join == nullptr || !LooksUpRight(*join)) return;
    FilterRight(Partners({&node->input(0)}, {}), join->conditions, node->input(0).columns, node->inputs[1]);
  }

 private:
  /// Inner joins: any input may have partners in any other one.
  struct Block {
    std::vector<lg::NodePtr*> inputs;
    std::vector<Expr> conditions;
  };

  static void Collect(lg::NodePtr& node, Block& block) {
    if (!IsJoinBlock(*node) || AsFilteredScan(*node).has_value()) {
      block.inputs.push_back(&node);
      return;
    }
    const auto* filter = node->As<lg::Filter>();
    const std::vector<Expr>& conditions =
        filter != nullptr ? filter->conditions : node->As<lg::Join>()->conditions;
    block.conditions.insert(block.conditions.end(), conditions.begin(), conditions.end());
    for (lg::NodePtr& input : node->inputs) Collect(input, block);
  }

  void VisitBlock(lg::NodePtr& node) {
    Block block;
    Collect(node, block);
    for (lg::NodePtr* input : block.inputs) {
      if (IsJoinBlock(**input)) continue;  // a table: all are joined at once
      Visit(*input);
      if (!HasGroups(**input)) continue;
      std::vector<const lg::Node*> others;
      std::vector<lg::Column> columns;
      for (const lg::NodePtr* other : block.inputs) {
        if (other == input) continue;
        others.push_back(other->get());
        columns.insert(columns.end(), (*other)->columns.begin(), (*other)->columns.end());
      }
      FilterRight(Partners(others, block.conditions), block.conditions, columns, *input);
    }
  }

  void FilterRight(const Partners& partners, const std::vector<Expr>& conditions,
                   const std::vector<lg::Column>& left, lg::NodePtr& right) {
    for (const Expr& condition : conditions) {
      if (condition.op != Op::kEqual || !IsColumn(condition.children[0]) || !IsColumn(condition.children[1]))
        continue;
      for (size_t i = 0; i < 2; ++i) {
        const Expr &looked_up = condition.children[i], &key = condition.children[1 - i];
        if (lg::FindColumn(left, looked_up.column) == nullptr || looked_up.type != key.type) continue;
        if (FilterBy(partners, looked_up.column, key.column, right)) return;
      }
    }
  }

  static bool HasGroups(const lg::Node& node) {
    if (node.As<lg::Aggregate>() != nullptr) return true;
    return (node.As<lg::Filter>() != nullptr || node.As<lg::Project>() != nullptr) && HasGroups(node.input());
  }

  /// Filters by `key`, a column of the right input, if it is a key of its groups, or of its table. Returns
  /// whether it did.
  bool FilterBy(const Partners& partners, ColumnRef looked_up, ColumnRef key, lg::NodePtr& place_of_node) {
    lg::Node& node = *place_of_node;
    const auto place = std::find_if(node.columns.begin(), node.columns.end(),
                                    [&](const lg::Column& column) { return column.ref == key; });
    if (place == node.columns.end()) return false;
    const auto column = static_cast<size_t>(place - node.columns.begin());
    if (const std::optional<FilteredScan> scan = AsFilteredScan(node); scan.has_value())
      return JoinTable(partners, looked_up, *place, *scan, place_of_node);
    bool filtered = false;
    if (node.As<lg::Filter>() != nullptr) {
      filtered = FilterBy(partners, looked_up, key, node.inputs[0]);
    } else if (const auto* project = node.As<lg::Project>(); project != nullptr) {
      const Expr& output = project->outputs[column];
      filtered = IsColumn(output) && FilterBy(partners, looked_up, output.column, node.inputs[0]);
    } else if (const auto* groups = node.As<lg::Aggregate>(); groups != nullptr) {
      filtered = groups->sets.empty() && column < groups->keys.size() &&
                 JoinRows(partners, looked_up, groups->keys[column], MostRows(node), node.inputs[0]);
    }
    if (filtered) lg::DeriveColumns(node);
    return filtered;
  }

  bool JoinTable(const Partners& partners, ColumnRef looked_up, const lg::Column& key,
                 const FilteredScan& table, lg::NodePtr& rows) {
    const std::vector<lg::Column> columns = rows->columns;
    if (!JoinRows(partners, looked_up, lg::MakeColumn(key), MostRows(*table.node), rows)) return false;
    // The operators above know the table's columns only.
    lg::Project project;
    for (const lg::Column& column : columns) project.outputs.push_back(lg::MakeColumn(column));
    rows = lg::MakeNode(std::move(project), columns, std::move(rows));
    return true;
  }

  /// The rows of the largest columnar table below.
  static double MostRows(const lg::Node& node) {
    if (const std::optional<FilteredScan> scan = AsFilteredScan(node); scan.has_value())
      return scan->scan->table->has_record() ? 0 : scan->rows;
    double most = 0;
    for (const lg::NodePtr& input : node.inputs) most = std::max(most, MostRows(*input));
    return most;
  }

  /// Filters if the rows are many: then another scan of the keys' table costs less than they do.
  bool JoinRows(const Partners& partners, ColumnRef looked_up, const Expr& key, double many,
                lg::NodePtr& rows) {
    const auto keys = partners.KeysOf(looked_up);
    if (!keys.has_value() || many < kManyTimes * keys->first.rows ||
        many < static_cast<double>(keys->first.scan->table->rows())) {
      return false;
    }
    const lg::Column* of_keys = lg::FindColumn(keys->first.node->columns, keys->second);
    if (of_keys == nullptr || of_keys->type != key.type) return false;
    const int relation = query_.relations++;
    lg::Column unique = *of_keys;
    unique.ref.table = relation;
    Expr equal = plan::MakeNode(Op::kEqual, Type::Bool(), key.position, {key, lg::MakeColumn(unique)});
    std::vector<Expr> conditions;
    conditions.push_back(std::move(equal));
    rows =
        lg::MakeJoin(JoinKind::kInner, std::move(rows), CopyAs(keys->first, relation), std::move(conditions));
    return true;
  }

  lg::Query& query_;
};

}  // namespace

void FilterLookups(lg::Query& query) {
  LookupFilter(query).Visit(query.root);
}

}  // namespace nam::optimizer
