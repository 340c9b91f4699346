#pragma once

#include <cstdint>
#include <string>

namespace nam::bench {

struct CheckoutBenchOptions {
  std::string fabric = "shm";
  int memory_servers = 2;
  int clients = 2;
  double seconds = 3;  // of each side in a round
  int repeat = 3;      // rounds, in which all sides take turns
  uint64_t products = 1'000'000;
  uint64_t product_bytes = 1'024;
  double zipf = 0;
  uint64_t seed = 1;
  std::string format = "table";
};

/// `nam bench checkout`: RSI in a private cluster, keeping 1 version and 4, beside the same memory work as a
/// bare loop, SQLite in memory, and two-phase commit over sockets and over SEND/RECEIVE. Leaves nothing
/// behind. kExitCheckFailed if stocks or orders do not add up.
int RunCheckoutBench(const CheckoutBenchOptions& options);

}  // namespace nam::bench
