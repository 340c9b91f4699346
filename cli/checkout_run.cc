#include "cli/checkout_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cli/units.h"
#include "txn/rsi_session.h"

namespace nam::cli {
namespace {

constexpr uint64_t kAbortedLookedUp = 1'000;  // of each client

double Rounded(double value) {
  return std::round(value * 1000) / 1000;
}

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
  return {static_cast<double>(costs.verbs) / begins, static_cast<double>(costs.ns) / 1'000 / begins};
}

std::string HistoryText(const char* name, const txn::CheckReport& report) {
  std::string text = absl::StrFormat("history, %s: %s of %s transactions, %s operations\n", name,
                                     report.ok() ? "no anomaly" : "NOT SNAPSHOT ISOLATION",
                                     FormatCount(report.transactions), FormatCount(report.operations));
  if (!report.ok()) text += report.ToString() + "\n";
  return text;
}

}  // namespace

CheckoutRun::CheckoutRun(catalog::Attachment& attachment, const CheckoutRunOptions& options)
    : attachment_(attachment),
      options_(options),
      tables_(attachment),
      driver_(attachment.fabric(), options.checkout, options.driver,
              [this](uint32_t) { return OpenSession(); }) {}

CheckoutRun::~CheckoutRun() = default;

absl::StatusOr<std::unique_ptr<txn::Session>> CheckoutRun::OpenSession() {
  txn::RsiOptions options;
  // A checkout buys whatever is there at its snapshot; it need not see the last one of the same client.
  options.sees_own_commits = false;
  return txn::OpenRsiSession(tables_, options);
}

absl::Status CheckoutRun::MakeTables() {
  for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(options_.checkout)) {
    if (options_.replace) {
      const absl::Status dropped = attachment_.catalog().DropTable(schema.name);
      if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
    }
    uint64_t rows = options_.expected_orders;
    if (schema.name == tpcw::kProducts) rows = options_.checkout.products;
    if (schema.name == tpcw::kOrderLines) rows *= tpcw::kLinesPerOrder;
    const absl::Status made =
        txn::CreateTable(attachment_, {.name = schema.name,
                                       .row_bytes = static_cast<uint32_t>(schema.row_bytes),
                                       .key_bytes = static_cast<uint32_t>(schema.key_bytes),
                                       .versions = options_.versions,
                                       .expected_rows = rows});
    if (absl::IsAlreadyExists(made)) {
      return absl::AlreadyExistsError(
          absl::StrCat("table ", schema.name, " is there already; --replace drops checkout's tables first"));
    }
    NAM_RETURN_IF_ERROR(made);
  }
  return absl::OkStatus();
}

absl::Status CheckoutRun::Load(ProgressLine& progress) {
  NAM_RETURN_IF_ERROR(MakeTables());
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, OpenSession());
  const uint64_t products = options_.checkout.products;
  NAM_ASSIGN_OR_RETURN(loaded_until_, tpcw::LoadProducts(options_.checkout, *session, [&](uint64_t rows) {
                         progress.Show(absl::StrCat("loading products: ", FormatCount(rows), " of ",
                                                    FormatCount(products), " rows"));
                       }));
  progress.Clear();
  return absl::OkStatus();
}

void CheckoutRun::Stop() {
  driver_.Stop();
}

absl::StatusOr<CheckoutOutcome> CheckoutRun::Run(const std::function<void(const tpcw::CheckoutRates&)>& line,
                                                 ProgressLine& progress) {
  CheckoutOutcome outcome;
  NAM_ASSIGN_OR_RETURN(outcome.rates, driver_.Run(line));
  outcome.torn_rows = driver_.torn_rows();
  outcome.begins = driver_.begin_costs();
  progress.Show("checking stocks, orders and their lines");
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, OpenSession());
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
  Json json{{"elapsed_s", Rounded(rates.elapsed_s)},
            {"committed", rates.committed},
            {"committed_per_s", Rounded(rates.committed_per_s)},
            {"p50_us", Rounded(rates.p50_us)},
            {"p90_us", Rounded(rates.p90_us)},
            {"p99_us", Rounded(rates.p99_us)},
            {"p999_us", Rounded(rates.p999_us)}};
  Json& aborts = json["aborts"] = Json::object();
  for (size_t i = 0; i < txn::kAbortReasons; ++i) {
    aborts[std::string(txn::AbortReasonName(static_cast<txn::AbortReason>(i)))] = rates.aborts[i];
  }
  return json;
}

Json CheckoutSummaryJson(const CheckoutOutcome& outcome) {
  Json json = CheckoutRatesJson(outcome.rates);
  json["orders"] = outcome.invariants.orders;
  json["begin_work_requests"] = Rounded(PerBegin(outcome.begins).first);
  json["begin_us"] = Rounded(PerBegin(outcome.begins).second);
  json["invariants_ok"] = outcome.invariants.ok() && outcome.torn_rows == 0;
  if (outcome.timestamps.has_value()) {
    json["history_transactions"] = outcome.timestamps->transactions;
    json["history_anomalies"] = outcome.timestamps->anomalies.size() + outcome.dependencies->anomalies.size();
  }
  return json;
}

}  // namespace nam::cli
