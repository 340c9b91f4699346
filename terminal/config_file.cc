#include "terminal/config_file.h"

#include <toml++/toml.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam {
namespace {

std::string Where(const std::string& path, const toml::source_position& at) {
  return absl::StrCat(path, ":", at.line, ":", at.column);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::Status Table(const toml::table& table, const std::vector<std::string>& section) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (const toml::table* inner = node.as_table()) {
        std::vector<std::string> deeper = section;
        deeper.push_back(name);
        NAM_RETURN_IF_ERROR(Table(*inner, deeper));
        continue;
      }
      ConfigEntry entry{section, name, {}, Where(path_, key.source().begin)};
      if (const toml::array* array = node.as_array()) {
        for (const toml::node& element : *array) NAM_RETURN_IF_ERROR(Scalar(element, entry));
      } else {
        NAM_RETURN_IF_ERROR(Scalar(node, entry));
      }
      entries.push_back(std::move(entry));
    }
    return absl::OkStatus();
  }

  std::vector<ConfigEntry> entries;

 private:
  absl::Status Scalar(const toml::node& node, ConfigEntry& entry) {
    if (const auto* text = node.as_string()) {
      entry.values.push_back(text->get());
    } else if (const auto* integer = node.as_integer()) {
      entry.values.push_back(absl::StrCat(integer->get()));
    } else if (const auto* real = node.as_floating_point()) {
      char digits[64];
      const auto end = std::to_chars(digits, digits + sizeof digits, real->get());
      entry.values.emplace_back(digits, end.ptr);
    } else if (const auto* boolean = node.as_boolean()) {
      entry.values.push_back(boolean->get() ? "true" : "false");
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          entry.where, ": ", entry.key, " must be a string, a number, true or false, or an array of them"));
    }
    return absl::OkStatus();
  }

  const std::string& path_;
};

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file has no character to copy, which would count as a failure.
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || !text)
    return absl::NotFoundError(absl::StrCat("cannot read the configuration ", path));
  const toml::parse_result parsed = toml::parse(std::string_view(text.str()), path);
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat(Where(path, parsed.error().source().begin), ": ",
                                                   std::string(parsed.error().description())));
  }
  Reader reader(path);
  NAM_RETURN_IF_ERROR(reader.Table(parsed.table(), {}));
  return std::move(reader.entries);
}

}  // namespace nam
