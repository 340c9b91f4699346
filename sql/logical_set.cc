#include "sql/logical_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_select.h"
#include "types/numeric.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::OrderKey;
using plan::logical::Column;
using plan::logical::MakeColumn;
using plan::logical::MakeNode;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::SetOperation;
using plan::logical::Values;

/// The result's column that ORDER BY names: set operations and VALUES have nothing else to sort by.
absl::StatusOr<Column> OrderColumn(const Node& item, const std::vector<Column>& columns) {
  const int position = item.position();
  if (item.Is("A_Const")) {
    if (!item.Has("ival")) {
      return UserError(sqlstate::kSyntaxError, "a constant in ORDER BY must be a position", position,
                       "name a column, or count the columns from 1");
    }
    const int64_t index = item.text().IntegerAt(position);
    if (index < 1 || index > static_cast<int64_t>(columns.size())) {
      return UserError(sqlstate::kBadColumnReference,
                       absl::StrCat("ORDER BY position ", index, " is not in the select list"), position,
                       absl::StrCat("it has ", columns.size(), " columns"));
    }
    return columns[static_cast<size_t>(index) - 1];
  }
  const std::vector<std::string> name =
      item.Is("ColumnRef") ? item.Names("fields") : std::vector<std::string>();
  if (name.size() != 1 || name[0].empty()) {
    return Refusal("ORDER BY an expression over UNION, INTERSECT, EXCEPT or VALUES is not supported",
                   position, "name a column of the result, or put the whole into a subquery in FROM");
  }
  const Column* found = nullptr;
  for (const Column& column : columns) {
    if (column.name != name[0]) continue;
    if (found != nullptr) {
      return UserError(sqlstate::kAmbiguousColumn, absl::StrCat("ORDER BY ", Quote(name[0]), " is ambiguous"),
                       position, "two columns of the result have this name");
    }
    found = &column;
  }
  if (found != nullptr) return *found;
  return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name[0]), " does not exist"),
                   position, "ORDER BY of the whole names columns of the first query");
}

absl::StatusOr<NodePtr> SortAndLimit(LogicalContext& context, const Surroundings& around, const Node& select,
                                     NodePtr root) {
  plan::logical::Sort sort;
  for (const Node& item : select.List("sortClause")) {
    OrderKey key;
    NAM_RETURN_IF_ERROR(BindDirection(item, key));
    NAM_ASSIGN_OR_RETURN(const Column column, OrderColumn(item.Field("node"), root->columns));
    key.expr = MakeColumn(column, item.Field("node").position());
    sort.keys.push_back(std::move(key));
  }
  if (!sort.keys.empty()) root = MakeNode(std::move(sort), {}, std::move(root));
  LogicalSelect expressions(context, around);
  NAM_ASSIGN_OR_RETURN(const LimitCounts counts, BindLimit(select, expressions));
  return AddLimit(select, counts, std::move(root));
}

/// One of the combined queries, on its way to their common types.
struct Side {
  BoundTree tree;
  std::vector<Expr> values;

  Side(BoundTree bound, int position) : tree(std::move(bound)) {
    for (size_t i = 0; i < tree.root->columns.size(); ++i)
      values.push_back(tree.literals[i].has_value() ? *tree.literals[i]
                                                    : MakeColumn(tree.root->columns[i], position));
  }

  /// The tree with these values as its columns.
  NodePtr Finish(LogicalContext& context) {
    bool same = true;
    for (size_t i = 0; i < values.size(); ++i) {
      same = same && values[i].op == plan::Op::kColumn && values[i].column == tree.root->columns[i].ref;
    }
    if (same) return std::move(tree.root);
    std::vector<Column> columns = tree.root->columns;
    const int relation = context.AddRelation(nullptr);
    for (size_t i = 0; i < columns.size(); ++i) {
      columns[i].ref = {relation, static_cast<int>(i)};
      columns[i].type = values[i].type;
      columns[i].declared = values[i].declared;
    }
    return MakeNode(Project{std::move(values)}, std::move(columns), std::move(tree.root));
  }
};

class SetBinder {
 public:
  SetBinder(LogicalContext& context, const Surroundings& around) : context_(context), around_(around) {}

  /// Chains of set operations lean to the left and may be thousands long: iterates over them.
  absl::StatusOr<BoundTree> Bind(const Node& select) {
    std::vector<Node> chain = {select};
    for (Node left = select.Field("larg"); IsBare(left); left = left.Field("larg")) chain.push_back(left);
    NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context_, around_, chain.back().Field("larg")));
    while (!chain.empty()) {
      NAM_ASSIGN_OR_RETURN(BoundTree right, BindQuery(context_, around_, chain.back().Field("rarg")));
      NAM_ASSIGN_OR_RETURN(tree, Combine(chain.back(), std::move(tree), std::move(right)));
      chain.pop_back();
    }
    return tree;
  }

 private:
  static bool IsBare(const Node& select) {
    return select.Text("op") != "SETOP_NONE" && !select.Has("withClause") && !select.Has("sortClause") &&
           !select.Has("limitCount") && !select.Has("limitOffset") && !select.Has("lockingClause");
  }

  absl::StatusOr<BoundTree> Combine(const Node& node, BoundTree left, BoundTree right) {
    const std::string op = node.Text("op");
    SetOperation operation;
    operation.all = node.Flag("all");
    operation.kind = op == "SETOP_UNION"       ? SetOperation::Kind::kUnion
                     : op == "SETOP_INTERSECT" ? SetOperation::Kind::kIntersect
                                               : SetOperation::Kind::kExcept;
    const std::string name = op.substr(op.find('_') + 1);
    const int position = node.Field("rarg").Leftmost();
    if (left.root->columns.size() != right.root->columns.size()) {
      return UserError(sqlstate::kSyntaxError,
                       absl::StrCat("the queries of a ", name, " must have the same number of columns"),
                       position,
                       absl::StrCat("the left one has ", left.root->columns.size(), ", the right one ",
                                    right.root->columns.size()));
    }
    Side a(std::move(left), -1), b(std::move(right), position);
    std::vector<Column> columns = a.tree.root->columns;
    const int relation = context_.AddRelation(nullptr);
    builder_.UseParameters(node.text().parameters());
    builder_.UseZone(node.text().time().zone);
    for (size_t i = 0; i < columns.size(); ++i) {
      NAM_RETURN_IF_ERROR(builder_.Unify({&a.values[i], &b.values[i]}, name.c_str()));
      columns[i].ref = {relation, static_cast<int>(i)};
      columns[i].type = CommonType(a.values[i].type, b.values[i].type);
      columns[i].declared = CommonDeclaredType({&a.values[i], &b.values[i]});
    }
    BoundTree tree;
    tree.literals.resize(columns.size());
    NodePtr first = a.Finish(context_), second = b.Finish(context_);
    auto* chain = first->As<SetOperation>();
    if (operation.kind == SetOperation::Kind::kUnion && chain != nullptr && chain->kind == operation.kind &&
        chain->all == operation.all) {
      first->inputs.push_back(std::move(second));
      for (size_t i = 0; i < columns.size(); ++i) {
        first->columns[i].type = columns[i].type;
        first->columns[i].declared = columns[i].declared;
      }
      DeriveColumns(*first);
      tree.root = std::move(first);
    } else {
      tree.root = MakeNode(operation, std::move(columns), std::move(first), std::move(second));
    }
    return tree;
  }

  LogicalContext& context_;
  const Surroundings around_;
  ExpressionBuilder builder_;
};

/// Binds the rows of VALUES, with one type a column.
class ValuesBinder {
 public:
  ValuesBinder(LogicalContext& context, const Surroundings& around)
      : context_(context), select_(context, around) {}

  absl::StatusOr<NodePtr> Bind(const Node& node) {
    const std::vector<Node> lists = node.List("valuesLists");
    for (const Node& list : lists) NAM_RETURN_IF_ERROR(AddRow(list.List("items")));
    const size_t width = rows_.at(0).size();
    const int relation = context_.AddRelation(nullptr);
    std::vector<Column> columns;
    for (size_t i = 0; i < width; ++i) {
      std::vector<Expr*> values;
      for (auto& row : rows_) values.push_back(&row[i]);
      NAM_RETURN_IF_ERROR(select_.builder().Unify(values, "VALUES", ScalesOf(values)));
      Column column{{relation, static_cast<int>(i)}, absl::StrCat("column", i + 1), values[0]->type, true};
      for (const Expr* value : values) column.type = CommonType(column.type, value->type);
      column.declared = CommonDeclaredType(std::vector<const Expr*>(values.begin(), values.end()));
      columns.push_back(std::move(column));
    }
    return Constant() ? AsConstants(std::move(columns)) : AsProjections(columns);
  }

 private:
  absl::Status AddRow(const std::vector<Node>& items) {
    std::vector<Expr> row;
    for (const Node& item : items) {
      if (item.Is("SetToDefault")) {
        return UserError(sqlstate::kSyntaxError, "DEFAULT is not allowed here", item.position(),
                         "only INSERT … VALUES takes it");
      }
      NAM_ASSIGN_OR_RETURN(Expr value, select_.BindUntyped(item, Clause::kValues));
      row.push_back(std::move(value));
    }
    if (!rows_.empty() && rows_[0].size() != row.size()) {
      return UserError(sqlstate::kSyntaxError, "the rows of VALUES must have the same length",
                       items.empty() ? -1 : items[0].position(),
                       absl::StrCat("the first one has ", rows_[0].size(), " columns"));
    }
    rows_.push_back(std::move(row));
    return absl::OkStatus();
  }

  /// A numeric has two digits less than a decimal.
  static ExpressionBuilder::Scales ScalesOf(const std::vector<Expr*>& values) {
    const bool fit = std::all_of(values.begin(), values.end(), [](const Expr* value) {
      return !value->type.numeric() || !plan::IsLiteral(*value) ||
             FitNumeric(value->literal.number, 0).has_value();
    });
    return fit ? ExpressionBuilder::Scales::kOwn : ExpressionBuilder::Scales::kLargest;
  }

  bool Constant() const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [](const auto& row) { return std::all_of(row.begin(), row.end(), plan::IsLiteral); });
  }

  NodePtr AsConstants(std::vector<Column> columns) {
    Values values;
    for (size_t i = 0; i < columns.size(); ++i) {
      columns[i].nullable =
          std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row[i].literal.null; });
    }
    for (auto& row : rows_) {
      std::vector<Value> constants;
      for (size_t i = 0; i < row.size(); ++i) {
        Value value = std::move(row[i].literal);
        value.type = columns[i].type;
        constants.push_back(std::move(value));
      }
      values.rows.push_back(std::move(constants));
    }
    return MakeNode(std::move(values), std::move(columns));
  }

  /// Computed rows: one query for each.
  NodePtr AsProjections(const std::vector<Column>& columns) {
    std::vector<NodePtr> inputs;
    for (auto& row : rows_) {
      std::vector<const Expr*> users;
      for (const Expr& value : row) users.push_back(&value);
      NodePtr input = select_.Attach(plan::logical::MakeOneRow(), users);
      std::vector<Column> own = columns;
      const int relation = context_.AddRelation(nullptr);
      for (size_t i = 0; i < own.size(); ++i) {
        own[i].ref = {relation, static_cast<int>(i)};
        own[i].type = row[i].type;
      }
      inputs.push_back(MakeNode(Project{std::move(row)}, std::move(own), std::move(input)));
    }
    if (inputs.size() == 1) return std::move(inputs[0]);
    NodePtr all = MakeNode(SetOperation{SetOperation::Kind::kUnion, true}, columns, std::move(inputs[0]),
                           std::move(inputs[1]));
    for (size_t i = 2; i < inputs.size(); ++i) all->inputs.push_back(std::move(inputs[i]));
    DeriveColumns(*all);
    return all;
  }

  LogicalContext& context_;
  LogicalSelect select_;
  std::vector<std::vector<Expr>> rows_;
};

}  // namespace

absl::StatusOr<BoundTree> BindSetOperation(LogicalContext& context, const Surroundings& around,
                                           const Node& select) {
  NAM_RETURN_IF_ERROR(select.Only(
      {"op", "all", "larg", "rarg", "sortClause", "limitCount", "limitOffset", "limitOption", "withClause"}));
  NAM_ASSIGN_OR_RETURN(BoundTree tree, SetBinder(context, around).Bind(select));
  NAM_ASSIGN_OR_RETURN(tree.root, SortAndLimit(context, around, select, std::move(tree.root)));
  return tree;
}

absl::StatusOr<BoundTree> BindValues(LogicalContext& context, const Surroundings& around,
                                     const Node& select) {
  NAM_RETURN_IF_ERROR(select.Only(
      {"op", "valuesLists", "sortClause", "limitCount", "limitOffset", "limitOption", "withClause"}));
  BoundTree tree;
  NAM_ASSIGN_OR_RETURN(tree.root, ValuesBinder(context, around).Bind(select));
  NAM_ASSIGN_OR_RETURN(tree.root, SortAndLimit(context, around, select, std::move(tree.root)));
  tree.literals.resize(tree.root->columns.size());
  return tree;
}

}  // namespace nam::sql
