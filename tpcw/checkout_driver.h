#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"
#include "tpcw/latency_histogram.h"
#include "txn/check/history.h"
#include "txn/session.h"

namespace nam::tpcw {

/// A client's session; called, used and destroyed on the client's thread.
using SessionFactory = std::function<absl::StatusOr<std::unique_ptr<txn::Session>>(uint32_t client)>;

struct DriverOptions {
  uint32_t clients = 2;
  /// The first one's number: a run after another one on the same tables goes on counting.
  uint32_t first_client = 0;
  /// Ends when this time is over or so many have been committed by all together; 0: no such limit.
  int64_t run_us = 20'000'000;
  uint64_t transactions = 0;
  uint64_t seed = 1;
  int64_t interval_us = 1'000'000;  // between lines
  /// The run ends with UNAVAILABLE when nobody has committed anything for so long.
  int64_t stall_us_max = 60'000'000;
  bool record_history = false;
  /// Where histories are written, a file a client; empty: in memory.
  std::string history_dir;
};

/// Of an interval, or of the run. Latencies are of checkouts, with their retries.
struct CheckoutRates {
  double elapsed_s = 0;  // since the run began
  double interval_s = 0;
  uint64_t committed = 0;
  std::array<uint64_t, txn::kAbortReasons> aborts = {};
  double committed_per_s = 0;
  double p50_us = 0, p90_us = 0, p99_us = 0, p999_us = 0;
};

/// Runs clients as threads. Its methods are the caller's thread's, but for Stop.
class CheckoutDriver {
 public:
  /// Client n is a thread of fabrics[n mod their number]: of this process, or in `sim` of several.
  CheckoutDriver(std::vector<fabric::Fabric*> fabrics, const CheckoutOptions& checkout,
                 const DriverOptions& options, SessionFactory sessions);
  ~CheckoutDriver();

  /// Once. `line` (if there) is called every interval. The first error of a client ends the run, and is
  /// returned; but for UNAVAILABLE and DEADLINE_EXCEEDED it first tries again for some seconds, and counts a
  /// lost connection.
  absl::StatusOr<CheckoutRates> Run(const std::function<void(const CheckoutRates&)>& line);
  /// Before Run: when the rows were there that clients read; it is kept with histories in files.
  void SetLoadedUntil(uint64_t timestamp) { loaded_until_ = timestamp; }
  /// Ends a run after the transactions under way; any thread.
  void Stop() { stop_.store(true, std::memory_order_relaxed); }

  /// Of the clients, once the run has ended: what became of their orders, by number.
  std::vector<const std::vector<CheckoutClient::OrderState>*> orders() const;
  /// With record_history.
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
    uint64_t turns = 0;  // taken, and not begun; its thread's alone
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
  std::atomic<uint64_t> turns_ = 0;  // checkouts that clients have taken, if they are limited
  std::atomic<uint32_t> running_ = 0;
  std::unique_ptr<fabric::Event> ended_;
  int64_t began_ns_ = 0;
  uint64_t loaded_until_ = 0;
  std::mutex mutex_;
  absl::Status status_;  // guarded by mutex_
};

}  // namespace nam::tpcw
