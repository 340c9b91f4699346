#include <algorithm>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster_report.h"
#include "cli/copy_command.h"
#include "cli/shell.h"
#include "terminal/exit_codes.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

constexpr int kIncludeDepthMax = 16;

constexpr char kHelp[] =
    R"(Statements end with a semicolon. Ctrl-C cancels the running one; Ctrl-D leaves.
  \d              tables
  \d TABLE        columns, keys, indexes and checks of a table, and where it lies
  \dt [TABLE]     tables, or this one
  \dv             views
  \dn             schemas
  \servers        members of the cluster
  \timing [on|off]  the time of every statement
  \x [on|off]     every row as a block of `column | value` lines
  \i FILE         statements of a file
  \copy …         COPY …, whose files are this client's: \copy t from people.csv csv header
  \?              this help
  \q              leave
SHOW ALL lists the settings, SET name = value changes one, RESET name takes it back.
)";

/// The command's word, and its argument without blanks and a closing semicolon.
std::pair<std::string, std::string> Parse(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  std::string command(line.substr(0, end)), argument(line.substr(end));
  const auto trim = [](std::string& text) {
    text.erase(0, std::min(text.find_first_not_of(" \t\r"), text.size()));
    text.erase(text.find_last_not_of(" \t\r;") + 1);
  };
  trim(command);
  trim(argument);
  return {command, argument};
}

/// A relation's name; an empty schema stands for the search path.
struct RelationName {
  std::string schema, name;
};

/// As psql: lower case except within quotes, where "" is a quote; a dot outside of them ends the schema.
RelationName ParseName(std::string_view text) {
  RelationName out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const bool escaped = quoted && i + 1 < text.size() && text[i + 1] == '"';
      if (escaped) out.name += text[++i];
      if (!escaped) quoted = !quoted;
    } else if (c == '.' && !quoted && out.schema.empty()) {
      out.schema = std::exchange(out.name, "");
    } else {
      out.name += !quoted && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return out;
}

}  // namespace

int Shell::RunMeta(std::string_view line, Cursor& at) {
  const auto [command, argument] = Parse(line);
  if (command == "\\q") {
    quit_ = true;
    return kExitOk;
  }
  if (command == "\\d" && !argument.empty()) return Describe(argument);
  if (command == "\\d" || (command == "\\dt" && argument.empty())) return DescribeAll();
  if (command == "\\dt") return ListTable(argument);
  if (command == "\\dv") return ListOthers(ViewsReport);
  if (command == "\\dn") return ListOthers(SchemasReport);
  if (command == "\\servers") return ListServers();
  if (command == "\\timing") return Toggle(options_.timing, argument, "Timing");
  if (command == "\\x") return Toggle(options_.print.expanded, argument, "Expanded display");
  if (command == "\\i") return IncludeFile(argument);
  if (command == "\\copy") return RunCopy(argument, at);
  if (command == "\\?" || command == "\\h" || command == "\\help") {
    PrintHelp();
    return kExitOk;
  }
  return ReportMetaError(
      absl::InvalidArgumentError(absl::StrCat("there is no command ", command, "; try \\?")));
}

/// \copy. Its rows may come from another place than the script's lines.
int Shell::RunCopy(const std::string& arguments, Cursor& at) {
  std::istream* const script = at.script;
  if (script != &std::cin && TakesProcessInput(arguments)) at.script = nullptr;
  const int result = Execute(CopyStatementOf(arguments), at, at.lines);
  at.script = script;
  return result;
}

int Shell::ReportMetaError(const absl::Status& status) {
  out_.flush();
  err_ << "ERROR:  " << status.message() << "\n";
  err_.flush();
  return kExitFailed;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> Shell::FindRelation(const std::string& written) {
  const RelationName name = ParseName(written);
  auto found = session_.FindRelation(name.schema, name.name);
  if (!absl::IsNotFound(found.status())) return found;
  return absl::NotFoundError(absl::StrCat("there is no table \"", name.schema, name.schema.empty() ? "" : ".",
                                          name.name, "\"; \\d lists them"));
}

int Shell::ListTable(const std::string& written) {
  const auto table = FindRelation(written);
  if (!table.ok()) return ReportMetaError(table.status());
  if ((*table)->has_view())
    return ReportMetaError(absl::NotFoundError(absl::StrCat(written, " is a view; \\dv lists views")));
  return PrintTables({**table});
}

int Shell::PrintTables(const std::vector<proto::Table>& tables) {
  const auto cluster = catalog_.GetCluster();
  if (!cluster.ok()) return ReportMetaError(cluster.status());
  PrintReport(TablesReport(tables, options_.print.format == OutputFormat::kTable, *cluster));
  return kExitOk;
}

int Shell::Describe(const std::string& written) {
  const auto table = FindRelation(written);
  if (!table.ok()) return ReportMetaError(table.status());
  PrintReport(ColumnsReport(**table));
  if ((*table)->has_view()) {
    if (options_.print.format == OutputFormat::kTable) PrintReport(ViewsReport({**table}));
    return kExitOk;
  }
  if (options_.print.format == OutputFormat::kTable) {
    const FindTable find = [&](const std::string& other) {
      return catalog_.GetTable(other).value_or(nullptr);
    };
    for (const auto& more :
         {IndexesReport(**table), ChecksReport(**table), ForeignKeysReport(**table, find)}) {
      if (!more.rows.empty()) PrintReport(more);
    }
    return PrintTables({**table});
  }
  return kExitOk;
}

int Shell::DescribeAll() {
  const auto tables = catalog_.ListTables();
  if (!tables.ok()) return ReportMetaError(tables.status());
  if (tables->empty() && interactive_) {
    out_ << "There are no tables; `nam ssb load` makes some.\n";
    return kExitOk;
  }
  return PrintTables(*tables);
}

int Shell::ListOthers(session::ResultSet (*report)(const std::vector<proto::Table>& entries)) {
  const auto entries = catalog_.ListEntries();
  if (!entries.ok()) return ReportMetaError(entries.status());
  PrintReport(report(*entries));
  return kExitOk;
}

int Shell::ListServers() {
  const auto cluster = catalog_.GetCluster();
  if (!cluster.ok()) return ReportMetaError(cluster.status());
  PrintReport(MembersReport(*cluster));
  return kExitOk;
}

int Shell::IncludeFile(const std::string& path) {
  if (path.empty()) return ReportMetaError(absl::InvalidArgumentError("\\i needs the name of a file"));
  if (include_depth_ >= kIncludeDepthMax) {
    return ReportMetaError(
        absl::FailedPreconditionError(absl::StrCat(path, ": files include each other too deeply")));
  }
  ++include_depth_;
  const int result = RunFile(path);
  --include_depth_;
  quit_ = false;  // \\q ends its own file
  return result;
}

int Shell::Toggle(bool& setting, const std::string& argument, const char* name) {
  if (argument.empty()) {
    setting = !setting;
  } else if (argument == "on" || argument == "off") {
    setting = argument == "on";
  } else {
    return ReportMetaError(
        absl::InvalidArgumentError(absl::StrCat("\"", argument, "\" is neither on nor off")));
  }
  if (interactive_) out_ << name << " is " << (setting ? "on" : "off") << ".\n";
  out_.flush();
  return kExitOk;
}

void Shell::PrintHelp() {
  out_ << kHelp;
  out_.flush();
}

}  // namespace nam::cli
