#pragma once

#include "absl/status/status.h"

namespace nam::session {

/// The error of a statement that failed while its client stalled for longer than its lease: one sentence,
/// with 40001 if the statement failed in a transaction, 08007 if its commit may have taken effect, otherwise
/// 08006. The text of `error`, which names lost members and connections, goes to the log.
absl::Status SessionLost(const absl::Status& error, bool in_transaction);

}  // namespace nam::session
