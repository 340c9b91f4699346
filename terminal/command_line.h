#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "terminal/command_description.h"
#include "terminal/config_file.h"
#include "terminal/exit_codes.h"
#include "terminal/suggestion.h"
#include "terminal/units.h"

namespace nam {

/// A program's commands and their options. An option's default, environment variable and configuration key
/// are named after its long name. Of flag, environment (NAM_...) and configuration file, the first one set
/// wins. For main files only: CLI11 is slow to compile.
class CommandLine {
 public:
  /// Runs the requested command; returns its exit code. Results that could not be written count as a failure.
  int Run(int argc, char** argv) { return FinishOutput(RunCommand(argc, argv)); }

 protected:
  using Run_ = std::function<int()>;

  int RunCommand(int argc, char** argv) {
    try {
      if (const std::string error = ApplyFile(ConfigPath(argc, argv)); !error.empty()) return Refuse(error);
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (const std::string wrong = UnknownCommand(argc, argv); error.get_exit_code() != 0 && !wrong.empty())
        return Refuse(wrong);
      if (error.get_exit_code() == 0) return app_.exit(error) == 0 ? kExitOk : kExitUsage;  // --help
      const std::string command = CommandAskedFor();
      std::fprintf(stderr, "%s: %s; `%s --help` lists what it takes\n", command.c_str(), error.what(),
                   command.c_str());
      return kExitUsage;
    }
    for (const auto& [command, run] : commands_) {
      if (command->parsed() && command->get_subcommands().empty()) return run();
    }
    return kExitUsage;
  }

  /// Sections of the configuration file whose first name is in `sections_of_others` belong to other programs.
  /// A program with its own `section` reads that one and ignores all other unknown sections.
  CommandLine(const std::string& name, const std::string& description, std::string section,
              std::vector<std::string> sections_of_others)
      : section_(std::move(section)), sections_of_others_(std::move(sections_of_others)) {
    app_.name(name);
    app_.description(description);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--config", config_path_, "configuration file (TOML); keys are the options' long names")
        ->type_name("FILE");
  }
  ~CommandLine() = default;

  CLI::App* Command(const std::string& name, const std::string& description, Run_ run,
                    CLI::App* parent = nullptr) {
    CLI::App* command = (parent != nullptr ? parent : &app_)->add_subcommand(name, description);
    OnCommand(command, std::move(run));
    return command;
  }
  void OnCommand(CLI::App* command, Run_ run) { commands_.emplace_back(command, std::move(run)); }

  template <typename T>
  static CLI::Option* Add(CLI::App* command, const std::string& name, T& value,
                          const std::string& description, const std::string& type_name = "") {
    CLI::Option* option = command->add_option(name, value, description);
    if constexpr (std::is_arithmetic_v<T>) option->capture_default_str();
    if (!type_name.empty()) option->type_name(type_name);
    return option;
  }

  /// `Value` is a uint64_t or an optional one.
  template <typename Bytes>
  static void AddBytes(CLI::App* command, const std::string& name, Bytes& value,
                       const std::string& description) {
    CLI::Option* option = command->add_option_function<std::string>(
        name,
        [&value, name](const std::string& text) {
          const auto bytes = ParseBytes(text);
          if (!bytes.ok()) throw CLI::ValidationError(name, std::string(bytes.status().message()));
          value = *bytes;
        },
        description);
    option->type_name("SIZE");
    if constexpr (std::is_same_v<Bytes, uint64_t>) {
      if (value != 0) option->default_str(FormatBytes(value));
    }
  }

  /// One of `words`. Which of them are right the command's Run function says, with a better message.
  static CLI::Option* AddChoice(CLI::App* command, const std::string& name, std::string& value,
                                const std::vector<std::string>& words, const std::string& description) {
    return Add(command, name, value, description, CLI::detail::join(words, "|"));
  }
  /// One of `words`, and anything else is refused here.
  static void AddCheckedChoice(CLI::App* command, const std::string& name, std::string& value,
                               const std::vector<std::string>& words, const std::string& description) {
    // The words are the value's name already, so the check needs none in the help.
    AddChoice(command, name, value, words, description)->check(CLI::IsMember(words).description(""));
  }
  static void AddFormat(CLI::App* command, std::string& format,
                        const std::vector<std::string>& words = {"table", "json", "csv", "markdown"},
                        const std::string& description = "format of the output") {
    AddChoice(command, "--format", format, words, description + " (table)");
  }
  /// All that users see. For manual pages and completion.
  CommandDescription Describe() const { return DescriptionOf(app_); }

  /// NAM_<LONG_NAME> for every option that a file can set too.
  static void NameEnvironment(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
      const std::vector<std::string>& names = option->get_lnames();
      if (names.empty() || names[0] == "help" || !option->get_configurable()) continue;
      std::string variable = "NAM_" + names[0];
      std::transform(variable.begin(), variable.end(), variable.begin(),
                     [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
      option->envname(variable);
    }
    for (CLI::App* command : app.get_subcommands(nullptr)) NameEnvironment(*command);
  }

  /// Runs before the command line is parsed, because the file's values are defaults.
  static std::string ConfigPath(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--") break;
      if (argument.rfind("--config=", 0) == 0) return argument.substr(9);
      if (argument == "--config" && i + 1 < argc) return argv[i + 1];
    }
    const char* path = std::getenv("NAM_CONFIG");
    return path != nullptr ? path : "";
  }

  /// Makes the file's entries defaults; returns the error, if any.
  std::string ApplyFile(const std::string& path) {
    if (path.empty()) return {};
    auto entries = ReadConfigFile(path);
    if (!entries.ok()) return std::string(entries.status().message());
    for (ConfigEntry& entry : *entries) {
      const std::string first = entry.section.empty() ? "" : entry.section[0];
      if (std::count(sections_of_others_.begin(), sections_of_others_.end(), first) > 0) continue;
      if (!section_.empty() && !first.empty() && first != section_) continue;
      if (!section_.empty() && !first.empty()) entry.section.erase(entry.section.begin());
      if (const std::string error = Apply(entry, first.empty()); !error.empty()) return error;
    }
    return {};
  }

  /// Makes an entry the default of its options, with `deep` in all commands; returns the error, if any.
  std::string Apply(const ConfigEntry& entry, bool deep) {
    CLI::App* app = &app_;
    for (const std::string& name : entry.section) {
      CLI::App* inner = nullptr;
      for (CLI::App* command : app->get_subcommands(nullptr)) {
        if (command->get_name() == name) inner = command;
      }
      if (inner == nullptr) return entry.where + ": there is no command [" + name + "]";
      app = inner;
    }
    int found = 0;
    try {
      ApplyTo(*app, entry, deep, found);
    } catch (const CLI::Error& error) {
      return entry.where + ": " + error.what();
    }
    const bool another_programs = deep && !section_.empty();
    return found > 0 || another_programs ? std::string()
                                         : entry.where + ": unknown setting \"" + entry.key + "\"";
  }

  static void ApplyTo(CLI::App& app, const ConfigEntry& entry, bool deep, int& found) {
    for (CLI::Option* option : app.get_options()) {
      const std::vector<std::string>& names = option->get_lnames();
      if (names.empty() || names[0] != entry.key || !option->get_configurable() || entry.key == "config")
        continue;
      std::string value;
      for (const std::string& element : entry.values) value += (value.empty() ? "" : ",") + element;
      option->run_callback_for_default()->default_val(value);
      ++found;
    }
    if (!deep) return;
    for (CLI::App* command : app.get_subcommands(nullptr)) ApplyTo(*command, entry, true, found);
  }

  /// Describes the first word in a command's place that is not a command; empty if all are.
  std::string UnknownCommand(int argc, char** argv) const {
    const CLI::App* app = &app_;
    std::string path = app_.get_name();
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--config") ++i;
      if (word.empty() || word[0] == '-') continue;
      std::vector<std::string> names;
      const CLI::App* inner = nullptr;
      for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == word) inner = command;
        if (!command->get_group().empty()) names.push_back(command->get_name());  // others are internal
      }
      if (names.empty()) return {};
      if (inner == nullptr) {
        const std::string meant = Suggestion(word, names);
        return "there is no command \"" + path + " " + word + "\"; " +
               (meant.empty() ? "`" + path + " --help` lists those that there are"
                              : "did you mean \"" + path + " " + meant + "\"?");
      }
      app = inner;
      path += " " + word;
    }
    return {};
  }

  /// The words of the command that was parsed last: `nam scale out`.
  std::string CommandAskedFor() const {
    std::string words = app_.get_name();
    for (const CLI::App* app = &app_; !app->get_subcommands().empty();) {
      app = app->get_subcommands().back();
      words += " " + app->get_name();
    }
    return words;
  }

  static CommandDescription DescriptionOf(const CLI::App& app) {
    CommandDescription command{.name = app.get_name(), .text = app.get_description()};
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_group().empty()) command.options.push_back(DescriptionOf(*option));
    }
    for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!inner->get_group().empty()) command.commands.push_back(DescriptionOf(*inner));
    }
    return command;
  }

  static OptionDescription DescriptionOf(const CLI::Option& option) {
    OptionDescription described{.text = option.get_description(),
                                .default_text = option.get_default_str(),
                                .environment = option.get_envname(),
                                .required = option.get_required(),
                                .repeated = option.get_items_expected_max() > 1};
    for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
    if (option.get_items_expected_max() > 0) described.value = option.get_type_name();
    return described;
  }

  static int Refuse(const std::string& message) {
    std::fprintf(stderr, "nam: %s\n", message.c_str());
    return kExitUsage;
  }

  CLI::App app_;
  std::string config_path_;

 private:
  const std::string section_;
  const std::vector<std::string> sections_of_others_;
  std::vector<std::pair<CLI::App*, Run_>> commands_;
};

}  // namespace nam
