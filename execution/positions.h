#pragma once

#include <array>
#include <cstdint>

#include "execution/chunk.h"

namespace nam::execution {

/// 0, 1, 2, …
inline constexpr std::array<uint32_t, kChunkRows> kPositions = [] {
  std::array<uint32_t, kChunkRows> positions{};
  for (uint32_t i = 0; i < kChunkRows; ++i) positions[i] = i;
  return positions;
}();

/// The selected positions as an array, so that one loop serves all selections.
inline const uint32_t* PositionsOf(Selection rows) {
  return rows.positions == nullptr ? kPositions.data() : rows.positions;
}

/// The indexes of a column's values at the selected positions, consecutively. `scratch` has kChunkRows places
/// and may become the result.
inline const uint32_t* IndexesOf(const Column& column, Selection rows, uint32_t* scratch) {
  if (column.rows == nullptr) return PositionsOf(rows);
  if (rows.positions == nullptr) return column.rows;
  for (uint32_t i = 0; i < rows.count; ++i) scratch[i] = column.rows[rows.positions[i]];
  return scratch;
}

/// Calls `body` with a map from the i-th selected tuple to its index in the column. Loops are compiled for
/// columns in the order of the tuples, and for others. `scratch` as above.
template <typename Body>
decltype(auto) WithIndexes(const Column& column, Selection rows, uint32_t* scratch, Body&& body) {
  if (column.rows == nullptr && rows.positions == nullptr) return body([](uint32_t i) { return i; });
  const uint32_t* const indexes = IndexesOf(column, rows, scratch);
  return body([indexes](uint32_t i) { return indexes[i]; });
}

}  // namespace nam::execution
