#pragma once

#include "absl/status/statusor.h"
#include "execution/expression/node.h"
#include "plan/expression.h"
#include "plan/schema.h"

namespace nam::execution {

/// Compiles an expression over `input` to nodes. Adds the nodes that work row by row to `by_row`.
/// INVALID_ARGUMENT if it reads what `input` lacks; 0A000 for types without values. `memos`: see
/// Program::Compile.
absl::StatusOr<NodePtr> CompileExpression(const plan::Expr& e, const plan::Schema& input, MemoShare* memos,
                                          size_t* by_row);

}  // namespace nam::execution
