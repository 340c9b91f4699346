#pragma once

#include <cstdint>
#include <string_view>

#include "dataset/counter_random.h"

/// Pseudo text as the specification defines it (4.2.2.10, 4.2.2.14).
namespace nam::tpch {

/// Sentences by the grammar, 16 MiB of them, the same in every process. The specification's pool has 300 MB;
/// a smaller one has the same words in the same proportions, and no column has as many rows as it has
/// substrings. Made by the first caller, and lives forever.
std::string_view TextPool();

/// A text string of low … high characters: some substring of the pool.
std::string_view PoolText(dataset::RandomDigits digits, uint32_t low, uint32_t high);

}  // namespace nam::tpch
