#pragma once

#include "absl/status/statusor.h"
#include "session/session.h"
#include "session/settings.h"
#include "sql/bound_query.h"

namespace nam::session {

/// SHOW name, or SHOW ALL.
absl::StatusOr<ResultSet> Show(const Settings& settings, const sql::ShowStatement& statement);

}  // namespace nam::session
