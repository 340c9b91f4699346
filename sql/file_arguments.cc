#include "sql/file_arguments.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/change_scope.h"
#include "sql/file_names.h"
#include "sql/record_binder.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

std::string TextOf(const Node& node) {
  if (!node.Is("A_Const")) return "";
  return node.Field("sval").Text("sval");
}

Type TypeOfKind(csv::FieldKind kind) {
  switch (kind) {
    case csv::FieldKind::kBoolean:
      return Type::Bool();
    case csv::FieldKind::kWhole:
      return Type::Integer();
    case csv::FieldKind::kNumber:
      return Type::Double();
    case csv::FieldKind::kDate:
      return Type::Date();
    case csv::FieldKind::kTimestamp:
      return Type::Timestamp();
    case csv::FieldKind::kNone:
    case csv::FieldKind::kText:
      return Type::String(Type::kAnyLength);
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
  return out;
}

absl::Status FileArguments::BindArgument(const Node& argument) {
  const auto refuse = [&](const std::string& what) {
    return UserError(
        sqlstate::kBadParameter, what, argument.position(),
        "read_csv takes header and all_varchar => true, and delimiter, quote, escape and nullstr => "
        "'…'");
  };
  if (!argument.Is("NamedArgExpr")) return refuse("read_csv takes one path; its other arguments have names");
  const std::string name = argument.Text("name");
  const Node value = argument.Field("arg");
  if (name == "header" || name == "all_varchar") {
    if (!value.Is("A_Const") || !value.Has("boolval"))
      return refuse(absl::StrCat(name, " takes true or false"));
    const bool given = value.Field("boolval").Flag("boolval");
    if (name == "header") {
      options.header = given;
    } else {
      all_text = given;
    }
    return absl::OkStatus();
  }
  const std::string text = TextOf(value);
  if (name == "nullstr") {
    dialect.null_text = text;
    return absl::OkStatus();
  }
  char* const character = name == "delimiter" ? &dialect.delimiter
                          : name == "quote"   ? &dialect.quote
                          : name == "escape"  ? &dialect.escape
                                              : nullptr;
  if (character == nullptr) return refuse(absl::StrCat("read_csv has no argument ", Quote(name)));
  if (text.size() != 1 || text == "\n" || text == "\r")
    return refuse(absl::StrCat(name, " must be a single one-byte character"));
  *character = text[0];
  options.delimiter_given |= name == "delimiter";
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, Type>>> FileArguments::Sniff(TableSource& tables) {
  NAM_ASSIGN_OR_RETURN(const std::vector<csv::SniffedColumn> sniffed,
                       tables.Sniff(pattern, options, dialect));
  std::vector<std::pair<std::string, Type>> columns;
  for (const csv::SniffedColumn& column : sniffed)
    columns.emplace_back(column.name, TypeOfKind(all_text ? csv::FieldKind::kText : column.kind));
  return columns;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> FileArguments::Load(TableSource& tables,
                                                                        const StatementTime& time) {
  constexpr size_t kNameBytesMax = 100;  // of a table's name
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
    if (stored.kind == TypeKind::kInteger) stored.precision = sizeof(int64_t);
    *column.mutable_type() = ToProto(stored);
  }
  NAM_ASSIGN_OR_RETURN(const CopyStatement copy,
                       CopyOfFiles(std::make_shared<proto::Table>(std::move(table)), pattern, dialect, time));
  return tables.Load(copy);
}

std::string FileArguments::Alias() const {
  std::string name = pattern.substr(pattern.rfind('/') + 1);
  return name.substr(0, std::max<size_t>(name.find('.'), 1));
}

}  // namespace nam::sql
