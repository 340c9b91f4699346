#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "workload/checkout_run.h"

namespace nam {

/// What checkout needs of memory, roughly: rows, their blocks' padding, and their index entries.
uint64_t BytesPerProduct(const tpcw::CheckoutOptions& checkout, uint32_t versions);
uint64_t BytesPerOrder(const tpcw::CheckoutOptions& checkout, uint32_t versions);

/// Free memory of the living memory servers, with that of checkout's tables if they are to be replaced.
absl::StatusOr<uint64_t> FreeForCheckout(catalog::Attachment& attachment, bool replace);

/// Makes a run fit into `free_bytes`: as many products as the options say, or (0) a million or fewer; memory
/// made ready for orders; and, for a run of some time, no more transactions than there is room for.
///
///     free │ fixed │ products: at most 2/5 unless told │ orders and their lines … │ slack 3/20 │
///
/// RESOURCE_EXHAUSTED with the figures, and what would fit, if it cannot.
absl::StatusOr<CheckoutRunOptions> FitCheckout(CheckoutRunOptions run, uint64_t products,
                                               uint64_t free_bytes);

}  // namespace nam
