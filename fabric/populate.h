#pragma once

#include <cstddef>

namespace nam::fabric {

/// Faults in every page of writable memory, in parallel. No other thread may write the memory yet. Returns 0
/// or an errno.
int Populate(std::byte* data, size_t bytes);

inline constexpr size_t kHugePageBytes = size_t{2} << 20;
/// Backs fresh shared memory with huge pages, in parallel, regardless of shmem_enabled (MADV_COLLAPSE, Linux
/// 6.1). `data` is mapped at a multiple of kHugePageBytes; an incomplete last huge page stays as it is.
/// False: not fully backed, because the kernel lacks support or has no huge pages left.
bool PopulateHuge(std::byte* data, size_t bytes);

}  // namespace nam::fabric
