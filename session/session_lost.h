#pragma once

#include "absl/status/status.h"

namespace nam::session {

/// SQLSTATE of a COMMIT that may have taken effect or not: transaction_resolution_unknown.
inline constexpr char kOutcomeUnknown[] = "08007";

/// What a statement reports that failed while its client stood still for longer than its lease: one sentence,
/// with 40001 if the statement failed so, 08007 if its commit may have taken effect, otherwise 08006. What
/// `error` says names members and connections that are gone; it goes to the log.
absl::Status SessionLost(const absl::Status& error, bool in_transaction);

}  // namespace nam::session
