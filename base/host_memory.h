#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The memory limits of this process, from the kernel's files: the host's own figures and those of every
/// control group up to the root of its hierarchy, versions 1 and 2.
namespace nam {

inline constexpr char kHostMemory[] = "the host";

struct MemoryLimit {
  std::string name;              // kHostMemory, or `control group /user.slice (memory.max)`
  uint64_t limit_bytes = 0;      // upper limit
  uint64_t available_bytes = 0;  // free now, including caches that the kernel would drop
};

/// The host first, if known; control groups only if they have a limit. `proc` and `sys` are for tests.
std::vector<MemoryLimit> ReadMemoryLimits(const std::string& proc = "/proc", const std::string& sys = "/sys");

/// The entry with the least `limit_bytes` or `available_bytes`; "no limit" with UINT64_MAX if there is none.
MemoryLimit TightestLimit(const std::vector<MemoryLimit>& limits);
MemoryLimit LeastAvailable(const std::vector<MemoryLimit>& limits);

}  // namespace nam
