#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

/// Checks the limit on pinned memory (RLIMIT_MEMLOCK). Devices access memory without the kernel's page
/// tables, so registered memory is pinned. The kernel's own refusal is a bare ENOMEM.
namespace nam::fabric::verbs {

struct MemlockState {
  bool unlimited = false;  // no limit, or CAP_IPC_LOCK
  uint64_t limit_bytes = 0;
  uint64_t pinned_bytes = 0;
};
MemlockState ReadMemlockState();

/// RESOURCE_EXHAUSTED gives the needed and the available bytes, and how to raise the limit.
absl::Status CheckMemlock(const MemlockState& state, uint64_t bytes);

}  // namespace nam::fabric::verbs
