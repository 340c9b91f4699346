#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "storage/channel.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// A client of this process whose session cannot go on: one of its connections broke, or it failed while its
/// rows were locked. No other process may take what it holds (locks, a timestamp, a snapshot, its slot) while
/// this process lives, so this process recovers it:
///
///     session fails ─▶ connections end ─▶ its slot says `lost` ─▶ Recovery, by any session
///
/// Memory servers confirm the end before the slot says `lost`: nothing that was posted takes effect later.
struct LostClient {
  /// Broken; kept until its connections have ended. The LostClient's holder may use it.
  std::shared_ptr<storage::Channel> channel;
  uint32_t client = 0;
  SlotOwner owner;                               // as in the slot, if it was claimed
  uint64_t deciding = 0;                         // timestamp of a commit whose outcome is unknown; 0: none
  std::optional<bool> committed = std::nullopt;  // that commit's outcome, once recovered
  bool locks = true;                             // it may hold locks
};

/// A process's lost clients that are not recovered yet, because memory servers were unreachable. A new
/// session and Tables::RecoverLater retry: an idle process must not keep locks until its user is back.
/// Thread-safe.
class LostClients {
 public:
  void Add(LostClient lost) {
    const MutexLock lock(mutex_);
    lost_.push_back(std::move(lost));
  }
  bool empty() const {
    const MutexLock lock(mutex_);
    return lost_.empty();
  }
  std::vector<LostClient> TakeAll() {
    const MutexLock lock(mutex_);
    return std::exchange(lost_, {});
  }

 private:
  mutable Mutex mutex_;
  std::vector<LostClient> lost_ ABSL_GUARDED_BY(mutex_);  // at most as many as client slots
};

}  // namespace nam::txn
