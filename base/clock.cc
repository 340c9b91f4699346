#include "base/clock.h"

#include <time.h>

namespace nam {
namespace {

class MonotonicClock final : public Clock {
 public:
  int64_t NowNs() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  }
  void SleepUntil(Deadline deadline) override {
    timespec until{deadline.ns / 1'000'000'000, deadline.ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }
};

}  // namespace

Clock& RealClock() {
  static MonotonicClock clock;
  return clock;
}

int64_t WallTimeUs(const Clock& clock) {
  if (&clock != &RealClock()) return clock.NowNs() / 1'000;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1'000;
}

}  // namespace nam
