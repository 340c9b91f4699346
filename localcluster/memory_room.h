#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/host_memory.h"

namespace nam {

/// Memory servers register their memory in regions of this size.
inline constexpr uint64_t kServerRegionBytes = uint64_t{64} << 20;

/// INVALID_ARGUMENT, with the figures, if this host can never give each memory server `memory_bytes`. Checked
/// at the start because memory is taken only as tables need it, long afterwards.
absl::Status CheckMemoryRoom(uint64_t memory_bytes, int servers,
                             const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// INVALID_ARGUMENT, with the figures, unless a compute server here can run queries with `memory_bytes` for
/// all of them.
absl::Status CheckComputeMemory(uint64_t memory_bytes,
                                const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// INVALID_ARGUMENT if the scratch share is too small for queries, or leaves nothing for tables. Empty: the
/// server chooses.
absl::Status CheckScratch(uint64_t memory_bytes, std::optional<uint64_t> scratch_bytes);

/// The default query memory of each compute server on a host: its share of half of the host's memory limit.
uint64_t DefaultComputeMemory(int servers, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// The default memory of each memory server of `nam up`: a third of the host's memory limit, in multiples of
/// 64 MiB, and at most 4 GiB each.
uint64_t DefaultMemory(int servers, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

}  // namespace nam
