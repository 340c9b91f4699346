#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "session/session.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "tpcw/checkout.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"
#include "txn/check/history_checker.h"
#include "workload/checkout_backend.h"

namespace nam {

struct CheckoutRunOptions {
  tpcw::CheckoutOptions checkout;
  tpcw::DriverOptions driver;
  CheckoutTableOptions tables;
  bool check_history = false;
};

struct CheckoutOutcome {
  tpcw::CheckoutRates rates;
  tpcw::CheckoutInvariants invariants;
  std::optional<txn::CheckReport> timestamps, dependencies;  // with check_history
  uint64_t torn_rows = 0;
  txn::BeginCosts begins;
  bool ok() const {
    return invariants.ok() && torn_rows == 0 && (!timestamps.has_value() || timestamps->ok()) &&
           (!dependencies.has_value() || dependencies->ok());
  }
};

/// Checkout under any protocol: creates and loads the tables, runs clients as threads of this process, and
/// checks the invariants. Used by one thread, except Stop.
class CheckoutRun {
 public:
  /// The backend must outlive this object.
  CheckoutRun(CheckoutBackend& backend, const CheckoutRunOptions& options);
  ~CheckoutRun();

  /// CANCELLED after Stop. After a failure, CheckoutBackend::DropTables removes the remains.
  absl::Status Load(ProgressLine& progress);
  absl::StatusOr<CheckoutOutcome> Run(const std::function<void(const tpcw::CheckoutRates&)>& line,
                                      ProgressLine& progress);
  /// Ends the load, and the clients after the transactions in progress. Any thread and signal handlers.
  void Stop();

 private:
  CheckoutBackend& backend_;
  const CheckoutRunOptions options_;
  tpcw::CheckoutDriver driver_;
  std::atomic<bool> stop_ = false;
  uint64_t loaded_until_ = 0;
};

/// `  3 s     212,345 committed/s   p50 8.2 us   p99 31.0 us   aborts: 12 write-write conflict`
std::string CheckoutLine(const tpcw::CheckoutRates& rates);
/// The same as a table, one row per line.
session::ResultSet CheckoutTable(const std::vector<tpcw::CheckoutRates>& lines);
/// Some lines about the whole run; the last ones state the checks.
std::string CheckoutSummary(const CheckoutOutcome& outcome);
Json CheckoutRatesJson(const tpcw::CheckoutRates& rates);
Json CheckoutSummaryJson(const CheckoutOutcome& outcome);

}  // namespace nam
