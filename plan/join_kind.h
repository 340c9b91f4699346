#pragma once

#include <cstdint>

namespace nam::plan {

/// What a join makes of its probe side's tuples. A pair matches if all keys are equal, none of them NULL, and
/// all residual conditions are true. Plans send these numbers: they never change.
enum class JoinKind : uint8_t {
  kInner = 0,  // each pair that matches
  kLeft = 1,   // and each tuple of the probe side without one, beside NULLs
  kRight = 2,  // and each row of the build side without one, beside NULLs
  kFull = 3,   // both
  kSemi = 4,   // each tuple of the probe side that has a match, once
  kAnti = 5,   // each that has none: NOT EXISTS
  // NOT IN: each tuple for which no match is certain. None if the build side has a NULL, none whose own key
  // is NULL, and all if the build side is empty.
  kNullAwareAnti = 6,
  kMark = 7,    // each tuple of the probe side, and whether it has a match
  kSingle = 8,  // as kLeft; a second match of one tuple is error 21000
};

}  // namespace nam::plan
