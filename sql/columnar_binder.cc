#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/change_scope.h"
#include "sql/column_values.h"
#include "sql/declared_type.h"
#include "sql/expression_builder.h"
#include "sql/file_arguments.h"
#include "sql/logical_query.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "sql/storage_options.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// CREATE TABLE AS, TRUNCATE and VACUUM.
namespace nam::sql {
namespace {

namespace lg = plan::logical;

/// The files of `SELECT * FROM read_csv(…)`, or of `SELECT * FROM 'file'`; nullopt for other queries.
absl::StatusOr<std::optional<FileArguments>> FilesOf(const Node& query) {
  const std::vector<Node> from = query.List("fromClause"), targets = query.List("targetList");
  if (from.size() != 1 || targets.size() != 1) return std::nullopt;
  for (const char* const clause : {"whereClause", "groupClause", "sortClause", "limitCount", "limitOffset",
                                   "distinctClause", "havingClause", "withClause", "windowClause"}) {
    if (query.Has(clause)) return std::nullopt;
  }
  if (from[0].Has("alias") || from[0].Flag("ordinality") || query.Has("lockingClause")) return std::nullopt;
  const Node star = targets[0].Field("val");
  if (!star.Is("ColumnRef") || star.List("fields").size() != 1 || !star.List("fields")[0].Is("A_Star"))
    return std::nullopt;
  return FileArguments::Of(from[0]);
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
    NAM_RETURN_IF_ERROR(CheckIsPermanent(relation, "table", relation.position()));
    NAM_ASSIGN_OR_RETURN(*table_.mutable_name(), NewRelationName(tables_, relation));
    using Storage = StorageOptions::Storage;
    const NameSettings::Storage by_setting = tables_.settings().default_storage;
    const bool record = by_setting == NameSettings::Storage::kRecord;
    statement_.create.storage_by_default =
        into_.List("options").empty() && by_setting == NameSettings::Storage::kAuto;
    NAM_ASSIGN_OR_RETURN(
        const StorageOptions options,
        StorageOptions::From(into_.List("options"), record ? Storage::kRecord : Storage::kColumnar));
    if (options.storage == Storage::kRecord) {
      return Refusal("CREATE TABLE … AS of a record table is not supported", relation.position(),
                     "CREATE the TABLE with its columns and keys, then INSERT INTO it … SELECT");
    }
    NAM_ASSIGN_OR_RETURN(file_, FilesOf(node_.Field("query")));
    NAM_RETURN_IF_ERROR(file_.has_value() ? BindFile() : BindQuery());
    NAM_RETURN_IF_ERROR(LayOutColumnar(options, statement_.create.position, table_));
    if (file_.has_value()) NAM_RETURN_IF_ERROR(CopyFile());
    return Statement(std::move(statement_));
  }

 private:
  absl::Status BindQuery() {
    const Node query = node_.Field("query");
    if (!query.Is("SelectStmt")) {
      return Refusal("CREATE TABLE … AS of anything but SELECT and VALUES is not supported",
                     statement_.create.position, "write the query itself");
    }
    NAM_ASSIGN_OR_RETURN(lg::Query tree, BindLogical(query, tables_, /*locks=*/nullptr));
    std::vector<std::pair<std::string, proto::Type>> columns;
    for (const lg::Column& column : tree.root->columns)
      columns.emplace_back(column.name, CreatedColumn(lg::MakeColumn(column)));
    NAM_RETURN_IF_ERROR(AddColumns(columns));
    NAM_RETURN_IF_ERROR(Convert(tree));
    statement_.source = std::make_shared<lg::Query>(std::move(tree));
    return absl::OkStatus();
  }

  /// The engine holds numerics as whole numbers and decimals where it can; a column may have each value's
  /// scale.
  absl::Status Convert(lg::Query& tree) {
    ExpressionBuilder builder;
    lg::Project project;
    std::vector<lg::Column> columns = tree.root->columns;
    bool converts = false;
    for (size_t i = 0; i < columns.size(); ++i) {
      plan::Expr value = lg::MakeColumn(columns[i]);
      if (value.type.kind != TypeKind::kNull) {
        NAM_ASSIGN_OR_RETURN(value, AsColumn(builder, std::move(value), table_.columns(static_cast<int>(i)),
                                             statement_.create.position));
      }
      columns[i].ref = {tree.relations, static_cast<int>(i)};
      converts |= !(columns[i].type == value.type);
      columns[i].type = value.type;
      project.outputs.push_back(std::move(value));
    }
    if (!converts) return absl::OkStatus();
    ++tree.relations;
    tree.root = lg::MakeNode(std::move(project), std::move(columns), std::move(tree.root));
    lg::DeriveAllColumns(*tree.root);
    return absl::OkStatus();
  }

  absl::Status AddColumns(const std::vector<std::pair<std::string, proto::Type>>& columns) {
    const std::vector<std::string> names = into_.Names("colNames");
    if (names.size() > columns.size()) {
      return UserError(sqlstate::kSyntaxError, "too many column names were specified",
                       statement_.create.position, absl::StrCat("there are ", columns.size(), " columns"));
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < columns.size(); ++i) {
      proto::Column& column = *table_.add_columns();
      column.set_name(i < names.size() ? names[i] : columns[i].first);
      column.set_nullable(true);
      *column.mutable_type() = columns[i].second;
      NAM_RETURN_IF_ERROR(CheckColumnName(column.name(), statement_.create.position));
      if (seen.insert(column.name()).second) continue;
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(column.name()), " specified more than once"),
                       statement_.create.position, "give each column its own name");
    }
    return absl::OkStatus();
  }

  absl::Status BindFile() {
    if (!statement_.with_data) {
      return Refusal("WITH NO DATA of files is not supported", statement_.create.position,
                     "TRUNCATE the table afterwards");
    }
    NAM_ASSIGN_OR_RETURN(const auto sniffed, file_->Sniff(tables_));
    std::vector<std::pair<std::string, proto::Type>> columns;
    for (const auto& [name, type] : sniffed) columns.emplace_back(name, CreatedColumn(type));
    return AddColumns(columns);
  }
  /// Runs once the table is laid out.
  absl::Status CopyFile() {
    NAM_ASSIGN_OR_RETURN(CopyStatement copy,
                         file_->Copy(std::make_shared<proto::Table>(table_), node_.text().time()));
    copy.position = statement_.create.position;
    statement_.file = std::make_shared<CopyStatement>(std::move(copy));
    return absl::OkStatus();
  }

  const Node& node_;
  const Node into_;
  TableSource& tables_;
  CreateTableAsStatement statement_;
  proto::Table& table_;
  std::optional<FileArguments> file_;
};

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
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
  LogicalContext context(tables);
  NAM_ASSIGN_OR_RETURN(const auto table, context.FindTable(relation));
  TruncateStatement statement;
  statement.table = {table->name(), table, {}, {}};
  if (IsRecordTable(*table)) {
    ChangeScope target(tables);
    NAM_RETURN_IF_ERROR(target.BindFrom(relation, Node(), {}, "TRUNCATE"));
    statement.table = target.bound_table();
  }
  return Statement(std::move(statement));
}

namespace {

absl::Status AddAnalyzed(const std::shared_ptr<const proto::Table>& table,
                         const std::vector<std::string>& names, int position, AnalyzeStatement& statement) {
  AnalyzedTable& analyzed = statement.tables.emplace_back(AnalyzedTable{table, {}});
  for (int c = 0; names.empty() && c < table->columns_size(); ++c) {
    if (!table->columns(c).hidden()) analyzed.columns.push_back(c);
  }
  for (const std::string& name : names) {
    int found = -1;
    for (int c = 0; c < table->columns_size(); ++c) {
      if (!table->columns(c).hidden() && table->columns(c).name() == name) found = c;
    }
    if (found < 0) {
      return UserError(
          sqlstate::kUndefinedColumn,
          absl::StrCat("column ", Quote(name), " of relation ", Quote(table->name()), " does not exist"),
          position);
    }
    analyzed.columns.push_back(found);
  }
  return absl::OkStatus();
}

/// Without a name: all tables. Views have no statistics.
absl::StatusOr<Statement> BindAnalyze(const Node& node, TableSource& tables) {
  const std::vector<Node> options = node.List("options"), relations = node.List("rels");
  if (!options.empty()) {
    return Refusal(absl::StrCat("ANALYZE option ", Quote(options[0].Text("defname")), " is not supported"),
                   options[0].position(), "write ANALYZE and the table's name");
  }
  AnalyzeStatement statement;
  LogicalContext context(tables);
  for (const Node& one : relations) {
    const Node relation = one.Field("relation").OfKind("RangeVar");
    NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
    NAM_ASSIGN_OR_RETURN(const auto table, context.FindTable(relation));
    NAM_RETURN_IF_ERROR(AddAnalyzed(table, one.Names("va_cols"), relation.position(), statement));
  }
  if (!relations.empty()) return Statement(std::move(statement));
  for (const std::string& name : tables.Names()) {
    if (IsSystemName(name)) continue;
    auto table = tables.Find(name);
    if (absl::IsNotFound(table.status())) continue;  // dropped meanwhile
    NAM_RETURN_IF_ERROR(table.status());
    if (!(*table)->has_view()) NAM_RETURN_IF_ERROR(AddAnalyzed(*table, {}, -1, statement));
  }
  return Statement(std::move(statement));
}

}  // namespace

absl::StatusOr<Statement> BindVacuum(const Node& node, TableSource& tables) {
  const SqlText& text = node.text();
  if (!node.Flag("is_vacuumcmd")) return BindAnalyze(node, tables);
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
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
  LogicalContext context(tables);
  VacuumStatement statement;
  NAM_ASSIGN_OR_RETURN(statement.table, context.FindTable(relation));
  return Statement(std::move(statement));
}

}  // namespace nam::sql
