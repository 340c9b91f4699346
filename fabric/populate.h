#pragma once

#include <cstddef>

namespace nam::fabric {

/// Makes every page of writable memory present that nobody writes yet, in parallel. 0, or an errno.
int Populate(std::byte* data, size_t bytes);

inline constexpr size_t kHugePageBytes = size_t{2} << 20;
/// Makes fresh shared memory present in huge pages, in parallel, whatever shmem_enabled says (MADV_COLLAPSE,
/// Linux 6.1). `data` is mapped at a multiple of kHugePageBytes; of the last page what is not whole stays as
/// it is. False: not all of it, as the kernel has no such pages, or none left.
bool PopulateHuge(std::byte* data, size_t bytes);

}  // namespace nam::fabric
