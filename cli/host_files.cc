#include "cli/host_files.h"

#include <charconv>
#include <cstdlib>
#include <fstream>

namespace nam::cli {
namespace {

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::optional<std::string> ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return Trim(line);
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const auto line = ReadLine(path);
  return line ? ParseNumber(*line) : std::nullopt;
}

std::optional<std::string> ReadField(const std::string& path, const std::string& key) {
  for (const std::string& line : ReadLines(path)) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && Trim(line.substr(0, colon)) == key) return Trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseNumber(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

std::optional<std::string> ReadChoice(const std::string& path) {
  const auto line = ReadLine(path);
  if (!line) return std::nullopt;
  const size_t begin = line->find('['), end = line->find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  return line->substr(begin + 1, end - begin - 1);
}

std::optional<uint64_t> ReadLimit(const std::string& path, const std::string& name) {
  for (const std::string& line : ReadLines(path)) {
    if (!line.starts_with(name)) continue;
    const std::string soft = Trim(line.substr(name.size()));
    return soft.starts_with("unlimited") ? std::optional(UINT64_MAX) : ParseNumber(soft);
  }
  return std::nullopt;
}

bool HasCapability(const std::string& proc, int capability) {
  const std::string effective = ReadField(proc + "/self/status", "CapEff").value_or("0");
  return (std::strtoull(effective.c_str(), nullptr, 16) >> capability & 1) != 0;
}

}  // namespace nam::cli
