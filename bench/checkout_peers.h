#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"

struct sqlite3;

/// The contenders of `nam bench checkout` that are not of this system.
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

/// Checkout in SQLite, in memory, in this process: prepared statements, tables clustered by key, no locks
/// (one connection, one thread, no mutexes), and unread fields of a row in one blob.
class CheckoutSqlite {
 public:
  static absl::StatusOr<std::unique_ptr<CheckoutSqlite>> Load(const tpcw::CheckoutOptions& checkout);
  ~CheckoutSqlite();

  /// Runs for `run_us`; returns transactions per second.
  absl::StatusOr<double> Run(Clock& clock, int64_t run_us);
  /// A query's number, such as the rows of a table or the products' total stock, for tests.
  absl::StatusOr<int64_t> Number(const std::string& sql);

 private:
  class Statement;
  struct Statements;
  explicit CheckoutSqlite(const tpcw::CheckoutOptions& checkout);
  absl::Status Execute(const char* sql);
  absl::Status Prepare();
  absl::Status LoadProducts();
  absl::Status CheckOut();

  const tpcw::CheckoutOptions checkout_;
  const tpcw::ProductChoice choice_;
  RandomStream random_{1};
  sqlite3* database_ = nullptr;
  std::unique_ptr<Statements> statements_;
  int64_t orders_ = 0;
  std::vector<std::byte> product_, order_, line_;  // the rows' other bytes
};

}  // namespace nam::bench
