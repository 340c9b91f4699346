#pragma once

#include "absl/status/status.h"

namespace nam::session {

/// The error of a statement that failed while its client stalled for longer than its lease: one sentence,
/// with 40001 if the statement failed in a transaction, 08007 if its commit may have taken effect, otherwise
/// 08006. The text of `error`, which names lost members and connections, goes to the log.
absl::Status SessionLost(const absl::Status& error, bool in_transaction);

/// The error of a statement that READ what is not its own, as `error` says, while the lease was over by the
/// client's clock and the catalog could not tell: servers drop what a lost member has left, and give the
/// memory to others. 08006; the text of `error` goes to the log.
absl::Status SessionMayBeLost(const absl::Status& error);

/// The error of a statement whose client's membership was ended, since the cluster is being stopped: 57P01,
/// or 08007 if its commit may have taken effect.
absl::Status SessionClosed(const absl::Status& error);

/// The error of the next statement if a transaction was open when the membership ended.
absl::Status TransactionLost();

/// The error of a statement whose client has lost its membership and cannot join again, for the reason
/// `joined`.
absl::Status SessionNotReopened(const absl::Status& joined);

/// Whether the end of its membership may be the cause of a statement's error.
bool MayComeOfLoss(const absl::Status& error);

/// Whether a statement has this error because memory does not hold what it should.
bool IsDamage(const absl::Status& error);

}  // namespace nam::session
