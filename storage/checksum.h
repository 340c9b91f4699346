#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nam::storage {

/// XXH3, with the widest vectors of this processor; the result is the same on all.
uint64_t Checksum(std::span<const std::byte> bytes);

}  // namespace nam::storage
