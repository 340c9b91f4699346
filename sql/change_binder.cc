#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/assignment.h"
#include "sql/expression_binder.h"
#include "sql/from_binder.h"
#include "sql/record_binder.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::MakeLiteral;

absl::Status RefuseWith(const Node& node) {
  if (!node.Has("withClause")) return absl::OkStatus();
  return Refusal("WITH is not supported", node.text().Find({"with"}), "run its query by itself");
}

absl::Status RefuseReturning(const Node& node) {
  if (!node.Has("returningList")) return absl::OkStatus();
  return Refusal("RETURNING is not supported",
                 node.text().FindBefore("returning", node.List("returningList")[0].position()),
                 "SELECT the rows in the same transaction");
}

Type TypeOfColumn(const proto::Column& column) {
  Type type = ColumnTypeOf(column.type());
  type.length = 0;
  return type;
}

/// What the binder of INSERT, UPDATE and DELETE share: one table, and expressions over it.
class ChangeBinder {
 public:
  ChangeBinder(const Node& node, TableSource& source)
      : node_(node), expressions_(query_.tables), from_(query_, source, expressions_) {}

  absl::Status BindTable(const char* statement) {
    const Node relation = node_.Field("relation");
    NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
    NAM_ASSIGN_OR_RETURN(scope_, from_.BindTarget(relation));
    if (IsRecordTable(table())) return absl::OkStatus();
    return Refusal(absl::StrCat(statement, " of ", Quote(table().name()), " is not supported"),
                   relation.position(),
                   "it is an analytical table, which is loaded and then read; CREATE TABLE … WITH (storage = "
                   "record) makes one that transactions change");
  }

  absl::Status BindWhere() {
    if (!node_.Has("whereClause")) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(Expr where,
                         expressions_.BindBoolean(node_.Field("whereClause"), scope_, Clause::kWhere));
    from_.AddCondition(std::move(where));
    return absl::OkStatus();
  }

  /// The column of this name, for INSERT's list and for SET.
  absl::StatusOr<int> TargetColumn(const Node& target) {
    const std::string name = target.Text("name");
    std::vector<std::string> names;
    for (int i = 0; i < table().columns_size(); ++i) {
      if (table().columns(i).name() == name) return i;
      names.push_back(table().columns(i).name());
    }
    return UserError(sqlstate::kUndefinedColumn,
                     absl::StrCat("column ", Quote(name), " of ", Quote(table().name()), " does not exist"),
                     target.position(), DidYouMean(name, names));
  }

  /// An expression as the column's type, where PostgreSQL converts on assignment.
  absl::StatusOr<Expr> Value(const Node& node, int column, const Scope& scope, Clause clause) {
    NAM_ASSIGN_OR_RETURN(Expr value, expressions_.BindUntyped(node, scope, clause));
    const proto::Column& to = table().columns(column);
    const Type type = TypeOfColumn(to);
    ExpressionBuilder& builder = expressions_.builder();
    const int position = value.position >= 0 ? value.position : node.position();
    NAM_RETURN_IF_ERROR(builder.Settle(value, type));
    const auto dated = [](TypeKind kind) { return kind == TypeKind::kDate || kind == TypeKind::kTimestamp; };
    const auto number = [](const Type& t) { return t.numeric() || t.real(); };
    const bool converts = value.type.kind == type.kind || (number(value.type) && number(type)) ||
                          (dated(value.type.kind) && dated(type.kind)) || type.kind == TypeKind::kString;
    if (!converts) {
      return UserError(sqlstate::kTypeMismatch,
                       absl::StrCat("column ", Quote(to.name()), " is of type ", ColumnTypeName(to.type()),
                                    ", the expression of type ", TypeName(value.type)),
                       position, "convert it with CAST");
    }
    if (value.type.kind != type.kind || value.type.scale != type.scale ||
        value.type.blank_padded != type.blank_padded) {
      NAM_ASSIGN_OR_RETURN(value, builder.Cast(std::move(value), type, position));
    }
    value.position = position;
    return value;
  }

  absl::StatusOr<std::vector<BoundCheck>> Checks() { return BindChecks(query_.tables[0].table); }

  const proto::Table& table() const { return *query_.tables[0].table; }
  const Scope& scope() const { return scope_; }
  BoundQuery& query() { return query_; }

 private:
  const Node& node_;
  BoundQuery query_;
  ExpressionBinder expressions_;
  FromBinder from_;
  Scope scope_;
};

/// The rows of INSERT … VALUES.
absl::StatusOr<std::vector<std::vector<Node>>> ValuesOf(const Node& node) {
  const SqlText& text = node.text();
  const Node select = node.Field("selectStmt");
  if (!select) {
    return Refusal("DEFAULT VALUES is not supported", text.Find({"default"}), "write VALUES (…)");
  }
  if (!select.Has("valuesLists")) {
    return Refusal("INSERT … SELECT is not supported", select.Leftmost(), "insert with VALUES (…)");
  }
  NAM_RETURN_IF_ERROR(RefuseWith(select));
  NAM_RETURN_IF_ERROR(select.Only({"valuesLists", "limitOption", "op"}));
  std::vector<std::vector<Node>> rows;
  for (const Node& row : select.List("valuesLists")) rows.push_back(row.List("items"));
  return rows;
}

absl::Status RefuseInsertClauses(const Node& node) {
  const SqlText& text = node.text();
  NAM_RETURN_IF_ERROR(RefuseWith(node));
  if (node.Has("onConflictClause")) {
    return Refusal("ON CONFLICT is not supported",
                   text.FindBefore("on", node.Field("onConflictClause").position() + 1),
                   "run UPDATE, and INSERT if it changed no row, in one transaction");
  }
  NAM_RETURN_IF_ERROR(RefuseReturning(node));
  if (node.Text("override") != "OVERRIDING_NOT_SET") {
    return Refusal("OVERRIDING is not supported", text.Find({"overriding"}), "leave it out");
  }
  return node.Only({"relation", "cols", "selectStmt", "override"});
}

/// The table's columns that VALUES are for, in their order.
absl::StatusOr<std::vector<int>> InsertColumns(const Node& node, ChangeBinder& binder) {
  std::vector<int> columns;
  std::set<int> seen;
  for (const Node& target : node.List("cols")) {
    NAM_RETURN_IF_ERROR(target.Only({"name"}));
    NAM_ASSIGN_OR_RETURN(const int column, binder.TargetColumn(target));
    if (!seen.insert(column).second) {
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(target.Text("name")), " is named twice"),
                       target.position(), "name it once");
    }
    columns.push_back(column);
  }
  if (!columns.empty()) return columns;
  for (int i = 0; i < binder.table().columns_size(); ++i) columns.push_back(i);
  return columns;
}

}  // namespace

absl::StatusOr<Statement> BindInsert(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(RefuseInsertClauses(node));
  ChangeBinder binder(node, tables);
  NAM_RETURN_IF_ERROR(binder.BindTable("INSERT"));
  NAM_ASSIGN_OR_RETURN(const std::vector<int> columns, InsertColumns(node, binder));
  NAM_ASSIGN_OR_RETURN(const auto rows, ValuesOf(node));
  InsertStatement statement;
  const Scope nothing;
  for (const std::vector<Node>& values : rows) {
    if (values.size() != rows[0].size()) {
      return UserError(sqlstate::kSyntaxError, "VALUES lists must all be the same length",
                       values[0].position(),
                       absl::StrCat("the first has ", rows[0].size(), " values, this one ", values.size()));
    }
    const bool listed = node.Has("cols");
    if (values.size() > columns.size() || (listed && values.size() < columns.size())) {
      const bool more = values.size() > columns.size();
      return UserError(sqlstate::kSyntaxError,
                       more ? "INSERT has more values than columns" : "INSERT has more columns than values",
                       values[more ? columns.size() : 0].position(),
                       absl::StrCat(columns.size(), " columns, ", values.size(), " values"));
    }
    std::vector<Expr> row;
    for (const proto::Column& column : binder.table().columns())
      row.push_back(MakeLiteral(Value::Null(TypeOfColumn(column)), -1));
    for (size_t i = 0; i < values.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(row[static_cast<size_t>(columns[i])],
                           binder.Value(values[i], columns[i], nothing, Clause::kValues));
    }
    statement.rows.push_back(std::move(row));
  }
  NAM_ASSIGN_OR_RETURN(statement.checks, binder.Checks());
  statement.table = std::move(binder.query().tables[0]);
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindUpdate(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(RefuseWith(node));
  NAM_RETURN_IF_ERROR(RefuseReturning(node));
  if (node.Has("fromClause")) {
    const int table = node.List("fromClause")[0].Leftmost();
    return Refusal("UPDATE … FROM is not supported", node.text().FindBefore("from", table),
                   "SELECT the values first, in the same transaction");
  }
  NAM_RETURN_IF_ERROR(node.Only({"relation", "targetList", "whereClause"}));
  ChangeBinder binder(node, tables);
  NAM_RETURN_IF_ERROR(binder.BindTable("UPDATE"));
  UpdateStatement statement;
  std::set<int> seen;
  for (const Node& target : node.List("targetList")) {
    const Node value = target.Field("val");
    if (value.Is("MultiAssignRef")) {
      return Refusal("assigning to several columns at once is not supported", target.position(),
                     "write a = x, b = y");
    }
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    NAM_ASSIGN_OR_RETURN(const int column, binder.TargetColumn(target));
    if (!seen.insert(column).second) {
      return UserError(sqlstate::kSyntaxError,
                       absl::StrCat("column ", Quote(target.Text("name")), " is assigned twice"),
                       target.position(), "assign it once");
    }
    NAM_ASSIGN_OR_RETURN(Expr expr, binder.Value(value, column, binder.scope(), Clause::kSet));
    statement.assignments.push_back({column, std::move(expr)});
  }
  NAM_RETURN_IF_ERROR(binder.BindWhere());
  NAM_ASSIGN_OR_RETURN(statement.checks, binder.Checks());
  statement.conjuncts = std::move(binder.query().conjuncts);
  statement.table = std::move(binder.query().tables[0]);
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindDelete(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(RefuseWith(node));
  NAM_RETURN_IF_ERROR(RefuseReturning(node));
  if (node.Has("usingClause")) {
    const int table = node.List("usingClause")[0].Leftmost();
    return Refusal("DELETE … USING is not supported", node.text().FindBefore("using", table),
                   "SELECT the keys first, in the same transaction");
  }
  NAM_RETURN_IF_ERROR(node.Only({"relation", "whereClause"}));
  ChangeBinder binder(node, tables);
  NAM_RETURN_IF_ERROR(binder.BindTable("DELETE"));
  NAM_RETURN_IF_ERROR(binder.BindWhere());
  return Statement(DeleteStatement{std::move(binder.query().tables[0]), std::move(binder.query().conjuncts)});
}

}  // namespace nam::sql
