#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::computeserver {

/// An attempt whose result leaves in windows, a call for each.
class OpenAttempt {
 public:
  /// Ends its threads and waits for that.
  virtual ~OpenAttempt() = default;
  /// Until its next window can be read, or its end. One call at a time.
  virtual absl::StatusOr<proto::AttemptReply> Advance(const catalog::IncomingCall& call) = 0;
  /// Ends its threads soon; nobody wants what it has left. Any thread.
  virtual void Cancel() = 0;
};

/// The attempts of a server that are open, also while none of their calls is under way:
///
///     Begin ─▶ Advance ─ more ─▶ stands ─ Resume ─▶ Advance ─ … ─ end, error ─▶ gone
///                                   └─ Release, EndOf its client, EndAll ─────────▶ gone
///
/// What holds, so that clients who read slowly do each other no harm:
///  - An attempt that stands has no turn in the AttemptQueue: only calls have one, and a call ends when its
///    window is full, whatever any client does. So every turn comes to its end, and all callers get theirs.
///  - Resume waits for a turn but is never refused one for the number of those that wait. So an attempt that
///    has begun can be brought to its end; what a client waits for elsewhere meanwhile is nobody else's.
///  - At most `open_max` are open. One more is refused and does not wait, because those that are open may
///  wait
///    for their client, and it for the one that is refused.
///  - One that nobody resumes stays, with its threads, build sides and two windows, until its client says
///  that
///    it is not wanted, or the client's membership ends.
///
/// Thread-safe.
class OpenAttempts {
 public:
  OpenAttempts(fabric::Fabric& fabric, size_t open_max) : fabric_(fabric), open_max_(open_max) {}
  ~OpenAttempts() { EndAll(); }

  /// The first call. RESOURCE_EXHAUSTED: too many are open; ALREADY_EXISTS.
  absl::StatusOr<proto::AttemptReply> Begin(uint64_t id, MemberId client,
                                            std::shared_ptr<OpenAttempt> attempt,
                                            const catalog::IncomingCall& call);
  /// A further one, of a client that has read so many windows: all that the attempt has handed over, or
  /// INVALID_ARGUMENT. NOT_FOUND: no attempt of this client stands.
  absl::StatusOr<proto::AttemptReply> Resume(uint64_t id, MemberId client, uint32_t windows,
                                             const catalog::IncomingCall& call);
  /// Nobody wants it. Waits for its end unless a call is under way, which then ends soon.
  void Release(uint64_t id);
  /// Those that attempts are open for.
  std::set<MemberId> Clients();
  /// The client is gone, and its attempts are soon. Does not wait.
  void EndOf(MemberId client);
  /// Once no call is under way, nor will be.
  void EndAll();
  bool empty() {
    const std::lock_guard lock(mutex_);
    return attempts_.empty();
  }
  /// When a client was last given a window; -1: none was.
  int64_t handed_over_ns() {
    const std::lock_guard lock(mutex_);
    return handed_over_ns_;
  }

 private:
  struct Entry {
    MemberId client;
    std::shared_ptr<OpenAttempt> attempt;
    uint32_t windows = 0;  // handed over
    bool called = true;    // a call is under way, which alone takes the entry away
    bool unwanted = false;
  };
  /// Threads that wait for the ends of others.
  struct Ending {
    std::shared_ptr<fabric::Event> done;
    std::unique_ptr<fabric::Thread> thread;
  };
  absl::StatusOr<proto::AttemptReply> Advance(uint64_t id, std::shared_ptr<OpenAttempt> attempt,
                                              const catalog::IncomingCall& call);

  fabric::Fabric& fabric_;
  const size_t open_max_;
  std::mutex mutex_;
  std::map<uint64_t, Entry> attempts_;
  std::vector<Ending> ending_;
  int64_t handed_over_ns_ = -1;
};

}  // namespace nam::computeserver
