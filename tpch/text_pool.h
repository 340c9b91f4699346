#pragma once

#include <cstdint>
#include <string_view>

#include "dataset/counter_random.h"

/// Pseudo text as the specification defines it (4.2.2.10, 4.2.2.14).
namespace nam::tpch {

/// 16 MiB of sentences from the grammar, the same in every process. The specification's pool has 300 MB; a
/// smaller one has the same word frequencies, and still more substrings than any column has rows. Created by
/// the first caller; lives forever.
std::string_view TextPool();

/// A text of low … high characters: a random substring of the pool.
std::string_view PoolText(dataset::RandomDigits digits, uint32_t low, uint32_t high);

}  // namespace nam::tpch
