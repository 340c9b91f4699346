#pragma once

#include <cstdint>

/// The cost of computing, in picoseconds, for virtual time (Clock::Charge; real clocks ignore it) and for
/// comparing plans (optimizer/join_cost.h). Measured as the CPU time of each kind of batch, less that of
/// reading the clock, over SSB's queries at scale factor 0.3 with blocks of 256 KiB, on one core of an AMD
/// EPYC at -O2; rounded. kProbeKeyPs and kRecordRowPs, which SSB does not need, are guesses.
namespace nam::plan::work_cost {

inline constexpr double kPsPerMs = 1e9;

inline constexpr int64_t kBlockPs = 150'000;        // zones, sources, pointers: independent of the rows
inline constexpr int64_t kChecksumBytePs = 40;      // XXH3
inline constexpr int64_t kFirstFilterRowPs = 350;   // over codes in order
inline constexpr int64_t kFilterRowPs = 900;        // over the rows that earlier filters left
inline constexpr int64_t kRecordRowPs = 60'000;     // a record's words copied, judged, its columns decoded
inline constexpr int64_t kInsertRowPs = 5'000;      // into a join table
inline constexpr int64_t kProbeRowPs = 2'200;       // codes, into a direct table
inline constexpr int64_t kProbeKeyPs = 8'000;       // any key, any table
inline constexpr int64_t kPartnerRowPs = 2'600;     // finding a row's partner in one build side
inline constexpr int64_t kSinkRowPs = 6'000;        // group and aggregates, or an output row
inline constexpr int64_t kCombineGroupPs = 20'000;  // merging a thread's or server's group into another's
inline constexpr int64_t kFinishRowPs = 10'000;     // a group or row that is stored, or read as a result
inline constexpr int64_t kFileFieldPs = 15'000;     // a field of a file, found, checked and made a value
inline constexpr int64_t kSortRowPs = 60'000;       // a row's share of sorting runs, or of merging them

// Multicast of build sides: until a stream flows and after it has, at any length (a call to each memory
// server, groups joined, first credit, the last blocks' way); the cost of a datagram to its sender or
// receiver; and its copy.
inline constexpr int64_t kMulticastStartPs = 300'000'000;
inline constexpr int64_t kDatagramPs = 240'000;
inline constexpr int64_t kDatagramBytePs = 83;

// Rows that servers exchange:
inline constexpr int64_t kRouteRowPs = 2'000;   // choosing a row's server
inline constexpr int64_t kRouteCodePs = 1'200;  // writing a code where it is sent from

}  // namespace nam::plan::work_cost
