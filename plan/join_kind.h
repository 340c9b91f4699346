#pragma once

#include <cstdint>

namespace nam::plan {

/// The output of a join for its probe side's tuples. A pair matches if all keys are equal, none of them NULL,
/// and all residual conditions are true. Plans send these numbers: they never change.
enum class JoinKind : uint8_t {
  kInner = 0,  // each matching pair
  kLeft = 1,   // and each tuple of the probe side without one, beside NULLs
  kRight = 2,  // and each row of the build side without one, beside NULLs
  kFull = 3,   // both
  kSemi = 4,   // each tuple of the probe side with a match, once
  kAnti = 5,   // each without one: NOT EXISTS
  // NOT IN: each tuple that certainly has no match. None if the build side has a NULL, none whose own key is
  // NULL, and all if the build side is empty.
  kNullAwareAnti = 6,
  kMark = 7,    // each tuple of the probe side, and whether it has a match
  kSingle = 8,  // as kLeft; a second match of one tuple is error 21000
};

}  // namespace nam::plan
