#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/command.h"

namespace nam::bench {

// Protocols.
inline constexpr char kRsi[] = "rsi";
inline constexpr char kTwoPhaseSend[] = "2pc-send";
inline constexpr char kTwoPhaseTcp[] = "2pc-tcp";

struct CheckoutBenchOptions {
  std::string fabric = "shm";
  int memory_servers = 2;
  std::vector<uint32_t> clients;  // one number; in sim any number; none: 2, in sim 1 to 140
  double seconds = 3;             // per contender and round
  int repeat = 3;                 // rounds, in which all contenders take turns
  uint64_t products = 0;
  uint64_t product_bytes = 1'024;
  double zipf = 0;
  uint64_t seed = 1;

  // Only in sim.
  std::string generation = "fdr";
  std::vector<std::string> protocols;  // none: all
  int row_servers = 3;                 // in addition to the server for timestamps or the transaction manager
  int client_machines = 4;
  int participants = 6;  // two-phase commit's server threads, over the row servers
  int coordinators = 6;  // on the transaction manager's machine
};

/// Checks and completes the options for `sim`; INVALID_ARGUMENT, NOT_FOUND.
absl::Status CheckFigureOptions(CheckoutBenchOptions& options);
/// `nam bench checkout --fabric=sim`: committed checkouts per second by the number of clients, in virtual
/// time, with RSI and with two-phase commit over RDMA messages and over sockets.
absl::StatusOr<Report> MeasureCheckoutFigure(const CheckoutBenchOptions& options, Run& run);

}  // namespace nam::bench
