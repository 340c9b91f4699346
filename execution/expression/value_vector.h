#pragma once

#include "base/check.h"
#include "execution/column.h"
#include "execution/expression/vector.h"
#include "types/value_column.h"

namespace nam::execution {

static_assert(ValueColumn::kNoTruth == kUnknown);

/// Views a vector as a ValueColumn, for code without chunks. Both point to the register's memory.
inline ValueColumn ValueColumnOf(const Vector& values, const Type& type) {
  ValueColumn column{.type = type, .physical = values.physical, .nulls = values.nulls};
  switch (values.physical) {
    case Physical::kTruth:
      column.truth = values.truth;
      break;
    case Physical::kInt64:
      column.narrow = values.narrow;
      break;
    case Physical::kInt128:
      column.wide = values.wide;
      break;
    default:
      NAM_CHECK(values.physical == Physical::kText, "the forms that values of columns have");
      column.text = values.text;
  }
  return column;
}

}  // namespace nam::execution
