#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tpcw/checkout.h"

namespace nam::tpcw {

/// The conditions that must hold after a run, for a new session's reads.
struct CheckoutInvariants {
  uint64_t orders = 0;             // found
  uint64_t unknown_orders = 0;     // found, although their clients did not learn of the commit
  uint64_t aborted_looked_up = 0;  // order numbers

  uint64_t missing_orders = 0;   // committed but not found
  uint64_t broken_orders = 0;    // with wrong or inconsistent lines
  uint64_t aborted_visible = 0;  // aborted, but with visible rows
  uint64_t unsound_rows = 0;     // not written by any client
  uint64_t wrong_stocks = 0;     // products whose stock is not initial + restocked - sold
  int64_t stock_difference = 0;  // actual minus expected, over all

  bool ok() const {
    return missing_orders + broken_orders + aborted_visible + unsound_rows + wrong_stocks == 0 &&
           stock_difference == 0;
  }
  std::string ToString() const;
};

/// Looks up all of `orders` (by client, then by order number), at most `aborted_max` aborted ones per client.
/// Requires that no other process writes.
absl::StatusOr<CheckoutInvariants> CheckInvariants(
    const CheckoutOptions& options, std::span<const std::vector<CheckoutClient::OrderState>* const> orders,
    uint64_t aborted_max, txn::Session& session);

}  // namespace nam::tpcw
