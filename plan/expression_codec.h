#pragma once

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "proto/plan.pb.h"

/// Encodes expressions and schemas. Neither direction recurses.
namespace nam::plan {

/// At most kDeepestExpression levels.
proto::Expression ToProto(const Expr& expr);
/// INVALID_ARGUMENT if the nodes do not form a tree, or have unknown operators or types; 54001 if it is too
/// deep. SlotOf checks types and slots.
absl::StatusOr<Expr> FromProto(const proto::Expression& expression);

proto::Int128 ToProto(__int128 n);
__int128 NumberOf(const proto::Int128& n);

proto::Schema ToProto(const Schema& schema);
absl::StatusOr<Schema> FromProto(const proto::Schema& schema);

}  // namespace nam::plan
