#include "base/host_memory.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>

namespace nam {
namespace {

/// Control groups of version 1 report "no limit" as the largest number of whole pages.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

/// The files of one version's memory controller.
struct Controller {
  const char* limit;
  const char* usage;
  const char* cache;  // key in memory.stat: unused file pages, which the kernel drops on demand
};
constexpr Controller kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Controller kVersion2 = {"memory.max", "memory.current", "inactive_file"};

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

/// The number after a key at the beginning of a line.
std::optional<uint64_t> ReadEntry(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    unsigned long long number;
    if (line.starts_with(key) && std::sscanf(line.c_str() + key.size(), " %llu", &number) == 1) return number;
  }
  return std::nullopt;
}

void AddGroup(const std::string& root, const std::string& group, const Controller& controller,
              std::vector<MemoryLimit>& limits) {
  const std::string folder = root + (group == "/" ? "" : group) + "/";
  const auto limit = ReadNumber(folder + controller.limit);
  if (!limit || *limit >= kUnlimited) return;
  const uint64_t used = ReadNumber(folder + controller.usage).value_or(0);
  const uint64_t cache = ReadEntry(folder + "memory.stat", std::string(controller.cache) + " ").value_or(0);
  const uint64_t held = used - std::min(used, cache);
  limits.push_back(
      {"control group " + group + " (" + controller.limit + ")", *limit, *limit - std::min(*limit, held)});
}

/// Walks from the process's group to the root. In a container the root may be the group itself.
void AddHierarchy(const std::string& root, std::string group, const Controller& controller,
                  std::vector<MemoryLimit>& limits) {
  while (group.size() > 1) {
    AddGroup(root, group, controller, limits);
    group.resize(group.find_last_of('/'));
  }
  AddGroup(root, "/", controller, limits);
}

bool NamesMemory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

template <typename Field>
MemoryLimit Least(const std::vector<MemoryLimit>& limits, Field field) {
  MemoryLimit least{"no limit", UINT64_MAX, UINT64_MAX};
  for (const MemoryLimit& limit : limits) {
    if (limit.*field < least.*field) least = limit;
  }
  return least;
}

}  // namespace

std::vector<MemoryLimit> ReadMemoryLimits(const std::string& proc, const std::string& sys) {
  std::vector<MemoryLimit> limits;
  const auto total_kib = ReadEntry(proc + "/meminfo", "MemTotal:");
  const auto available_kib = ReadEntry(proc + "/meminfo", "MemAvailable:");
  if (total_kib && available_kib) limits.push_back({kHostMemory, *total_kib << 10, *available_kib << 10});
  std::ifstream groups(proc + "/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:group
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (line.starts_with("0::")) {
      AddHierarchy(sys + "/fs/cgroup", group, kVersion2, limits);
    } else if (NamesMemory(controllers)) {
      AddHierarchy(sys + "/fs/cgroup/" + controllers, group, kVersion1, limits);
    }
  }
  return limits;
}

MemoryLimit TightestLimit(const std::vector<MemoryLimit>& limits) {
  return Least(limits, &MemoryLimit::limit_bytes);
}

MemoryLimit LeastAvailable(const std::vector<MemoryLimit>& limits) {
  return Least(limits, &MemoryLimit::available_bytes);
}

}  // namespace nam
