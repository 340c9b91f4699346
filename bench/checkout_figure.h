#pragma once

#include "absl/status/status.h"
#include "bench/checkout_command.h"

namespace nam::bench {

/// What `sim` takes of the options; INVALID_ARGUMENT, NOT_FOUND.
absl::Status CheckFigureOptions(const CheckoutBenchOptions& options);
/// `nam bench checkout --fabric=sim`: committed checkouts a second by the number of clients, in virtual time,
/// by RSI and by two-phase commit over RDMA messages and over sockets. The exit code.
int RunCheckoutFigure(const CheckoutBenchOptions& options);

}  // namespace nam::bench
