#include "workload/checkout_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "terminal/units.h"

namespace nam {
namespace {

constexpr uint64_t kAbortedLookedUp = 1'000;  // of each client

std::string AbortsText(const tpcw::CheckoutRates& rates) {
  std::string text;
  for (size_t i = 0; i < txn::kAbortReasons; ++i) {
    if (rates.aborts[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", FormatCount(rates.aborts[i]), " ",
                    std::string(txn::AbortReasonName(static_cast<txn::AbortReason>(i))));
  }
  return text.empty() ? "none" : text;
}

// Work requests and microseconds.
std::pair<double, double> PerBegin(const txn::BeginCosts& costs) {
  const double begins = std::max<double>(1, static_cast<double>(costs.begins));
  const double timed = std::max<double>(1, static_cast<double>(costs.timed));
  return {static_cast<double>(costs.verbs) / begins, static_cast<double>(costs.ns) / 1'000 / timed};
}

std::string HistoryText(const char* name, const txn::CheckReport& report) {
  std::string text = absl::StrFormat("history, %s: %s of %s transactions, %s operations\n", name,
                                     report.ok() ? "no anomaly" : "NOT SNAPSHOT ISOLATION",
                                     FormatCount(report.transactions), FormatCount(report.operations));
  if (!report.ok()) text += report.ToString() + "\n";
  return text;
}

}  // namespace

CheckoutRun::CheckoutRun(CheckoutBackend& backend, const CheckoutRunOptions& options)
    : backend_(backend),
      options_(options),
      driver_({&backend.fabric()}, options.checkout, options.driver,
              [this](uint32_t) { return backend_.OpenSession(); }) {}

CheckoutRun::~CheckoutRun() = default;

absl::Status CheckoutRun::Load(ProgressLine& progress) {
  NAM_RETURN_IF_ERROR(backend_.MakeTables(options_.checkout, options_.tables));
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, backend_.OpenSession());
  const uint64_t products = options_.checkout.products;
  NAM_ASSIGN_OR_RETURN(loaded_until_, tpcw::LoadProducts(options_.checkout, *session, [&](uint64_t rows) {
                         progress.Show(absl::StrCat("loading products: ", FormatCount(rows), " of ",
                                                    FormatCount(products), " rows"));
                         return !stop_.load(std::memory_order_relaxed);
                       }));
  progress.Clear();
  return absl::OkStatus();
}

void CheckoutRun::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  driver_.Stop();
}

absl::StatusOr<CheckoutOutcome> CheckoutRun::Run(const std::function<void(const tpcw::CheckoutRates&)>& line,
                                                 ProgressLine& progress) {
  CheckoutOutcome outcome;
  driver_.SetLoadedUntil(loaded_until_);
  NAM_ASSIGN_OR_RETURN(outcome.rates, driver_.Run(line));
  outcome.torn_rows = driver_.torn_rows();
  outcome.begins = driver_.begin_costs();
  progress.Show("checking stocks, orders and their lines");
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, backend_.OpenSession());
  NAM_ASSIGN_OR_RETURN(outcome.invariants, tpcw::CheckInvariants(options_.checkout, driver_.orders(),
                                                                 kAbortedLookedUp, *session));
  if (options_.check_history) {
    progress.Show("checking the history");
    const txn::CheckOptions check{.loaded_until = loaded_until_};
    outcome.timestamps = txn::CheckTimestamps(driver_.histories(), check);
    outcome.dependencies = txn::CheckDependencies(driver_.histories(), check);
  }
  progress.Clear();
  return outcome;
}

std::string CheckoutLine(const tpcw::CheckoutRates& rates) {
  return absl::StrFormat("%4.0f s %12s committed/s   p50 %.1f us   p99 %.1f us   aborts: %s", rates.elapsed_s,
                         FormatCount(static_cast<uint64_t>(rates.committed_per_s)), rates.p50_us,
                         rates.p99_us, AbortsText(rates));
}

session::ResultSet CheckoutTable(const std::vector<tpcw::CheckoutRates>& lines) {
  session::ResultSet table;
  table.columns = {{"seconds", Type::Decimal(1)},
                   {"committed_per_s", Type::Integer()},
                   {"p50_us", Type::Decimal(1)},
                   {"p99_us", Type::Decimal(1)},
                   {"aborts", Type::String()}};
  const auto tenths = [](double number) { return Value::Decimal(std::llround(number * 10), 1); };
  for (const tpcw::CheckoutRates& line : lines) {
    table.rows.push_back({tenths(line.elapsed_s), Value::Integer(std::llround(line.committed_per_s)),
                          tenths(line.p50_us), tenths(line.p99_us), Value::String(AbortsText(line))});
  }
  return table;
}

std::string CheckoutSummary(const CheckoutOutcome& outcome) {
  const tpcw::CheckoutRates& rates = outcome.rates;
  std::string text = absl::StrFormat(
      "%s checkouts in %.1f s: %s committed/s; latency p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f us\n"
      "aborts: %s\n",
      FormatCount(rates.committed), rates.elapsed_s,
      FormatCount(static_cast<uint64_t>(rates.committed_per_s)), rates.p50_us, rates.p90_us, rates.p99_us,
      rates.p999_us, AbortsText(rates));
  if (outcome.begins.begins > 0) {
    absl::StrAppendFormat(&text, "a snapshot: %.1f work requests, %.2f us\n", PerBegin(outcome.begins).first,
                          PerBegin(outcome.begins).second);
  }
  if (outcome.timestamps.has_value()) text += HistoryText("by timestamps", *outcome.timestamps);
  if (outcome.dependencies.has_value()) text += HistoryText("by dependencies", *outcome.dependencies);
  absl::StrAppend(&text,
                  outcome.invariants.ok() && outcome.torn_rows == 0 ? "checkout: " : "checkout WRONG: ",
                  outcome.invariants.ToString(), "\n");
  return text;
}

Json CheckoutRatesJson(const tpcw::CheckoutRates& rates) {
  Json json{{"elapsed_s", InThousandths(rates.elapsed_s)},
            {"committed", rates.committed},
            {"committed_per_s", InThousandths(rates.committed_per_s)},
            {"p50_us", InThousandths(rates.p50_us)},
            {"p90_us", InThousandths(rates.p90_us)},
            {"p99_us", InThousandths(rates.p99_us)},
            {"p999_us", InThousandths(rates.p999_us)}};
  Json& aborts = json["aborts"] = Json::object();
  for (size_t i = 0; i < txn::kAbortReasons; ++i) {
    aborts[std::string(txn::AbortReasonName(static_cast<txn::AbortReason>(i)))] = rates.aborts[i];
  }
  return json;
}

Json CheckoutSummaryJson(const CheckoutOutcome& outcome) {
  Json json = CheckoutRatesJson(outcome.rates);
  json["orders"] = outcome.invariants.orders;
  json["begin_work_requests"] = InThousandths(PerBegin(outcome.begins).first);
  json["begin_us"] = InThousandths(PerBegin(outcome.begins).second);
  json["invariants_ok"] = outcome.invariants.ok() && outcome.torn_rows == 0;
  if (outcome.timestamps.has_value()) {
    json["history_transactions"] = outcome.timestamps->transactions;
    json["history_anomalies"] = outcome.timestamps->anomalies.size() + outcome.dependencies->anomalies.size();
  }
  return json;
}

}  // namespace nam
