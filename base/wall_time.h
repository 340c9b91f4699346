#pragma once

#include <cstdint>

#include "base/clock.h"

namespace nam {

/// The time of day that belongs to a clock, in microseconds since 1970-01-01 00:00 UTC: that of the host
/// beside the real clock; a virtual clock's own time counts from 1970 on, so that simulations are the same in
/// every run.
int64_t WallTimeUs(const Clock& clock);

}  // namespace nam
