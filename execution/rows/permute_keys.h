#pragma once

#include <cstddef>
#include <cstdint>

#include "execution/row_field.h"
#include "plan/key_domain.h"

namespace nam::execution {

/// Bits of the permutation of a domain.
struct PermutedBits {
  uint32_t shift = 0;
  uint32_t mask = UINT32_MAX;
};
/// Of rows one behind the other from `row` on these bits of their keys, which are numbers of up to 8 bytes
/// that count modulo the domain: out[0 … rows). What lies in a field that is NULL counts as a key. Compiled
/// for each kind of processor.
void PermuteKeys(const plan::KeyDomain& domain, const RowField& key, const PermutedBits& bits,
                 const std::byte* row, uint32_t rows, uint32_t* out);

}  // namespace nam::execution
