#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over one field of rows at rest, compiled for each kind of processor. A row is `stride` bytes behind
/// the one before it; `width` is 1, 2, 4 or 8.
namespace nam::execution {

/// The greatest of the numbers that are stored at `at`, in the first row, and in those behind it; 0: no rows.
uint64_t GreatestStored(const std::byte* at, uint32_t stride, uint8_t width, uint32_t rows);

/// What is greatest in each of two columns of 4 bytes: of that which comes first in rows of 8 bytes, and of
/// the other one.
struct Pair {
  uint32_t low = 0, high = 0;
};
Pair GreatestOfPairs(const std::byte* first, uint32_t rows);

/// Codes, one behind the other, and what is added to each.
struct CodeRun {
  const std::byte* codes = nullptr;
  uint64_t delta = 0;
};
/// Stores so many of the codes with `width` bytes each, the first one at `at`. The greatest of the codes.
uint64_t StoreCodes(const CodeRun& run, uint8_t width, uint32_t count, std::byte* at, uint32_t stride);
/// Of two columns of codes of 4 bytes rows of 8 bytes, those of `low` first. The greatest codes of each.
Pair StorePairs(const CodeRun& low, const CodeRun& high, uint32_t count, std::byte* rows);

}  // namespace nam::execution
