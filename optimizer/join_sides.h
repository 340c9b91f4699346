#pragma once

#include <vector>

#include "plan/expression.h"
#include "plan/join_kind.h"

/// The output of each kind of join by side, and how its rows can be divided.
namespace nam::optimizer {

inline bool KeepsProbeSideAlone(plan::JoinKind kind) {
  return kind == plan::JoinKind::kSemi || kind == plan::JoinKind::kAnti ||
         kind == plan::JoinKind::kNullAwareAnti || kind == plan::JoinKind::kMark;
}
/// Whether tuples of the probe side are emitted without a partner, too.
inline bool KeepsProbed(plan::JoinKind kind) {
  return kind != plan::JoinKind::kInner && kind != plan::JoinKind::kSemi && kind != plan::JoinKind::kRight;
}
inline bool KeepsBuilt(plan::JoinKind kind) {
  return kind == plan::JoinKind::kRight || kind == plan::JoinKind::kFull;
}

/// Whether the join keeps each row of the left input at least once or drops it, without regard to its other
/// columns: rows that fail a condition on it may be dropped before the join.
inline bool FiltersLeft(plan::JoinKind kind) {
  return kind != plan::JoinKind::kRight && kind != plan::JoinKind::kFull;
}

/// Trims the blanks of keys where one side may have them and they are ignored. Then equal keys have equal
/// bytes.
void DropBlanks(std::vector<plan::Expr>& left, std::vector<plan::Expr>& right);

}  // namespace nam::optimizer
