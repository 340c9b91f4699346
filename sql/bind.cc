#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/bound_query.h"
#include "sql/logical_query.h"
#include "sql/parse_tree.h"
#include "sql/prepare_binder.h"
#include "sql/record_binder.h"
#include "sql/zoned_result.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

absl::StatusOr<bool> AnalyzeOption(const Node& option) {
  const Node value = option.Field("arg");
  if (!value) return true;
  const std::string text = value.Is("Integer") ? absl::StrCat(value.Integer("ival")) : value.Text("sval");
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  return UserError(sqlstate::kBadParameter, "ANALYZE takes true or false", option.position(),
                   "write EXPLAIN ANALYZE");
}

using Explained = ExplainStatement::Explained;

/// One of the statements that EXPLAIN takes.
template <typename Bound>
absl::StatusOr<Explained> Only(absl::StatusOr<Statement> statement) {
  NAM_RETURN_IF_ERROR(statement.status());
  return Explained(std::get<Bound>(*std::move(statement)));
}

absl::StatusOr<TreeStatement> BindSelect(const Node& node, TableSource& tables) {
  TreeStatement statement;
  NAM_ASSIGN_OR_RETURN(plan::logical::Query tree, BindLogical(node, tables, &statement.locks));
  statement.tree = std::make_shared<plan::logical::Query>(std::move(tree));
  return statement;
}

absl::StatusOr<Explained> BindExplainedStatement(const Node& node, TableSource& tables) {
  if (node.Is("SelectStmt")) {
    NAM_ASSIGN_OR_RETURN(TreeStatement statement, BindSelect(node, tables));
    return Explained(std::move(statement));
  }
  if (node.Is("InsertStmt")) return Only<InsertStatement>(BindInsert(node, tables));
  if (node.Is("UpdateStmt")) return Only<UpdateStatement>(BindUpdate(node, tables));
  if (node.Is("DeleteStmt")) return Only<DeleteStatement>(BindDelete(node, tables));
  if (node.Is("ExecuteStmt")) return Only<ExecuteStatement>(BindExecute(node));
  return Refusal("EXPLAIN of anything but SELECT, INSERT, UPDATE, DELETE and EXECUTE is not supported",
                 node.text().Start(), "explain one of these");
}

absl::StatusOr<bool> IsJson(const Node& option) {
  const std::string format = absl::AsciiStrToLower(option.Field("arg").Text("sval"));
  if (format == "json" || format == "text") return format == "json";
  if (format != "xml" && format != "yaml") {
    return UserError(sqlstate::kBadParameter,
                     absl::StrCat("unrecognized value for EXPLAIN option \"format\": ", Quote(format)),
                     option.position(), "FORMAT takes TEXT or JSON");
  }
  return Refusal(absl::StrCat("EXPLAIN (FORMAT ", absl::AsciiStrToUpper(format), ") is not supported"),
                 option.position(), "FORMAT takes TEXT or JSON");
}

absl::StatusOr<Statement> BindExplain(const Node& node, TableSource& tables) {
  ExplainStatement statement;
  for (const Node& option : node.List("options")) {
    const std::string name = option.Text("defname");
    if (name == "analyze") {
      NAM_ASSIGN_OR_RETURN(statement.analyze, AnalyzeOption(option));
    } else if (name == "format") {
      NAM_ASSIGN_OR_RETURN(statement.json, IsJson(option));
    } else {
      return Refusal(absl::StrCat("EXPLAIN option ", Quote(name), " is not supported"), option.position(),
                     "write EXPLAIN, EXPLAIN ANALYZE or EXPLAIN (ANALYZE, FORMAT JSON)");
    }
  }
  NAM_RETURN_IF_ERROR(node.Only({"query", "options"}));
  const Node query = node.Field("query");
  NAM_ASSIGN_OR_RETURN(statement.statement, BindExplainedStatement(query, tables));
  return Statement(std::move(statement));
}

StatementTime In(StatementTime time, TableSource& tables) {
  time.tables = &tables;
  return time;
}

}  // namespace

bool Parses(const std::string& text) {
  return ParsedStatement::Parse(text).ok();
}

absl::StatusOr<Statement> BindStatement(const Node& root, TableSource& tables) {
  if (root.Is("SelectStmt")) {
    NAM_ASSIGN_OR_RETURN(TreeStatement statement, BindSelect(root, tables));
    const size_t shown = statement.locks.empty() ? statement.tree->root->columns.size()
                                                 : static_cast<size_t>(statement.locks[0].first);
    NAM_RETURN_IF_ERROR(ShowInZone(*statement.tree, root.text().time().zone, shown));
    return Statement(std::move(statement));
  }
  if (root.Is("ExplainStmt")) return BindExplain(root, tables);
  if (root.Is("DropStmt")) return BindDrop(root, tables);
  if (root.Is("VariableSetStmt")) return BindSet(root);
  if (root.Is("VariableShowStmt")) return BindShow(root);
  if (root.Is("CreateStmt")) return BindCreateTable(root, tables);
  if (root.Is("CreateSchemaStmt")) return BindCreateSchema(root);
  if (root.Is("ViewStmt")) return BindCreateView(root, tables);
  if (root.Is("AlterTableStmt")) return BindAlterTable(root, tables);
  if (root.Is("RenameStmt")) return BindRename(root, tables);
  if (root.Is("AlterObjectSchemaStmt")) return BindSetSchema(root, tables);
  if (root.Is("CreateTableAsStmt")) return BindCreateTableAs(root, tables);
  if (root.Is("TruncateStmt")) return BindTruncate(root, tables);
  if (root.Is("VacuumStmt")) return BindVacuum(root, tables);
  if (root.Is("IndexStmt")) return BindCreateIndex(root, tables);
  if (root.Is("InsertStmt")) return BindInsert(root, tables);
  if (root.Is("CopyStmt")) return BindCopy(root, tables);
  if (root.Is("UpdateStmt")) return BindUpdate(root, tables);
  if (root.Is("DeleteStmt")) return BindDelete(root, tables);
  if (root.Is("TransactionStmt")) return BindTransaction(root);
  if (root.Is("ExecuteStmt")) return BindExecute(root);
  if (root.Is("DeallocateStmt")) return Statement(DeallocateStatement{root.Text("name")});
  return RefuseStatement(root);
}

absl::StatusOr<Statement> Bind(const std::string& text, TableSource& tables, const StatementTime& time) {
  NAM_ASSIGN_OR_RETURN(ParsedStatement statement, ParsedStatement::Parse(text, In(time, tables)));
  if (!statement.root().Is("PrepareStmt")) return BindStatement(statement.root(), tables);
  Parameters parameters;
  statement.SetParameters(parameters);
  return BindPrepare(statement.root(), tables, parameters);
}

absl::StatusOr<Statement> BindPrepared(const PrepareStatement& prepared, const ExecuteStatement& execute,
                                       TableSource& tables, const StatementTime& time) {
  NAM_ASSIGN_OR_RETURN(Parameters parameters, ArgumentsOf(prepared, execute, time.zone));
  NAM_ASSIGN_OR_RETURN(ParsedStatement statement, ParsedStatement::Parse(prepared.text, In(time, tables)));
  statement.SetParameters(parameters);
  return BindStatement(statement.root(), tables);
}

absl::StatusOr<ExplainStatement> BindExplained(const ExplainStatement& explain,
                                               const PrepareStatement& prepared,
                                               const ExecuteStatement& execute, TableSource& tables,
                                               const StatementTime& time) {
  NAM_ASSIGN_OR_RETURN(Parameters parameters, ArgumentsOf(prepared, execute, time.zone));
  NAM_ASSIGN_OR_RETURN(ParsedStatement statement, ParsedStatement::Parse(prepared.text, In(time, tables)));
  statement.SetParameters(parameters);
  ExplainStatement out{.analyze = explain.analyze, .json = explain.json, .statement = {}};
  NAM_ASSIGN_OR_RETURN(out.statement, BindExplainedStatement(statement.root(), tables));
  return out;
}

}  // namespace nam::sql
