#pragma once

#include "absl/status/statusor.h"
#include "plan/physical.h"
#include "proto/plan.pb.h"

namespace nam::plan {

/// Encodes the plan. Leaves out expressions' positions, which belong to a statement, not to its plan.
proto::PhysicalPlan ToProto(const PhysicalPlan& plan);
/// Decodes a plan and Checks it: INVALID_ARGUMENT, or 54001 for an expression that is too deep.
absl::StatusOr<PhysicalPlan> FromProto(const proto::PhysicalPlan& plan);

}  // namespace nam::plan
