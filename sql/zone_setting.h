#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"

/// The session's time zone, and results in it.
namespace nam::sql {

/// SET TIME ZONE, SET timezone = …, RESET timezone.
bool SetsTimeZone(const Node& node);
absl::StatusOr<Statement> BindSetTimeZone(const Node& node);
/// SHOW timezone, SHOW TIME ZONE.
bool ShowsTimeZone(const Node& node);
Statement BindShowTimeZone(const Node& node);

/// Timestamps with time zone of a query's result become their texts in the zone, unless it is UTC, in which
/// they are printed anyway.
absl::Status ShowInZone(plan::logical::Query& query, const std::string& zone);

}  // namespace nam::sql
