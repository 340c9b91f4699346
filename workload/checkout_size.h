#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "workload/checkout_run.h"

namespace nam {

/// The approximate memory of checkout: rows, padding of their blocks, and index entries.
uint64_t BytesPerProduct(const tpcw::CheckoutOptions& checkout, uint32_t versions);
uint64_t BytesPerOrder(const tpcw::CheckoutOptions& checkout, uint32_t versions);

/// Free memory of the live memory servers, including that of checkout's tables if they will be replaced.
absl::StatusOr<uint64_t> FreeForCheckout(catalog::Attachment& attachment, bool replace);

/// Fits a run into `free_bytes`: the number of products (0: up to a million), the memory prepared for orders,
/// and, for a timed run, the number of transactions.
///
///     free │ fixed │ products: at most 2/5 unless told │ orders and their lines … │ slack 3/20 │
///
/// RESOURCE_EXHAUSTED with the figures, and a run that would fit, if it cannot.
absl::StatusOr<CheckoutRunOptions> FitCheckout(CheckoutRunOptions run, uint64_t products,
                                               uint64_t free_bytes);

}  // namespace nam
