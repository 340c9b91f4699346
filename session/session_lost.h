#pragma once

#include "absl/status/status.h"

namespace nam::session {

/// The error of a statement that failed while its client stalled for longer than its lease: one sentence,
/// with 40001 if the statement failed in a transaction, 08007 if its commit may have taken effect, otherwise
/// 08006. The text of `error`, which names lost members and connections, goes to the log.
absl::Status SessionLost(const absl::Status& error, bool in_transaction);

/// The error of the next statement if a transaction was open when the membership ended.
absl::Status TransactionLost();

/// The error of a statement whose client has lost its membership and cannot join again, for the reason
/// `joined`.
absl::Status SessionNotReopened(const absl::Status& joined);

/// Whether the end of its membership may be the cause of a statement's error.
bool MayComeOfLoss(const absl::Status& error);

}  // namespace nam::session
