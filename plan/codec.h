#pragma once

#include "absl/status/statusor.h"
#include "plan/physical.h"
#include "proto/plan.pb.h"

namespace nam::plan {

/// The plan as it travels. Positions of expressions belong to a statement, not to its plan, and stay behind.
proto::PhysicalPlan ToProto(const PhysicalPlan& plan);
/// A plan that passed Check, or why it is none: INVALID_ARGUMENT, or 54001 for an expression that is too
/// deep.
absl::StatusOr<PhysicalPlan> FromProto(const proto::PhysicalPlan& plan);

}  // namespace nam::plan
