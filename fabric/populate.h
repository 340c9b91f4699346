#pragma once

#include <cstddef>

namespace nam::fabric {

/// Makes every page of writable memory present that nobody writes yet, in parallel. 0, or an errno.
int Populate(std::byte* data, size_t bytes);

}  // namespace nam::fabric
