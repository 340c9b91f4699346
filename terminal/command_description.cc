#include "terminal/command_description.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace nam {
namespace {

bool HasCapitals(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c) != 0; });
}

void Collect(const CommandDescription& command, const std::string& words,
             const std::vector<OptionDescription>& everywhere, std::vector<CommandPath>& paths) {
  paths.push_back({.words = words, .command = &command, .options = command.options});
  std::vector<OptionDescription>& options = paths.back().options;
  if (paths.size() > 1) options.insert(options.end(), everywhere.begin(), everywhere.end());
  for (const CommandDescription& inner : command.commands) {
    Collect(inner, absl::StrCat(words, " ", inner.name), everywhere, paths);
  }
}

}  // namespace

ValueKind OptionDescription::kind() const {
  if (value.empty()) return ValueKind::kNone;
  if (value == "FILE") return ValueKind::kFile;
  if (value == "DIR") return ValueKind::kDirectory;
  return HasCapitals(value) ? ValueKind::kOther : ValueKind::kWords;
}

std::vector<std::string> OptionDescription::words() const {
  if (kind() != ValueKind::kWords) return {};
  return absl::StrSplit(value, '|');
}

std::vector<CommandPath> CommandPaths(const CommandDescription& program) {
  // Of the program's flags, --version and --help, the first has no meaning behind a command, and the second
  // is one of each command's own.
  std::vector<OptionDescription> everywhere;
  for (const OptionDescription& option : program.options) {
    if (option.kind() != ValueKind::kNone) everywhere.push_back(option);
  }
  std::vector<CommandPath> paths;
  Collect(program, program.name, everywhere, paths);
  return paths;
}

}  // namespace nam
