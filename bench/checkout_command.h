#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nam::bench {

struct CheckoutBenchOptions {
  std::string fabric = "shm";
  int memory_servers = 2;
  std::vector<uint32_t> clients;  // one number; in sim any number; none: 2, in sim 1 to 70
  double seconds = 3;             // per contender and round
  int repeat = 3;                 // rounds, in which all contenders take turns
  uint64_t products = 0;          // 0: 1,000,000; in sim fewer
  uint64_t product_bytes = 1'024;
  double zipf = 0;
  uint64_t seed = 1;
  std::string format = "table";

  // Only in sim.
  std::string generation = "fdr";
  std::vector<std::string> protocols;  // none: all
  int row_servers = 3;                 // in addition to the server for timestamps or the transaction manager
  int client_machines = 4;
  int participants = 6;  // two-phase commit's server threads, over the row servers
  int coordinators = 6;  // on the transaction manager's machine
  std::string html;      // a page with the plot
};

/// `nam bench checkout`: RSI in a private cluster, with 1 and with 4 versions, compared to loops that do its
/// memory work and all of its work without transactions (bench/checkout_loop.h), SQLite in memory, and
/// two-phase commit over sockets and over SEND/RECEIVE. Leaves nothing behind. kExitCheckFailed if stocks or
/// orders are inconsistent. With --fabric=sim: bench/checkout_figure.h.
int RunCheckoutBench(const CheckoutBenchOptions& options);

}  // namespace nam::bench
