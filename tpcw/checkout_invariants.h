#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tpcw/checkout.h"

namespace nam::tpcw {

/// What must hold after a run, of what a fresh session reads.
struct CheckoutInvariants {
  uint64_t orders = 0;             // there
  uint64_t unknown_orders = 0;     // of them: their clients did not learn that they were committed
  uint64_t aborted_looked_up = 0;  // order numbers

  uint64_t missing_orders = 0;   // committed, and not there
  uint64_t broken_orders = 0;    // without exactly their lines, or those do not add up
  uint64_t aborted_visible = 0;  // something of an aborted transaction
  uint64_t unsound_rows = 0;     // that nobody has written
  uint64_t wrong_stocks = 0;     // products whose stock is not initial + restocked - sold
  int64_t stock_difference = 0;  // what there is less what there should be, over all

  bool ok() const {
    return missing_orders + broken_orders + aborted_visible + unsound_rows + wrong_stocks == 0 &&
           stock_difference == 0;
  }
  std::string ToString() const;
};

/// Looks up everything that `orders` (by client, then by order number) says, of aborted orders at most
/// `aborted_max` a client. Nobody else is writing.
absl::StatusOr<CheckoutInvariants> CheckInvariants(
    const CheckoutOptions& options, std::span<const std::vector<CheckoutClient::OrderState>* const> orders,
    uint64_t aborted_max, txn::Session& session);

}  // namespace nam::tpcw
