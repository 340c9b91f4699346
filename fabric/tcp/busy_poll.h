#pragma once

#include <sched.h>

#include <cstdint>

#include "base/clock.h"

namespace nam::fabric::tcp {

/// How a thread waits: it looks again and again, and sleeps only then. To be woken on a processor that has
/// gone idle takes 20 to 30 µs, as long as a round trip between two hosts. A thread that looks for about
/// twice that pays at most a few times what the better choice would have cost, and one whose peers answer at
/// once never sleeps. It yields the processor between its looks, since who is to answer may be waiting for
/// it.
///
/// Where other programs want the processor, a yield hands it over for a whole slice, of milliseconds, while a
/// thread that sleeps comes first when it is woken. So after a yield that took so long the thread sleeps at
/// once, for a time.
class BusyPoll {
 public:
  static constexpr int64_t kNs = 50'000;
  /// A program that computes has the processor for so long, at least. Threads that yield by themselves do
  /// not.
  static constexpr int64_t kSliceNs = 2'500'000;
  static constexpr int64_t kContended = 10;  // times what the yield has taken

  /// Something has come: more may follow.
  void Restart() { until_ns_ = RealClock().NowNs() + kNs; }
  /// Once more. False: it is time to sleep.
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
