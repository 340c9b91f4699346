#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/mutex.h"
#include "bench/two_phase/transport.h"

namespace nam::bench::two_phase {

/// Hands out the cluster's timestamps, in the memory of the process whose coordinators share it (the paper
/// gives its baseline the same advantage). The snapshot is the largest timestamp up to which every commit is
/// installed. Thread-safe.
class TimestampService {
 public:
  uint64_t Next() {
    const MutexLock lock(mutex_);
    done_.push_back(false);
    return last_ = snapshot_ + done_.size();
  }
  /// The timestamp is installed everywhere, or nowhere. `user` checks by itself whether the snapshot has
  /// grown.
  void Done(uint64_t timestamp, const Transport& user) {
    const MutexLock lock(mutex_);
    done_[timestamp - snapshot_ - 1] = true;
    const uint64_t before = snapshot_;
    for (; !done_.empty() && done_.front(); done_.pop_front()) ++snapshot_;
    if (snapshot_ == before || waiting_ == 0) return;
    for (Transport* other : users_) {
      if (other != &user) other->Wake();
    }
  }
  uint64_t snapshot() const { return snapshot_; }
  uint64_t last() const { return last_; }

  void Join(Transport& user) {
    const MutexLock lock(mutex_);
    users_.push_back(&user);
  }
  void Leave(Transport& user) {
    const MutexLock lock(mutex_);
    std::erase(users_, &user);
  }
  /// Changes the number of answers that wait for a larger snapshot. Check snapshot() afterwards.
  void AddWaiting(int more) {
    const MutexLock lock(mutex_);
    waiting_ += more;
  }

 private:
  Mutex mutex_;
  std::atomic<uint64_t> snapshot_ = 0;
  std::atomic<uint64_t> last_ = 0;
  std::deque<bool> done_ ABSL_GUARDED_BY(mutex_);  // from snapshot_ + 1 on
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Transport*> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::bench::two_phase
