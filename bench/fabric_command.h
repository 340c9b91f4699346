#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

/// Options of all benchmarks without a cluster.
struct TestbedCommandOptions {
  std::string fabric = "shm";
  std::string generation = "fdr";
  std::string rdma;
  std::string server_rdma;
  std::string server_host = "127.0.0.1";
  bool encrypt = false;
  int repeat = 31;
  int round_ms = 0;  // 0: the fabric's default
  std::string compare;
  std::string html;  // page with the plot, if the benchmark has one
  std::string format = "table";
};

struct FabricBenchOptions {
  TestbedCommandOptions testbed;
  std::vector<std::string> operations;        // none: all
  std::vector<std::string> sizes;             // none: 8 B to 1 MiB
  std::vector<uint32_t> in_flight;            // none: 1, 10, 16, 64
  std::vector<uint32_t> threads;              // none: 1
  uint64_t span_bytes = uint64_t{256} << 20;  // more than caches hold
};

/// `nam bench fabric`: the operations of a provider, compared to its bound. Leaves nothing behind.
int RunFabricBench(const FabricBenchOptions& options);

}  // namespace nam::bench
