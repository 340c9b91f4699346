#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/change_scope.h"
#include "sql/copy_options.h"
#include "sql/record_binder.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

/// COPY … FROM.
namespace nam::sql {
namespace {

using plan::Expr;

/// Converts texts as an INSERT converts 'text' to the column's value.
absl::Status AddValues(const StatementTime& time, CopyStatement& statement) {
  ExpressionBuilder builder;
  builder.UseZone(time.zone);
  const InsertStatement& insert = statement.insert;
  for (size_t i = 0; i < insert.columns.size(); ++i) {
    Expr text;
    text.op = plan::Op::kColumn;
    text.type = Type::String();
    text.column = {0, static_cast<int>(i)};
    const Type type = TypeOfColumn(insert.table.table->columns(insert.columns[i]));
    NAM_ASSIGN_OR_RETURN(Expr value, builder.Cast(std::move(text), type, -1));
    statement.values.push_back(std::move(value));
  }
  return absl::OkStatus();
}

class CopyBinder {
 public:
  CopyBinder(const Node& node, TableSource& tables) : node_(node), tables_(tables), context_(tables) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(RefuseClauses());
    NAM_RETURN_IF_ERROR(BindOptions());
    NAM_RETURN_IF_ERROR(BindTable());
    NAM_ASSIGN_OR_RETURN(statement_.insert.columns, CopiedColumnsOf(node_, table(), statement_.position));
    NAM_RETURN_IF_ERROR(BindValues());
    return Statement(std::move(statement_));
  }

 private:
  const proto::Table& table() const { return *statement_.insert.table.table; }

  absl::Status RefuseClauses() {
    const SqlText& text = node_.text();
    if (node_.Flag("is_program"))
      return Refusal("COPY … FROM PROGRAM is not supported", text.Find({"program"}),
                     "let the program write to standard input, and COPY … FROM STDIN");
    if (node_.Has("whereClause"))
      return Refusal("COPY … WHERE is not supported", text.Find({"where"}), "DELETE the rows afterwards");
    NAM_RETURN_IF_ERROR(node_.Only({"relation", "attlist", "is_from", "filename", "options"}));
    statement_.path = node_.Text("filename");
    return absl::OkStatus();
  }

  absl::Status BindOptions() {
    NAM_ASSIGN_OR_RETURN(CopyOptions options, CopyOptions::From(node_));
    statement_.dialect = std::move(options.dialect);
    statement_.match_header = options.match_header;
    statement_.skip_errors = options.skip_errors;
    statement_.rejects = std::move(options.rejects);
    statement_.batch_rows = options.batch_rows;
    batch_position_ = options.batch_position;
    return absl::OkStatus();
  }

  // ─── The table

  absl::Status BindTable() {
    const Node relation = node_.Field("relation");
    statement_.position = relation.position();
    NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
    NAM_ASSIGN_OR_RETURN(const auto table, CopiedTable(context_, node_));
    if (!IsRecordTable(*table) && statement_.batch_rows > 0) {
      return UserError(sqlstate::kNotSupported, "COPY BATCH cannot be used with a columnar table",
                       batch_position_, "all of its rows appear at once");
    }
    if (IsRecordTable(*table)) {
      ChangeScope target(tables_);
      NAM_RETURN_IF_ERROR(target.BindFrom(relation, Node(), {}, "COPY"));
      statement_.insert.table = target.bound_table();
      return absl::OkStatus();
    }
    statement_.insert.table = {table->name(), table, {}, {}};
    return absl::OkStatus();
  }

  absl::Status BindValues() {
    NAM_RETURN_IF_ERROR(AddValues(node_.text().time(), statement_));
    if (!IsRecordTable(table())) return absl::OkStatus();
    InsertStatement& insert = statement_.insert;
    std::set<int> others;
    for (int i = 0; i < table().columns_size(); ++i) others.insert(i);
    for (const int column : insert.columns) others.erase(column);
    NAM_ASSIGN_OR_RETURN(insert.defaults, BindDefaults(table(), others, node_.text().time()));
    NAM_ASSIGN_OR_RETURN(insert.checks, BindChecks(insert.table.table, node_.text().time()));
    return absl::OkStatus();
  }

  const Node& node_;
  TableSource& tables_;
  LogicalContext context_;
  CopyStatement statement_;
  int batch_position_ = -1;
};

}  // namespace

absl::StatusOr<CopyStatement> CopyOfFiles(std::shared_ptr<const proto::Table> table, std::string pattern,
                                          const csv::Dialect& dialect, std::vector<csv::SniffedFile> files,
                                          std::vector<csv::FieldForm> forms, const StatementTime& time) {
  CopyStatement statement;
  statement.path = std::move(pattern);
  statement.dialect = dialect;
  statement.files = std::move(files);
  statement.forms = std::move(forms);
  for (int c = 0; c < table->columns_size(); ++c) statement.insert.columns.push_back(c);
  statement.insert.table = {table->name(), std::move(table), {}, {}};
  NAM_RETURN_IF_ERROR(AddValues(time, statement));
  return statement;
}

absl::StatusOr<Statement> BindCopy(const Node& node, TableSource& tables) {
  if (!node.Flag("is_from")) return BindCopyTo(node, tables);
  return CopyBinder(node, tables).Bind();
}

}  // namespace nam::sql
