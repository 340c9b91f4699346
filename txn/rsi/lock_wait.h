#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "txn/rsi/session_core.h"

namespace nam::txn {

/// Waiting for records that other clients have locked (Session::SetLockTimeout).
///
///     try to commit ─▶ a lock is met ─▶ all is taken back ─▶ READ the header until it is not locked ─▶ try
///     again
///           ▲                                                                                          │
///           └───────────────── its timestamp is the one that was expected ◀───────────────────────────┘
///
/// A client that waits holds no lock, no claim and no timestamp, so clients never wait for each other in a
/// circle, and snapshots do not wait for a client that waits. docs/design/transactions.md.
class LockWait {
 public:
  explicit LockWait(SessionCore& core)
      : core_(core),
        tables_(core.tables),
        channel_(core.channel.get()),
        batch_(core.batch),
        recovery_(core.recovery.get()) {}

  /// 0: it does not wait.
  void SetTimeout(int64_t us) { timeout_us_ = us; }
  bool waits() const { return timeout_us_ > 0; }
  /// A call of the session begins, whose waits together last as long as the timeout.
  void Restart() { deadline_.reset(); }

  /// The header that the write's lock will expect, once it is not locked; a conflict if the row has changed.
  absl::Status AwaitHeader(PendingWrite& write);
  /// The lock that the last of so many tries to commit has met: of a row that is to be written, or of one
  /// that may be in the way.
  absl::Status AwaitMetLock(uint32_t tries);

 private:
  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status LockTimeout(uint32_t table);
  absl::StatusOr<storage::RecordHeader> AwaitUnlocked(uint32_t table, uint64_t record);

  SessionCore& core_;
  Tables& tables_;
  storage::Channel* const channel_;
  storage::VerbBatch& batch_;
  Recovery* const recovery_;
  int64_t timeout_us_ = 0;
  std::optional<Deadline> deadline_;  // none: the call has not waited yet
};

}  // namespace nam::txn
