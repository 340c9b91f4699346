#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/host_memory.h"

namespace nam {

/// INVALID_ARGUMENT, with the figures, if so many memory servers of `memory_bytes` each can never have that
/// on this host: what they hand out is taken as tables need it, long after they have started.
absl::Status CheckMemoryRoom(uint64_t memory_bytes, int servers,
                             const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// What `nam up` gives each of them unless it is told: a third of what the host may have, in whole 64 MiB,
/// and not more than 4 GiB each.
uint64_t DefaultMemory(int servers, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

}  // namespace nam
