#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over one field of rows at rest, compiled for each kind of processor. Rows are `stride` bytes apart;
/// `width` is 1, 2, 4 or 8.
namespace nam::execution {

/// The greatest stored number, from the first row's at `at` on; 0: no rows.
uint64_t GreatestStored(const std::byte* at, uint32_t stride, uint8_t width, uint32_t rows);

/// The greatest numbers of two columns of 4 bytes: of the first one in rows of 8 bytes, and of the second.
struct Pair {
  uint32_t low = 0, high = 0;
};
Pair GreatestOfPairs(const std::byte* first, uint32_t rows);

/// Consecutive codes, and a number to add to each.
struct CodeRun {
  const std::byte* codes = nullptr;
  uint64_t delta = 0;
};
/// Stores so many of the codes with `width` bytes each, the first one at `at`. Returns the greatest.
uint64_t StoreCodes(const CodeRun& run, uint8_t width, uint32_t count, std::byte* at, uint32_t stride);
/// Stores two columns of codes as rows of 4 + 4 bytes, `low` first. Returns the greatest of each.
Pair StorePairs(const CodeRun& low, const CodeRun& high, uint32_t count, std::byte* rows);

}  // namespace nam::execution
