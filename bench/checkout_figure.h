#pragma once

#include "absl/status/status.h"
#include "bench/checkout_command.h"

namespace nam::bench {

/// Checks the options for `sim`; INVALID_ARGUMENT, NOT_FOUND.
absl::Status CheckFigureOptions(const CheckoutBenchOptions& options);
/// `nam bench checkout --fabric=sim`: committed checkouts per second by the number of clients, in virtual
/// time, with RSI and with two-phase commit over RDMA messages and over sockets. Returns the exit code.
int RunCheckoutFigure(const CheckoutBenchOptions& options);

}  // namespace nam::bench
