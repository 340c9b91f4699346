#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "tpcw/checkout.h"

struct sqlite3;

namespace nam::bench {

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
