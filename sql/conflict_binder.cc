#include "sql/conflict_binder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "sql/assignment.h"
#include "sql/change_scope.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::logical::Column;

/// The unique keys of a table: its primary key, if any, and unique indexes.
std::vector<int> KeysOf(const proto::Table& table) {
  std::vector<int> keys;
  if (!HasRowIds(table)) keys.push_back(ConflictAction::kPrimaryKey);
  for (int i = 0; i < table.record().parts_size(); ++i) {
    const proto::RecordPart& part = table.record().parts(i);
    if (part.kind() == proto::ORDERED_INDEX && part.unique() && !part.leaving()) keys.push_back(i);
  }
  return keys;
}

std::set<uint32_t> ColumnsOfKey(const proto::Table& table, int key) {
  if (key == ConflictAction::kPrimaryKey) {
    const std::vector<uint32_t> columns = partitioner::KeyColumnsOf(table);
    return {columns.begin(), columns.end()};
  }
  const auto& columns = table.record().parts(key).columns();
  return {columns.begin(), columns.end()};
}

/// Binds with the target as relation 0, and the row to insert as relation 1, `excluded`.
class ConflictBinder {
 public:
  ConflictBinder(TableSource& tables, std::set<int>& defaults, absl::Status& late)
      : context_(tables), select_(context_, Surroundings()), defaults_(defaults), late_(late) {}

  absl::StatusOr<ConflictAction> Bind(const Node& clause, const Node& relation) {
    NAM_RETURN_IF_ERROR(clause.Only({"action", "infer", "targetList", "whereClause"}));
    NAM_RETURN_IF_ERROR(sql::BindFrom(select_, {relation.OfKind("RangeVar")}, scope_).status());
    table_ = context_.scanned[0];
    ConflictAction action;
    action.update = clause.Text("action") == "ONCONFLICT_UPDATE";
    NAM_ASSIGN_OR_RETURN(action.keys, Keys(clause, action.update));
    if (action.update) NAM_RETURN_IF_ERROR(BindUpdate(clause, action));
    late_.Update(unmatched_);
    late_.Update(context_.folding);
    return action;
  }

 private:
  absl::Status BindUpdate(const Node& clause, ConflictAction& action) {
    AddExcluded();
    const LogicalSelect::Within within(select_, scope_);
    const std::vector<Node> targets = clause.List("targetList");
    std::vector<ChangeValue> values;  // all are bound before they are assigned
    for (const Node& target : targets) {
      NAM_ASSIGN_OR_RETURN(ChangeValue value, ValueOf(target));
      values.push_back(std::move(value));
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(ColumnAssignment assignment, Assignment(targets[i], std::move(values[i])));
      action.assignments.push_back(std::move(assignment));
    }
    if (clause.Has("whereClause")) {
      NAM_ASSIGN_OR_RETURN(Expr where, select_.BindBoolean(clause.Field("whereClause"), Clause::kWhere));
      NAM_RETURN_IF_ERROR(RefuseSubquery(where, clause.Field("whereClause")));
      action.conjuncts = plan::logical::Conjuncts(std::move(where));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int>> Keys(const Node& clause, bool update) {
    const Node infer = clause.Field("infer");
    if (!infer) {
      if (!update) return KeysOf(*table_);
      return UserError(sqlstate::kSyntaxError,
                       "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                       clause.position(), "for example, ON CONFLICT (column_name)");
    }
    NAM_RETURN_IF_ERROR(infer.Only({"indexElems", "conname", "whereClause"}));
    // Every key covers all rows, so it satisfies any condition on rows.
    if (infer.Has("whereClause")) {
      const LogicalSelect::Within within(select_, scope_);
      const Node where = infer.Field("whereClause");
      NAM_ASSIGN_OR_RETURN(const Expr condition, select_.BindBoolean(where, Clause::kWhere));
      NAM_RETURN_IF_ERROR(RefuseSubquery(condition, where));
    }
    if (infer.Has("conname")) return Named(infer);
    std::set<uint32_t> wanted;
    for (const Node& element : infer.List("indexElems")) {
      if (element.Has("expr"))
        return Refusal("ON CONFLICT over an expression is not supported", infer.position(), "name columns");
      NAM_RETURN_IF_ERROR(element.Only({"name", "ordering", "nulls_ordering"}));
      NAM_ASSIGN_OR_RETURN(const int column, ColumnOf(element.Text("name"), infer.position()));
      wanted.insert(static_cast<uint32_t>(column));
    }
    std::vector<int> keys;
    for (const int key : KeysOf(*table_)) {
      if (ColumnsOfKey(*table_, key) == wanted) keys.push_back(key);
    }
    if (keys.empty()) {
      unmatched_ =
          UserError(sqlstate::kBadColumnReference,
                    "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    infer.position(), "name the columns of the primary key or of a unique index");
    }
    return keys;
  }

  absl::StatusOr<std::vector<int>> Named(const Node& infer) {
    const std::string name = infer.Text("conname");
    for (const int key : KeysOf(*table_)) {
      if (ConstraintName(*table_, key) == name) return std::vector<int>{key};
    }
    return UserError(
        sqlstate::kUndefinedObject,
        absl::StrCat("constraint ", Quote(name), " for table ", Quote(table_->name()), " does not exist"),
        infer.position());
  }

  absl::StatusOr<int> ColumnOf(const std::string& name, int position) {
    for (int i = 0; i < table_->columns_size(); ++i) {
      if (table_->columns(i).name() == name && !table_->columns(i).hidden()) return i;
    }
    return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name), " does not exist"),
                     position);
  }

  void AddExcluded() {
    FromRelation excluded;
    excluded.alias = "excluded";
    excluded.table = table_->name();
    const int relation = context_.AddRelation(&select_);
    context_.scanned[relation] = table_;
    for (Column column : scope_.relations[0].columns) {
      column.ref.table = relation;
      column.nullable = true;
      excluded.columns.push_back(std::move(column));
    }
    scope_.columns.insert(scope_.columns.end(), excluded.columns.begin(), excluded.columns.end());
    scope_.relations.push_back(std::move(excluded));
  }

  /// nullopt for DEFAULT.
  absl::StatusOr<ChangeValue> ValueOf(const Node& target) {
    const Node value = target.Field("val");
    if (value.Is("MultiAssignRef")) {
      return Refusal("assigning to several columns at once in ON CONFLICT is not supported",
                     target.position(), "write a = x, b = y");
    }
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    if (value.Is("SetToDefault")) return ChangeValue();
    NAM_ASSIGN_OR_RETURN(Expr expr, select_.BindUntyped(value, Clause::kSet));
    NAM_RETURN_IF_ERROR(RefuseSubquery(expr, value));
    return ChangeValue(std::move(expr));
  }

  absl::StatusOr<ColumnAssignment> Assignment(const Node& target, ChangeValue value) {
    NAM_ASSIGN_OR_RETURN(const int column, TargetColumn(*table_, target));
    if (!assigned_.insert(column).second) {
      late_.Update(UserError(sqlstate::kSyntaxError,
                             absl::StrCat("multiple assignments to same column ", Quote(target.Text("name"))),
                             target.position(), "assign it once"));
    }
    if (!value.has_value()) {
      defaults_.insert(column);
      return ColumnAssignment{column, std::nullopt};
    }
    const proto::Column& to = table_->columns(column);
    const int position = target.Field("val").position();
    if (to.numbering() == proto::NUMBERED_ALWAYS) {
      late_.Update(UserError("428C9",
                             absl::StrCat("column ", Quote(to.name()), " can only be updated to DEFAULT"),
                             position, "it is an identity column defined as GENERATED ALWAYS"));
    }
    NAM_ASSIGN_OR_RETURN(value, AsColumn(select_.builder(), *std::move(value), to, position));
    return ColumnAssignment{column, std::move(value)};
  }

  absl::Status RefuseSubquery(const Expr& expr, const Node& node) {
    if (!select_.UsesSubquery(expr)) return absl::OkStatus();
    return Refusal("subqueries in ON CONFLICT are not supported", node.position(),
                   "SELECT what is wanted before");
  }

  LogicalContext context_;
  LogicalSelect select_;
  FromScope scope_;
  std::shared_ptr<const proto::Table> table_;
  std::set<int>& defaults_;
  absl::Status& late_;
  absl::Status unmatched_;  // no key has the named columns
  std::set<int> assigned_;
};

}  // namespace

absl::StatusOr<ConflictAction> BindConflict(const Node& clause, const Node& relation, TableSource& tables,
                                            std::set<int>& defaults, absl::Status& late) {
  return ConflictBinder(tables, defaults, late).Bind(clause, relation);
}

}  // namespace nam::sql
