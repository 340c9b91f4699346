#pragma once

#include <cstdint>

/// What computing costs in virtual time (Clock::Charge; real clocks ignore it), in picoseconds. Calibrated
/// with SSB at scale factor 1 on one thread over shm (2.x GHz server core): EXPLAIN ANALYZE's computing time
/// of the 13 queries, divided over the rows that each operator saw. See docs/design/simulated-clusters.md.
namespace nam::computeserver::work_cost {

inline constexpr int64_t kBlockPs = 1'000'000;     // zones, sources, pointers: whatever the rows
inline constexpr int64_t kChecksumBytePs = 60;     // XXH3 and its cache misses
inline constexpr int64_t kFirstFilterRowPs = 700;  // over codes in order
inline constexpr int64_t kFilterRowPs = 1'500;     // over what earlier filters left
inline constexpr int64_t kInsertRowPs = 3'000;     // into a join table
inline constexpr int64_t kProbeRowPs = 2'500;      // codes, into a direct table
inline constexpr int64_t kProbeKeyPs = 8'000;      // any key, any table
inline constexpr int64_t kSinkRowPs = 6'000;       // group and aggregates, or an output row

}  // namespace nam::computeserver::work_cost
