#pragma once

#include <cstdint>
#include <span>

#include "execution/chunk.h"
#include "execution/expression/program.h"
#include "execution/rows/row_layout.h"

/// The hash of types/hash.h over keys of one or several values: vectors, columns of chunks and rows at rest
/// give the same hash for equal keys. That of one value is the value's own; others are combined with it in
/// their order; no values have kHashOfNothing. NULLs are equal.
namespace nam::execution {

/// At the selected positions: sets hashes[p] to the hash of the value at p if it is the first of the key,
/// else combines it with that.
void AddHashes(const Vector& vector, Selection rows, bool first, uint64_t* hashes);

/// The hashes of a program's outputs [first, first + count) at the selected positions: hashes[p] (kChunkRows
/// places). False: the frame has the error.
bool HashKeys(const Program& program, size_t first, size_t count, Frame& frame, const Chunk& chunk,
              Selection rows, uint64_t* hashes);

/// The hashes of these fields of the rows at places [place, place + count) of a page: hashes[0 … count).
void HashRows(const RowLayout& layout, std::span<const uint32_t> fields, const std::byte* page,
              uint32_t place, uint32_t count, uint64_t* hashes);

}  // namespace nam::execution
