#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam {

/// What follows an option.
enum class ValueKind : uint8_t {
  kNone,   // nothing: the option is a flag
  kWords,  // one of several words
  kFile,
  kDirectory,
  kOther,  // a number, a size, an address, …
};

/// An option of a command, or an argument without a name.
struct OptionDescription {
  std::vector<std::string> names;  // `-c`, `--command`; empty: an argument that stands by itself
  std::string value;               // `FILE`, or the words to choose from: `shm|tcp|verbs`; empty: a flag
  std::string text;                // half a sentence
  std::string default_text, environment;  // may be empty
  bool required = false, repeated = false;

  ValueKind kind() const;
  /// Of kWords.
  std::vector<std::string> words() const;
};

/// A program, or one of its commands, as help, manual pages and completion describe it.
struct CommandDescription {
  std::string name;  // one word: `load`
  std::string text;  // half a sentence
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

/// A command with its words, `nam ssb load`, and the options that it takes: its own, and those of the program
/// that every command takes.
struct CommandPath {
  std::string words;
  const CommandDescription* command;  // of the program's description, which outlives this
  std::vector<OptionDescription> options;
};
/// The program itself and all its commands, a command before those inside it.
std::vector<CommandPath> CommandPaths(const CommandDescription& program);

}  // namespace nam
