#include "sql/copy_options.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/inflated_source.h"
#include "sql/change_scope.h"
#include "sql/record_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using Format = csv::Dialect::Format;

std::string OptionText(const Node& option) {
  const Node value = option.Field("arg");
  if (value.Is("Boolean")) return value.Flag("boolval") ? "true" : "false";
  if (value.Is("Integer")) return absl::StrCat(value.Integer("ival"));
  if (value.Is("Float")) return value.Text("fval");
  return value.Text("sval");
}

/// Without a value it is true.
absl::StatusOr<bool> BooleanOf(const Node& option, const std::string& name) {
  const std::string word = OptionText(option);
  if (!option.Has("arg") || word == "true" || word == "on" || word == "1") return true;
  if (word == "false" || word == "off" || word == "0") return false;
  return UserError(sqlstate::kSyntaxError, absl::StrCat(name, " requires a Boolean value"), option.position(),
                   "write true or false");
}

absl::Status ReadCharacter(const Node& option, const std::string& name, char& out) {
  const std::string word = OptionText(option);
  if (word.size() != 1 || word == "\n" || word == "\r") {
    return UserError(sqlstate::kBadParameter,
                     absl::StrCat("COPY ", name, " must be a single one-byte character"), option.position(),
                     "a tab is written E'\\t'");
  }
  out = word[0];
  return absl::OkStatus();
}

class OptionReader {
 public:
  explicit OptionReader(const Node& copy) : copy_(copy), from_(copy.Flag("is_from")) {}

  absl::StatusOr<CopyOptions> Read() {
    const std::vector<Node> options = copy_.List("options");
    for (const Node& option : options) {
      if (option.Text("defname") == "format") NAM_RETURN_IF_ERROR(ReadFormat(option));
    }
    if (!format_given_) out_.dialect = DialectOfPath(copy_.Text("filename"));
    std::set<std::string> seen;
    for (const Node& option : options) {
      NAM_RETURN_IF_ERROR(option.Only({"defname", "arg", "defaction"}));
      const std::string name = option.Text("defname");
      if (!seen.insert(name).second)
        return UserError(sqlstate::kSyntaxError, "conflicting or redundant options", option.position(),
                         absl::StrCat("give ", name, " once"));
      if (name != "format") NAM_RETURN_IF_ERROR(ReadOption(option, name));
    }
    NAM_RETURN_IF_ERROR(CheckDialect());
    if (!out_.rejects.empty() && !out_.skip_errors) {
      return UserError(sqlstate::kBadParameter, "COPY REJECTS requires ON_ERROR ignore", rejects_position_,
                       "with ON_ERROR stop no row is left out");
    }
    return std::move(out_);
  }

 private:
  absl::Status ReadFormat(const Node& option) {
    const std::string format = OptionText(option);
    format_given_ = true;
    if (format == "csv") {
      out_.dialect = csv::Dialect::Csv();
    } else if (format == "text") {
      out_.dialect = csv::Dialect::Text();
    } else if (format == "binary") {
      return Refusal("the binary format of COPY is not supported", option.position(), "write FORMAT csv");
    } else {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY format ", Quote(format), " not recognized"), option.position(),
                       "formats are csv and text");
    }
    return absl::OkStatus();
  }

  absl::Status ReadOption(const Node& option, const std::string& name) {
    csv::Dialect& dialect = out_.dialect;
    if (name == "delimiter") {
      delimiter_position_ = option.position();
      return ReadCharacter(option, name, dialect.delimiter);
    }
    if (name == "quote" || name == "escape") {
      if (dialect.format != Format::kCsv)
        return Refusal(absl::StrCat("COPY ", name, " available only in CSV mode"), option.position(),
                       "write FORMAT csv");
      (name == "escape" ? escape_given_ : quote_given_) = true;
      return ReadCharacter(option, name, name == "quote" ? dialect.quote : dialect.escape);
    }
    if (name == "null") {
      dialect.null_text = OptionText(option);
      return absl::OkStatus();
    }
    if (name == "header") return ReadHeader(option);
    if (name == "encoding") {
      const std::string word = OptionText(option);
      if (absl::EqualsIgnoreCase(word, "utf8") || absl::EqualsIgnoreCase(word, "utf-8"))
        return absl::OkStatus();
      return Refusal(
          absl::StrCat("encoding ", Quote(word), " is not supported"), option.position(),
          from_ ? "convert the file to UTF-8, with iconv" : "convert the file from UTF-8, with iconv");
    }
    if (name == "compression") return ReadCompression(option);
    if (name == "on_error" || name == "rejects" || name == "batch") {
      if (!from_) return OfOtherDirection(option, name, "TO");
      return ReadOptionOfFrom(option, name);
    }
    if (name == "force_quote") {
      if (from_) return OfOtherDirection(option, name, "FROM");
      return ReadForceQuote(option);
    }
    return Refusal(absl::StrCat("option ", Quote(name), " of COPY is not supported"), option.position(),
                   "options are format, header, delimiter, null, quote, escape, encoding, compression, "
                   "force_quote, on_error, rejects and batch");
  }

  static absl::Status OfOtherDirection(const Node& option, const std::string& name, const char* direction) {
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return UserError(sqlstate::kNotSupported,
                     absl::StrCat("COPY ", upper, " cannot be used with COPY ", direction), option.position(),
                     "leave it out");
  }

  absl::Status ReadHeader(const Node& option) {
    out_.dialect.header = true;
    out_.match_header = absl::EqualsIgnoreCase(OptionText(option), "match");
    if (!out_.match_header) {
      NAM_ASSIGN_OR_RETURN(out_.dialect.header, BooleanOf(option, "header"));
      return absl::OkStatus();
    }
    if (from_) return absl::OkStatus();
    return Refusal("cannot use \"match\" with HEADER in COPY TO", option.position(), "write HEADER alone");
  }

  absl::Status ReadCompression(const Node& option) {
    const std::string word = OptionText(option);
    if (word == "auto") return absl::OkStatus();
    if (word == "none") {
      out_.dialect.compression = csv::Compression::kNone;
    } else if (word == "gzip") {
      out_.dialect.compression = csv::Compression::kGzip;
    } else if (word == "zstd") {
      out_.dialect.compression = csv::Compression::kZstd;
    } else {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY COMPRESSION ", Quote(word), " not recognized"), option.position(),
                       "write none, gzip, zstd or auto: by the file's name");
    }
    return absl::OkStatus();
  }

  absl::Status ReadOptionOfFrom(const Node& option, const std::string& name) {
    const std::string word = OptionText(option);
    if (name == "rejects") {
      rejects_position_ = option.position();
      out_.rejects = word;
      if (!word.empty() && word != copy_.Text("filename")) return absl::OkStatus();
      return UserError(sqlstate::kBadParameter, "COPY REJECTS takes the name of another file",
                       option.position(), "REJECTS 'refused.csv'");
    }
    if (name == "batch") {
      out_.batch_position = option.position();
      if (absl::SimpleAtoi(word, &out_.batch_rows) && out_.batch_rows > 0) return absl::OkStatus();
      return UserError(sqlstate::kBadParameter, "COPY BATCH takes a number of rows, 1 or more",
                       option.position(), "BATCH 10000");
    }
    if (word != "stop" && word != "ignore")
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY ON_ERROR ", Quote(word), " not recognized"), option.position(),
                       "write stop or ignore");
    out_.skip_errors = word == "ignore";
    return absl::OkStatus();
  }

  absl::Status ReadForceQuote(const Node& option) {
    out_.force_quote_position = option.position();
    if (out_.dialect.format != Format::kCsv)
      return Refusal("COPY FORCE_QUOTE requires CSV mode", option.position(), "write FORMAT csv");
    const Node value = option.Field("arg");
    out_.force_quote_all = value.Is("A_Star");
    if (out_.force_quote_all) return absl::OkStatus();
    if (!value.Is("List")) {
      return UserError(sqlstate::kBadParameter,
                       "argument to option \"force_quote\" must be a list of column names", option.position(),
                       "FORCE_QUOTE (a, b), or FORCE_QUOTE *");
    }
    out_.force_quote = value.Names("items");
    return absl::OkStatus();
  }

  absl::Status CheckDialect() {
    csv::Dialect& dialect = out_.dialect;
    const auto refuse = [this](const char* what) {
      return UserError(sqlstate::kBadParameter, what, copy_.Leftmost());
    };
    if (quote_given_ && !escape_given_) dialect.escape = dialect.quote;
    if (dialect.format == Format::kCsv &&
        (dialect.delimiter == dialect.quote || dialect.delimiter == dialect.escape))
      return refuse("COPY delimiter and quote must be different");
    // After a backslash these have other meanings.
    constexpr std::string_view kTaken = "\\.abcdefghijklmnopqrstuvwxyz0123456789";
    if (dialect.format == Format::kText && kTaken.find(dialect.delimiter) != std::string_view::npos) {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("COPY delimiter cannot be ", Quote(std::string(1, dialect.delimiter))),
                       delimiter_position_, "take a character that is no small letter and no digit");
    }
    if (dialect.null_text.find_first_of("\r\n") != std::string::npos)
      return refuse("COPY null representation cannot use newline or carriage return");
    if (absl::StrContains(dialect.null_text, dialect.delimiter))
      return refuse("COPY delimiter character must not appear in the NULL specification");
    if (dialect.has_quotes() && absl::StrContains(dialect.null_text, dialect.quote))
      return refuse("CSV quote character must not appear in the NULL specification");
    return absl::OkStatus();
  }

  const Node& copy_;
  const bool from_;
  CopyOptions out_;
  bool format_given_ = false, quote_given_ = false, escape_given_ = false;
  int delimiter_position_ = -1, rejects_position_ = -1;
};

}  // namespace

absl::StatusOr<CopyOptions> CopyOptions::From(const Node& copy) {
  // An empty path is the binder's word for the client's standard streams.
  if (copy.Has("filename") && copy.Text("filename").empty()) {
    return UserError(sqlstate::kNoSuchFile, "could not open file \"\"", -1,
                     "FROM STDIN reads standard input, TO STDOUT writes standard output");
  }
  return OptionReader(copy).Read();
}

absl::StatusOr<std::shared_ptr<const proto::Table>> CopiedTable(LogicalContext& context, const Node& copy) {
  const Node relation = copy.Field("relation");
  NAM_ASSIGN_OR_RETURN(auto table, context.FindRelation(relation));
  if (!table->has_view()) return table;
  const bool from = copy.Flag("is_from");
  return UserError(
      sqlstate::kWrongObjectType,
      absl::StrCat("cannot copy ", from ? "to" : "from", " view ", Quote(relation.Text("relname"))),
      relation.position(),
      from ? "copy into the tables that it reads" : "Try the COPY (SELECT ...) TO variant.");
}

absl::StatusOr<std::vector<int>> CopiedColumnsOf(const Node& copy, const proto::Table& table, int position) {
  std::vector<int> columns;
  std::vector<std::string> names;
  for (const proto::Column& column : table.columns()) {
    if (!column.hidden()) names.push_back(column.name());
  }
  for (const std::string& wanted : copy.Names("attlist")) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    const int at = copy.text().Find({}, position);
    if (found == names.end()) {
      return UserError(
          sqlstate::kUndefinedColumn,
          absl::StrCat("column ", Quote(wanted), " of relation ", Quote(table.name()), " does not exist"), at,
          DidYouMean(wanted, names));
    }
    columns.push_back(static_cast<int>(found - names.begin()));
    if (std::count(columns.begin(), columns.end(), columns.back()) > 1)
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(wanted), " specified more than once"), at,
                       "name it once");
  }
  for (size_t i = 0; !copy.Has("attlist") && i < names.size(); ++i) columns.push_back(static_cast<int>(i));
  return columns;
}

csv::Dialect DialectOfPath(std::string_view path) {
  const std::string name(csv::WithoutCompression(path));
  if (absl::EndsWithIgnoreCase(name, ".csv")) return csv::Dialect::Csv();
  if (!absl::EndsWithIgnoreCase(name, ".tbl")) return csv::Dialect::Text();
  csv::Dialect tbl = csv::Dialect::Csv();
  tbl.delimiter = '|';
  tbl.quote = tbl.escape = csv::Dialect::kNoQuote;
  return tbl;
}

}  // namespace nam::sql
