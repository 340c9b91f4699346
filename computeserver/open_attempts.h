#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::computeserver {

/// An attempt whose result leaves in windows, one call for each.
class OpenAttempt {
 public:
  /// Ends its threads and waits for that.
  virtual ~OpenAttempt() = default;
  /// Runs until its next window can be read, or its end. One call at a time.
  virtual absl::StatusOr<proto::AttemptReply> Advance(const catalog::IncomingCall& call) = 0;
  /// Ends its threads soon; its output is not wanted. Any thread.
  virtual void Cancel() = 0;
  /// Keeps the window that it has handed over for its client when it ends.
  virtual void LeaveWindow() = 0;
};

/// A server's open attempts, also while none of their calls is under way:
///
///     Begin ─▶ Advance ─ more ─▶ stands ─ Resume ─▶ Advance ─ … ─ end, error ─▶ gone
///                                   └─ Release, EndOf its client, EndStanding, EndAll ─▶ gone
///
/// Rules that keep slow clients from harming others:
///  - A standing attempt has no turn in the AttemptQueue: only calls have one, and a call ends when its
///    window is full, whatever any client does. So every turn ends, and all callers get theirs.
///  - Resume waits for a turn and comes before attempts that have not begun. So an attempt that has begun can
///    finish; what its client waits for elsewhere concerns no other client.
///  - An attempt that is not resumed keeps its threads, build sides and two windows, until its client
///    releases it, or the client's membership ends, or others have waited for what it holds (EndStanding):
///    they may be queries of the same client, which would never read on.
///
/// Thread-safe.
class OpenAttempts {
 public:
  explicit OpenAttempts(fabric::Fabric& fabric) : fabric_(fabric) {}
  ~OpenAttempts() { EndAll(); }

  /// Runs the first call. ALREADY_EXISTS.
  absl::StatusOr<proto::AttemptReply> Begin(uint64_t id, MemberId client,
                                            std::shared_ptr<OpenAttempt> attempt,
                                            const catalog::IncomingCall& call);
  /// Runs a further call for a client that has read so many windows: all that the attempt has handed over, or
  /// INVALID_ARGUMENT. NOT_FOUND: no attempt of this client stands. 53200: it stood still for too long. From
  /// here on it does not stand; it goes on once `await_turn` has returned, and ends if that fails.
  absl::StatusOr<proto::AttemptReply> Resume(uint64_t id, MemberId client, uint32_t windows,
                                             const catalog::IncomingCall& call,
                                             const std::function<absl::Status()>& await_turn);
  /// Drops an attempt that the client does not want. Waits for its end unless a call is under way, which then
  /// ends soon. Another client's attempt of this number is not affected.
  void Release(uint64_t id, MemberId client);
  /// The clients with open attempts.
  std::set<MemberId> Clients();
  /// The client is gone: its attempts end soon. Does not wait.
  void EndOf(MemberId client);
  /// Called while others wait. Ends the attempt that has stood still for longest, at least so long, and waits
  /// for that. Also ends one that has stood still again and again, for kKeptWaiting times as long while
  /// others waited. The window that its client may be reading stays.
  void EndStanding(int64_t us);
  /// Called once no call is under way, nor will be.
  void EndAll();
  size_t size() {
    const MutexLock lock(mutex_);
    return attempts_.size();
  }
  /// When a client last got a window; -1: never.
  int64_t handed_over_ns() {
    const MutexLock lock(mutex_);
    return handed_over_ns_;
  }

 private:
  using Key = std::pair<MemberId, uint64_t>;  // client, and its own number
  struct Entry {
    std::shared_ptr<OpenAttempt> attempt;
    uint32_t windows = 0;  // handed over
    bool called = true;    // a call is under way, which alone removes the entry
    bool unwanted = false;
    int64_t stands_since_ns = 0;  // if no call is under way
    int64_t kept_waiting_ns = 0;  // total time that others waited
  };
  /// Threads that wait for the ends of others.
  struct Ending {
    std::shared_ptr<fabric::Event> done;
    std::unique_ptr<fabric::Thread> thread;
  };
  absl::StatusOr<proto::AttemptReply> Advance(const Key& key, std::shared_ptr<OpenAttempt> attempt,
                                              const catalog::IncomingCall& call,
                                              const std::function<absl::Status()>& await_turn);

  /// The last attempts that EndStanding has ended, to tell their clients.
  static constexpr size_t kEndedMax = 1'024;
  static constexpr int64_t kKeptWaiting = 4;
  /// No attempt has waited between calls of EndStanding that are further apart.
  static constexpr int64_t kWaitingNs = 50'000'000;

  fabric::Fabric& fabric_;
  Mutex mutex_;
  std::map<Key, Entry> attempts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ending> ending_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> ended_standing_ ABSL_GUARDED_BY(mutex_);
  int64_t handed_over_ns_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t asked_to_end_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // the last time
};

}  // namespace nam::computeserver
