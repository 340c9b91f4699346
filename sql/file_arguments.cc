#include "sql/file_arguments.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/time_format.h"
#include "sql/change_scope.h"
#include "sql/column_type.h"
#include "sql/file_names.h"
#include "sql/record_binder.h"
#include "sql/storage_options.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

std::string TextOf(const Node& node) {
  if (!node.Is("A_Const")) return "";
  return node.Field("sval").Text("sval");
}

constexpr char kFileName[] = "filename";

absl::Status BadArgument(const std::string& what, int position) {
  return UserError(sqlstate::kBadParameter, what, position,
                   "read_csv takes header, all_varchar, union_by_name and filename => true, skip and "
                   "sample_size => 1, and types, delimiter, quote, escape, comment, nullstr, dateformat, "
                   "timestampformat, decimal_separator and thousands => '…'");
}

Type TypeOfForm(csv::FieldForm form) {
  switch (form) {
    case csv::FieldForm::kBoolean:
      return Type::Bool();
    case csv::FieldForm::kWhole:
      return Type::Integer();
    case csv::FieldForm::kWide:
      return Type::Decimal(0);
    case csv::FieldForm::kNumber:
      return Type::Double();
    case csv::FieldForm::kDate:
    case csv::FieldForm::kDateDayFirst:
    case csv::FieldForm::kDateMonthFirst:
      return Type::Date();
    case csv::FieldForm::kTime:
      return Type::Time();
    case csv::FieldForm::kTimestamp:
    case csv::FieldForm::kTimestampDayFirst:
    case csv::FieldForm::kTimestampMonthFirst:
      return Type::Timestamp();
    case csv::FieldForm::kZoned:
    case csv::FieldForm::kZonedDayFirst:
    case csv::FieldForm::kZonedMonthFirst:
      return Type::TimestampTz();
    case csv::FieldForm::kNone:
    case csv::FieldForm::kText:
    case csv::FieldForm::kGiven:
      break;
  }
  return Type::String(Type::kAnyLength);
}
}  // namespace

absl::StatusOr<std::optional<FileArguments>> FileArguments::Of(const Node& item) {
  if (item.Is("RangeVar")) {
    std::optional<std::string> path = FileNameAt(item.text(), item.position());
    if (!path.has_value()) return std::nullopt;
    return OfPath(*std::move(path), item.position());
  }
  if (!item.Is("RangeFunction")) return std::nullopt;
  const std::vector<Node> functions = item.List("functions");
  const std::vector<Node> items = functions.size() == 1 ? functions[0].List("items") : std::vector<Node>();
  if (items.empty() || !items[0].Is("FuncCall")) return std::nullopt;
  const std::vector<std::string> names = items[0].Names("funcname");
  if (names.size() != 1 || names[0] != "read_csv") return std::nullopt;
  return OfCall(items[0]);
}

FileArguments FileArguments::OfPath(std::string path, int position) {
  FileArguments out;
  out.pattern = std::move(path);
  out.position = position;
  out.dialect = DialectOfPath(out.pattern);
  if (out.dialect.format != csv::Dialect::Format::kCsv) out.dialect = csv::Dialect::Csv();
  out.options.delimiter_given = out.dialect.delimiter != ',';
  out.dialect.quotes_begin_fields = true;
  return out;
}

absl::StatusOr<FileArguments> FileArguments::OfCall(const Node& call) {
  const std::vector<Node> arguments = call.List("args");
  std::string pattern = arguments.empty() ? "" : TextOf(arguments[0]);
  if (pattern.empty()) {
    return UserError(sqlstate::kBadParameter, "read_csv takes a path, or a pattern of paths, in quotes",
                     call.position(), "read_csv('people.csv', header => true)");
  }
  FileArguments out = OfPath(std::move(pattern), call.position());
  out.called = true;
  for (size_t i = 1; i < arguments.size(); ++i) NAM_RETURN_IF_ERROR(out.BindArgument(arguments[i]));
  if (out.dialect.formats.thousands == out.dialect.formats.decimal_separator)
    return BadArgument("decimal_separator and thousands must be different", call.position());
  return out;
}

absl::Status FileArguments::BindArgument(const Node& argument) {
  if (!argument.Is("NamedArgExpr"))
    return BadArgument("read_csv takes one path; its other arguments have names", argument.position());
  const std::string name = argument.Text("name");
  const Node value = argument.Field("arg");
  bool header = false;
  bool* const flag = name == "header"          ? &header
                     : name == "all_varchar"   ? &all_text
                     : name == "union_by_name" ? &options.union_by_name
                     : name == kFileName       ? &file_name
                                               : nullptr;
  if (flag == nullptr) {
    const bool number = name == "skip" || name == "sample_size";
    return number ? BindNumber(name, argument) : BindText(name, argument);
  }
  if (!value.Is("A_Const") || !value.Has("boolval"))
    return BadArgument(absl::StrCat(name, " takes true or false"), argument.position());
  *flag = value.Field("boolval").Flag("boolval");
  if (flag == &header) options.header = header;
  return absl::OkStatus();
}

absl::Status FileArguments::BindNumber(const std::string& name, const Node& argument) {
  const Node value = argument.Field("arg");
  const bool whole = value.Is("A_Const") && value.Has("ival");
  const int64_t number = whole ? value.text().IntegerAt(value.position()) : 0;
  if (name == "skip") {
    if (!whole || number < 0) return BadArgument("skip takes a number of lines", argument.position());
    dialect.skipped_lines = static_cast<uint64_t>(number);
    return absl::OkStatus();
  }
  if (!whole || number < -1 || number == 0)
    return BadArgument("sample_size takes a number of rows; -1 means all", argument.position());
  options.sample_rows = number < 0 ? UINT64_MAX : static_cast<uint64_t>(number);
  return absl::OkStatus();
}

absl::Status FileArguments::BindText(const std::string& name, const Node& argument) {
  const std::string text = TextOf(argument.Field("arg"));
  if (name == "nullstr") {
    dialect.null_text = text;
    return absl::OkStatus();
  }
  if (name == "types") return BindTypes(text, argument.position());
  if (name == "dateformat" || name == "timestampformat") {
    if (text.empty())
      return BadArgument(absl::StrCat(name, " takes a format in quotes"), argument.position());
    NAM_RETURN_IF_ERROR(csv::CheckTimeFormat(text));
    (name == "dateformat" ? dialect.formats.date : dialect.formats.timestamp) = text;
    return absl::OkStatus();
  }
  char* const character = name == "delimiter"           ? &dialect.delimiter
                          : name == "quote"             ? &dialect.quote
                          : name == "escape"            ? &dialect.escape
                          : name == "comment"           ? &dialect.comment
                          : name == "decimal_separator" ? &dialect.formats.decimal_separator
                          : name == "thousands"         ? &dialect.formats.thousands
                                                        : nullptr;
  if (character == nullptr)
    return BadArgument(absl::StrCat("read_csv has no argument ", Quote(name)), argument.position());
  if (name == "quote" && text.empty()) {
    dialect.quote = dialect.escape = csv::Dialect::kNoQuote;
    return absl::OkStatus();
  }
  if (text.size() != 1 || text == "\n" || text == "\r")
    return BadArgument(absl::StrCat(name, " must be a single one-byte character"), argument.position());
  *character = text[0];
  if (name == "quote" && !options.escape_given) dialect.escape = text[0];
  options.delimiter_given |= name == "delimiter";
  options.escape_given |= name == "escape";
  return absl::OkStatus();
}

absl::Status FileArguments::BindTypes(const std::string& columns, int at) {
  const auto parsed = ParsedStatement::Parse(absl::StrCat("CREATE TABLE files (", columns, ")"));
  const std::vector<Node> elements = parsed.ok() ? parsed->root().List("tableElts") : std::vector<Node>();
  if (elements.empty())
    return BadArgument("types takes names and types of columns in quotes: 'zip text, price decimal(10,2)'",
                       at);
  for (const Node& element : elements) {
    if (!element.Is("ColumnDef") || element.Has("constraints"))
      return BadArgument("types takes nothing but names and types of columns", at);
    absl::StatusOr<proto::Type> type = ColumnTypeOfName(element.Field("typeName"));
    if (!type.ok()) return BadArgument(SqlErrorOf(type.status())->message, at);
    NAM_ASSIGN_OR_RETURN(Type given, TypeOf(*type));
    if (given.kind == TypeKind::kString && given.length == 0) given.length = Type::kAnyLength;
    types.emplace_back(element.Text("colname"), given);
  }
  return absl::OkStatus();
}

absl::Status FileArguments::GiveTypes(std::vector<std::pair<std::string, Type>>& columns) {
  std::vector<std::string> names;
  for (const auto& [name, type] : columns) names.push_back(name);
  for (const auto& [name, type] : types) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return UserError(sqlstate::kUndefinedColumn, absl::StrCat("the files have no column ", Quote(name)),
                       position, DidYouMean(name, names));
    }
    const auto at = static_cast<size_t>(found - names.begin());
    csv::FieldForm& form = sniffed_.columns[at].form;
    // Dates keep the order that the column's values show.
    const bool zoned = type.kind == TypeKind::kTimestampTz;
    if (type.kind == TypeKind::kString) {
      form = csv::FieldForm::kText;
    } else if (zoned || type.kind == TypeKind::kTimestamp) {
      form = csv::AsTimestamp(form, zoned);
    } else if (type.kind != columns[at].second.kind || type.numeric() || type.real()) {
      form = csv::FieldForm::kGiven;
    }
    columns[at].second = type;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, Type>>> FileArguments::Sniff(TableSource& tables) {
  NAM_ASSIGN_OR_RETURN(sniffed_, tables.Sniff(pattern, options, dialect));
  std::vector<std::pair<std::string, Type>> columns;
  for (csv::SniffedColumn& column : sniffed_.columns) {
    if (all_text) column.form = csv::FieldForm::kText;
    columns.emplace_back(column.name, TypeOfForm(column.form));
    if (!file_name || column.name != kFileName) continue;
    return UserError(sqlstate::kDuplicateColumn,
                     absl::StrCat("the files have a column ", Quote(kFileName), " of their own"), position,
                     "leave filename => true out");
  }
  NAM_RETURN_IF_ERROR(GiveTypes(columns));
  if (file_name) columns.emplace_back(kFileName, Type::String(Type::kAnyLength));
  return columns;
}

absl::StatusOr<CopyStatement> FileArguments::Copy(std::shared_ptr<const proto::Table> table,
                                                  const StatementTime& time) const {
  std::vector<csv::FieldForm> forms;
  for (const csv::SniffedColumn& column : sniffed_.columns) forms.push_back(column.form);
  if (file_name) forms.push_back(csv::FieldForm::kText);
  NAM_ASSIGN_OR_RETURN(CopyStatement copy, CopyOfFiles(std::move(table), pattern, dialect, sniffed_.files,
                                                       std::move(forms), time));
  if (file_name) copy.file_name_column = static_cast<int>(sniffed_.columns.size());
  return copy;
}

absl::StatusOr<FileArguments::Described> FileArguments::Add(TableSource& tables, const StatementTime& time) {
  constexpr size_t kNameBytesMax = 100;  // of a table's name
  constexpr uint64_t kGuessedFieldBytes = 8;
  NAM_ASSIGN_OR_RETURN(const auto columns, Sniff(tables));
  proto::Table table;
  std::string shown = pattern.substr(pattern.rfind('/') + 1).substr(0, kNameBytesMax);
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  table.set_name(absl::StrCat("read_csv('", shown, "')"));
  for (const auto& [name, type] : columns) {
    proto::Column& column = *table.add_columns();
    column.set_name(name);
    column.set_nullable(true);
    Type stored = type;
    if (stored.kind == TypeKind::kInteger && stored.precision == 0) stored.precision = sizeof(int64_t);
    if (stored.kind == TypeKind::kDecimal && stored.precision == 0) stored.precision = kMaxDecimalDigits;
    *column.mutable_type() = ToProto(stored);
    column.mutable_encoding()->set_plain(true);  // any value of the type
  }
  table.set_block_bytes(DefaultBlockBytes(table.columns_size()));
  uint64_t bytes = 0;
  for (const csv::SniffedFile& file : sniffed_.files) bytes += file.version.bytes;
  table.set_rows(bytes / (kGuessedFieldBytes * std::max<uint64_t>(columns.size(), 1)));
  Described out{.table = std::make_shared<const proto::Table>(std::move(table))};
  NAM_ASSIGN_OR_RETURN(const CopyStatement copy, Copy(out.table, time));
  out.files = tables.AddFiles(copy);
  return out;
}

std::vector<std::string> FileArguments::WrittenNames() const {
  std::vector<std::string> names;
  for (const csv::SniffedColumn& column : sniffed_.columns) names.push_back(column.written);
  return names;
}

std::string FileArguments::Alias() const {
  std::string name = pattern.substr(pattern.rfind('/') + 1);
  return name.substr(0, std::max<size_t>(name.find('.'), 1));
}

}  // namespace nam::sql
