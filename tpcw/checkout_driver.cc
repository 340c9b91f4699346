#include "tpcw/checkout_driver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::tpcw {
namespace {

constexpr int64_t kOutOfReachUsMax = 10'000'000;
constexpr int64_t kReconnectPauseUs = 50'000;

}  // namespace

CheckoutDriver::CheckoutDriver(std::vector<fabric::Fabric*> fabrics, const CheckoutOptions& checkout,
                               const DriverOptions& options, SessionFactory sessions)
    : fabrics_(std::move(fabrics)),
      clock_(fabrics_.at(0)->clock()),
      checkout_(checkout),
      options_(options),
      sessions_(std::move(sessions)),
      choice_(checkout.Validate().ok()
                  ? std::make_unique<ProductChoice>(checkout.products, checkout.zipf_theta)
                  : nullptr),
      ended_(fabrics_[0]->CreateEvent()) {}

CheckoutDriver::~CheckoutDriver() = default;

absl::Status CheckoutDriver::OpenHistories() {
  for (uint32_t i = 0; options_.record_history && i < options_.clients; ++i) {
    if (options_.history_dir.empty()) {
      clients_[i]->history = txn::SessionHistory::InMemory();
      continue;
    }
    const std::string path = absl::StrCat(options_.history_dir, "/client-", i, ".history");
    NAM_ASSIGN_OR_RETURN(clients_[i]->history, txn::SessionHistory::InFile(path, loaded_until_));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckoutRates> CheckoutDriver::Run(const std::function<void(const CheckoutRates&)>& line) {
  NAM_RETURN_IF_ERROR(checkout_.Validate());
  if (options_.clients == 0 || options_.clients >= kClientsMax - options_.first_client ||
      options_.interval_us <= 0) {
    return absl::InvalidArgumentError("checkout: no clients or too many, or no time between lines");
  }
  NAM_CHECK(clients_.empty(), "runs once");
  for (uint32_t i = 0; i < options_.clients; ++i) clients_.push_back(std::make_unique<Client>());
  NAM_RETURN_IF_ERROR(OpenHistories());

  const Totals start = Sum();
  began_ns_ = start.at_ns;
  const Deadline end = options_.run_us > 0 ? Deadline{began_ns_ + options_.run_us * 1000} : Deadline::Never();
  running_ = options_.clients;
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (uint32_t i = 0; i < options_.clients; ++i) {
    threads.push_back(fabrics_[i % fabrics_.size()]->StartThread(absl::StrCat("checkout-", i),
                                                                 [this, i] { RunClient(i); }));
  }
  Totals last = start;
  int64_t progress_ns = start.at_ns;
  for (bool ended = false; !ended;) {
    const Deadline next = {last.at_ns + options_.interval_us * 1000};
    ended = ended_->Wait(next.ns < end.ns ? next : end);
    if (clock_.Passed(end)) {
      Stop();
      ended = true;
    }
    if (!clock_.Passed(next)) continue;
    const Totals now = Sum();
    if (line) line(Rates(last, now));
    if (now.committed != last.committed) progress_ns = now.at_ns;
    if (now.at_ns - progress_ns > options_.stall_us_max * 1000) {
      Fail(absl::UnavailableError(absl::StrCat("checkout: nothing was committed for ",
                                               options_.stall_us_max / 1'000'000,
                                               " s: rows stay locked, or cannot be reached")));
    }
    last = now;
  }
  threads.clear();
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(status_);
  return Rates(start, Sum());
}

void CheckoutDriver::RunClient(uint32_t number) {
  if (const absl::Status status = RunCheckouts(number); !status.ok()) Fail(status);
  if (--running_ == 0) ended_->Set();
}

void CheckoutDriver::Fail(const absl::Status& status) {
  const MutexLock lock(mutex_);
  if (status_.ok()) status_ = status;
  Stop();
}

absl::Status CheckoutDriver::RunCheckouts(uint32_t number) {
  Client& counts = *clients_[number];
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, sessions_(number));
  std::optional<txn::HistoryRecorder> recorder;
  if (counts.history != nullptr) recorder.emplace(number, *counts.history);
  const uint32_t client_number = options_.first_client + number;
  RandomStream seeds(options_.seed + client_number);
  NAM_ASSIGN_OR_RETURN(const auto client,
                       CheckoutClient::Open(checkout_, *choice_, client_number, seeds.Next(), *session,
                                            recorder.has_value() ? &*recorder : nullptr));
  absl::Status status;
  while (status.ok() && TakeTurn(counts)) status = CheckOut(*client, counts);
  counts.orders = client->orders();
  counts.torn_rows = client->torn_rows();
  counts.begins = session->begin_costs();
  if (status.ok() && recorder.has_value() && !recorder->complete()) {
    return absl::ResourceExhaustedError("checkout: no room for the history");
  }
  return status;
}

/// Takes turns in batches, because a counter that all clients write costs a cache miss each time.
bool CheckoutDriver::TakeTurn(Client& client) {
  if (stop_.load(std::memory_order_relaxed)) return false;
  const uint64_t all = options_.transactions;
  if (all == 0) return true;
  if (client.turns == 0) {
    const uint64_t dozen = std::clamp<uint64_t>(all / options_.clients / 16, 1, 64);
    const uint64_t first = turns_.fetch_add(dozen, std::memory_order_relaxed);
    client.turns = std::min(dozen, all - std::min(first, all));
    if (client.turns == 0) return false;
  }
  --client.turns;
  return true;
}

/// One checkout, with its retries.
absl::Status CheckoutDriver::CheckOut(CheckoutClient& client, Client& counts) {
  const int64_t from_ns = clock_.NowNs();
  client.Next();
  std::optional<Deadline> out_of_reach;
  while (true) {
    auto aborted = client.Try();
    if (aborted.ok()) {
      out_of_reach.reset();
    } else {
      // The outcome may be unknown; then this buys the same again, as another order.
      if (!out_of_reach.has_value()) out_of_reach = clock_.After(kOutOfReachUsMax);
      const bool connection =
          absl::IsUnavailable(aborted.status()) || absl::IsDeadlineExceeded(aborted.status());
      if (!connection || clock_.Passed(*out_of_reach)) return aborted.status();
      aborted = txn::AbortReason::kConnectionLost;
      clock_.SleepUntil(clock_.After(kReconnectPauseUs));
    }
    if (!aborted->has_value()) break;
    auto& count = counts.aborts[static_cast<size_t>(**aborted)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (stop_.load(std::memory_order_relaxed)) return absl::OkStatus();
  }
  counts.latencies.Add(clock_.NowNs() - from_ns);
  counts.committed.store(counts.committed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return absl::OkStatus();
}

CheckoutDriver::Totals CheckoutDriver::Sum() const {
  Totals totals;
  totals.at_ns = clock_.NowNs();
  for (const auto& client : clients_) {
    totals.committed += client->committed.load(std::memory_order_relaxed);
    client->latencies.AddTo(totals.latencies);
    for (size_t i = 0; i < txn::kAbortReasons; ++i) {
      totals.aborts[i] += client->aborts[i].load(std::memory_order_relaxed);
    }
  }
  return totals;
}

CheckoutRates CheckoutDriver::Rates(const Totals& from, const Totals& to) const {
  CheckoutRates rates;
  rates.elapsed_s = static_cast<double>(to.at_ns - began_ns_) / 1e9;
  rates.interval_s = static_cast<double>(to.at_ns - from.at_ns) / 1e9;
  rates.committed = to.committed - from.committed;
  for (size_t i = 0; i < txn::kAbortReasons; ++i) rates.aborts[i] = to.aborts[i] - from.aborts[i];
  if (rates.interval_s > 0) rates.committed_per_s = static_cast<double>(rates.committed) / rates.interval_s;
  LatencyHistogram::Counts latencies;
  for (size_t i = 0; i < latencies.size(); ++i) latencies[i] = to.latencies[i] - from.latencies[i];
  const auto us = [&](double fraction) { return LatencyHistogram::PercentileNs(latencies, fraction) / 1e3; };
  rates.p50_us = us(0.5);
  rates.p90_us = us(0.9);
  rates.p99_us = us(0.99);
  rates.p999_us = us(0.999);
  return rates;
}

std::vector<const std::vector<CheckoutClient::OrderState>*> CheckoutDriver::orders() const {
  std::vector<const std::vector<CheckoutClient::OrderState>*> orders;
  for (const auto& client : clients_) orders.push_back(&client->orders);
  return orders;
}

std::vector<const txn::SessionHistory*> CheckoutDriver::histories() const {
  std::vector<const txn::SessionHistory*> histories;
  for (const auto& client : clients_) {
    if (client->history != nullptr) histories.push_back(client->history.get());
  }
  return histories;
}

txn::BeginCosts CheckoutDriver::begin_costs() const {
  txn::BeginCosts sum;
  for (const auto& client : clients_) sum = sum + client->begins;
  return sum;
}

uint64_t CheckoutDriver::torn_rows() const {
  uint64_t torn_rows = 0;
  for (const auto& client : clients_) torn_rows += client->torn_rows;
  return torn_rows;
}

}  // namespace nam::tpcw
