#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "cli/doctor_finding.h"

/// Checks the memory that a memory server of `memory_bytes` can get.
namespace nam::cli {

Finding CheckAvailableMemory(const HostTree& tree, uint64_t memory_bytes);
/// Both versions of control groups; the tightest limit on the way to the root.
Finding CheckControlGroup(const HostTree& tree, uint64_t memory_bytes);
Finding CheckLockedMemory(const HostTree& tree, uint64_t memory_bytes);
Finding CheckHugePages(const HostTree& tree, uint64_t memory_bytes);
Finding CheckTransparentHugePages(const HostTree& tree);
/// Transparent huge pages of shared memory.
Finding CheckSharedHugePages(const HostTree& tree);
/// The largest file, for one region.
Finding CheckFileSize(const HostTree& tree);
/// `made` tells whether a sealed memfd could be made and mapped.
Finding CheckMemfd(const absl::Status& made);
/// `bytes` of /dev/shm; nullopt if it does not exist.
Finding CheckSharedMemorySize(std::optional<uint64_t> bytes);

std::vector<Finding> CheckMemory(const HostTree& tree, uint64_t memory_bytes);

}  // namespace nam::cli
