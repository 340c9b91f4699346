#pragma once

#include <cstdint>

/// What computing costs in virtual time (Clock::Charge; real clocks ignore it), in picoseconds. Measured as
/// the CPU time of each kind of batch, less that of reading the clock, over SSB's queries at scale factor
/// 0.3 with blocks of 256 KiB, on one core of an AMD EPYC at -O2; rounded. kProbeKeyPs, which SSB does not
/// need, is a guess.
namespace nam::computeserver::work_cost {

inline constexpr int64_t kBlockPs = 150'000;       // zones, sources, pointers: whatever the rows
inline constexpr int64_t kChecksumBytePs = 40;     // XXH3
inline constexpr int64_t kFirstFilterRowPs = 350;  // over codes in order
inline constexpr int64_t kFilterRowPs = 900;       // over what earlier filters left
inline constexpr int64_t kInsertRowPs = 5'000;     // into a join table
inline constexpr int64_t kProbeRowPs = 2'200;      // codes, into a direct table
inline constexpr int64_t kProbeKeyPs = 8'000;      // any key, any table
inline constexpr int64_t kSinkRowPs = 20'000;      // group and aggregates, or an output row

}  // namespace nam::computeserver::work_cost
