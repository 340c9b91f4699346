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

/// SET's list. As in PostgreSQL, all values are bound first, then assigned to columns; duplicate and
/// forbidden assignments are reported last.
class SetList {
 public:
  explicit SetList(ChangeScope& scope) : scope_(scope) {}

  absl::Status Bind(const std::vector<Node>& targets) {
    for (const Node& target : targets) NAM_RETURN_IF_ERROR(AddSource(target));
    for (size_t i = 0; i < targets.size(); ++i) NAM_RETURN_IF_ERROR(Assign(targets[i], sources_[i]));
    std::set<int> seen;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (seen.insert(assignments_[i].column).second) continue;
      return UserError(sqlstate::kSyntaxError,
                       absl::StrCat("multiple assignments to same column ", Quote(targets[i].Text("name"))),
                       targets[i].position(), "assign it once");
    }
    for (size_t i = 0; i < targets.size(); ++i) NAM_RETURN_IF_ERROR(MayBeSet(i));
    return absl::OkStatus();
  }

  std::vector<ColumnAssignment> Take() { return std::move(assignments_); }

 private:
  struct Source {
    std::optional<Expr> value;  // nullopt: DEFAULT
    int position = -1;
  };

  absl::Status AddSource(const Node& target) {
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    Node value = target.Field("val");
    if (value.Is("MultiAssignRef")) {
      const auto place = static_cast<size_t>(value.Integer("colno")) - 1;
      const auto width = static_cast<size_t>(value.Integer("ncolumns"));
      const Node source = value.Field("source");
      if (source.Is("SubLink")) return AddOfRow(source, place, width);
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
    Source& source = sources_.emplace_back(Source{std::nullopt, value.position()});
    if (value.Is("SetToDefault")) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(source.value, scope_.BindValue(value));
    return absl::OkStatus();
  }

  /// Binds a row that is assigned as a whole with its first column.
  absl::Status AddOfRow(const Node& source, size_t place, size_t width) {
    if (place == 0) {
      NAM_ASSIGN_OR_RETURN(row_, scope_.BindRow(source, width));
    }
    scope_.builder().UseZone(source.text().time().zone);
    sources_.push_back({row_.at(place), source.position()});
    return absl::OkStatus();
  }

  absl::Status Assign(const Node& target, Source& source) {
    NAM_ASSIGN_OR_RETURN(const int column, TargetColumn(scope_.table(), target));
    if (source.value.has_value()) {
      NAM_ASSIGN_OR_RETURN(source.value, AsColumn(scope_.builder(), *std::move(source.value),
                                                  scope_.table().columns(column), source.position));
    }
    assignments_.push_back({column, std::move(source.value)});
    return absl::OkStatus();
  }

  absl::Status MayBeSet(size_t place) const {
    const proto::Column& column = scope_.table().columns(assignments_[place].column);
    const bool given = assignments_[place].value.has_value();
    if (!given || column.numbering() != proto::NUMBERED_ALWAYS) return absl::OkStatus();
    return UserError(sqlstate::kGeneratedAlways,
                     absl::StrCat("column ", Quote(column.name()), " can only be updated to DEFAULT"),
                     sources_[place].position, "it is an identity column defined as GENERATED ALWAYS");
  }

  ChangeScope& scope_;
  std::vector<Source> sources_;
  std::vector<ColumnAssignment> assignments_;
  std::vector<Expr> row_;  // of the subquery whose columns are being assigned
};

/// The columns that SET names; SetList reports unknown ones.
std::set<int> ColumnsOf(const std::vector<Node>& targets, const proto::Table& table) {
  std::set<int> columns;
  for (const Node& target : targets) {
    if (const absl::StatusOr<int> column = TargetColumn(table, target); column.ok()) columns.insert(*column);
  }
  return columns;
}

}  // namespace

absl::StatusOr<Statement> BindUpdate(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(
      node.Only({"relation", "targetList", "whereClause", "fromClause", "returningList", "withClause"}));
  ChangeScope scope(tables);
  NAM_RETURN_IF_ERROR(
      scope.BindFrom(node.Field("relation"), node.Field("withClause"), node.List("fromClause"), "UPDATE"));
  NAM_RETURN_IF_ERROR(scope.BindWhere(node.Field("whereClause")));
  const std::vector<Node> targets = node.List("targetList");
  UpdateStatement statement;
  NAM_ASSIGN_OR_RETURN(statement.returning,
                       scope.BindReturning(node.List("returningList"), ColumnsOf(targets, scope.table())));
  SetList set(scope);  // last, as in PostgreSQL
  NAM_RETURN_IF_ERROR(set.Bind(targets));
  NAM_RETURN_IF_ERROR(scope.folding());
  statement.assignments = set.Take();
  std::set<int> defaults;
  for (const ColumnAssignment& assignment : statement.assignments) {
    if (!assignment.value.has_value()) defaults.insert(assignment.column);
  }
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
  NAM_RETURN_IF_ERROR(scope.folding());
  if (scope.needs_tree()) {
    statement.source = scope.TakeSource({}, statement.returning);
  } else {
    statement.conjuncts = scope.TakeConditions();
  }
  statement.table = scope.bound_table();
  return Statement(std::move(statement));
}

}  // namespace nam::sql
