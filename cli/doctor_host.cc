#include "cli/doctor_host.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/host_files.h"
#include "localcluster/memory_room.h"

namespace nam::cli {
namespace {

using fabric::Kind;

constexpr uint64_t kOtherDescriptors = 256;  // connections, gRPC, files

/// The words of a line of /proc/cpuinfo, the first processor's.
bool HasFlag(const HostTree& tree, const std::string& flag) {
  std::istringstream words(ReadField(tree.proc + "/cpuinfo", "flags").value_or(""));
  for (std::string word; words >> word;) {
    if (word == flag) return true;
  }
  return false;
}

/// The number of processors in `0-3,8`.
uint64_t CountProcessors(const std::string& list) {
  uint64_t count = 0;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const auto first = ParseNumber(range);
    const size_t dash = range.find('-');
    const auto last = dash == std::string::npos ? first : ParseNumber(range.substr(dash + 1));
    if (first && last && *last >= *first) count += *last - *first + 1;
  }
  return count;
}

}  // namespace

Finding CheckKernel(const HostTree& tree) {
  Finding finding{.name = "kernel", .needed = "Linux 5.3, better 5.14", .fabrics = kRealFabrics};
  finding.found = ReadLine(tree.proc + "/sys/kernel/osrelease").value_or("unknown");
  int major = 0, minor = 0;
  std::sscanf(finding.found.c_str(), "%d.%d", &major, &minor);
  const auto version = std::pair(major, minor);
  if (version >= std::pair(5, 14)) return finding;
  finding.state = version >= std::pair(5, 3) ? FindingState::kWarning : FindingState::kMissing;
  finding.remedy = "apt-get install linux-image-amd64";
  return finding;
}

Finding CheckProcessors(const HostTree& tree) {
  Finding finding{.name = "processors", .needed = "2", .fabrics = kRealFabrics};
  const auto allowed = ReadField(tree.proc + "/self/status", "Cpus_allowed_list");
  const uint64_t count = CountProcessors(allowed.value_or(""));
  finding.found = allowed ? absl::StrCat(count) : "unknown";
  if (count >= 2) return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = "taskset -pc 0-1 $$ (if the host has more), or more processors";
  return finding;
}

Finding CheckSimd(const HostTree& tree) {
  Finding finding{.name = "SIMD", .needed = "SSE2", .fabrics = kRealFabrics};
  for (const char* flag : {"sse2", "sse4_2", "avx2", "avx512f"}) {
    if (HasFlag(tree, flag)) absl::StrAppend(&finding.found, finding.found.empty() ? "" : ", ", flag);
  }
  if (HasFlag(tree, "sse2")) return finding;
  if (finding.found.empty()) finding.found = "none that is known";
  finding.state = FindingState::kMissing;
  finding.remedy = "use an x86-64 processor";
  return finding;
}

Finding CheckClock(const HostTree& tree, int64_t resolution_ns) {
  const std::string folder = tree.sys + "/devices/system/clocksource/clocksource0";
  Finding finding{.name = "clock", .needed = "read without a system call, 1 ns", .fabrics = kRealFabrics};
  const std::string source = ReadLine(folder + "/current_clocksource").value_or("unknown");
  finding.found = absl::StrCat(source, ", ", resolution_ns, " ns");
  const bool fast = source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page" ||
                    source == "arch_sys_counter";
  if (fast && resolution_ns == 1) return finding;
  finding.state = FindingState::kWarning;
  const std::string available = ReadLine(folder + "/available_clocksource").value_or("");
  finding.remedy = (" " + available + " ").find(" tsc ") != std::string::npos
                       ? "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
                       : "boot with clocksource=tsc tsc=reliable, if the processor's counter can be trusted";
  return finding;
}

Finding CheckTimeStampCounter(const HostTree& tree) {
  Finding finding{.name = "TSC", .needed = "constant and never stopping", .fabrics = kRealFabrics};
  const bool constant = HasFlag(tree, "constant_tsc"), nonstop = HasFlag(tree, "nonstop_tsc");
  finding.found = constant && nonstop ? "constant, nonstop" : constant ? "constant, may stop" : "may vary";
  if (constant && nonstop) return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = "none; in a virtual machine: pass the host's processor through (-cpu host,+invtsc)";
  return finding;
}

Finding CheckMembarrier(int commands) {
  Finding finding{.name = "membarrier", .needed = "global expedited", .fabrics = {Kind::kShm}};
  if (commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0) {
    finding.found = "global expedited";
    return finding;
  }
  finding.found = commands > 0 ? "without global expedited" : "refused";
  finding.state = FindingState::kWarning;
  finding.remedy = "allow the system call membarrier in the container's seccomp profile";
  return finding;
}

Finding CheckDescriptors(const HostTree& tree, uint64_t memory_bytes) {
  const uint64_t needed = memory_bytes / kServerRegionBytes + kOtherDescriptors;
  Finding finding{.name = "file descriptors", .needed = absl::StrCat(needed), .fabrics = kRealFabrics};
  const auto limit = ReadLimit(tree.proc + "/self/limits", "Max open files");
  finding.found = !limit ? "unknown" : *limit == UINT64_MAX ? "unlimited" : absl::StrCat(*limit);
  if (limit && *limit >= needed) return finding;
  finding.state = limit ? FindingState::kMissing : FindingState::kWarning;
  finding.remedy = absl::StrCat("ulimit -n ", needed);
  return finding;
}

std::vector<Finding> CheckHost(const HostTree& tree, uint64_t memory_bytes) {
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  const auto commands = static_cast<int>(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0));
  return {CheckKernel(tree),
          CheckProcessors(tree),
          CheckSimd(tree),
          CheckClock(tree, resolution.tv_sec * 1'000'000'000 + resolution.tv_nsec),
          CheckTimeStampCounter(tree),
          CheckMembarrier(commands),
          CheckDescriptors(tree, memory_bytes)};
}

}  // namespace nam::cli
