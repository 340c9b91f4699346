#include "cli/manual_pages.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "localcluster/connect.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

/// Text as roff takes it: hyphens are those of options, and no line begins with a request.
std::string Escaped(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return escaped.starts_with('.') || escaped.starts_with('\'') ? absl::StrCat("\\&", escaped) : escaped;
}

std::string Bold(const std::string& text) {
  return absl::StrCat("\\fB", Escaped(text), "\\fR");
}

std::string Italic(const std::string& text) {
  return absl::StrCat("\\fI", Escaped(text), "\\fR");
}

/// Half a sentence as a sentence. The name of a fabric in front of it stays as it is: `tcp: …`.
std::string Sentence(const std::string& text) {
  if (text.empty()) return "";
  std::string sentence = text;
  if (sentence.find(": ") >= sentence.find(' '))
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  return absl::StrCat(Escaped(sentence), sentence.ends_with('.') ? "" : ".");
}

std::string PageName(const CommandPath& path) {
  return absl::StrReplaceAll(path.words, {{" ", "-"}});
}

std::string Tag(const OptionDescription& option) {
  if (option.names.empty()) return Italic(option.value);
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(Bold(name));
  const std::string value = option.value.empty() ? "" : absl::StrCat("=", Italic(option.value));
  return absl::StrCat(absl::StrJoin(names, ", "), value);
}

void AppendOption(const OptionDescription& option, std::string& page) {
  absl::StrAppend(&page, ".TP\n", Tag(option), "\n", Sentence(option.text));
  if (option.required) absl::StrAppend(&page, " Required.");
  if (option.repeated) absl::StrAppend(&page, " May be given several times.");
  if (!option.default_text.empty()) absl::StrAppend(&page, " Default: ", Escaped(option.default_text), ".");
  if (!option.environment.empty()) absl::StrAppend(&page, " Environment: ", Bold(option.environment), ".");
  page += "\n";
}

std::string Synopsis(const CommandPath& path) {
  std::string line = Bold(path.words);
  if (!path.command->commands.empty()) absl::StrAppend(&line, " ", Italic("COMMAND"));
  absl::StrAppend(&line, " [", Italic("OPTION"), "...]");
  for (const OptionDescription& option : path.options) {
    if (option.names.empty()) absl::StrAppend(&line, " ", Italic(option.value), option.repeated ? "..." : "");
  }
  return line;
}

constexpr char kConfiguration[] =
    ".SH CONFIGURATION\n"
    "A flag wins over the environment variable that is named beside it, which wins over the configuration "
    "file.\n"
    "The file is TOML, and named by \\fB\\-\\-config\\fR or \\fBNAM_CONFIG\\fR. Its keys are long names of "
    "options;\n"
    "a key at the top is for every command that has such an option, a section for one command.\n";
constexpr char kExitStatus[] =
    ".SH EXIT STATUS\n"
    ".TP\n\\fB0\\fR\nDone.\n"
    ".TP\n\\fB1\\fR\nThe statement or the work failed.\n"
    ".TP\n\\fB2\\fR\nUsage or configuration.\n"
    ".TP\n\\fB3\\fR\nCannot connect, or cannot listen.\n"
    ".TP\n\\fB4\\fR\nA check failed: a wrong answer, or something that is missing.\n"
    ".TP\n\\fB130\\fR\nInterrupted.\n";

std::string PageOf(const CommandPath& path, const std::string& program, const std::string& version) {
  std::string page =
      absl::StrCat(".TH \"", Escaped(PageName(path)), "\" \"1\" \"\" \"", Escaped(version), "\" \"Manual of ",
                   program, "\"\n.SH NAME\n", Escaped(PageName(path)), " \\- ", Escaped(path.command->text),
                   "\n.SH SYNOPSIS\n", Synopsis(path), "\n");
  if (!path.command->commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const CommandDescription& inner : path.command->commands) {
      absl::StrAppend(&page, ".TP\n", Bold(absl::StrCat(path.words, " ", inner.name)), "\n",
                      Sentence(inner.text), "\n");
    }
  }
  page += ".SH OPTIONS\n";
  for (const OptionDescription& option : path.options) AppendOption(option, page);
  page += kConfiguration;
  page += kExitStatus;
  page += ".SH SEE ALSO\n";
  const size_t last = path.words.rfind(' ');
  if (last != std::string::npos)
    absl::StrAppend(&page, Bold(absl::StrReplaceAll(path.words.substr(0, last), {{" ", "-"}})), "(1)\n");
  for (const CommandDescription& inner : path.command->commands)
    absl::StrAppend(&page, ".br\n", Bold(absl::StrCat(PageName(path), "-", inner.name)), "(1)\n");
  return page;
}

absl::Status Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path.string()));
}

}  // namespace

std::vector<ManualPage> ManualPages(const CommandDescription& program, const std::string& version) {
  std::vector<ManualPage> pages;
  for (const CommandPath& path : CommandPaths(program))
    pages.push_back({absl::StrCat(PageName(path), ".1"), PageOf(path, program.name, version)});
  return pages;
}

int RunManual(const ManualOptions& options, const CommandDescription& program, const std::string& version) {
  const std::vector<ManualPage> pages = ManualPages(program, version);
  if (options.out.empty()) {
    std::cout << pages.front().text;
    return kExitOk;
  }
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error)
    return ReportFailure(
        absl::UnavailableError(absl::StrCat("cannot make ", options.out, ": ", error.message())));
  for (const ManualPage& page : pages) {
    if (const absl::Status written = Write(std::filesystem::path(options.out) / page.file, page.text);
        !written.ok())
      return ReportFailure(written);
  }
  std::cout << "Wrote " << pages.size() << " pages to " << options.out << ".\n";
  return kExitOk;
}

}  // namespace nam::cli
