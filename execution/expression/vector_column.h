#pragma once

#include "execution/column.h"
#include "execution/expression/vector.h"

namespace nam::execution {

/// A vector as a column of a chunk with the same positions. Both point to the register's memory.
inline Column ColumnOf(const Vector& values) {
  Column column;
  column.physical = values.physical;
  column.width = WidthOf(values.physical);
  column.base = reinterpret_cast<const std::byte*>(values.narrow);
  column.nulls = values.physical == Physical::kTruth ? nullptr : values.nulls;
  return column;
}

}  // namespace nam::execution
