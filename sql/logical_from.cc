#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/file_arguments.h"
#include "sql/logical_select.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Expr;
using plan::JoinKind;
using plan::Op;
using plan::logical::Column;
using plan::logical::ColumnSet;
using plan::logical::Conjuncts;
using plan::logical::FreeColumns;
using plan::logical::Join;
using plan::logical::MakeColumn;
using plan::logical::MakeFilter;
using plan::logical::MakeJoin;
using plan::logical::MakeNode;
using plan::logical::Names;
using plan::logical::NodePtr;
using plan::logical::Project;

constexpr size_t kMostRelations = 64;

struct FromItem {
  NodePtr root;
  FromScope scope;
};

bool Meet(const ColumnSet& a, const ColumnSet& b) {
  return std::any_of(a.begin(), a.end(), [&](plan::ColumnRef ref) { return b.count(ref) > 0; });
}

/// left × right, where right may be LATERAL.
NodePtr JoinItems(JoinKind kind, NodePtr left, NodePtr right, std::vector<Expr> conditions) {
  Join join;
  join.kind = kind;
  const ColumnSet free = right->inputs.empty() ? ColumnSet() : FreeColumns(*right);
  join.dependent = !free.empty() && Meet(free, ColumnsIn(*left));
  join.conditions = std::move(conditions);
  return MakeNode(std::move(join), {}, std::move(left), std::move(right));
}

absl::StatusOr<JoinKind> KindOf(const Node& node) {
  const std::string type = node.Text("jointype");
  if (type.empty() || type == "JOIN_INNER") return JoinKind::kInner;
  if (type == "JOIN_LEFT") return JoinKind::kLeft;
  if (type == "JOIN_RIGHT") return JoinKind::kRight;
  if (type == "JOIN_FULL") return JoinKind::kFull;
  return Refusal("this kind of JOIN is not supported", node.position());
}

class FromTree {
 public:
  explicit FromTree(LogicalSelect& select) : select_(select), context_(select.context()) {}

  absl::StatusOr<FromItem> BindList(const std::vector<Node>& from, FromItem all) {
    for (const Node& node : from) {
      NAM_ASSIGN_OR_RETURN(FromItem item, Item(node, all.scope));
      NAM_RETURN_IF_ERROR(CheckAliases(all.scope, item.scope, node.position()));
      all.root = all.root == nullptr
                     ? std::move(item.root)
                     : JoinItems(JoinKind::kInner, std::move(all.root), std::move(item.root), {});
      all.scope.Add(item.scope);
    }
    if (all.root == nullptr) all.root = plan::logical::MakeOneRow();
    return all;
  }

 private:
  /// `left` is what LATERAL sees.
  absl::StatusOr<FromItem> Item(const Node& node, const FromScope& left) {
    const NestingLevel level(context_, 1);
    NAM_RETURN_IF_ERROR(level.Check(node));
    if (node.Is("JoinExpr")) return JoinItem(node, left);
    if (++relations_ > kMostRelations) {
      return UserError(sqlstate::kTooComplex, "too many tables in FROM", node.position(),
                       absl::StrCat("at most ", kMostRelations));
    }
    NAM_ASSIGN_OR_RETURN(std::optional<FileArguments> files, FileArguments::Of(node));
    if (files.has_value()) return Files(node, *std::move(files));
    if (node.Is("RangeVar")) return Table(node);
    if (node.Is("RangeSubselect")) return Subselect(node, left);
    if (node.Is("RangeFunction")) return Function(node, left);
    if (node.Is("RangeTableSample")) {
      return Refusal("TABLESAMPLE is not supported", node.text().Find({"tablesample"}),
                     "query the whole table");
    }
    return Refusal(absl::StrCat(node.kind(), " in FROM is not supported"), node.position(), "name a table");
  }

  static absl::Status CheckAliases(const FromScope& a, const FromScope& b, int position) {
    for (const FromRelation& relation : b.relations) {
      const auto same = [&](const FromRelation& other) {
        return !other.alias.empty() && other.alias == relation.alias;
      };
      if (std::none_of(a.relations.begin(), a.relations.end(), same)) continue;
      return UserError(sqlstate::kDuplicateAlias,
                       absl::StrCat("table name ", Quote(relation.alias), " is there twice"), position,
                       "give each its own alias");
    }
    return absl::OkStatus();
  }

  /// Names an item's columns as its alias says.
  static absl::StatusOr<FromItem> Named(NodePtr root, std::vector<Column> columns, const Node& alias,
                                        std::string table, int position) {
    FromRelation relation;
    relation.alias = alias ? alias.Text("aliasname") : table;
    relation.table = std::move(table);
    NAM_RETURN_IF_ERROR(RenameColumns(alias ? alias.Names("colnames") : std::vector<std::string>(),
                                      relation.alias, position, columns));
    FromItem item;
    item.root = std::move(root);
    item.scope.columns = columns;
    relation.columns = std::move(columns);
    item.scope.relations.push_back(std::move(relation));
    return item;
  }

  absl::StatusOr<FromItem> Files(const Node& node, FileArguments files) {
    if (files.called) {
      NAM_RETURN_IF_ERROR(node.Only({"lateral", "functions", "alias"}));
    } else {
      NAM_RETURN_IF_ERROR(node.Only({"relname", "inh", "relpersistence", "alias"}));
    }
    NAM_ASSIGN_OR_RETURN(const FileArguments::Described described,
                         files.Add(context_.source, node.text().time()));
    const Node alias = node.Field("alias");
    NAM_ASSIGN_OR_RETURN(FromItem item,
                         Scanned(described.table, alias, files.Alias(), files.position, [&](int relation) {
                           return plan::logical::FileScan{relation, described.files, described.table};
                         }));
    if (!alias.Has("colnames")) item.scope.relations[0].written = files.WrittenNames();
    return item;
  }

  absl::StatusOr<FromItem> Table(const Node& node) {
    const int position = node.position();
    if (!node.Flag("inh")) {
      return Refusal("ONLY is not supported", node.text().FindBefore("only", position),
                     "tables have no children here");
    }
    NAM_RETURN_IF_ERROR(
        node.Only({"catalogname", "schemaname", "relname", "inh", "relpersistence", "alias"}));
    const std::string name = node.Text("relname");
    const Node alias = node.Field("alias");
    CommonTables* ctes = select_.around().ctes;
    if (const CommonTable* cte = ctes == nullptr || node.Has("schemaname") ? nullptr : ctes->Find(name)) {
      return CteItem(*cte, alias, position);
    }
    NAM_ASSIGN_OR_RETURN(auto table, context_.FindRelation(node));
    if (table->has_view()) return View(*table, node, name);
    return Scanned(table, alias, name, position, [&](int relation) {
      return plan::logical::Scan{relation, table};
    });
  }

  /// All rows of a table, named `name` unless it has an alias. `make`: the operator that scans it.
  absl::StatusOr<FromItem> Scanned(const std::shared_ptr<const proto::Table>& table, const Node& alias,
                                   const std::string& name, int position,
                                   const std::function<plan::logical::Operator(int relation)>& make) {
    const int relation = context_.AddRelation(&select_);
    std::vector<Column> columns;
    for (int i = 0; i < table->columns_size(); ++i) {
      const proto::Column& column = table->columns(i);
      columns.push_back({{relation, i},
                         column.name(),
                         ColumnTypeOf(column.type()),
                         column.nullable(),
                         DeclaredType(column.type())});
    }
    context_.scanned[relation] = table;
    NodePtr scan = MakeNode(make(relation), columns);
    std::erase_if(columns, [&](const Column& column) { return table->columns(column.ref.column).hidden(); });
    NAM_ASSIGN_OR_RETURN(FromItem item, Named(std::move(scan), std::move(columns), alias, name, position));
    item.scope.relations[0].table = table->name();
    return item;
  }

  absl::StatusOr<FromItem> CteItem(const CommonTable& cte, const Node& alias, int position) {
    plan::logical::CteScan scan{cte.number, {}};
    std::vector<Column> columns = cte.columns;
    const int relation = context_.AddRelation(&select_);
    for (size_t i = 0; i < columns.size(); ++i) {
      columns[i].ref = {relation, static_cast<int>(i)};
      scan.fields.push_back(static_cast<uint32_t>(i));
    }
    NodePtr root = MakeNode(std::move(scan), columns);
    return Named(std::move(root), std::move(columns), alias, cte.name, position);
  }

  absl::StatusOr<FromItem> Subselect(const Node& node, const FromScope& left) {
    NAM_RETURN_IF_ERROR(node.Only({"lateral", "subquery", "alias"}));
    if (!node.Has("alias")) {
      return UserError(sqlstate::kSyntaxError, "subquery in FROM must have an alias", node.position(),
                       "write (SELECT …) AS name");
    }
    ScopeLevel level;
    level.scope = &left;
    level.select = &select_;
    level.outer = select_.around().level;
    level.sealed = !node.Flag("lateral");
    NAM_ASSIGN_OR_RETURN(BoundTree tree,
                         BindQuery(context_, {&level, select_.around().ctes}, node.Field("subquery")));
    return Own(std::move(tree.root), node.Field("alias"), "", node.Field("subquery").position());
  }

  absl::StatusOr<FromItem> View(const proto::Table& view, const Node& node, const std::string& name) {
    if (context_.views == 0) context_.view_items.insert(node.position());
    NAM_ASSIGN_OR_RETURN(BoundTree tree, BindView(context_, view, node));
    return Own(std::move(tree.root), node.Field("alias"), name, node.position());
  }

  /// From here on the columns of a subquery belong to this select.
  absl::StatusOr<FromItem> Own(NodePtr tree, const Node& alias, const std::string& name, int position) {
    plan::logical::Project project;
    std::vector<Column> columns = tree->columns;
    const int relation = context_.AddRelation(&select_);
    for (size_t i = 0; i < columns.size(); ++i) {
      project.outputs.push_back(MakeColumn(columns[i]));
      columns[i].ref = {relation, static_cast<int>(i)};
    }
    NodePtr root = MakeNode(std::move(project), std::move(columns), std::move(tree));
    columns = root->columns;
    return Named(std::move(root), std::move(columns), alias, name, position);
  }

  /// generate_series, which sees the items to its left with and without LATERAL.
  absl::StatusOr<FromItem> Function(const Node& node, const FromScope& left) {
    const SqlText& text = node.text();
    const std::vector<Node> functions = node.List("functions");
    const std::vector<Node> items = functions.size() == 1 ? functions[0].List("items") : std::vector<Node>();
    const int position = items.empty() ? text.Start() : items[0].position();
    if (node.Flag("ordinality")) {
      return Refusal("WITH ORDINALITY is not supported", text.Find({"ordinality"}, position),
                     "write row_number() OVER (ORDER BY …)");
    }
    NAM_RETURN_IF_ERROR(node.Only({"lateral", "functions", "alias"}));
    const std::vector<std::string> names =
        items.empty() || !items[0].Is("FuncCall") ? std::vector<std::string>() : items[0].Names("funcname");
    if (names.empty() || names.size() > 2 || names.back() != "generate_series" ||
        (names.size() == 2 && names[0] != "pg_catalog")) {
      return Refusal("functions in FROM but generate_series and read_csv are not supported", position,
                     "name a table, or write a subquery");
    }
    NAM_ASSIGN_OR_RETURN(plan::logical::Series series, BindSeries(select_, items[0], left));
    const Node alias = node.Field("alias");
    // The column is named like the table, as in PostgreSQL.
    series.result = {{context_.AddRelation(&select_), 0},
                     alias ? alias.Text("aliasname") : names.back(),
                     series.first.type,
                     false,
                     CommonDeclaredType({&series.first, &series.last, &series.step})};
    std::vector<Column> columns = {series.result};
    NodePtr root = MakeNode(std::move(series), {}, plan::logical::MakeOneRow());
    return Named(std::move(root), std::move(columns), alias, names.back(), position);
  }

  absl::StatusOr<FromItem> JoinItem(const Node& node, const FromScope& around) {
    NAM_RETURN_IF_ERROR(node.Only({"jointype", "larg", "rarg", "usingClause", "quals", "isNatural", "alias",
                                   "join_using_alias", "rtindex"}));
    NAM_ASSIGN_OR_RETURN(const JoinKind kind, KindOf(node));
    NAM_ASSIGN_OR_RETURN(FromItem left, Item(node.Field("larg"), around));
    FromScope around_right = around;
    around_right.Add(left.scope);
    if (kind == JoinKind::kRight || kind == JoinKind::kFull) {
      for (size_t i = around.relations.size(); i < around_right.relations.size(); ++i)
        around_right.relations[i].reachable = false;
    }
    NAM_ASSIGN_OR_RETURN(FromItem right, Item(node.Field("rarg"), around_right));
    const int position = node.Field("rarg").position();
    NAM_RETURN_IF_ERROR(CheckAliases(left.scope, right.scope, position));
    absl::StatusOr<FromItem> joined = node.Has("usingClause") || node.Flag("isNatural")
                                          ? Using(node, kind, std::move(left), std::move(right))
                                          : On(node, kind, std::move(left), std::move(right), around);
    if (!joined.ok() || !node.Has("alias")) return joined;
    return Named(std::move(joined->root), joined->scope.columns, node.Field("alias"), "", position);
  }

  absl::StatusOr<FromItem> On(const Node& node, JoinKind kind, FromItem left, FromItem right,
                              const FromScope& beside) {
    FromItem joined;
    joined.scope = left.scope;
    joined.scope.Add(right.scope);
    std::vector<Expr> conditions;
    if (node.Has("quals")) {
      const LogicalSelect::Within within(select_, joined.scope, &beside);
      NAM_ASSIGN_OR_RETURN(Expr condition, select_.BindBoolean(node.Field("quals"), Clause::kOn));
      conditions = Conjuncts(std::move(condition));
    }
    NAM_ASSIGN_OR_RETURN(joined.root, Combine(kind, std::move(left.root), std::move(right.root),
                                              std::move(conditions), node.Field("quals").position()));
    return joined;
  }

  /// The join; conditions may use subqueries.
  absl::StatusOr<NodePtr> Combine(JoinKind kind, NodePtr left, NodePtr right, std::vector<Expr> conditions,
                                  int position) {
    std::vector<const Expr*> users;
    for (const Expr& condition : conditions) {
      if (select_.UsesSubquery(condition)) users.push_back(&condition);
    }
    if (users.empty() || kind == JoinKind::kInner) {
      if (users.empty()) return JoinItems(kind, std::move(left), std::move(right), std::move(conditions));
      NodePtr both = JoinItems(kind, std::move(left), std::move(right), {});
      both = select_.Attach(std::move(both), users);
      return MakeFilter(std::move(both), std::move(conditions));
    }
    if (kind == JoinKind::kFull)
      return FullWithSubqueries(std::move(left), std::move(right), conditions, position);
    // The condition is evaluated inside the side that may be missing, for each row of the other.
    if (kind == JoinKind::kRight) std::swap(left, right);
    right = select_.Attach(std::move(right), users);
    right = MakeFilter(std::move(right), std::move(conditions));
    return JoinItems(JoinKind::kLeft, std::move(left), std::move(right), {});
  }

  /// A subquery that needs one side only is a column of that side.
  absl::StatusOr<NodePtr> FullWithSubqueries(NodePtr left, NodePtr right, std::vector<Expr>& conditions,
                                             int position) {
    const ColumnSet of_left = ColumnsIn(*left), of_right = ColumnsIn(*right);
    for (const Expr& condition : conditions) {
      if (!select_.UsesSubquery(condition)) continue;
      const ColumnSet needs = select_.NeedsOfSubqueries(condition);
      if (Meet(needs, of_left) && Meet(needs, of_right)) {
        return Refusal("a subquery in FULL JOIN … ON that needs both sides is not supported", position,
                       "compute it in a subquery in FROM, of one side");
      }
      NodePtr& side = Meet(needs, of_left) ? left : right;
      side = select_.Attach(std::move(side), {&condition});
    }
    return JoinItems(JoinKind::kFull, std::move(left), std::move(right), std::move(conditions));
  }

  absl::StatusOr<std::vector<std::string>> SharedNames(const Node& node, const FromScope& left,
                                                       const FromScope& right) {
    if (node.Has("usingClause")) return node.Names("usingClause");
    std::vector<std::string> names;
    for (const Column& column : left.columns) {
      if (HasColumn(right, column.name) && std::find(names.begin(), names.end(), column.name) == names.end())
        names.push_back(column.name);
    }
    return names;
  }

  absl::StatusOr<FromItem> Using(const Node& node, JoinKind kind, FromItem left, FromItem right) {
    NAM_ASSIGN_OR_RETURN(const std::vector<std::string> names, SharedNames(node, left.scope, right.scope));
    // The names have no location: they follow USING, the last one before the next table.
    const int before = node.Field("rarg").Leftmost();
    int position = std::max(node.text().Find({"using"}, before), -1);
    if (position < 0) position = before;
    std::vector<Expr> conditions;
    FromScope merged;
    Project project;
    std::vector<Column> computed;
    const int relation = context_.AddRelation(&select_);
    for (const std::string& name : names) {
      if (!node.Flag("isNatural")) position = std::max(position, node.text().Find({name}, position + 1));
      if (HasColumn(merged, name)) {
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(name), " is twice in USING"), position,
                         "name it once");
      }
      NAM_ASSIGN_OR_RETURN(const Column a, SideColumn(left.scope, name, position));
      NAM_ASSIGN_OR_RETURN(const Column b, SideColumn(right.scope, name, position));
      NAM_ASSIGN_OR_RETURN(Expr equal, select_.builder().Compare(Op::kEqual, MakeColumn(a, position),
                                                                 MakeColumn(b, position), position));
      conditions.push_back(std::move(equal));
      NAM_ASSIGN_OR_RETURN(Expr value, Merged(kind, a, b, position));
      Column column{value.column, name, value.type, true, value.declared};
      if (value.op != Op::kColumn) {
        column.ref = {relation, static_cast<int>(computed.size())};
        computed.push_back(column);
        project.outputs.push_back(std::move(value));
      }
      merged.columns.push_back(column);
    }
    FromItem joined;
    joined.root =
        JoinItems(kind, std::move(left.root), std::move(right.root), Conjuncts(std::move(conditions)));
    if (!computed.empty()) {
      for (const Column& column : joined.root->columns) {
        project.outputs.push_back(MakeColumn(column));
        computed.push_back(column);
      }
      joined.root = MakeNode(std::move(project), std::move(computed), std::move(joined.root));
    }
    joined.scope.columns = merged.columns;
    for (const FromScope* side : {&left.scope, &right.scope}) {
      joined.scope.relations.insert(joined.scope.relations.end(), side->relations.begin(),
                                    side->relations.end());
      for (const Column& column : side->columns) {
        if (std::find(names.begin(), names.end(), column.name) == names.end())
          joined.scope.columns.push_back(column);
      }
    }
    if (const Node alias = node.Field("join_using_alias")) {
      FromRelation relation_of_alias;
      relation_of_alias.alias = alias.Text("aliasname");
      relation_of_alias.columns = std::move(merged.columns);
      joined.scope.relations.push_back(std::move(relation_of_alias));
    }
    return joined;
  }

  absl::StatusOr<Column> SideColumn(const FromScope& side, const std::string& name, int position) {
    ScopeLevel level;
    level.scope = &side;
    level.select = &select_;
    return ResolveColumn(level, {name}, position, false);
  }

  /// The value of a merged column: from the side that is always there, from both for FULL.
  absl::StatusOr<Expr> Merged(JoinKind kind, const Column& a, const Column& b, int position) {
    Expr left = MakeColumn(a, position), right = MakeColumn(b, position);
    NAM_RETURN_IF_ERROR(select_.builder().Unify({&left, &right}, "JOIN/USING"));
    if (kind == JoinKind::kRight) return right;
    if (kind != JoinKind::kFull) return left;
    NAM_ASSIGN_OR_RETURN(Expr absent, select_.builder().IsNull(left, position));
    NAM_ASSIGN_OR_RETURN(Expr present, select_.builder().Not(std::move(absent), position));
    std::vector<Expr> parts;
    parts.push_back(std::move(present));
    parts.push_back(std::move(left));
    parts.push_back(std::move(right));
    return select_.builder().Case(std::move(parts), position);
  }

  LogicalSelect& select_;
  LogicalContext& context_;
  size_t relations_ = 0;
};

}  // namespace

absl::StatusOr<NodePtr> BindFrom(LogicalSelect& select, const std::vector<Node>& from, FromScope& scope,
                                 NodePtr left) {
  FromItem before;
  if (left != nullptr) before = {std::move(left), std::move(scope)};
  NAM_ASSIGN_OR_RETURN(FromItem item, FromTree(select).BindList(from, std::move(before)));
  scope = std::move(item.scope);
  return std::move(item.root);
}

}  // namespace nam::sql
