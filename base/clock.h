#pragma once

#include <cstdint>
#include <limits>

namespace nam {

/// A moment on a Clock. Waits take a deadline, so that a chain of waits has one bound.
struct Deadline {
  int64_t ns = std::numeric_limits<int64_t>::max();
  static constexpr Deadline Never() { return {}; }
};

/// The only source of time above fabric/: real on real fabrics, virtual in `sim`. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNs() const = 0;
  virtual void SleepUntil(Deadline deadline) = 0;
  /// Charges `ns` of computation. Moves virtual time; no effect on a real clock.
  virtual void Charge(int64_t ns) { (void)ns; }

  Deadline After(int64_t timeout_us) const { return {NowNs() + timeout_us * 1000}; }
  bool Passed(Deadline deadline) const { return NowNs() >= deadline.ns; }
};

/// CLOCK_MONOTONIC.
Clock& RealClock();

/// The time of day on a clock, in microseconds since 1970-01-01 00:00 UTC. A real clock has the host's; a
/// virtual clock counts its own time from 1970 on, so that simulations are the same in every run.
int64_t WallTimeUs(const Clock& clock);

}  // namespace nam
