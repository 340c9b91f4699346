#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Conditions move down to where all that they name is there: into joins, and past them to the side that they
/// look at; past select lists (their names become what these compute, unless it may fail), ORDER BY,
/// DISTINCT, UNION ALL, and past windows if they look at PARTITION BY columns alone. The rows stay, but what
/// is computed for rows that a condition leaves out is computed no more, and so is no error. Of a tree
/// without dependent joins.
void PushFilters(plan::logical::Query& query);

}  // namespace nam::optimizer
