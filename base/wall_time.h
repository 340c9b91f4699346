#pragma once

#include <cstdint>

#include "base/clock.h"

namespace nam {

/// The time of day on a clock, in microseconds since 1970-01-01 00:00 UTC. A real clock has the host's; a
/// virtual clock counts its own time from 1970 on, so that simulations are the same in every run.
int64_t WallTimeUs(const Clock& clock);

}  // namespace nam
