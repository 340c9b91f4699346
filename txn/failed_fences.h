#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/strong_id.h"

namespace nam::txn {

/// The pause in ns between a failed fence and the next try. A try may wait for an unreachable server, and a
/// transaction that begins waits for the try, so tries take only a small part of the time. But sessions wait
/// for their own commits (RsiOptions::own_commit_timeout_us), and need another try by then.
inline int64_t PauseAfterFenceNs(int64_t took_ns) {
  constexpr int64_t kAtLeastNs = 100'000'000, kAtMostNs = 10'000'000'000;
  return std::clamp(10 * took_ns, kAtLeastNs, kAtMostNs);
}

/// A process's fences that failed because a server was unreachable. Spares sessions and other clients of the
/// same member a wait for the same server. Thread-safe.
class FailedFences {
 public:
  /// The result of the member's last fence while it is too early for another; else OK.
  absl::Status Last(MemberId member, int64_t now_ns) const {
    const MutexLock lock(mutex_);
    const auto found = failed_.find(member);
    return found == failed_.end() || now_ns >= found->second.again_ns ? absl::OkStatus()
                                                                      : found->second.status;
  }
  void Add(MemberId member, absl::Status status, int64_t again_ns) {
    const MutexLock lock(mutex_);
    std::erase_if(failed_, [&](const auto& other) { return other.second.again_ns < again_ns - kKeptNs; });
    failed_[member] = {std::move(status), again_ns};
  }

 private:
  static constexpr int64_t kKeptNs = 600'000'000'000;
  struct Failed {
    absl::Status status;
    int64_t again_ns = 0;
  };
  mutable Mutex mutex_;
  std::map<MemberId, Failed> failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::txn
