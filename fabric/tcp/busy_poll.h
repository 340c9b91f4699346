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
class BusyPoll {
 public:
  static constexpr int64_t kNs = 50'000;

  /// Something has come: more may follow.
  void Restart() { until_ns_ = RealClock().NowNs() + kNs; }
  /// Once more. False: it is time to sleep.
  bool Again() {
    if (RealClock().NowNs() >= until_ns_) return false;
    sched_yield();
    return true;
  }

 private:
  int64_t until_ns_ = 0;
};

}  // namespace nam::fabric::tcp
