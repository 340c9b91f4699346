#pragma once

#include <cstdint>

#include "cli/doctor_finding.h"

/// Kernel, processors, clock, limits.
namespace nam::cli {

Finding CheckKernel(const HostTree& tree);
Finding CheckProcessors(const HostTree& tree);
Finding CheckSimd(const HostTree& tree);
/// `resolution_ns` of CLOCK_MONOTONIC.
Finding CheckClock(const HostTree& tree, int64_t resolution_ns);
Finding CheckTimeStampCounter(const HostTree& tree);
/// `commands` is what membarrier(MEMBARRIER_CMD_QUERY) returned.
Finding CheckMembarrier(int commands);
/// For a memory server of `memory_bytes`.
Finding CheckDescriptors(const HostTree& tree, uint64_t memory_bytes);

/// All checks; asks this host for what is in no file.
std::vector<Finding> CheckHost(const HostTree& tree, uint64_t memory_bytes);

}  // namespace nam::cli
