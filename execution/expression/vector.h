#pragma once

#include <cstdint>
#include <string_view>

#include "execution/column.h"

namespace nam::execution {

/// The values of an expression, aligned with the positions of a chunk: defined where it was evaluated,
/// undefined elsewhere. Belongs to a register of a Frame and stays until the same expression is evaluated
/// there again.
struct Vector {
  Physical physical = Physical::kInt64;
  union {
    int64_t* narrow = nullptr;  // kInt64
    __int128* wide;             // kInt128
    uint8_t* truth;             // kTruth: kFalse, kTrue, kUnknown
    std::string_view* text;     // kText
  };
  /// A byte a position, 1 where NULL; nullptr: no NULLs. Not for kTruth.
  uint8_t* nulls = nullptr;

  bool null(uint32_t position) const {
    return physical == Physical::kTruth ? truth[position] == kUnknown
                                        : nulls != nullptr && nulls[position] != 0;
  }
  __int128 number(uint32_t position) const {
    return physical == Physical::kInt64    ? narrow[position]
           : physical == Physical::kInt128 ? wide[position]
                                           : truth[position];
  }
};

}  // namespace nam::execution
