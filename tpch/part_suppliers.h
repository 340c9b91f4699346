#pragma once

#include <cstdint>

namespace nam::tpch {

inline constexpr uint32_t kSuppliersPerPart = 4;

/// The key of a part's i-th supplier among `suppliers`, with i below kSuppliersPerPart (4.2.3): in partsupp,
/// and referred to by lines.
constexpr uint64_t SupplierOf(uint64_t part_key, uint32_t i, uint64_t suppliers) {
  return (part_key + i * (suppliers / 4 + (part_key - 1) / suppliers)) % suppliers + 1;
}

}  // namespace nam::tpch
