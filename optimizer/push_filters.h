#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Moves conditions down to where all their columns exist: into joins, and past them to the side that they
/// read; past select lists (their names become what these compute, unless it may fail), ORDER BY, DISTINCT,
/// UNION ALL, and past windows if they read PARTITION BY columns alone. The rows stay, but nothing is
/// computed for rows that a condition drops, so errors there vanish. For a tree without dependent joins.
void PushFilters(plan::logical::Query& query);

}  // namespace nam::optimizer
