#include "cli/command_completion.h"

#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

// The frames of the scripts. PROGRAM is the program's name, the others are what the functions below make.

constexpr char kBash[] = R"(# Completion for bash, written by `PROGRAM completion bash`.
_PROGRAM() {
  local word=${COMP_WORDS[COMP_CWORD]} command=PROGRAM option='' names='' options='' files='' i
  COMPREPLY=()
  # bash makes three words of --option=value.
  if [[ $word == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} word=''
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == -* ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
      COMMANDS) command+=" ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command $option" in
VALUES  esac
  case $command in
NAMES  esac
  if [[ $word == -* || -z $names$files ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [[ -n $files ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
  fi
}
complete -F _PROGRAM PROGRAM
)";

// As a file of $fpath this is the function's body; read by `source` it registers the function.
constexpr char kZsh[] = R"(#compdef PROGRAM
# Completion for zsh, written by `PROGRAM completion zsh`.
_PROGRAM() {
  local command=PROGRAM option='' i
  local -a names options
  for ((i = 2; i < CURRENT; i++)); do
    case "$command $words[i]" in
      COMMANDS) command+=" $words[i]" ;;
    esac
  done
  if [[ $words[CURRENT] == --*=* ]]; then
    option=${words[CURRENT]%%=*}
    compset -P '*='
  elif [[ $words[CURRENT-1] == -* ]]; then
    option=$words[CURRENT-1]
  fi
  case "$command $option" in
VALUES  esac
  case $command in
NAMES  esac
  (( $#names )) && _describe command names
  _describe -o option options
}
if [[ $funcstack[1] == _PROGRAM ]]; then
  _PROGRAM "$@"
else
  compdef _PROGRAM PROGRAM
fi
)";

constexpr char kFish[] = R"(# Completion for fish, written by `PROGRAM completion fish`.
function __PROGRAM_command
  set -l command PROGRAM
  for word in (commandline -opc)[2..-1]
    switch "$command $word"
      case COMMANDS
        set command "$command $word"
    end
  end
  echo $command
end
complete -c PROGRAM -f
NAMES)";

std::string Filled(const char* frame, const CommandDescription& program, const std::string& commands,
                   const std::string& values, const std::string& names) {
  return absl::StrReplaceAll(
      frame, {{"PROGRAM", program.name}, {"COMMANDS", commands}, {"VALUES", values}, {"NAMES", names}});
}

/// For bash and zsh: in single quotes nothing has a meaning but a quote.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string QuotedForFish(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

/// All commands behind the program itself, as patterns.
std::string CommandPatterns(const std::vector<CommandPath>& paths, const char* separator) {
  std::vector<std::string> patterns;
  for (size_t i = 1; i < paths.size(); ++i) patterns.push_back(Quoted(paths[i].words));
  return absl::StrJoin(patterns, separator);
}

/// What completes an option's value, in a shell's words; it ends in `; `, or is empty.
using Action = std::function<std::string(const OptionDescription&)>;
/// For each action the patterns of the `COMMAND OPTION` that it is for.
using ByAction = std::map<std::string, std::set<std::string>>;

/// An option that is completed alike behind all commands needs one pattern for all of them.
ByAction ActionsOf(const std::vector<CommandPath>& paths, const Action& action) {
  const auto for_each = [&](const auto& body) {
    for (const CommandPath& path : paths) {
      for (const OptionDescription& option : path.options) {
        if (option.kind() == ValueKind::kNone) continue;
        for (const std::string& name : option.names) body(path, name, action(option));
      }
    }
  };
  std::map<std::string, std::set<std::string>> actions_by_name;
  for_each([&](const CommandPath&, const std::string& name, const std::string& done) {
    actions_by_name[name].insert(done);
  });
  ByAction actions;
  for_each([&](const CommandPath& path, const std::string& name, const std::string& done) {
    const bool alike = actions_by_name[name].size() == 1;
    actions[done].insert(alike ? absl::StrCat("*", Quoted(" " + name)) : Quoted(path.words + " " + name));
  });
  return actions;
}

/// Branches of the `case` over a command and the option whose value is being completed.
std::string ValueBranches(const ByAction& actions) {
  std::string text;
  for (const auto& [action, patterns] : actions)
    absl::StrAppend(&text, "    ", absl::StrJoin(patterns, " | "), ") ", action, "return ;;\n");
  return text;
}

bool TakesFiles(const CommandPath& path) {
  for (const OptionDescription& option : path.options) {
    if (option.names.empty() && option.kind() == ValueKind::kFile) return true;
  }
  return false;
}

std::string BashAction(const OptionDescription& option) {
  switch (option.kind()) {
    case ValueKind::kWords:
      return absl::StrCat("mapfile -t COMPREPLY < <(compgen -W ", Quoted(absl::StrJoin(option.words(), " ")),
                          " -- \"$word\"); ");
    case ValueKind::kFile:
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); ";
    case ValueKind::kDirectory:
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); ";
    default:
      return "";
  }
}

std::string Bash(const CommandDescription& program) {
  const std::vector<CommandPath> paths = CommandPaths(program);
  std::string branches;
  for (const CommandPath& path : paths) {
    std::vector<std::string> names, options;
    for (const CommandDescription& inner : path.command->commands) names.push_back(inner.name);
    for (const OptionDescription& option : path.options) {
      if (!option.names.empty()) options.push_back(option.names.back());
      if (option.names.empty()) names.push_back(absl::StrJoin(option.words(), " "));
    }
    absl::StrAppend(&branches, "    ", Quoted(path.words),
                    ")\n      names=", Quoted(absl::StrJoin(names, " ")),
                    TakesFiles(path) ? " files=yes" : "",
                    "\n      options=", Quoted(absl::StrJoin(options, " ")), " ;;\n");
  }
  return Filled(kBash, program, CommandPatterns(paths, " | "), ValueBranches(ActionsOf(paths, BashAction)),
                branches);
}

std::string ZshAction(const OptionDescription& option) {
  switch (option.kind()) {
    case ValueKind::kWords:
      return absl::StrCat("compadd -- ", absl::StrJoin(option.words(), " "), "; ");
    case ValueKind::kFile:
      return "_files; ";
    case ValueKind::kDirectory:
      return "_files -/; ";
    default:
      return "";
  }
}

/// `'load:load its tables into a cluster'`: what _describe takes.
std::string Described(const std::string& name, const std::string& text) {
  return Quoted(absl::StrCat(name, ":", text));
}

std::string Zsh(const CommandDescription& program) {
  const std::vector<CommandPath> paths = CommandPaths(program);
  std::string branches;
  for (const CommandPath& path : paths) {
    std::vector<std::string> names, options;
    for (const CommandDescription& inner : path.command->commands)
      names.push_back(Described(inner.name, inner.text));
    for (const OptionDescription& option : path.options) {
      if (!option.names.empty()) options.push_back(Described(option.names.back(), option.text));
      if (!option.names.empty()) continue;
      for (const std::string& word : option.words()) names.push_back(Described(word, option.text));
    }
    absl::StrAppend(&branches, "    ", Quoted(path.words), ")\n      names=(", absl::StrJoin(names, " "),
                    ")\n      options=(", absl::StrJoin(options, " "), ")",
                    TakesFiles(path) ? "\n      _files" : "", " ;;\n");
  }
  return Filled(kZsh, program, CommandPatterns(paths, " | "), ValueBranches(ActionsOf(paths, ZshAction)),
                branches);
}

std::string FishOption(const OptionDescription& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  switch (option.kind()) {
    case ValueKind::kNone:
      break;
    case ValueKind::kWords:
      absl::StrAppend(&text, " -x -a ", QuotedForFish(absl::StrJoin(option.words(), " ")));
      break;
    case ValueKind::kFile:
      absl::StrAppend(&text, option.names.empty() ? " -F" : " -r -F");
      break;
    case ValueKind::kDirectory:
      absl::StrAppend(&text, " -x -a '(__fish_complete_directories)'");
      break;
    case ValueKind::kOther:
      absl::StrAppend(&text, option.names.empty() ? "" : " -x");
      break;
  }
  return absl::StrCat(text, " -d ", QuotedForFish(option.text));
}

std::string Fish(const CommandDescription& program) {
  const std::vector<CommandPath> paths = CommandPaths(program);
  std::string lines;
  for (const CommandPath& path : paths) {
    const std::string condition =
        absl::StrCat("string match -q -- \"", path.words, "\" (__", program.name, "_command)");
    const std::string here = absl::StrCat("complete -c ", program.name, " -n ", QuotedForFish(condition));
    for (const CommandDescription& inner : path.command->commands)
      absl::StrAppend(&lines, here, " -a ", inner.name, " -d ", QuotedForFish(inner.text), "\n");
    for (const OptionDescription& option : path.options)
      absl::StrAppend(&lines, here, FishOption(option), "\n");
  }
  return Filled(kFish, program, CommandPatterns(paths, " "), "", lines);
}

}  // namespace

std::string CompletionScript(const CommandDescription& program, const std::string& shell) {
  if (shell == "bash") return Bash(program);
  if (shell == "zsh") return Zsh(program);
  return shell == "fish" ? Fish(program) : "";
}

int RunCompletion(const CompletionOptions& options, const CommandDescription& program) {
  std::cout << CompletionScript(program, options.shell);
  return kExitOk;
}

}  // namespace nam::cli
