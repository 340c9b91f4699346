#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Conditions move down to where all that they name is there: into joins, and past them to the side that they
/// look at. The rows stay. Of a tree without dependent joins.
void PushFilters(plan::logical::Query& query);

}  // namespace nam::optimizer
