#pragma once

#include <cstdint>
#include <vector>

#include "bench/fabric_command.h"

namespace nam::bench {

/// Options of all block stream benchmarks.
struct StreamBenchOptions {
  TestbedCommandOptions testbed;
  uint64_t block_bytes = 2048;
  uint32_t threads = 0;  // per compute server; 0: the fabric's default
  uint32_t scan_ns = 0;  // sim: computation per block; 0: the paper's processors
};

struct PrefetchBenchOptions {
  StreamBenchOptions stream;
  std::vector<uint32_t> windows;  // none: 1, 2, 3, 5, 10, 20, 64
};
/// `nam bench prefetch`: blocks per second of the engine's block stream, by window.
int RunPrefetchBench(const PrefetchBenchOptions& options);

struct MulticastBenchOptions {
  StreamBenchOptions stream{.testbed = {.repeat = 5}};
  std::vector<uint32_t> receivers;  // none: 1 to 8
  uint32_t blocks = 8192;           // per receiver
};
/// `nam bench multicast`: blocks per second of each of many receivers, by READ and by multicast.
int RunMulticastBench(const MulticastBenchOptions& options);

}  // namespace nam::bench
