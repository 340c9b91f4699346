#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"
#include "tpcw/latency_histogram.h"
#include "txn/check/history.h"
#include "txn/session.h"

namespace nam::tpcw {

/// Opens a client's session; called, used and destroyed on the client's thread.
using SessionFactory = std::function<absl::StatusOr<std::unique_ptr<txn::Session>>(uint32_t client)>;

struct DriverOptions {
  uint32_t clients = 2;
  /// The first client's number: a later run on the same tables continues counting.
  uint32_t first_client = 0;
  /// The run ends after this time, or after this many commits of all clients together; 0: no such limit.
  int64_t run_us = 20'000'000;
  uint64_t transactions = 0;
  uint64_t seed = 1;
  int64_t interval_us = 1'000'000;  // between report lines
  /// The run ends with UNAVAILABLE if no client commits anything for this long.
  int64_t stall_us_max = 60'000'000;
  bool record_history = false;
  /// Directory for histories, one file per client; empty: in memory.
  std::string history_dir;
};

/// Rates of an interval, or of the run. Latencies are those of checkouts including retries.
struct CheckoutRates {
  double elapsed_s = 0;  // since the run began
  double interval_s = 0;
  uint64_t committed = 0;
  std::array<uint64_t, txn::kAbortReasons> aborts = {};
  double committed_per_s = 0;
  double p50_us = 0, p90_us = 0, p99_us = 0, p999_us = 0;
};

/// Runs clients as threads. Methods belong to the caller's thread, except Stop.
class CheckoutDriver {
 public:
  /// Client n runs on a thread of fabrics[n mod their number]: of this process, or in `sim` of several.
  CheckoutDriver(std::vector<fabric::Fabric*> fabrics, const CheckoutOptions& checkout,
                 const DriverOptions& options, SessionFactory sessions);
  ~CheckoutDriver();

  /// Called once. Calls `line`, if set, every interval. Returns the first error of a client, which ends the
  /// run. After UNAVAILABLE and DEADLINE_EXCEEDED the client first retries for some seconds, and counts a
  /// lost connection.
  absl::StatusOr<CheckoutRates> Run(const std::function<void(const CheckoutRates&)>& line);
  /// Called before Run: the timestamp by which all rows to be read were loaded; stored with histories in
  /// files.
  void SetLoadedUntil(uint64_t timestamp) { loaded_until_ = timestamp; }
  /// Ends a run after the transactions in progress; any thread.
  void Stop() { stop_.store(true, std::memory_order_relaxed); }

  /// The outcomes of each client's orders, by number, once the run has ended.
  std::vector<const std::vector<CheckoutClient::OrderState>*> orders() const;
  /// Requires record_history.
  std::vector<const txn::SessionHistory*> histories() const;
  uint64_t torn_rows() const;
  txn::BeginCosts begin_costs() const;

 private:
  struct Client {
    LatencyHistogram latencies;
    std::atomic<uint64_t> committed = 0;
    std::array<std::atomic<uint64_t>, txn::kAbortReasons> aborts = {};
    std::unique_ptr<txn::SessionHistory> history;
    std::vector<CheckoutClient::OrderState> orders;
    uint64_t torn_rows = 0;
    uint64_t turns = 0;  // taken, not begun; its thread's only
    txn::BeginCosts begins;
  };
  struct Totals {
    int64_t at_ns = 0;
    uint64_t committed = 0;
    std::array<uint64_t, txn::kAbortReasons> aborts = {};
    LatencyHistogram::Counts latencies = {};
  };

  absl::Status OpenHistories();
  void RunClient(uint32_t number);
  absl::Status RunCheckouts(uint32_t number);
  absl::Status CheckOut(CheckoutClient& client, Client& counts);
  bool TakeTurn(Client& client);
  /// Ends the run.
  void Fail(const absl::Status& status);
  Totals Sum() const;
  CheckoutRates Rates(const Totals& from, const Totals& to) const;

  const std::vector<fabric::Fabric*> fabrics_;
  Clock& clock_;
  const CheckoutOptions checkout_;
  const DriverOptions options_;
  const SessionFactory sessions_;
  const std::unique_ptr<const ProductChoice> choice_;
  std::vector<std::unique_ptr<Client>> clients_;

  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> turns_ = 0;  // checkouts taken by clients, if limited
  std::atomic<uint32_t> running_ = 0;
  std::unique_ptr<fabric::Event> ended_;
  int64_t began_ns_ = 0;
  uint64_t loaded_until_ = 0;
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::tpcw
