#include "cli/checkout_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/interrupts.h"
#include "terminal/exit_codes.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"
#include "workload/checkout_run.h"
#include "workload/checkout_size.h"

namespace nam::cli {
namespace {

constexpr int kClientsMax = 10'000;               // each is a thread
constexpr uint64_t kExpectedPerSecond = 200'000;  // orders of a client, to reserve memory
constexpr uint64_t kExpectedMax = 2'000'000;

absl::StatusOr<CheckoutRunOptions> RunOptionsOf(const CheckoutCommandOptions& options) {
  const auto refuse = [](const std::string& why) { return absl::InvalidArgumentError(why); };
  if (options.clients < 1 || options.clients > kClientsMax)
    return refuse(absl::StrCat("--clients is 1 to ", kClientsMax));
  if (options.seconds <= 0 && options.transactions == 0) return refuse("--seconds is more than 0");
  if (options.versions < 1 || options.versions > 16) return refuse("--versions is 1 to 16");
  CheckoutRunOptions run;
  if (options.products != 0) run.checkout.products = options.products;  // otherwise FitCheckout's
  run.checkout.product_bytes = options.product_bytes;
  run.checkout.zipf_theta = options.zipf;
  NAM_RETURN_IF_ERROR(run.checkout.Validate());
  run.driver.clients = static_cast<uint32_t>(options.clients);
  run.driver.run_us = options.transactions != 0 ? 0 : static_cast<int64_t>(options.seconds * 1e6);
  run.driver.transactions = options.transactions;
  run.driver.seed = options.seed;
  run.driver.record_history = options.check || !options.history.empty();
  run.driver.history_dir = options.history;
  run.tables.versions = options.versions;
  run.tables.replace = options.replace;
  run.check_history = options.check;
  const uint64_t expected =
      options.transactions != 0
          ? options.transactions
          : static_cast<uint64_t>(options.clients * options.seconds * kExpectedPerSecond);
  run.tables.expected_orders = std::min(expected, kExpectedMax);
  return run;
}

Json CheckoutConfigJson(const CheckoutCommandOptions& options, uint64_t products) {
  return Json{{"clients", options.clients},
              {"seconds", options.seconds},
              {"transactions", options.transactions},
              {"products", products},
              {"product_bytes", options.product_bytes},
              {"versions", options.versions},
              {"zipf", options.zipf},
              {"seed", options.seed}};
}

/// Ctrl-C reaches the run: its load, or its clients.
class StopAtInterrupt final : public Cancellable {
 public:
  StopAtInterrupt(CheckoutRun& run, Interrupts& interrupts) : run_(run), interrupts_(interrupts) {
    interrupts_.SetTarget(this);
  }
  ~StopAtInterrupt() { interrupts_.SetTarget(nullptr); }
  void CancelFromSignal() override { run_.Stop(); }

 private:
  CheckoutRun& run_;
  Interrupts& interrupts_;
};

/// Drops the tables that a run has made if it fails or is interrupted.
class TablesOfARun {
 public:
  explicit TablesOfARun(CheckoutBackend& backend) : backend_(backend) {}
  ~TablesOfARun() {
    if (!kept_) backend_.DropTables();
  }
  void Keep() { kept_ = true; }

 private:
  CheckoutBackend& backend_;
  bool kept_ = false;
};

int RunOn(CheckoutBackend& backend, const CheckoutCommandOptions& options,
          const CheckoutRunOptions& run_options, bool table, Interrupts& interrupts) {
  TablesOfARun tables(backend);
  CheckoutRun run(backend, run_options);
  const StopAtInterrupt stop(run, interrupts);
  ProgressLine progress;
  if (const absl::Status loaded = run.Load(progress); !loaded.ok()) return ReportFailure(loaded);
  Json rows = Json::array();
  const auto outcome = run.Run(
      [&](const tpcw::CheckoutRates& rates) {
        if (table) std::cout << CheckoutLine(rates) << std::endl;
        rows.push_back(CheckoutRatesJson(rates));
      },
      progress);
  if (!outcome.ok()) return ReportFailure(outcome.status());
  if (table) {
    std::cout << CheckoutSummary(*outcome);
  } else {
    JsonReport report{.command = "checkout"};
    report.config = CheckoutConfigJson(options, run_options.checkout.products);
    report.rows = std::move(rows);
    report.summary = CheckoutSummaryJson(*outcome);
    std::cout << report.ToString();
  }
  if (interrupts.Seen()) {
    std::cerr << "nam: interrupted; the run's tables are dropped again\n";
    return outcome->ok() ? kExitInterrupted : kExitCheckFailed;
  }
  tables.Keep();  // even wrong ones, for inspection
  if (!outcome->ok()) return kExitCheckFailed;
  if (options.transactions == 0 && outcome->rates.committed >= run_options.driver.transactions) {
    std::cerr << "nam: ended after " << FormatCount(outcome->rates.committed)
              << " checkouts, which fill the memory servers; `nam up --memory=SIZE` gives them more\n";
  }
  return kExitOk;
}

absl::StatusOr<CheckoutRunOptions> FitToCluster(const CheckoutCommandOptions& options,
                                                const CheckoutRunOptions& run,
                                                catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeForCheckout(attachment, options.replace));
  return FitCheckout(run, options.products, free_bytes);
}

/// Before any table is dropped.
absl::Status MakeHistoryDirectory(const std::string& path) {
  std::error_code error;
  if (!path.empty()) std::filesystem::create_directories(path, error);
  if (!error || std::filesystem::is_directory(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--history=", path, ": the directory cannot be made: ", error.message()));
}

}  // namespace

int RunCheckout(const CheckoutCommandOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  const auto refuse = [](const absl::Status& status) {
    ReportFailure(status);
    return kExitUsage;
  };
  if (!format.ok()) return refuse(format.status());
  if (*format != OutputFormat::kTable && *format != OutputFormat::kJson) {
    return refuse(absl::InvalidArgumentError("--format is table or json"));
  }
  const auto run_options = RunOptionsOf(options);
  if (!run_options.ok()) return refuse(run_options.status());
  if (const absl::Status made = MakeHistoryDirectory(options.history); !made.ok()) return refuse(made);
  Interrupts interrupts;
  const bool table = *format == OutputFormat::kTable;
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const auto fitted = FitToCluster(options, *run_options, **attachment);
  if (!fitted.ok()) return ReportFailure(fitted.status());
  RsiBackend backend(**attachment);
  return RunOn(backend, options, *fitted, table, interrupts);
}

}  // namespace nam::cli
