#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/change_scope.h"
#include "sql/logical_query.h"
#include "sql/record_binder.h"
#include "sql/storage_options.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// CREATE TABLE AS, TRUNCATE and VACUUM.
namespace nam::sql {
namespace {

namespace lg = plan::logical;

/// Where a statement names one table, of the schema public.
absl::Status CheckName(const Node& relation) {
  if (relation.Has("catalogname") ||
      (relation.Has("schemaname") && relation.Text("schemaname") != "public")) {
    return Refusal("schemas other than public are not supported", relation.position(),
                   "write the table's name alone");
  }
  return CheckNotSystem(relation.Text("relname"), relation.position());
}

/// A type whose values are all that an expression of the type may have.
proto::Type StoredTypeOf(Type type) {
  if (type.kind == TypeKind::kNull) type = Type::String();
  if (type.kind == TypeKind::kInteger && type.precision == 0) type.precision = sizeof(int64_t);
  if (type.kind == TypeKind::kDecimal && type.precision == 0) type.precision = kMaxDecimalDigits;
  return ToProto(type);
}

class TableAsBinder {
 public:
  TableAsBinder(const Node& node, TableSource& tables)
      : node_(node), into_(node.Field("into")), tables_(tables), table_(statement_.create.table) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(node_.Only({"query", "into", "objtype", "if_not_exists"}));
    if (node_.Text("objtype") != "OBJECT_TABLE")
      return Refusal("materialized views are not supported", node_.text().Start(), "write CREATE TABLE … AS");
    NAM_RETURN_IF_ERROR(into_.Only({"rel", "colNames", "options", "onCommit", "skipData"}));
    const Node relation = into_.Field("rel");
    statement_.create.position = relation.position();
    statement_.create.if_not_exists = node_.Flag("if_not_exists");
    statement_.with_data = !into_.Flag("skipData");
    if (relation.Text("relpersistence") != "p") {
      return Refusal("tables that are TEMPORARY or UNLOGGED are not supported", relation.position(),
                     "leave it out");
    }
    NAM_RETURN_IF_ERROR(CheckName(relation));
    table_.set_name(relation.Text("relname"));
    using Storage = StorageOptions::Storage;
    NAM_ASSIGN_OR_RETURN(const StorageOptions options,
                         StorageOptions::From(into_.List("options"), Storage::kColumnar));
    if (options.storage == Storage::kRecord) {
      return Refusal("CREATE TABLE … AS of a record table is not supported", relation.position(),
                     "CREATE the TABLE with its columns and keys, then INSERT INTO it … SELECT");
    }
    NAM_RETURN_IF_ERROR(BindQuery());
    NAM_RETURN_IF_ERROR(LayOutColumnar(options, statement_.create.position, table_));
    return Statement(std::move(statement_));
  }

 private:
  absl::Status BindQuery() {
    const Node query = node_.Field("query");
    if (!query.Is("SelectStmt")) {
      return Refusal("CREATE TABLE … AS of anything but SELECT and VALUES is not supported", query.Leftmost(),
                     "write the query itself");
    }
    NAM_ASSIGN_OR_RETURN(lg::Query tree, BindLogical(query, tables_, /*locks=*/nullptr));
    const std::vector<std::string> names = into_.Names("colNames");
    if (names.size() > tree.root->columns.size()) {
      return UserError(sqlstate::kSyntaxError, "too many column names were specified",
                       statement_.create.position,
                       absl::StrCat("the query has ", tree.root->columns.size(), " columns"));
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < tree.root->columns.size(); ++i) {
      const lg::Column& from = tree.root->columns[i];
      proto::Column& column = *table_.add_columns();
      column.set_name(i < names.size() ? names[i] : from.name);
      column.set_nullable(true);
      *column.mutable_type() = StoredTypeOf(from.type);
      NAM_RETURN_IF_ERROR(CheckNotSystem(column.name(), statement_.create.position));
      if (seen.insert(column.name()).second) continue;
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(column.name()), " specified more than once"),
                       statement_.create.position, "give each column its own name, by AS");
    }
    statement_.source = std::make_shared<lg::Query>(std::move(tree));
    return absl::OkStatus();
  }

  const Node& node_;
  const Node into_;
  TableSource& tables_;
  CreateTableAsStatement statement_;
  proto::Table& table_;
};

/// All rows and columns of a table.
lg::Query AllOf(const std::shared_ptr<const proto::Table>& table) {
  std::vector<lg::Column> columns;
  for (int c = 0; c < table->columns_size(); ++c) {
    const proto::Column& column = table->columns(c);
    columns.push_back({{0, c}, column.name(), ColumnTypeOf(column.type()), column.nullable()});
  }
  lg::Query query;
  query.root = lg::MakeNode(lg::Scan{0, table}, std::move(columns));
  query.relations = 1;
  return query;
}

}  // namespace

absl::StatusOr<Statement> BindCreateTableAs(const Node& node, TableSource& tables) {
  return TableAsBinder(node, tables).Bind();
}

absl::StatusOr<Statement> BindTruncate(const Node& node, TableSource& tables) {
  const std::vector<Node> relations = node.List("relations");
  if (relations.size() != 1) {
    return Refusal("TRUNCATE of several tables at once is not supported", node.text().Find({","}),
                   "truncate one after the other");
  }
  if (node.Text("behavior") == "DROP_CASCADE") {
    return Refusal("TRUNCATE … CASCADE is not supported", node.text().Find({"cascade"}),
                   "empty the tables that reference it first");
  }
  if (node.Flag("restart_seqs")) {
    return Refusal("RESTART IDENTITY is not supported", node.text().Find({"restart"}),
                   "DROP the table and CREATE it");
  }
  const Node& relation = relations[0];
  NAM_RETURN_IF_ERROR(CheckName(relation));
  LogicalContext context(tables);
  NAM_ASSIGN_OR_RETURN(const auto table, context.Find(relation.Text("relname"), relation.position()));
  TruncateStatement statement;
  statement.table = {table->name(), table, {}, {}};
  if (IsRecordTable(*table)) {
    ChangeScope target(tables);
    NAM_RETURN_IF_ERROR(target.BindFrom(relation, Node(), {}, "TRUNCATE"));
    statement.table = target.bound_table();
  }
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindVacuum(const Node& node, TableSource& tables) {
  const SqlText& text = node.text();
  if (!node.Flag("is_vacuumcmd"))
    return Refusal("ANALYZE is not supported", text.Start(), "statistics are taken when a table is loaded");
  const std::vector<Node> options = node.List("options");
  if (!options.empty()) {
    return Refusal(absl::StrCat("VACUUM option ", Quote(options[0].Text("defname")), " is not supported"),
                   options[0].position(), "write VACUUM and the table's name");
  }
  const std::vector<Node> relations = node.List("rels");
  if (relations.size() != 1 || relations[0].Has("va_cols"))
    return Refusal("VACUUM of anything but one whole table is not supported", text.Start(),
                   "write VACUUM and the table's name");
  const Node relation = relations[0].Field("relation");
  NAM_RETURN_IF_ERROR(CheckName(relation));
  LogicalContext context(tables);
  VacuumStatement statement;
  NAM_ASSIGN_OR_RETURN(statement.table, context.Find(relation.Text("relname"), relation.position()));
  if (IsRecordTable(*statement.table)) {
    return Refusal("VACUUM of a record table is not supported", relation.position(),
                   "its old versions are overwritten by themselves");
  }
  statement.source = std::make_shared<lg::Query>(AllOf(statement.table));
  return Statement(std::move(statement));
}

}  // namespace nam::sql
