#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/change_scope.h"
#include "sql/copy_options.h"
#include "sql/logical_query.h"
#include "sql/system_names.h"
#include "sql/zoned_result.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// COPY … TO.
namespace nam::sql {
namespace {

namespace lg = plan::logical;

/// All rows of a table, with some of its columns.
lg::Query QueryOf(const std::shared_ptr<const proto::Table>& table, const std::vector<int>& columns) {
  std::vector<lg::Column> all, copied;
  for (int c = 0; c < table->columns_size(); ++c) {
    const proto::Column& column = table->columns(c);
    all.push_back({{0, c}, column.name(), ColumnTypeOf(column.type()), column.nullable()});
  }
  lg::Project project;
  for (size_t i = 0; i < columns.size(); ++i) {
    copied.push_back(all[static_cast<size_t>(columns[i])]);
    project.outputs.push_back(lg::MakeColumn(copied.back()));
    copied.back().ref = {1, static_cast<int>(i)};
  }
  lg::Query query;
  query.root =
      lg::MakeNode(std::move(project), std::move(copied), lg::MakeNode(lg::Scan{0, table}, std::move(all)));
  query.relations = 2;
  return query;
}

class CopyToBinder {
 public:
  CopyToBinder(const Node& node, TableSource& tables) : node_(node), tables_(tables) {}

  absl::StatusOr<Statement> Bind() {
    const SqlText& text = node_.text();
    if (node_.Flag("is_program"))
      return Refusal("COPY … TO PROGRAM is not supported", text.Find({"program"}),
                     "COPY … TO STDOUT, and let the program read that");
    NAM_RETURN_IF_ERROR(node_.Only({"relation", "query", "attlist", "filename", "options"}));
    CopyToStatement statement;
    statement.path = node_.Text("filename");
    NAM_ASSIGN_OR_RETURN(CopyOptions options, CopyOptions::From(node_));
    NAM_ASSIGN_OR_RETURN(lg::Query source, node_.Has("query") ? BindQuery() : BindTable());
    NAM_ASSIGN_OR_RETURN(statement.force_quote, ForcedQuotes(options, source.root->columns));
    NAM_RETURN_IF_ERROR(ShowInZone(source, text.time().zone, source.root->columns.size()));
    statement.source = std::make_shared<lg::Query>(std::move(source));
    statement.dialect = std::move(options.dialect);
    return Statement(std::move(statement));
  }

 private:
  absl::StatusOr<lg::Query> BindQuery() {
    const SqlText& text = node_.text();
    const Node query = node_.Field("query");
    if (!query.Is("SelectStmt")) {
      return Refusal("COPY of anything but a table, SELECT and VALUES is not supported",
                     text.Find({}, text.Find({"("}) + 1), "run the statement, then COPY a SELECT");
    }
    return BindLogical(query, tables_);
  }

  absl::StatusOr<lg::Query> BindTable() {
    const Node relation = node_.Field("relation");
    LogicalContext context(tables_);
    NAM_ASSIGN_OR_RETURN(const auto table, CopiedTable(context, node_));
    NAM_ASSIGN_OR_RETURN(const std::vector<int> columns, CopiedColumnsOf(node_, *table, relation.position()));
    return QueryOf(table, columns);
  }

  static absl::StatusOr<std::vector<bool>> ForcedQuotes(const CopyOptions& options,
                                                        const std::vector<lg::Column>& columns) {
    std::vector<bool> forced(columns.size(), options.force_quote_all);
    for (const std::string& name : options.force_quote) {
      const auto found = std::find_if(columns.begin(), columns.end(),
                                      [&](const lg::Column& column) { return column.name == name; });
      if (found == columns.end()) {
        return UserError(sqlstate::kBadColumnReference,
                         absl::StrCat("FORCE_QUOTE column ", Quote(name), " not referenced by COPY"),
                         options.force_quote_position, "name columns that are written");
      }
      const auto column = static_cast<size_t>(found - columns.begin());
      if (forced[column]) {
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(name), " specified more than once"),
                         options.force_quote_position, "name it once");
      }
      forced[column] = true;
    }
    return forced;
  }

  const Node& node_;
  TableSource& tables_;
};

}  // namespace

absl::StatusOr<Statement> BindCopyTo(const Node& node, TableSource& tables) {
  return CopyToBinder(node, tables).Bind();
}

}  // namespace nam::sql
