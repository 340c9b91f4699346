#pragma once

#include <string>

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::sql {

/// Converts timestamps with time zone in a query's result to their texts in the zone, unless it is UTC, the
/// default for printing. Leaves columns from `shown` on unchanged.
absl::Status ShowInZone(plan::logical::Query& query, const std::string& zone, size_t shown);

}  // namespace nam::sql
