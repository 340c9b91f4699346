#include "base/wall_time.h"

#include <time.h>

namespace nam {

int64_t WallTimeUs(const Clock& clock) {
  if (&clock != &RealClock()) return clock.NowNs() / 1'000;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1'000;
}

}  // namespace nam
