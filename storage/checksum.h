#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nam::storage {

/// XXH3, by the widest vectors that this processor has; the same result on all.
uint64_t Checksum(std::span<const std::byte> bytes);

}  // namespace nam::storage
