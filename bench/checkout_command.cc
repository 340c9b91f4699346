#include "bench/checkout_command.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/checkout_figure.h"
#include "bench/checkout_loop.h"
#include "bench/checkout_sqlite.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "terminal/table_printer.h"
#include "workload/checkout_run.h"

namespace nam::bench {
namespace {

constexpr uint64_t kExpectedOrders = 1'000'000;
constexpr uint64_t kProducts = 1'000'000;
constexpr char kSim[] = "sim";

const char* const kSides[] = {"bare loop", "equal loop", "rsi",     "rsi, 4 versions",
                              "SQLite",    "2pc-tcp",    "2pc-send"};

uint32_t ClientsOf(const CheckoutBenchOptions& options) {
  return options.clients.empty() ? 2 : options.clients[0];
}
uint64_t ProductsOf(const CheckoutBenchOptions& options) {
  return options.products == 0 ? kProducts : options.products;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// All contenders in turn, round after round.
class CheckoutWork final : public ClusterWork {
 public:
  CheckoutWork(const CheckoutBenchOptions& options, ClusterOptions cluster)
      : options_(options), cluster_(std::move(cluster)) {
    checkout_.products = ProductsOf(options);
    checkout_.product_bytes = options.product_bytes;
    checkout_.zipf_theta = options.zipf;
    driver_.clients = ClientsOf(options);
    driver_.run_us = static_cast<int64_t>(options.seconds * 1e6);
    driver_.seed = options.seed;
  }
  void Cancel() override { cancelled_ = true; }
  absl::Status Run() override {
    NAM_RETURN_IF_ERROR(checkout_.Validate());
    NAM_ASSIGN_OR_RETURN(attachment_, AttachToCluster(cluster_));
    for (int round = 0; round < options_.repeat; ++round) {
      for (const char* side : kSides) {
        if (cancelled_) return absl::CancelledError("interrupted");
        progress_.Show(absl::StrCat("round ", round + 1, " of ", options_.repeat, ": ", side));
        NAM_ASSIGN_OR_RETURN(const double rate, RunSide(side));
        rates_[side].push_back(rate);
      }
    }
    progress_.Clear();
    return absl::OkStatus();
  }

  double MedianOf(const std::string& side) const { return Median(rates_.at(side)); }
  const std::map<std::string, std::vector<double>>& rates() const { return rates_; }
  bool adds_up() const { return adds_up_; }

 private:
  absl::StatusOr<double> RunSide(const std::string& side) {
    if (side == "bare loop") return RunLoop(CheckoutLoop::Work::kMemory);
    if (side == "equal loop") return RunLoop(CheckoutLoop::Work::kEqual);
    if (side == "SQLite") return RunSqlite();
    if (side == "rsi") return RunRsi(1);
    if (side == "rsi, 4 versions") return RunRsi(4);
    using Kind = txn::two_phase::TransportOptions::Kind;
    return RunTwoPhase(side == "2pc-tcp" ? Kind::kSocket : Kind::kSend);
  }

  absl::StatusOr<double> RunLoop(CheckoutLoop::Work work) {
    if (loop_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(
          loop_, CheckoutLoop::Load(attachment_->fabric(), {.checkout = checkout_,
                                                            .threads = static_cast<int>(ClientsOf(options_)),
                                                            .seed = driver_.seed,
                                                            .run_us = driver_.run_us}));
    }
    return loop_->Run(work).per_s;
  }

  absl::StatusOr<double> RunSqlite() {
    if (sqlite_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(sqlite_, CheckoutSqlite::Load({.checkout = checkout_}));
    }
    return sqlite_->Run(attachment_->fabric().clock(), driver_.run_us);
  }

  absl::StatusOr<double> RunRsi(uint32_t versions) {
    RsiBackend backend(*attachment_);
    return RunEngine(backend, versions);
  }

  absl::StatusOr<double> RunTwoPhase(txn::two_phase::TransportOptions::Kind kind) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<TwoPhaseBackend> backend,
                         TwoPhaseBackend::Open({.transport = kind, .fabric = attachment_->fabric().kind()}));
    return RunEngine(*backend, 1);
  }

  absl::StatusOr<double> RunEngine(CheckoutBackend& backend, uint32_t versions) {
    CheckoutRun run(backend,
                    {.checkout = checkout_,
                     .driver = driver_,
                     .tables = {.versions = versions, .replace = true, .expected_orders = kExpectedOrders}});
    NAM_RETURN_IF_ERROR(run.Load(progress_));
    NAM_ASSIGN_OR_RETURN(const CheckoutOutcome outcome, run.Run(nullptr, progress_));
    adds_up_ = adds_up_ && outcome.ok();
    return outcome.rates.committed_per_s;
  }

  const CheckoutBenchOptions& options_;
  const ClusterOptions cluster_;
  tpcw::CheckoutOptions checkout_;
  tpcw::DriverOptions driver_;
  ProgressLine progress_;
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<CheckoutLoop> loop_;
  std::unique_ptr<CheckoutSqlite> sqlite_;
  std::map<std::string, std::vector<double>> rates_;  // commits per second, by contender
  bool adds_up_ = true;
};

double Ratio(double a, double b) {
  return std::round(a / b * 1000) / 1000;
}

Json SummaryOf(const CheckoutWork& work) {
  const double rsi = work.MedianOf("rsi");
  return {{"rsi_committed_per_s", std::round(rsi)},
          {"rsi_over_equal_loop", Ratio(rsi, work.MedianOf("equal loop"))},
          {"rsi_over_bare_loop", Ratio(rsi, work.MedianOf("bare loop"))},
          {"rsi_over_sqlite", Ratio(rsi, work.MedianOf("SQLite"))},
          {"rsi_over_2pc_tcp", Ratio(rsi, work.MedianOf("2pc-tcp"))},
          {"rsi_over_2pc_send", Ratio(rsi, work.MedianOf("2pc-send"))},
          {"four_versions_over_one", Ratio(work.MedianOf("rsi, 4 versions"), rsi)},
          {"adds_up", work.adds_up()}};
}

int Conclude(const CheckoutBenchOptions& options, bool json, const CheckoutWork& work) {
  const Json summary = SummaryOf(work);
  if (json) {
    JsonReport report{.command = "bench checkout"};
    report.config = {{"fabric", options.fabric},
                     {"memory_servers", options.memory_servers},
                     {"clients", ClientsOf(options)},
                     {"seconds", options.seconds},
                     {"repeat", options.repeat},
                     {"products", ProductsOf(options)},
                     {"product_bytes", options.product_bytes},
                     {"zipf", options.zipf},
                     {"seed", options.seed}};
    for (const char* side : kSides) {
      report.rows.push_back({{"side", side},
                             {"committed_per_s", std::round(work.MedianOf(side))},
                             {"rounds_per_s", work.rates().at(side)}});
    }
    report.summary = summary;
    std::cout << report.ToString();
  } else {
    session::ResultSet table;
    table.columns = {{"side", Type::String()}, {"committed_per_s", Type::Integer()}};
    for (const char* side : kSides) {
      table.rows.push_back({Value::String(side), Value::Integer(std::llround(work.MedianOf(side)))});
    }
    std::cout << Render(table, {.footer = false});
    for (const auto& [name, value] : summary.items()) std::cout << name << ": " << value << "\n";
  }
  std::cout.flush();
  return work.adds_up() ? kExitOk : kExitCheckFailed;
}

int RunIn(const std::string& directory, const CheckoutBenchOptions& options, bool json) {
  StopSignals stop;
  // Rows with 4 versions, their order lines, and the old tables until they are dropped.
  const uint64_t rows_bytes = ProductsOf(options) * (options.product_bytes + 64) * 5;
  const uint64_t memory_bytes =
      (rows_bytes + (uint64_t{6} << 30)) / static_cast<uint64_t>(std::max(1, options.memory_servers));
  const auto cluster = LocalCluster::Start({.directory = directory,
                                            .name = "bench",
                                            .fabric = options.fabric,
                                            .memory_servers = options.memory_servers,
                                            .compute_servers = 1,
                                            .memory_bytes = memory_bytes / 4096 * 4096},
                                           stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  CheckoutWork work(options,
                    {.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()});
  const absl::Status status = RunClusterWork(**cluster, work, stop, directory);
  return status.ok() ? Conclude(options, json, work) : ReportFailure(status);
}

absl::Status Validate(const CheckoutBenchOptions& options) {
  if (options.fabric == kSim) return CheckFigureOptions(options);
  if (options.repeat < 1 || options.repeat > 1'000)
    return absl::InvalidArgumentError("--repeat is 1 to 1000");
  if (options.clients.size() > 1 || ClientsOf(options) < 1 || ClientsOf(options) > 256)
    return absl::InvalidArgumentError("--clients is one number, 1 to 256; several with --fabric=sim");
  if (!options.html.empty()) return absl::InvalidArgumentError("--html goes with --fabric=sim");
  if (options.seconds <= 0) return absl::InvalidArgumentError("--seconds is more than 0");
  return absl::OkStatus();
}

}  // namespace

int RunCheckoutBench(const CheckoutBenchOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  const absl::Status valid = format.ok() ? Validate(options) : format.status();
  if (!valid.ok()) {
    ReportFailure(valid);
    return kExitUsage;
  }
  if (options.fabric == kSim) return RunCheckoutFigure(options);
  const auto directory = CreateTemporaryDirectory("nam-bench-");
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunIn(*directory, options, *format == OutputFormat::kJson);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::bench
