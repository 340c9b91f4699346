#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Connections that have not proved yet that they know the cluster's secret. Anybody can make as many as he
/// likes, so a listener has places for a few hundred of them:
///
///     accepted ─▶ a place ─┬─ handshake done ─▶ served
///                          ├─ its time is over ─▶ closed
///                          └─ all places are taken, and one more comes: ChooseLeaver ─▶ closed
///
/// Who leaves is of the source (a host, a process) that has more than a quarter of all places, if one has:
/// then a crowd from there does not cost others their places. It is never one of the younger half, so a
/// handshake is safe until that many have come after it; and chance among the older half, so that no crowd,
/// however fast, pushes out everybody. A member that was pushed out tries again.
namespace nam::fabric {

/// Places of one listener: 256, or an eighth of the descriptors that the process may have.
size_t StrangersMax();

/// Which of those in the places goes. `sources` says where each comes from, the oldest first; not empty.
/// `random` is fresh.
size_t ChooseLeaver(std::span<const uint64_t> sources, uint64_t random);

}  // namespace nam::fabric
