#include "fabric/verbs/memlock.h"

#include <linux/capability.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"

namespace nam::fabric::verbs {

MemlockState ReadMemlockState() {
  MemlockState state;
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  state.limit_bytes = limit.rlim_cur;
  state.unlimited = limit.rlim_cur == RLIM_INFINITY;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) {
      const uint64_t capabilities = std::strtoull(line.c_str() + 7, nullptr, 16);
      state.unlimited = state.unlimited || (capabilities >> CAP_IPC_LOCK & 1) != 0;
    }
    if (line.rfind("VmPin:", 0) == 0)
      state.pinned_bytes = std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return state;
}

absl::Status CheckMemlock(const MemlockState& state, uint64_t bytes) {
  const uint64_t left = state.limit_bytes > state.pinned_bytes ? state.limit_bytes - state.pinned_bytes : 0;
  if (state.unlimited || bytes <= left) return absl::OkStatus();
  const uint64_t wanted_kib = (state.pinned_bytes + bytes + 1023) / 1024;
  return absl::ResourceExhaustedError(
      absl::StrFormat("a region of %d bytes must be pinned in memory, but this process may pin only %d bytes "
                      "and has pinned %d "
                      "already: raise the limit with `ulimit -l %d` (or unlimited), `memlock` in "
                      "/etc/security/limits.conf, or "
                      "LimitMEMLOCK= of the systemd unit",
                      bytes, state.limit_bytes, state.pinned_bytes, wanted_kib));
}

}  // namespace nam::fabric::verbs
