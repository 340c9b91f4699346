#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What this process may have of the host's memory, by the kernel's files: the host's own figures and every
/// control group on the way to the root of its hierarchy, of version 1 and of version 2.
namespace nam {

inline constexpr char kHostMemory[] = "the host";

struct MemoryLimit {
  std::string name;              // kHostMemory, or `control group /user.slice (memory.max)`
  uint64_t limit_bytes = 0;      // what it may have at most
  uint64_t available_bytes = 0;  // what is left now; caches that the kernel would drop count as left
};

/// The host first, if it tells; of the groups only those that have a limit. `proc` and `sys` for tests.
std::vector<MemoryLimit> ReadMemoryLimits(const std::string& proc = "/proc", const std::string& sys = "/sys");

/// That with the least `limit_bytes`, or `available_bytes`; "no limit" of UINT64_MAX for none.
MemoryLimit TightestLimit(const std::vector<MemoryLimit>& limits);
MemoryLimit LeastAvailable(const std::vector<MemoryLimit>& limits);

}  // namespace nam
