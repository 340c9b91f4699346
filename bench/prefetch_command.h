#pragma once

#include <cstdint>
#include <vector>

#include "bench/fabric_command.h"

namespace nam::bench {

/// Options that all benchmarks of streamed blocks have.
struct StreamBenchOptions {
  TestbedCommandOptions testbed;
  uint64_t block_bytes = 2048;
  uint32_t threads = 0;  // of each compute server; 0: what suits the fabric
  uint32_t scan_ns = 0;  // sim: computation per block; 0: that of the paper's processors
};

struct PrefetchBenchOptions {
  StreamBenchOptions stream;
  std::vector<uint32_t> windows;  // none: 1, 2, 3, 5, 10, 20, 64
};
/// `nam bench prefetch`: blocks per second of the engine's block stream by its window.
int RunPrefetchBench(const PrefetchBenchOptions& options);

struct MulticastBenchOptions {
  StreamBenchOptions stream{.testbed = {.repeat = 5}};
  std::vector<uint32_t> receivers;  // none: 1 to 8
  uint32_t blocks = 8192;           // that every receiver gets
};
/// `nam bench multicast`: blocks per second of each of many receivers, by READ and by multicast.
int RunMulticastBench(const MulticastBenchOptions& options);

}  // namespace nam::bench
