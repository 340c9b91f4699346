#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::bench {

struct CheckoutLoopOptions {
  uint64_t products = 1'000'000;
  size_t product_bytes = 1024;
  size_t order_bytes = 128;
  size_t line_bytes = 64;
  int threads = 1;
  int64_t run_us = 2'000'000;
  /// Draws the next transaction early, and asks for its products' memory while it works on this one.
  bool prefetch_next = false;
  bool huge_pages = true;  // if memory servers get them
};

/// The memory work of a checkout and nothing else, as a programmer would write it by hand on shared memory:
/// copies three products out, writes an order and its lines at the end of arrays, copies the three products
/// back with less stock. No index, no versions, no locks, no timestamps: threads may overwrite each other's
/// stocks. What no transaction can be faster than, more or less.
class CheckoutLoop {
 public:
  /// Products and room for orders lie in memory that `fabric` shares with others.
  static absl::StatusOr<std::unique_ptr<CheckoutLoop>> Load(fabric::Fabric& fabric,
                                                            const CheckoutLoopOptions& options);
  /// Transactions a second of all threads together.
  double Run() const;

 private:
  struct Count;
  CheckoutLoop(fabric::Fabric& fabric, const CheckoutLoopOptions& options)
      : fabric_(fabric), options_(options) {}
  void RunThread(int thread, Count& count) const;

  fabric::Fabric& fabric_;
  const CheckoutLoopOptions options_;
  std::unique_ptr<fabric::MemoryRegion> products_;
  std::unique_ptr<fabric::MemoryRegion> orders_;  // of each thread: a ring of orders with their lines
};

}  // namespace nam::bench
