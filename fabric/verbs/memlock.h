#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

/// A device reads and writes memory behind the kernel's back, so registered memory is pinned, and what a
/// process may pin is limited (RLIMIT_MEMLOCK). The kernel's own refusal is a bare ENOMEM.
namespace nam::fabric::verbs {

struct MemlockState {
  bool unlimited = false;  // no limit, or CAP_IPC_LOCK
  uint64_t limit_bytes = 0;
  uint64_t pinned_bytes = 0;
};
MemlockState ReadMemlockState();

/// RESOURCE_EXHAUSTED names what is needed, what is left, and how to raise it.
absl::Status CheckMemlock(const MemlockState& state, uint64_t bytes);

}  // namespace nam::fabric::verbs
