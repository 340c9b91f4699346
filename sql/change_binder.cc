#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/change_scope.h"
#include "sql/record_binder.h"
#include "types/sql_error.h"

/// UPDATE and DELETE.
namespace nam::sql {
namespace {

using plan::Expr;

/// SET's list, column by column; a row that is assigned at once is bound with its first column.
class SetList {
 public:
  explicit SetList(ChangeScope& scope) : scope_(scope) {}

  absl::Status Add(const Node& target) {
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    NAM_ASSIGN_OR_RETURN(const int column, TargetColumn(scope_.table(), target));
    if (!seen_.insert(column).second) {
      return UserError(sqlstate::kSyntaxError,
                       absl::StrCat("multiple assignments to same column ", Quote(target.Text("name"))),
                       target.position(), "assign it once");
    }
    Node value = target.Field("val");
    if (value.Is("MultiAssignRef")) {
      const auto place = static_cast<size_t>(value.Integer("colno")) - 1;
      const auto width = static_cast<size_t>(value.Integer("ncolumns"));
      const Node source = value.Field("source");
      if (source.Is("SubLink")) return AddOfRow(source, place, width, column);
      if (!source.Is("RowExpr")) {
        return Refusal("source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                       source.position(), "write (a, b) = (x, y)");
      }
      const std::vector<Node> items = source.List("args");
      if (items.size() != width) {
        return UserError(sqlstate::kSyntaxError, "number of columns does not match number of values",
                         source.position(), absl::StrCat(width, " columns, ", items.size(), " values"));
      }
      value = items[place];
    }
    return AddValue(value, column);
  }

  std::vector<ColumnAssignment> Take() { return std::move(assignments_); }

 private:
  absl::Status AddValue(const Node& value, int column) {
    const proto::Column& to = scope_.table().columns(column);
    if (value.Is("SetToDefault")) {
      assignments_.push_back({column, std::nullopt});
      return absl::OkStatus();
    }
    NAM_RETURN_IF_ERROR(MayBeSet(to, value.position()));
    NAM_ASSIGN_OR_RETURN(Expr expr, scope_.BindValue(value, column));
    assignments_.push_back({column, std::move(expr)});
    return absl::OkStatus();
  }

  absl::Status AddOfRow(const Node& source, size_t place, size_t width, int column) {
    const proto::Column& to = scope_.table().columns(column);
    NAM_RETURN_IF_ERROR(MayBeSet(to, source.position()));
    if (place == 0) {
      NAM_ASSIGN_OR_RETURN(row_, scope_.BindRow(source, width));
    }
    scope_.builder().UseZone(source.text().time().zone);
    NAM_ASSIGN_OR_RETURN(Expr expr, AsColumn(scope_.builder(), row_.at(place), to, source.position()));
    assignments_.push_back({column, std::move(expr)});
    return absl::OkStatus();
  }

  static absl::Status MayBeSet(const proto::Column& column, int position) {
    if (column.numbering() != proto::NUMBERED_ALWAYS) return absl::OkStatus();
    return UserError("428C9",
                     absl::StrCat("column ", Quote(column.name()), " can only be updated to DEFAULT"),
                     position, "it is an identity column defined as GENERATED ALWAYS");
  }

  ChangeScope& scope_;
  std::vector<ColumnAssignment> assignments_;
  std::set<int> seen_;
  std::vector<Expr> row_;  // of the subquery whose columns are being assigned
};

}  // namespace

absl::StatusOr<Statement> BindUpdate(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(
      node.Only({"relation", "targetList", "whereClause", "fromClause", "returningList", "withClause"}));
  ChangeScope scope(tables);
  NAM_RETURN_IF_ERROR(
      scope.BindFrom(node.Field("relation"), node.Field("withClause"), node.List("fromClause"), "UPDATE"));
  SetList set(scope);
  for (const Node& target : node.List("targetList")) NAM_RETURN_IF_ERROR(set.Add(target));
  NAM_RETURN_IF_ERROR(scope.BindWhere(node.Field("whereClause")));
  UpdateStatement statement;
  statement.assignments = set.Take();
  std::set<int> defaults, changed;
  for (const ColumnAssignment& assignment : statement.assignments) {
    changed.insert(assignment.column);
    if (!assignment.value.has_value()) defaults.insert(assignment.column);
  }
  NAM_ASSIGN_OR_RETURN(statement.returning, scope.BindReturning(node.List("returningList"), changed));
  NAM_ASSIGN_OR_RETURN(statement.defaults, BindDefaults(scope.table(), defaults, node.text().time()));
  if (scope.needs_tree()) {
    std::vector<Expr> values;
    for (const ColumnAssignment& assignment : statement.assignments) {
      if (assignment.value.has_value()) values.push_back(*assignment.value);
    }
    statement.source = scope.TakeSource(std::move(values), statement.returning);
  } else {
    statement.conjuncts = scope.TakeConditions();
  }
  statement.table = scope.bound_table();
  NAM_ASSIGN_OR_RETURN(statement.checks, BindChecks(statement.table.table, node.text().time()));
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindDelete(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(node.Only({"relation", "whereClause", "usingClause", "returningList", "withClause"}));
  ChangeScope scope(tables);
  NAM_RETURN_IF_ERROR(
      scope.BindFrom(node.Field("relation"), node.Field("withClause"), node.List("usingClause"), "DELETE"));
  NAM_RETURN_IF_ERROR(scope.BindWhere(node.Field("whereClause")));
  DeleteStatement statement;
  NAM_ASSIGN_OR_RETURN(statement.returning, scope.BindReturning(node.List("returningList"), std::set<int>()));
  if (scope.needs_tree()) {
    statement.source = scope.TakeSource({}, statement.returning);
  } else {
    statement.conjuncts = scope.TakeConditions();
  }
  statement.table = scope.bound_table();
  return Statement(std::move(statement));
}

}  // namespace nam::sql
