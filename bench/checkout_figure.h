#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/command.h"
#include "bench/simulated_checkout.h"

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
  /// The products and the seed are those of each contender, all else is for `sim`.
  SimulatedCheckoutOptions world = {.checkout = {.products = 0}, .participants = 6, .coordinators = 6};
  std::string generation = "fdr";      // sim
  std::vector<std::string> protocols;  // sim; none: all
};

/// Checks and completes the options for `sim`; INVALID_ARGUMENT, NOT_FOUND.
absl::Status CheckFigureOptions(CheckoutBenchOptions& options);
/// `nam bench checkout --fabric=sim`: committed checkouts per second by the number of clients, in virtual
/// time, with RSI and with two-phase commit over RDMA messages and over sockets.
absl::StatusOr<Report> MeasureCheckoutFigure(const CheckoutBenchOptions& options, Run& run);

}  // namespace nam::bench
