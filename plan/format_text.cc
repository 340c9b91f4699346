#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "types/sql_error.h"

/// format(pattern, …): %[place$][-][width]type.
namespace nam::plan {
namespace {

/// An SQL literal; one with backslashes has the form with escapes.
std::string QuotedLiteral(std::string_view text) {
  std::string out = text.find('\\') == std::string_view::npos ? "'" : "E'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back(c);
    out.push_back(c);
  }
  return out + "'";
}

/// An SQL name: in quotes, unless it has only small letters and is no keyword.
std::string QuotedName(std::string_view text);

class TextFormatter {
 public:
  TextFormatter(const Expr& call, std::span<const Value> arguments)
      : call_(call), arguments_(arguments), left_(arguments[0].text) {}

  absl::StatusOr<std::string> Run() {
    while (!left_.empty()) {
      const size_t plain = std::min(left_.find('%'), left_.size());
      out_.append(left_.substr(0, plain));
      left_.remove_prefix(plain);
      if (left_.empty()) break;
      left_.remove_prefix(1);
      if (left_.empty()) return Bad("unterminated format() type specifier");
      if (left_[0] == '%') {
        out_.push_back('%');
        left_.remove_prefix(1);
        continue;
      }
      NAM_RETURN_IF_ERROR(Conversion());
      if (out_.size() > kTextBytesMax) return TextTooLong(call_.position);
    }
    return std::move(out_);
  }

 private:
  absl::Status Bad(std::string what) const {
    return UserError(sqlstate::kBadParameter, std::move(what), call_.position,
                     "For a single \"%\" use \"%%\".");
  }

  /// -1 if there is none.
  absl::StatusOr<int64_t> Number() {
    int64_t number = -1;
    while (!left_.empty() && left_[0] >= '0' && left_[0] <= '9') {
      number = std::max<int64_t>(number, 0) * 10 + (left_[0] - '0');
      if (number > INT32_MAX)
        return UserError(sqlstate::kNumberOutOfRange, "number is out of range", call_.position);
      left_.remove_prefix(1);
    }
    return number;
  }

  absl::Status Conversion() {
    NAM_ASSIGN_OR_RETURN(int64_t width, Number());
    bool left = false;
    if (width >= 0 && left_.starts_with('$')) {
      if (width == 0) return Bad("format specifies argument 0, but arguments are numbered from 1");
      next_ = static_cast<size_t>(width);
      left_.remove_prefix(1);
      width = -1;
    }
    if (width < 0) {
      for (; left_.starts_with('-'); left = true) left_.remove_prefix(1);
      NAM_ASSIGN_OR_RETURN(width, Number());
    }
    if (left_.starts_with('*'))
      return Refusal("a width from an argument of format is not supported", call_.position,
                     "write the width");
    if (left_.empty()) return Bad("unterminated format() type specifier");
    const char type = left_[0];
    if (type != 's' && type != 'I' && type != 'L') {
      return Bad(absl::StrCat("unrecognized format() type specifier ",
                              Quote(std::string(left_.substr(0, CharacterBytes(left_, 0))))));
    }
    left_.remove_prefix(1);
    if (next_ >= arguments_.size())
      return UserError(sqlstate::kBadParameter, "too few arguments for format()", call_.position);
    const Value& value = arguments_[next_++];
    if (value.null && type == 'I')
      return UserError(sqlstate::kNullNotAllowed, "null values cannot be formatted as an SQL identifier",
                       call_.position);
    const std::string shown = value.null ? "" : value.ToString();
    Append(type == 's'   ? shown
           : type == 'I' ? QuotedName(shown)
           : value.null  ? "NULL"
                         : QuotedLiteral(shown),
           width, left);
    return absl::OkStatus();
  }

  void Append(const std::string& text, int64_t width, bool left) {
    const auto characters = static_cast<int64_t>(CountCharacters(text));
    const auto blanks = static_cast<size_t>(
        std::clamp<int64_t>(width - characters, 0, static_cast<int64_t>(kTextBytesMax) + 1));
    if (!left) out_.append(blanks, ' ');
    out_.append(text);
    if (left) out_.append(blanks, ' ');
  }

  const Expr& call_;
  const std::span<const Value> arguments_;
  std::string_view left_;
  std::string out_;
  size_t next_ = 1;  // the next argument
};

/// PostgreSQL's keywords, which cannot be names without quotes.
constexpr std::string_view kReserved[] = {"all",
                                          "analyse",
                                          "analyze",
                                          "and",
                                          "any",
                                          "array",
                                          "as",
                                          "asc",
                                          "asymmetric",
                                          "authorization",
                                          "between",
                                          "bigint",
                                          "binary",
                                          "bit",
                                          "boolean",
                                          "both",
                                          "case",
                                          "cast",
                                          "char",
                                          "character",
                                          "check",
                                          "coalesce",
                                          "collate",
                                          "collation",
                                          "column",
                                          "concurrently",
                                          "constraint",
                                          "create",
                                          "cross",
                                          "current_catalog",
                                          "current_date",
                                          "current_role",
                                          "current_schema",
                                          "current_time",
                                          "current_timestamp",
                                          "current_user",
                                          "dec",
                                          "decimal",
                                          "default",
                                          "deferrable",
                                          "desc",
                                          "distinct",
                                          "do",
                                          "else",
                                          "end",
                                          "except",
                                          "exists",
                                          "extract",
                                          "false",
                                          "fetch",
                                          "float",
                                          "for",
                                          "foreign",
                                          "freeze",
                                          "from",
                                          "full",
                                          "grant",
                                          "greatest",
                                          "group",
                                          "grouping",
                                          "having",
                                          "ilike",
                                          "in",
                                          "initially",
                                          "inner",
                                          "inout",
                                          "int",
                                          "integer",
                                          "intersect",
                                          "interval",
                                          "into",
                                          "is",
                                          "isnull",
                                          "join",
                                          "lateral",
                                          "leading",
                                          "least",
                                          "left",
                                          "like",
                                          "limit",
                                          "localtime",
                                          "localtimestamp",
                                          "national",
                                          "natural",
                                          "nchar",
                                          "none",
                                          "normalize",
                                          "not",
                                          "notnull",
                                          "null",
                                          "nullif",
                                          "numeric",
                                          "offset",
                                          "on",
                                          "only",
                                          "or",
                                          "order",
                                          "out",
                                          "outer",
                                          "overlaps",
                                          "overlay",
                                          "placing",
                                          "position",
                                          "precision",
                                          "primary",
                                          "real",
                                          "references",
                                          "returning",
                                          "right",
                                          "row",
                                          "select",
                                          "session_user",
                                          "setof",
                                          "similar",
                                          "smallint",
                                          "some",
                                          "substring",
                                          "symmetric",
                                          "table",
                                          "tablesample",
                                          "then",
                                          "time",
                                          "timestamp",
                                          "to",
                                          "trailing",
                                          "treat",
                                          "trim",
                                          "true",
                                          "union",
                                          "unique",
                                          "user",
                                          "using",
                                          "values",
                                          "varchar",
                                          "variadic",
                                          "verbose",
                                          "when",
                                          "where",
                                          "window",
                                          "with",
                                          "xmlattributes",
                                          "xmlconcat",
                                          "xmlelement",
                                          "xmlexists",
                                          "xmlforest",
                                          "xmlnamespaces",
                                          "xmlparse",
                                          "xmlpi",
                                          "xmlroot",
                                          "xmlserialize",
                                          "xmltable"};

std::string QuotedName(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  const bool plain = !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), inner) &&
                     !std::binary_search(std::begin(kReserved), std::end(kReserved), text);
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out.push_back(c);
    out.push_back(c);
  }
  return out + "\"";
}

}  // namespace

absl::StatusOr<std::string> FormatText(const Expr& call, std::span<const Value> arguments) {
  return TextFormatter(call, arguments).Run();
}

}  // namespace nam::plan
