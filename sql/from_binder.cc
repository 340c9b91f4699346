#include "sql/from_binder.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::ColumnRef;
using plan::Expr;
using plan::MakeLiteral;
using plan::Op;

constexpr int kMostTables = 64;

absl::Status TooManyTables(int position) {
  return UserError(sqlstate::kTooComplex, "too many tables in FROM", position,
                   absl::StrCat("at most ", kMostTables));
}

/// Columns whose equality is the equality of their stored numbers or strings.
bool JoinableTypes(const Type& a, const Type& b) {
  return a.kind == b.kind && (a.kind == TypeKind::kString || a.scale == b.scale);
}

bool IsJoinEdge(const Expr& e) {
  return EquatesTables(e) && JoinableTypes(e.children[0].type, e.children[1].type);
}

absl::Status RefuseFromItem(const Node& node) {
  const SqlText& text = node.text();
  const int position = node.position();
  if (node.Is("RangeSubselect")) {
    if (node.Flag("lateral")) {
      return Refusal("LATERAL is not supported", text.FindBefore("lateral", position),
                     "write the query as a join");
    }
    return Refusal("subqueries in FROM are not supported", text.FindBefore("(", position),
                   "write the query as a join");
  }
  if (node.Is("RangeFunction"))
    return Refusal("functions in FROM are not supported", position, "name a table");
  if (node.Is("RangeTableSample")) {
    return Refusal("TABLESAMPLE is not supported", text.Find({"tablesample"}), "query the whole table");
  }
  return Refusal(absl::StrCat(node.kind(), " in FROM is not supported"), position, "name a table");
}

/// Clauses of JOIN that change what it means.
absl::Status RefuseJoinClauses(const Node& node) {
  const SqlText& text = node.text();
  const int right = node.Field("rarg").Leftmost();
  if (node.Flag("isNatural")) {
    return Refusal("NATURAL JOIN is not supported", text.FindBefore("natural", right),
                   "name the columns with USING");
  }
  struct {
    const char *type, *word, *name;
  } constexpr kOuter[] = {{"JOIN_LEFT", "left", "LEFT JOIN"},
                          {"JOIN_RIGHT", "right", "RIGHT JOIN"},
                          {"JOIN_FULL", "full", "FULL JOIN"}};
  for (const auto& outer : kOuter) {
    if (node.Text("jointype") == outer.type) {
      return Refusal(absl::StrCat(outer.name, " is not supported"), text.FindBefore(outer.word, right),
                     "only inner joins are");
    }
  }
  if (node.Has("alias") || node.Has("join_using_alias")) {
    return Refusal("an alias for a JOIN is not supported", right, "give each table its alias");
  }
  return node.Only({"jointype", "larg", "rarg", "usingClause", "quals"});
}

}  // namespace

absl::StatusOr<Scope> FromBinder::Bind(const std::vector<Node>& from) {
  Scope scope;
  for (const Node& node : from) {
    NAM_ASSIGN_OR_RETURN(Scope item, Item(node));
    scope.tables.insert(scope.tables.end(), item.tables.begin(), item.tables.end());
    scope.columns.insert(scope.columns.end(), item.columns.begin(), item.columns.end());
  }
  return scope;
}

absl::StatusOr<Scope> FromBinder::Item(const Node& node) {
  if (node.Is("RangeVar")) return Table(node);
  if (!node.Is("JoinExpr")) return RefuseFromItem(node);
  if (++open_joins_ > kMostTables) return TooManyTables(node.position());
  absl::StatusOr<Scope> scope = Join(node);
  --open_joins_;
  return scope;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> FromBinder::Find(const std::string& name, int position) {
  auto& found = found_[name];
  if (found != nullptr) return found;
  auto table = source_.Find(name);
  if (table.ok()) return found = *std::move(table);
  if (!absl::IsNotFound(table.status())) return table.status();
  const std::vector<std::string> names = source_.Names();
  std::string hint = DidYouMean(name, names);
  if (hint.empty()) hint = names.empty() ? "there is no table yet; load one first" : "";
  return UserError(sqlstate::kUndefinedTable, absl::StrCat("table ", Quote(name), " does not exist"),
                   position, hint);
}

absl::StatusOr<Scope> FromBinder::Table(const Node& node) {
  const int position = node.position();
  if (node.Has("catalogname") || (node.Has("schemaname") && node.Text("schemaname") != "public")) {
    return Refusal("schemas other than public are not supported", position, "write the table's name alone");
  }
  if (!node.Flag("inh")) {
    return Refusal("ONLY is not supported", node.text().FindBefore("only", position),
                   "tables have no children here");
  }
  NAM_RETURN_IF_ERROR(node.Only({"schemaname", "relname", "inh", "relpersistence", "alias"}));
  const Node alias_node = node.Field("alias");
  if (alias_node.Has("colnames")) {
    return Refusal("column aliases in FROM are not supported", position,
                   "rename columns with AS in the select list");
  }
  if (query_.tables.size() >= kMostTables) return TooManyTables(position);
  NAM_ASSIGN_OR_RETURN(auto table, Find(node.Text("relname"), position));
  std::string alias = alias_node ? alias_node.Text("aliasname") : node.Text("relname");
  for (const BoundTable& other : query_.tables) {
    if (other.alias == alias) {
      return UserError(sqlstate::kDuplicateAlias,
                       absl::StrCat("table name ", Quote(alias), " is there twice"), position,
                       "give each its own alias");
    }
  }
  const int index = static_cast<int>(query_.tables.size());
  Scope scope;
  scope.tables = {index};
  for (int i = 0; i < table->columns_size(); ++i) {
    if (!table->columns(i).hidden()) scope.columns.push_back({table->columns(i).name(), {index, i}});
  }
  query_.tables.push_back({std::move(alias), std::move(table)});
  positions_.push_back(position);
  return scope;
}

absl::StatusOr<Scope> FromBinder::Join(const Node& node) {
  NAM_RETURN_IF_ERROR(RefuseJoinClauses(node));
  NAM_ASSIGN_OR_RETURN(const Scope left, Item(node.Field("larg")));
  NAM_ASSIGN_OR_RETURN(const Scope right, Item(node.Field("rarg")));
  if (node.Has("usingClause")) return Using(node, left, right);
  Scope scope = left;
  scope.tables.insert(scope.tables.end(), right.tables.begin(), right.tables.end());
  scope.columns.insert(scope.columns.end(), right.columns.begin(), right.columns.end());
  if (node.Has("quals")) {
    NAM_ASSIGN_OR_RETURN(Expr condition, expressions_.BindBoolean(node.Field("quals"), scope, Clause::kOn));
    AddCondition(std::move(condition));
  }
  return scope;
}

absl::StatusOr<Scope> FromBinder::Using(const Node& node, const Scope& left, const Scope& right) {
  const std::vector<std::string> names = node.Names("usingClause");
  // The names have no location: they stand behind USING, the last one before the next table.
  int position = node.text().Find({"using"}, node.Field("rarg").Leftmost());
  Scope scope;
  for (const std::string& name : names) {
    position = std::max(position, node.text().Find({name}, position + 1));
    if (std::any_of(scope.columns.begin(), scope.columns.end(),
                    [&](const auto& c) { return c.name == name; })) {
      return UserError(sqlstate::kDuplicateColumn, absl::StrCat("column ", Quote(name), " is twice in USING"),
                       position, "name it once");
    }
    NAM_ASSIGN_OR_RETURN(Expr a, expressions_.names().Column(left, {name}, position, false));
    NAM_ASSIGN_OR_RETURN(Expr b, expressions_.names().Column(right, {name}, position, false));
    scope.columns.push_back({name, a.column});
    NAM_ASSIGN_OR_RETURN(Expr equal,
                         expressions_.builder().Compare(Op::kEqual, std::move(a), std::move(b), position));
    AddCondition(std::move(equal));
  }
  for (const Scope* side : {&left, &right}) {
    scope.tables.insert(scope.tables.end(), side->tables.begin(), side->tables.end());
    for (const Scope::Column& column : side->columns) {
      if (std::find(names.begin(), names.end(), column.name) == names.end()) scope.columns.push_back(column);
    }
  }
  return scope;
}

void FromBinder::AddCondition(Expr condition) {
  if (condition.op == Op::kAnd) {
    for (Expr& child : condition.children) AddCondition(std::move(child));
    return;
  }
  if (IsBoolLiteral(condition, true)) return;
  if (IsNullLiteral(condition)) condition = MakeLiteral(Value::Bool(false), condition.position);
  if (!IsJoinEdge(condition)) {
    const auto same = [&](const Expr& other) { return SameExpr(other, condition); };
    if (std::none_of(query_.conjuncts.begin(), query_.conjuncts.end(), same)) {
      query_.conjuncts.push_back(std::move(condition));
    }
    return;
  }
  const ColumnRef a = condition.children[0].column, b = condition.children[1].column;
  const auto same = [&](const JoinEdge& e) {
    return (e.left == a && e.right == b) || (e.left == b && e.right == a);
  };
  if (std::none_of(query_.joins.begin(), query_.joins.end(), same)) query_.joins.push_back({a, b});
}

absl::Status FromBinder::CheckConnected() const {
  std::vector<int> group(query_.tables.size());
  std::iota(group.begin(), group.end(), 0);
  for (const JoinEdge& edge : query_.joins) {
    const int from = group[static_cast<size_t>(edge.right.table)],
              to = group[static_cast<size_t>(edge.left.table)];
    std::replace(group.begin(), group.end(), from, to);
  }
  for (size_t i = 1; i < group.size(); ++i) {
    if (group[i] == group[0]) continue;
    const std::string pair =
        absl::StrCat(Quote(query_.tables[0].alias), " and ", Quote(query_.tables[i].alias));
    for (const Expr& e : query_.conjuncts) {
      if (EquatesTables(e)) {
        return Refusal("joining columns of different numeric types is not supported", e.position,
                       "join columns of one type and scale");
      }
    }
    for (const Expr& e : query_.conjuncts) {
      const auto joins = [&](ColumnRef column) { return group[static_cast<size_t>(column.table)]; };
      const std::vector<ColumnRef> columns = ColumnsOf(e);
      const auto other = [&](ColumnRef column) { return joins(column) != joins(columns[0]); };
      if (std::none_of(columns.begin(), columns.end(), other)) continue;
      return Refusal("a join condition that is no equality of columns is not supported without one that is",
                     e.position,
                     absl::StrCat("join ", pair, " by columns, as in a.x = b.y; other conditions ",
                                  "may stand beside that"));
    }
    return Refusal("cartesian products are not supported", positions_[i],
                   absl::StrCat("add a join condition that connects ", pair, ", such as a.x = b.y"));
  }
  return absl::OkStatus();
}

}  // namespace nam::sql
