#include "txn/rsi/lock_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;

constexpr int64_t kPauseUsMin = 20;  // a lock is held for some round trips
constexpr int64_t kPauseUsMax = 1'000;

}  // namespace

absl::Status LockWait::LockTimeout(uint32_t number) {
  return AbortStatus(AbortReason::kLockTimeout, absl::StrCat("a row of ", table(number).description().name));
}

/// Waits until the record is unlocked. Recovers a dead holder.
absl::StatusOr<RecordHeader> LockWait::AwaitUnlocked(uint32_t number, uint64_t record) {
  Clock& clock = tables_.fabric().clock();
  if (!deadline_.has_value()) deadline_ = clock.After(timeout_us_);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table(number).Block(record));
  const size_t kept = batch_.scratch_used();
  for (int64_t pause_us = kPauseUsMin;; pause_us = std::min(2 * pause_us, kPauseUsMax)) {
    const uint64_t* const word = batch_.ReadWord(block);
    NAM_RETURN_IF_ERROR(batch_.Execute());
    const RecordHeader header(*word);
    batch_.Reset(kept);
    if (!header.locked()) {
      core_.conflicts.suspect = 0;
      return header;
    }
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    if (clock.Passed(*deadline_)) return LockTimeout(number);
    const absl::StatusOr<bool> recovered = recovery_->TryRecover(header.client());
    if (!recovered.ok() && channel_->broken()) return recovered.status();
    if (!recovered.value_or(false)) clock.SleepUntil(clock.After(pause_us));
  }
}

absl::Status LockWait::AwaitHeader(PendingWrite& write) {
  NAM_ASSIGN_OR_RETURN(const RecordHeader header, AwaitUnlocked(write.table, write.record));
  if (header.timestamp() != write.header.timestamp())
    return core_.Conflict(header, write.table, write.record);
  write.header = header;
  return absl::OkStatus();
}

absl::Status LockWait::AwaitMetLock(uint32_t tries) {
  const auto [number, record] = *core_.conflicts.met_lock;
  WriteSet& writes = core_.transaction.writes;
  const auto write = std::find_if(writes.begin(), writes.end(), [&](const PendingWrite& candidate) {
    return !candidate.fresh && candidate.table == number && candidate.record == record;
  });
  NAM_RETURN_IF_ERROR(write != writes.end() ? AwaitHeader(*write) : AwaitUnlocked(number, record).status());
  Clock& clock = tables_.fabric().clock();
  if (clock.Passed(*deadline_)) return LockTimeout(number);
  // Clients that take each other's locks must not do so in step.
  const int64_t pause_us = std::min(kPauseUsMin << std::min(tries - 1, 10u), kPauseUsMax);
  const auto drawn = static_cast<int64_t>(tables_.fabric().Random() % static_cast<uint64_t>(pause_us));
  if (tries > 1) clock.SleepUntil(clock.After(drawn));
  return absl::OkStatus();
}

}  // namespace nam::txn
