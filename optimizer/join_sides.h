#pragma once

#include <vector>

#include "plan/expression.h"
#include "plan/join_kind.h"

/// What the kinds of joins let out of their two sides, and by what these can be divided.
namespace nam::optimizer {

inline bool KeepsProbeSideAlone(plan::JoinKind kind) {
  return kind == plan::JoinKind::kSemi || kind == plan::JoinKind::kAnti ||
         kind == plan::JoinKind::kNullAwareAnti || kind == plan::JoinKind::kMark;
}
/// Tuples of the probe side leave also without a partner.
inline bool KeepsProbed(plan::JoinKind kind) {
  return kind != plan::JoinKind::kInner && kind != plan::JoinKind::kSemi && kind != plan::JoinKind::kRight;
}
inline bool KeepsBuilt(plan::JoinKind kind) {
  return kind == plan::JoinKind::kRight || kind == plan::JoinKind::kFull;
}

/// Where blanks at the end do not count, and one side may have them: that one without. Then equal keys have
/// equal bytes.
void DropBlanks(std::vector<plan::Expr>& left, std::vector<plan::Expr>& right);

}  // namespace nam::optimizer
