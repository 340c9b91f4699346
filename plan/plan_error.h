#pragma once

#include <string>

#include "absl/status/status.h"

/// Mistakes in what comes from another process, or from a planner.
namespace nam::plan {

/// Returns INVALID_ARGUMENT: no plan is like this. `what` is its mistake.
inline absl::Status BadPlan(const char* what) {
  return absl::InvalidArgumentError(std::string("not a plan: ") + what);
}
inline absl::Status BadExpression(const char* what) {
  return absl::InvalidArgumentError(std::string("not an expression: ") + what);
}

}  // namespace nam::plan
