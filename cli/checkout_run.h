#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "cli/json_report.h"
#include "cli/progress_line.h"
#include "tpcw/checkout.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"
#include "txn/cluster_tables.h"
#include "txn/history_checker.h"

namespace nam::cli {

struct CheckoutRunOptions {
  tpcw::CheckoutOptions checkout;
  tpcw::DriverOptions driver;
  uint32_t versions = 1;
  bool replace = false;
  bool check_history = false;
  uint64_t expected_orders = 0;  // memory that is made ready for them; more are taken as needed
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

/// Checkout by RSI as a client of a cluster: makes and loads the tables, runs clients as threads of this
/// process, and looks whether everything adds up. Used by one thread, but for Stop.
class CheckoutRun {
 public:
  CheckoutRun(catalog::Attachment& attachment, const CheckoutRunOptions& options);
  ~CheckoutRun();

  /// ALREADY_EXISTS unless the options say to replace.
  absl::Status Load(ProgressLine& progress);
  absl::StatusOr<CheckoutOutcome> Run(const std::function<void(const tpcw::CheckoutRates&)>& line,
                                      ProgressLine& progress);
  /// Ends the clients after the transactions under way; any thread.
  void Stop();

 private:
  absl::Status MakeTables();
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession();

  catalog::Attachment& attachment_;
  const CheckoutRunOptions options_;
  txn::ClusterTables tables_;
  tpcw::CheckoutDriver driver_;
  uint64_t loaded_until_ = 0;
};

/// `  3 s     212,345 committed/s   p50 8.2 us   p99 31.0 us   aborts: 12 write-write conflict`
std::string CheckoutLine(const tpcw::CheckoutRates& rates);
/// Of the whole run, some lines; ends with what was checked.
std::string CheckoutSummary(const CheckoutOutcome& outcome);
Json CheckoutRatesJson(const tpcw::CheckoutRates& rates);
Json CheckoutSummaryJson(const CheckoutOutcome& outcome);

}  // namespace nam::cli
