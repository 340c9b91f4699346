#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Connections that have not yet proved knowledge of the cluster's secret. Anyone can open any number of
/// them, so a listener has places for a few hundred:
///
///     accepted ─▶ a place ─┬─ handshake done ─▶ served
///                          ├─ its time is over ─▶ closed
///                          └─ all places are taken, and one more comes: ChooseLeaver ─▶ closed
///
/// If one source (a host, a process) holds more than a quarter of all places, the leaver is chosen from it,
/// so one crowd does not cost others their places. A leaver never comes from the younger half, so a handshake
/// is safe until that many newer ones have arrived. The choice among the older half is random, so no crowd,
/// however fast, pushes out all others. A member that was pushed out tries again.
namespace nam::fabric {

/// The places of one listener: 256, or an eighth of the process's descriptor limit.
size_t StrangersMax();

/// The index of the connection to close. `sources` lists the source of each connection, oldest first; not
/// empty. `random` is fresh.
size_t ChooseLeaver(std::span<const uint64_t> sources, uint64_t random);

}  // namespace nam::fabric
