#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/inflated_source.h"
#include "sql/change_scope.h"
#include "sql/record_binder.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

/// COPY.
namespace nam::sql {
namespace {

using plan::Expr;

/// As 'text' in an INSERT becomes the column's value.
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
    NAM_RETURN_IF_ERROR(BindColumns());
    NAM_RETURN_IF_ERROR(BindValues());
    return Statement(std::move(statement_));
  }

 private:
  const proto::Table& table() const { return *statement_.insert.table.table; }

  absl::Status RefuseClauses() {
    const SqlText& text = node_.text();
    if (!node_.Flag("is_from"))
      return Refusal("COPY … TO is not supported", text.Find({"to"}), "SELECT, with nam sql --format=csv");
    if (node_.Flag("is_program"))
      return Refusal("COPY … FROM PROGRAM is not supported", text.Find({"program"}),
                     "let the program write to standard input, and COPY … FROM STDIN");
    if (node_.Has("whereClause"))
      return Refusal("COPY … WHERE is not supported", text.Find({"where"}), "DELETE the rows afterwards");
    NAM_RETURN_IF_ERROR(node_.Only({"relation", "attlist", "is_from", "filename", "options"}));
    statement_.path = node_.Text("filename");
    return absl::OkStatus();
  }

  // ─── Options

  static std::string WordOf(const Node& option) {
    const Node value = option.Field("arg");
    if (value.Is("Boolean")) return value.Flag("boolval") ? "true" : "false";
    if (value.Is("Integer")) return absl::StrCat(value.Integer("ival"));
    return value.Text("sval");
  }
  /// Without a value it is true.
  static absl::StatusOr<bool> BooleanOf(const Node& option, const std::string& name) {
    const std::string word = WordOf(option);
    if (!option.Has("arg") || word == "true" || word == "on" || word == "1") return true;
    if (word == "false" || word == "off" || word == "0") return false;
    return UserError(sqlstate::kSyntaxError, absl::StrCat(name, " requires a Boolean value"),
                     option.position(), "write true or false");
  }
  static absl::Status ReadCharacter(const Node& option, const std::string& name, char& out) {
    const std::string word = WordOf(option);
    if (word.size() != 1 || word == "\n" || word == "\r") {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY ", name, " must be a single one-byte character"), option.position(),
                       "a tab is written E'\\t'");
    }
    out = word[0];
    return absl::OkStatus();
  }

  absl::Status BindOptions() {
    const std::vector<Node> options = node_.List("options");
    for (const Node& option : options) {
      if (option.Text("defname") == "format") NAM_RETURN_IF_ERROR(BindFormat(option));
    }
    if (!format_given_) statement_.dialect = DialectOfPath(statement_.path);
    std::set<std::string> seen;
    for (const Node& option : options) {
      NAM_RETURN_IF_ERROR(option.Only({"defname", "arg", "defaction"}));
      const std::string name = option.Text("defname");
      if (!seen.insert(name).second)
        return UserError(sqlstate::kSyntaxError, "conflicting or redundant options", option.position(),
                         absl::StrCat("give ", name, " once"));
      if (name != "format") NAM_RETURN_IF_ERROR(BindOption(option, name));
    }
    return CheckDialect();
  }

  absl::Status BindFormat(const Node& option) {
    const std::string format = WordOf(option);
    format_given_ = true;
    if (format == "csv") {
      statement_.dialect = csv::Dialect::Csv();
    } else if (format == "text") {
      statement_.dialect = csv::Dialect::Text();
    } else if (format == "binary") {
      return Refusal("the binary format of COPY is not supported", option.position(), "write FORMAT csv");
    } else {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY format ", Quote(format), " not recognized"), option.position(),
                       "formats are csv and text");
    }
    return absl::OkStatus();
  }

  absl::Status BindOption(const Node& option, const std::string& name) {
    csv::Dialect& dialect = statement_.dialect;
    if (name == "delimiter") return ReadCharacter(option, name, dialect.delimiter);
    if (name == "quote" || name == "escape") {
      if (dialect.format != csv::Dialect::Format::kCsv)
        return Refusal(absl::StrCat("COPY ", name, " available only in CSV mode"), option.position(),
                       "write FORMAT csv");
      (name == "escape" ? escape_given_ : quote_given_) = true;
      return ReadCharacter(option, name, name == "quote" ? dialect.quote : dialect.escape);
    }
    if (name == "null") {
      dialect.null_text = WordOf(option);
      return absl::OkStatus();
    }
    if (name == "header") {
      statement_.match_header = WordOf(option) == "match";
      dialect.header = true;
      if (statement_.match_header) return absl::OkStatus();
      NAM_ASSIGN_OR_RETURN(dialect.header, BooleanOf(option, name));
      return absl::OkStatus();
    }
    if (name == "encoding") {
      const std::string word = WordOf(option);
      if (absl::EqualsIgnoreCase(word, "utf8") || absl::EqualsIgnoreCase(word, "utf-8"))
        return absl::OkStatus();
      return Refusal(absl::StrCat("encoding ", Quote(word), " is not supported"), option.position(),
                     "convert the file to UTF-8, with iconv");
    }
    if (name == "on_error") {
      const std::string word = WordOf(option);
      if (word != "stop" && word != "ignore")
        return UserError(sqlstate::kBadParameter,
                         absl::StrCat("COPY ON_ERROR ", Quote(word), " not recognized"), option.position(),
                         "write stop or ignore");
      statement_.skip_errors = word == "ignore";
      return absl::OkStatus();
    }
    return Refusal(absl::StrCat("option ", Quote(name), " of COPY is not supported"), option.position(),
                   "options are format, header, delimiter, null, quote, escape, encoding and on_error");
  }

  absl::Status CheckDialect() {
    csv::Dialect& dialect = statement_.dialect;
    if (quote_given_ && !escape_given_) dialect.escape = dialect.quote;
    if (dialect.format == csv::Dialect::Format::kCsv &&
        (dialect.delimiter == dialect.quote || dialect.delimiter == dialect.escape))
      return UserError(sqlstate::kBadParameter, "COPY delimiter and quote must be different",
                       node_.Leftmost());
    if (dialect.null_text.find_first_of("\r\n") != std::string::npos)
      return UserError(sqlstate::kBadParameter,
                       "COPY null representation cannot use newline or carriage return", node_.Leftmost());
    if (absl::StrContains(dialect.null_text, dialect.delimiter))
      return UserError(sqlstate::kBadParameter,
                       "COPY delimiter character must not appear in the NULL specification",
                       node_.Leftmost());
    return absl::OkStatus();
  }

  // ─── The table

  absl::Status BindTable() {
    const Node relation = node_.Field("relation");
    statement_.position = relation.position();
    NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
    NAM_ASSIGN_OR_RETURN(const auto table, context_.FindTable(relation));
    if (IsRecordTable(*table)) {
      ChangeScope target(tables_);
      NAM_RETURN_IF_ERROR(target.BindFrom(relation, Node(), {}, "COPY"));
      statement_.insert.table = target.bound_table();
      return absl::OkStatus();
    }
    statement_.insert.table = {table->name(), table, {}, {}};
    return absl::OkStatus();
  }

  absl::Status BindColumns() {
    std::vector<int>& columns = statement_.insert.columns;
    for (const Node& name : node_.List("attlist")) {
      const std::string wanted = name.Text("sval");
      int found = -1;
      for (int i = 0; i < table().columns_size(); ++i) {
        if (!table().columns(i).hidden() && table().columns(i).name() == wanted) found = i;
      }
      const int position = node_.text().Find({}, statement_.position);
      if (found < 0)
        return UserError(
            sqlstate::kUndefinedColumn,
            absl::StrCat("column ", Quote(wanted), " of relation ", Quote(table().name()), " does not exist"),
            position, DidYouMean(wanted, ColumnNames()));
      if (std::find(columns.begin(), columns.end(), found) != columns.end())
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(wanted), " specified more than once"), position,
                         "name it once");
      columns.push_back(found);
    }
    const bool listed = !columns.empty();
    for (int i = 0; !listed && i < table().columns_size(); ++i) {
      if (!table().columns(i).hidden()) columns.push_back(i);
    }
    return absl::OkStatus();
  }
  std::vector<std::string> ColumnNames() const {
    std::vector<std::string> names;
    for (const proto::Column& column : table().columns()) {
      if (!column.hidden()) names.push_back(column.name());
    }
    return names;
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
  bool format_given_ = false, quote_given_ = false, escape_given_ = false;
};

}  // namespace

csv::Dialect DialectOfPath(std::string_view path) {
  const std::string name(csv::WithoutCompression(path));
  if (absl::EndsWithIgnoreCase(name, ".csv")) return csv::Dialect::Csv();
  if (!absl::EndsWithIgnoreCase(name, ".tbl")) return csv::Dialect::Text();
  csv::Dialect tbl = csv::Dialect::Csv();
  tbl.delimiter = '|';
  tbl.quote = tbl.escape = '\0';
  return tbl;
}

absl::StatusOr<CopyStatement> CopyOfFiles(std::shared_ptr<const proto::Table> table, std::string pattern,
                                          const csv::Dialect& dialect, const StatementTime& time) {
  CopyStatement statement;
  statement.path = std::move(pattern);
  statement.dialect = dialect;
  for (int c = 0; c < table->columns_size(); ++c) statement.insert.columns.push_back(c);
  statement.insert.table = {table->name(), std::move(table), {}, {}};
  NAM_RETURN_IF_ERROR(AddValues(time, statement));
  return statement;
}

absl::StatusOr<Statement> BindCopy(const Node& node, TableSource& tables) {
  return CopyBinder(node, tables).Bind();
}

}  // namespace nam::sql
