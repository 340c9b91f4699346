#pragma once

#include <cstdint>
#include <string>

namespace nam::fabric::sim {

/// The caches of a host's processors, as `sim` computes with them where code above tells it of its working
/// sets (base/cache_costs.h). What exceeds a cache is met there as often as the cache's share of it.
struct CacheModel {
  std::string name;
  // What each thread has; its part of a cache that threads share.
  uint64_t l1_bytes = 0;
  uint64_t l2_bytes = 0;
  uint64_t l3_bytes = 0;
  // What one of several independent accesses adds to the work on a row: the latency, less what overlaps.
  int64_t l2_ps = 0;
  int64_t l3_ps = 0;
  int64_t memory_ps = 0;

  /// Two Intel Xeon E5-2660 v2, on which so many threads compute, with caches a `divisor` of their size. The
  /// machine of Binnig et al., "The End of Slow Networks": 2.2 GHz; 32 KiB, 256 KiB and 25 MiB. Latencies are
  /// those that 7-cpu.com measured of Ivy Bridge: 12 cycles, 30 cycles, and 30 cycles and 53 ns. The engine's
  /// loops look rows up in batches: four accesses overlap.
  static CacheModel XeonE5(uint32_t threads, uint32_t divisor);

  int64_t AccessPs(uint64_t working_set_bytes) const;
};

}  // namespace nam::fabric::sim
