#pragma once

#include <cstddef>
#include <cstdint>

namespace nam::execution {

/// The current place of a column's codes: a mini-page.
struct CodePage {
  const std::byte* codes = nullptr;
  uint8_t width = 1;
};

/// Tests whether a column's code passes.
///
///     low ≤ code ≤ low + spread, and if there are bits, that of
///         k = code + delta;  part_size 0:  k >> shift
///                            else:        (k mod 2^shift) · part_size + (k >> shift)
///
/// Codes in the range have their k in 32 bits, and their bit's word among `bits`.
struct CodeTest {
  uint64_t low = 0;
  uint64_t spread = 0;
  const uint32_t* bits = nullptr;
  uint64_t delta = 0;
  uint32_t shift = 0;
  uint32_t part_size = 0;

  bool Passes(uint64_t code) const {
    if (code - low > spread) return false;
    if (bits == nullptr) return true;
    const auto k = static_cast<uint32_t>(code + delta);
    const uint32_t at = (part_size == 0 ? 0 : (k & ((uint32_t{1} << shift) - 1)) * part_size) + (k >> shift);
    return (bits[at / 32] >> at % 32 & 1) != 0;
  }
};

/// Writes those of the rows first … first + count - 1 whose code passes to `rows`, in order; returns their
/// number. Uses the widest instructions of this processor; 16 rows at a time with AVX-512. The column's codes
/// begin at a multiple of 4 bytes and are padded to one.
uint32_t SelectCodes(const CodeTest& test, const CodePage& column, uint32_t first, uint32_t count,
                     uint32_t* rows);
/// Keeps those of `rows` whose code passes.
uint32_t SelectRows(const CodeTest& test, const CodePage& column, uint32_t count, uint32_t* rows);

}  // namespace nam::execution
