#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "plan/physical.h"

namespace nam::plan {

/// The most pipelines of a plan: a statement has a few for each table that it names.
inline constexpr size_t kMostPipelines = 1024;

/// Checks that operators can run the plan without further checks. Plans from another process and plans from
/// the optimizer are checked alike. OK means:
///
///  - every index names something: tables, pipelines, stages, slots, payload, exchanges
///  - pipelines come after those that they wait for, probe or read; no exchange makes one wait for itself
///  - expressions are well typed over the slots before them, and at most kDeepestExpression levels deep
///    (54001)
///  - every schema is what flows there: types, NULLs and bounds
///  - keys of a probe and of its build are comparable, one by one; conditions are booleans
///  - only probes of the claimed table's own rows use a partition match (co_partitioned_key)
///
/// Not checked: whether the tables are as the plan says (plan/table_schema.h), and whether this version of
/// the engine has an operator for it. INVALID_ARGUMENT otherwise.
absl::Status Check(const PhysicalPlan& plan);

}  // namespace nam::plan
