#pragma once

#include <sched.h>

#include <cstdint>

#include "base/clock.h"

namespace nam::fabric::tcp {

/// The waiting policy of a thread: poll repeatedly, then sleep. Waking on an idle processor takes 20 to 30
/// µs, as long as a round trip between two hosts. Polling for about twice that costs at most a few times the
/// better choice, and a thread whose peers answer at once never sleeps. It yields between polls, since the
/// thread that will answer may need the processor.
///
/// Where other programs want the processor, a yield gives it away for a whole slice of milliseconds, while a
/// thread that sleeps is preferred when woken. So after such a long yield the thread skips polling for a
/// time.
class BusyPoll {
 public:
  static constexpr int64_t kNs = 50'000;
  /// The least time that a computing program keeps the processor. Threads that yield by themselves keep it
  /// for less.
  static constexpr int64_t kSliceNs = 2'500'000;
  static constexpr int64_t kContended = 10;  // multiple of the yield's duration

  /// Work has arrived: more may follow.
  void Restart() { until_ns_ = RealClock().NowNs() + kNs; }
  /// Polls once more. False: time to sleep.
  bool Again() {
    const int64_t now_ns = RealClock().NowNs();
    if (now_ns >= until_ns_ || now_ns < contended_until_ns) return false;
    sched_yield();
    const int64_t back_ns = RealClock().NowNs();
    if (back_ns - now_ns > kSliceNs) contended_until_ns = back_ns + kContended * (back_ns - now_ns);
    return true;
  }

 private:
  static inline thread_local int64_t contended_until_ns = 0;

  int64_t until_ns_ = 0;
};

}  // namespace nam::fabric::tcp
