#pragma once

#include <string>

#include "absl/status/status.h"
#include "plan/logical.h"

namespace nam::sql {

/// Timestamps with time zone of a query's result become their texts in the zone, unless it is UTC, in which
/// they are printed anyway. Columns from `shown` on stay as they are.
absl::Status ShowInZone(plan::logical::Query& query, const std::string& zone, size_t shown);

}  // namespace nam::sql
