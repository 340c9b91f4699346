#pragma once

#include <cstdint>
#include <string_view>

#include "dataset/counter_random.h"
#include "partitioner/column_batch.h"

/// Text of single rows, kept by their batch.
namespace nam::dataset {

/// Writes `digits` decimal digits, with leading zeros; returns the end.
char* WriteDigits(char* at, uint64_t number, int digits);

/// `Customer#000000017`; the prefix has at most 16 characters.
std::string_view KeepName(partitioner::ColumnBatch& batch, std::string_view prefix, uint64_t key);

/// low … high (at most 40) letters, digits, blanks and commas: the specifications' v-strings. Takes one
/// random word at `word`, and one more per 8 characters.
std::string_view KeepAddress(partitioner::ColumnBatch& batch, const RowRandom& random, uint64_t word,
                             uint32_t low, uint32_t high);

/// `25-989-741-2988`: the nation's number plus ten, then three random groups.
std::string_view KeepPhone(partitioner::ColumnBatch& batch, uint32_t nation, RandomDigits digits);

}  // namespace nam::dataset
