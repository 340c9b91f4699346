#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "plan/expression.h"
#include "types/sql_error.h"

/// Walks over expressions of unchecked depth, without recursion.
namespace nam::plan {

/// The most levels of an expression, a leaf being one. Walks over expressions that passed Check may recurse:
/// evaluation, printing and destruction of so many levels take less than half of a thread's stack of 8 MiB
/// (tests/plan/depth_test.cc).
inline constexpr size_t kDeepestExpression = 2000;

inline absl::Status ExpressionTooDeep(int position) {
  return UserError(sqlstate::kTooComplex, "an expression nests deeper than 2000 levels", position,
                   "split it, or write a long chain of OR as IN (…)");
}

/// Calls visit(expr), which returns absl::Status, for every node: children from left to right, then their
/// parent. Ends at the first error. 54001 above kDeepestExpression levels, after the nodes before have been
/// visited.
template <typename Visit>
absl::Status ForPostOrder(const Expr& root, Visit&& visit) {
  struct Place {
    const Expr* expr;
    size_t next_child;
  };
  std::vector<Place> path{{&root, 0}};
  while (!path.empty()) {
    Place& place = path.back();
    if (place.next_child < place.expr->children.size()) {
      const Expr& child = place.expr->children[place.next_child++];
      if (path.size() == kDeepestExpression) return ExpressionTooDeep(child.position);
      path.push_back({&child, 0});
      continue;
    }
    if (absl::Status status = visit(*place.expr); !status.ok()) return status;
    path.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace nam::plan
