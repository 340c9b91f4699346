#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"

namespace nam::bench {

struct CheckoutLoopOptions {
  tpcw::CheckoutOptions checkout;
  int threads = 1;
  uint64_t seed = 1;  // like the driver's: thread n buys what client n of a run buys
  int64_t run_us = 2'000'000;
};

/// Checkouts without transactions, hand-written for shared memory. Products lie in an array, and each thread
/// writes orders with their lines into a ring. No index, versions, locks or timestamps: threads may overwrite
/// each other's rows. It does all work of a transaction's client (with its code, tpcw::Purchase): draws the
/// same products and quantities, checks the rows read, fills the rows written. A transaction's time beyond
/// this loop is the price of transactions.
class CheckoutLoop {
 public:
  struct Outcome {
    double per_s = 0;  // transactions of all threads
    /// Products mixed by concurrent writes; they are reset.
    uint64_t torn_rows = 0;
  };

  /// Products and orders lie in shared memory of `fabric`.
  static absl::StatusOr<std::unique_ptr<CheckoutLoop>> Load(fabric::Fabric& fabric,
                                                            const CheckoutLoopOptions& options);
  Outcome Run();

 private:
  struct Lane;
  CheckoutLoop(fabric::Fabric& fabric, const CheckoutLoopOptions& options);
  std::byte* Product(uint64_t id) const { return products_->data() + id * options_.checkout.product_bytes; }
  void CheckOut(int thread, Lane& lane) const;

  fabric::Fabric& fabric_;
  const CheckoutLoopOptions options_;
  const tpcw::ProductChoice choice_;
  const size_t order_bytes_;  // an order with its lines
  std::unique_ptr<fabric::MemoryRegion> products_;
  std::unique_ptr<fabric::MemoryRegion> orders_;  // per thread: a ring of orders with their lines
};

}  // namespace nam::bench
