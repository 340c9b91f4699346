#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/host_memory.h"

namespace nam {

/// INVALID_ARGUMENT, with the figures, if so many memory servers of `memory_bytes` each can never have that
/// on this host: what they hand out is taken as tables need it, long after they have started.
absl::Status CheckMemoryRoom(uint64_t memory_bytes, int servers,
                             const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// INVALID_ARGUMENT, with the figures, unless a compute server here can run queries with so much for all of
/// them.
absl::Status CheckComputeMemory(uint64_t memory_bytes,
                                const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// INVALID_ARGUMENT if so much of a memory server's memory is of no use to queries, or leaves nothing for
/// tables. Nothing: the server chooses.
absl::Status CheckScratch(uint64_t memory_bytes, std::optional<uint64_t> scratch_bytes);

/// What each of the compute servers of a host has for queries unless it is told: its share of half of what
/// the host may have.
uint64_t DefaultComputeMemory(int servers, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// What `nam up` gives each memory server unless it is told: a third of what the host may have, in whole 64
/// MiB, and not more than 4 GiB each.
uint64_t DefaultMemory(int servers, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

}  // namespace nam
