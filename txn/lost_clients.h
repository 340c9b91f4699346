#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "storage/channel.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// A client of this process whose session cannot go on: a connection of its own broke, or it failed while its
/// rows were locked. What it holds (locks, a timestamp, a snapshot, its slot) is nobody else's to take as
/// long as the process lives, so the process takes it itself:
///
///     session fails ─▶ connections end ─▶ its slot says `lost` ─▶ Recovery, by its next session or anybody
///
/// Memory servers have confirmed the end before the slot says so: nothing that was posted takes effect later.
struct LostClient {
  /// Broken; kept until its connections have ended. Used by whoever has the LostClient.
  std::shared_ptr<storage::Channel> channel;
  uint32_t client = 0;
  SlotOwner owner;        // as the slot says, if it was claimed at all
  uint64_t deciding = 0;  // timestamp of a commit of which it is not known whether it happened; 0: none
  std::optional<bool> committed = std::nullopt;  // what has become of that, once somebody has looked
  bool locks = true;                             // it may hold some
};

/// Those of a process that nobody has settled yet, since memory servers could not be reached. Whoever opens a
/// session tries, and so does Tables::SettleLater: a process that is idle must not keep locks until its user
/// is back. Thread-safe.
class LostClients {
 public:
  void Add(LostClient lost) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(std::move(lost));
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return lost_.empty();
  }
  std::vector<LostClient> TakeAll() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lost_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LostClient> lost_;  // no more than there are client slots
};

}  // namespace nam::txn
