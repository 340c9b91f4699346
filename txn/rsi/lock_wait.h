#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "txn/rsi/session_core.h"

namespace nam::txn {

/// Waits for records that other clients have locked (Session::SetLockTimeout).
///
///     try to commit ─▶ a lock is met ─▶ all is taken back ─▶ READ the header until it is unlocked
///           ▲                                                                │
///           └─────────────────── its timestamp is the expected one ◀─────────┘
///
/// A waiting client holds no lock, no claim and no timestamp. So clients never deadlock, and snapshots do not
/// wait for a waiting client. docs/design/transactions.md.
class LockWait {
 public:
  explicit LockWait(SessionCore& core)
      : core_(core),
        tables_(core.tables),
        channel_(core.channel.get()),
        batch_(core.batch),
        recovery_(core.recovery.get()) {}

  /// 0: no waiting.
  void SetTimeout(int64_t us) { timeout_us_ = us; }
  bool waits() const { return timeout_us_ > 0; }
  /// Starts a call of the session. All its waits together last at most the timeout.
  void Restart() { deadline_.reset(); }

  /// Waits for the header that the write's lock will expect. Conflicts if the row has changed.
  absl::Status AwaitHeader(PendingWrite& write);
  /// Waits for the lock that the last of so many commit tries has met: on a row to write, or on one that may
  /// be in the way.
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
