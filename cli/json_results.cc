#include "cli/json_results.h"

#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "terminal/table_printer.h"
#include "types/sql_error.h"

namespace nam::cli {

std::string CommandMembers(const std::string& command) {
  std::string members = absl::StrCat("\"command\": ", JsonString(command));
  uint64_t count = 0;
  const size_t blank = command.rfind(' ');
  if (blank != std::string::npos && absl::SimpleAtoi(command.substr(blank + 1), &count))
    absl::StrAppend(&members, ", \"count\": ", count);
  return members;
}

void JsonResults::Separate() {
  out_ << (std::exchange(any_, true) ? ",\n" : "[\n");
}

void JsonResults::BeginRows() {
  Separate();
}

void JsonResults::EndRows(const std::string& command) {
  out_ << (command.empty() ? "" : ", ") << (command.empty() ? "" : CommandMembers(command)) << "}";
  out_.flush();
}

void JsonResults::Add(const std::string& command) {
  Separate();
  out_ << "{" << CommandMembers(command) << "}";
  out_.flush();
}

void JsonResults::AddError(const absl::Status& error, bool after_rows) {
  if (!after_rows) Separate();
  const std::optional<SqlError> of_user = SqlErrorOf(error);
  out_ << (after_rows ? ", " : "{") << "\"error\": {";
  if (of_user.has_value()) out_ << "\"sqlstate\": " << JsonString(of_user->sqlstate) << ", ";
  out_ << "\"message\": " << JsonString(of_user.has_value() ? of_user->message : std::string(error.message()))
       << "}}";
  out_.flush();
}

void JsonResults::End() {
  out_ << (any_ ? "\n]\n" : "[]\n");
  out_.flush();
}

}  // namespace nam::cli
