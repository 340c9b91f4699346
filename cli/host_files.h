#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The kernel's text files under /proc and /sys. Missing or unexpected contents are nullopt.
namespace nam::cli {

std::vector<std::string> ReadLines(const std::string& path);
/// The first line.
std::optional<std::string> ReadLine(const std::string& path);
/// The first line, if it is a number.
std::optional<uint64_t> ReadNumber(const std::string& path);
/// What follows `key:` in a file such as /proc/meminfo.
std::optional<std::string> ReadField(const std::string& path, const std::string& key);
/// Digits at the start of `text`.
std::optional<uint64_t> ParseNumber(const std::string& text);
/// `enabled` of `always madvise [never]` is never.
std::optional<std::string> ReadChoice(const std::string& path);
/// The soft limit of a line of /proc/self/limits; UINT64_MAX for unlimited.
std::optional<uint64_t> ReadLimit(const std::string& path, const std::string& name);

/// Whether this process has a capability (CAP_…), by `proc`/self/status.
bool HasCapability(const std::string& proc, int capability);

}  // namespace nam::cli
