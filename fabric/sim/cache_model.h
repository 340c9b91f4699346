#pragma once

#include <cstdint>
#include <string>

namespace nam::fabric::sim {

/// The processor caches of a host, as `sim` models them where code reports its working sets
/// (base/cache_costs.h). A working set larger than a cache hits it in proportion to the cache's share of the
/// set.
struct CacheModel {
  std::string name;
  // Per thread: its part of a shared cache.
  uint64_t l1_bytes = 0;
  uint64_t l2_bytes = 0;
  uint64_t l3_bytes = 0;
  // The time that one of several independent accesses adds to the work on a row: its latency minus the
  // overlap.
  int64_t l2_ps = 0;
  int64_t l3_ps = 0;
  int64_t memory_ps = 0;

  /// Two Intel Xeon E5-2660 v2 with `threads` computing threads, each cache scaled to 1/`divisor`. The
  /// machine of Binnig et al., "The End of Slow Networks": 2.2 GHz; 32 KiB, 256 KiB and 25 MiB. Latencies are
  /// 7-cpu.com's for Ivy Bridge: 12 cycles, 30 cycles, and 30 cycles plus 53 ns. The engine looks rows up in
  /// batches: four accesses overlap.
  static CacheModel XeonE5(uint32_t threads, uint32_t divisor);

  int64_t AccessPs(uint64_t working_set_bytes) const;
};

}  // namespace nam::fabric::sim
