#pragma once

#include "base/clock.h"
#include "fabric/shm/layout.h"

namespace nam::fabric::shm {

/// Wakes the owner. Makes a system call only if the owner sleeps.
void Ring(Doorbell& bell);

/// Returns once `bell.sequence` differs from `seen`, on timeout, or spuriously. Spins for at most 20 µs (not
/// on a single CPU), then sleeps.
void AwaitRing(Doorbell& bell, uint32_t seen, Deadline deadline);

}  // namespace nam::fabric::shm
