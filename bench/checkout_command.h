#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct CheckoutBenchOptions {
  std::string fabric = "shm";
  int memory_servers = 2;
  std::vector<uint32_t> clients;  // one number; in sim any; none: 2, in sim 1 to 70
  double seconds = 3;             // of each side in a round
  int repeat = 3;                 // rounds, in which all sides take turns
  uint64_t products = 0;          // 0: 1,000,000; in sim fewer
  uint64_t product_bytes = 1'024;
  double zipf = 0;
  uint64_t seed = 1;
  std::string format = "table";

  // In sim alone.
  std::string generation = "fdr";
  std::vector<std::string> protocols;  // none: all
  int row_servers = 3;                 // beside the one for timestamps, or the transaction manager
  int client_machines = 4;
  int participants = 6;  // threads of two-phase commit's servers, over the row servers
  int coordinators = 6;  // of its transaction manager's machine
  std::string html;      // a page with the plot
};

/// `nam bench checkout`: RSI in a private cluster, keeping 1 version and 4, beside loops that do its memory
/// work and all of its work without transactions (bench/checkout_loop.h), SQLite in memory, and two-phase
/// commit over sockets and over SEND/RECEIVE. Leaves nothing behind. kExitCheckFailed if stocks or orders do
/// not add up. With --fabric=sim: bench/checkout_figure.h.
int RunCheckoutBench(const CheckoutBenchOptions& options);

}  // namespace nam::bench
