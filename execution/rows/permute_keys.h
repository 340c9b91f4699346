#pragma once

#include <cstddef>
#include <cstdint>

#include "execution/row_field.h"
#include "plan/key_domain.h"

namespace nam::execution {

/// A range of bits of a domain's permutation.
struct PermutedBits {
  uint32_t shift = 0;
  uint32_t mask = UINT32_MAX;
};
/// Computes these bits of the permuted keys of `rows` consecutive rows from `row` on: out[0 … rows). Keys are
/// numbers of up to 8 bytes that count modulo the domain. The bytes of a NULL field count as a key. Compiled
/// for each kind of processor.
void PermuteKeys(const plan::KeyDomain& domain, const RowField& key, const PermutedBits& bits,
                 const std::byte* row, uint32_t rows, uint32_t* out);

}  // namespace nam::execution
