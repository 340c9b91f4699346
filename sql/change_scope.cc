#include "sql/change_scope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/expression_binder.h"
#include "sql/foreign_key_binder.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::Op;
using plan::logical::Column;
using plan::logical::MakeColumn;
using plan::logical::MakeFilter;
using plan::logical::MakeNode;
using plan::logical::Project;

/// Columns of other tables than the target: outputs of the source after `first`, as columns of table 1.
class ReturnedColumns {
 public:
  ReturnedColumns(int target, Project& project)
      : target_(target), first_(project.outputs.size()), project_(project) {}

  void Replace(Expr& expr) {
    for (Expr& child : expr.children) Replace(child);
    if (expr.op != Op::kColumn || expr.column.table == target_) return;
    const auto same = [&](const Expr& output) {
      return output.op == Op::kColumn && output.column == expr.column;
    };
    const auto behind = project_.outputs.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto found = std::find_if(behind, project_.outputs.end(), same);
    const auto place = static_cast<int>(found - behind);
    if (found == project_.outputs.end()) project_.outputs.push_back(expr);
    expr.column = {1, place};
  }

 private:
  const int target_;
  const size_t first_;
  Project& project_;
};

/// Until a new table has the indexes of its constraints, two rows could have the same key, and commits that
/// delete a row's parent may not know the table yet. Once it is being dropped they no longer know it.
absl::Status CheckConstraints(const proto::Table& table, int position) {
  const auto check = [&](const std::string& constraint, const std::string& index) {
    const auto& parts = table.record().parts();
    const bool there = std::any_of(parts.begin(), parts.end(), [&](const proto::RecordPart& part) {
      return part.name() == index && part.kind() == proto::ORDERED_INDEX && part.usable_from() != 0;
    });
    if (there) return absl::OkStatus();
    return UserError(sqlstate::kWrongState,
                     absl::StrCat("table ", Quote(table.name()), " is being created: it lacks constraint ",
                                  Quote(constraint)),
                     position, "try again; if its creator has died, drop the table");
  };
  for (const std::string& name : table.record().unique_constraints()) NAM_RETURN_IF_ERROR(check(name, name));
  for (const proto::ForeignKey& key : table.record().foreign_keys()) {
    NAM_RETURN_IF_ERROR(check(key.name(), key.index()));
    if (!key.leaving()) continue;
    return UserError(sqlstate::kWrongState, absl::StrCat("table ", Quote(table.name()), " is being dropped"),
                     position, "if that has failed, drop it again");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTarget(LogicalContext& context, const Node& relation, const char* statement) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
  NAM_ASSIGN_OR_RETURN(const auto table, context.FindTable(relation));
  if (IsRecordTable(*table)) return CheckConstraints(*table, relation.position());
  if (std::string_view(statement) == "INSERT") return absl::OkStatus();
  return Refusal(absl::StrCat(statement, " of ", Quote(table->name()), " is not supported"),
                 relation.position(),
                 "it is a columnar table, which is loaded and then read; CREATE TABLE … WITH (storage = "
                 "record) makes one that transactions change");
}

absl::Status ChangeScope::BindTarget(const Node& relation, const char* statement) {
  NAM_RETURN_IF_ERROR(CheckTarget(context_, relation, statement));
  NAM_ASSIGN_OR_RETURN(root_, sql::BindFrom(select_, {relation.OfKind("RangeVar")}, scope_));
  return absl::OkStatus();
}

absl::Status ChangeScope::BindFrom(const Node& relation, const Node& with, const std::vector<Node>& others,
                                   const char* statement) {
  const absl::Status target = BindTarget(relation, statement);  // before WITH defines such a name
  if (with) NAM_RETURN_IF_ERROR(with_.Bind(with));
  NAM_RETURN_IF_ERROR(target);
  if (!others.empty()) {
    NAM_ASSIGN_OR_RETURN(root_, sql::BindFrom(select_, others, scope_, std::move(root_)));
  }
  joined_ = !others.empty();
  table_ = {scope_.relations[0].alias, context_.scanned[kTarget], {}, {}};
  return BindReferences(context_.source, table_);
}

absl::Status ChangeScope::BindWhere(const Node& where) {
  if (!where) return absl::OkStatus();
  const LogicalSelect::Within within(select_, scope_);
  NAM_ASSIGN_OR_RETURN(Expr condition, select_.BindBoolean(where, Clause::kWhere));
  conditions_ = plan::logical::Conjuncts(std::move(condition));
  for (const Expr& one : conditions_) Ask(one);
  return absl::OkStatus();
}

absl::StatusOr<Expr> ChangeScope::BindValue(const Node& node) {
  const LogicalSelect::Within within(select_, scope_);
  NAM_ASSIGN_OR_RETURN(Expr value, select_.BindUntyped(node, Clause::kSet));
  Ask(value);
  return value;
}

absl::StatusOr<std::vector<Expr>> ChangeScope::BindRow(const Node& subquery, size_t width) {
  const LogicalSelect::Within within(select_, scope_);
  asks_ = true;
  return select_.BindRowSubquery(subquery, width);
}

absl::Status ChangeScope::AddStar(const Node& value, std::vector<OutputColumn>& out) {
  std::vector<std::string> table = value.Names("fields");
  table.pop_back();
  ScopeLevel level;
  level.scope = &scope_;
  level.select = &select_;
  NAM_ASSIGN_OR_RETURN(const std::vector<Column> columns, ResolveStar(level, table, value.position()));
  for (const Column& column : columns) out.push_back({column.name, MakeColumn(column, value.position())});
  return absl::OkStatus();
}

absl::Status ChangeScope::AskReturning(const Expr& expr, const std::optional<std::set<int>>& changed,
                                       int position) {
  if (!select_.UsesSubquery(expr)) return absl::OkStatus();
  const char* const hint = "SELECT what is wanted in the same transaction";
  if (!changed.has_value())
    return Refusal("subqueries in RETURNING of INSERT are not supported", position, hint);
  for (const plan::ColumnRef column : select_.NeedsOfSubqueries(expr)) {
    if (column.table == kTarget && changed->contains(column.column))
      return Refusal("a subquery in RETURNING over columns that the statement assigns is not supported",
                     position, hint);
  }
  asks_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OutputColumn>> ChangeScope::BindReturning(
    const std::vector<Node>& list, const std::optional<std::set<int>>& changed) {
  std::vector<OutputColumn> out;
  const LogicalSelect::Within within(select_, scope_);
  for (const Node& target : list) {
    NAM_RETURN_IF_ERROR(target.Only({"name", "val"}));
    const Node value = target.Field("val");
    const std::vector<Node> fields = value.Is("ColumnRef") ? value.List("fields") : std::vector<Node>();
    if (!fields.empty() && fields.back().Is("A_Star")) {
      NAM_RETURN_IF_ERROR(AddStar(value, out));
      continue;
    }
    NAM_ASSIGN_OR_RETURN(Expr expr, select_.BindTyped(value, Clause::kReturning));
    NAM_RETURN_IF_ERROR(AskReturning(expr, changed, value.position()));
    out.push_back({target.Has("name") ? target.Text("name") : OutputName(value), std::move(expr)});
  }
  for (OutputColumn& output : out) {
    const std::string& zone = list[0].text().time().zone;
    if (output.expr.type.kind != TypeKind::kTimestampTz || zone == kUtc) continue;
    select_.builder().UseZone(zone);
    NAM_ASSIGN_OR_RETURN(output.expr, select_.builder().Cast(std::move(output.expr), Type::String(), -1));
  }
  return out;
}

ChangeSource ChangeScope::TakeSource(std::vector<Expr> values, std::vector<OutputColumn>& returning) {
  // Conditions without subqueries come first: fewer rows evaluate the others.
  std::vector<Expr> plain, asking;
  for (Expr& condition : conditions_)
    (select_.UsesSubquery(condition) ? asking : plain).push_back(std::move(condition));
  root_ = MakeFilter(std::move(root_), std::move(plain));
  std::vector<const Expr*> users;
  for (const Expr& condition : asking) users.push_back(&condition);
  root_ = select_.Attach(std::move(root_), users);
  root_ = MakeFilter(std::move(root_), std::move(asking));
  users.clear();
  for (const Expr& value : values) users.push_back(&value);
  for (const OutputColumn& output : returning) users.push_back(&output.expr);
  root_ = select_.Attach(std::move(root_), users);
  Project project;
  for (int i = 0; i < table().columns_size(); ++i) {
    const proto::Column& column = table().columns(i);
    project.outputs.push_back(
        MakeColumn({{kTarget, i}, column.name(), ColumnTypeOf(column.type()), column.nullable()}));
  }
  for (Expr& value : values) project.outputs.push_back(std::move(value));
  ReturnedColumns returned(kTarget, project);
  for (OutputColumn& output : returning) returned.Replace(output.expr);
  std::vector<Column> columns;
  const int relation = context_.AddRelation(nullptr);
  for (const Expr& output : project.outputs)
    columns.push_back({{relation, static_cast<int>(columns.size())}, "", output.type, true});
  plan::logical::Query query;
  query.root = with_.Around(MakeNode(std::move(project), std::move(columns), std::move(root_)));
  query.relations = static_cast<int>(context_.owners.size());
  query.ctes = context_.ctes;
  plan::logical::DeriveAllColumns(*query.root);
  return std::make_shared<plan::logical::Query>(std::move(query));
}

}  // namespace nam::sql
