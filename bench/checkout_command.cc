#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/checkout_figure.h"
#include "bench/checkout_peers.h"
#include "bench/commands.h"
#include "bench/two_phase_backend.h"
#include "terminal/plot.h"
#include "workload/checkout_run.h"

namespace nam::bench {
namespace {

constexpr uint64_t kExpectedOrders = 1'000'000;
constexpr uint64_t kProducts = 1'000'000, kSimulatedProducts = 200'000;

const char* const kSides[] = {"equal loop", "rsi", "rsi, 4 versions", "SQLite", "2pc-tcp", "2pc-send"};

/// All contenders in turn, round after round.
class CheckoutWork {
 public:
  CheckoutWork(const CheckoutBenchOptions& options, Run& run)
      : options_(options), run_(run), checkout_(options.world.checkout) {
    driver_.clients = options.clients[0];
    driver_.run_us = static_cast<int64_t>(options.seconds * 1e6);
    driver_.seed = options.world.seed;
  }
  absl::Status RunOn(catalog::Attachment& attachment) {
    NAM_RETURN_IF_ERROR(checkout_.Validate());
    attachment_ = &attachment;
    for (int round = 0; round < options_.repeat; ++round) {
      for (const char* side : kSides) {
        if (!run_.Proceed(absl::StrCat("round ", round + 1, " of ", options_.repeat, ": ", side)))
          return absl::CancelledError("interrupted");
        NAM_ASSIGN_OR_RETURN(const double rate, RunSide(side));
        rates_[side].push_back(rate);
      }
    }
    loop_.reset();
    return absl::OkStatus();
  }

  double MedianOf(const std::string& side) const { return Median(rates_.at(side)); }
  const std::map<std::string, std::vector<double>>& rates() const { return rates_; }
  bool adds_up() const { return adds_up_; }

 private:
  absl::StatusOr<double> RunSide(const std::string& side) {
    if (side == "equal loop") return RunLoop();
    if (side == "SQLite") return RunSqlite();
    if (side == "rsi") return RunRsi(1);
    if (side == "rsi, 4 versions") return RunRsi(4);
    using Kind = two_phase::TransportOptions::Kind;
    return RunTwoPhase(side == "2pc-tcp" ? Kind::kSocket : Kind::kSend);
  }

  absl::StatusOr<double> RunLoop() {
    if (loop_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(
          loop_, CheckoutLoop::Load(attachment_->fabric(), {.checkout = checkout_,
                                                            .threads = static_cast<int>(options_.clients[0]),
                                                            .seed = driver_.seed,
                                                            .run_us = driver_.run_us}));
    }
    return loop_->Run().per_s;
  }

  absl::StatusOr<double> RunSqlite() {
    if (sqlite_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(sqlite_, CheckoutSqlite::Load(checkout_));
    }
    return sqlite_->Run(attachment_->fabric().clock(), driver_.run_us);
  }

  absl::StatusOr<double> RunRsi(uint32_t versions) {
    RsiBackend backend(*attachment_);
    return RunEngine(backend, versions);
  }

  absl::StatusOr<double> RunTwoPhase(two_phase::TransportOptions::Kind kind) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<TwoPhaseBackend> backend,
                         TwoPhaseBackend::Open({.transport = kind, .fabric = attachment_->fabric().kind()}));
    return RunEngine(*backend, 1);
  }

  absl::StatusOr<double> RunEngine(CheckoutBackend& backend, uint32_t versions) {
    CheckoutRun run(backend,
                    {.checkout = checkout_,
                     .driver = driver_,
                     .tables = {.versions = versions, .replace = true, .expected_orders = kExpectedOrders}});
    NAM_RETURN_IF_ERROR(run.Load(run_.progress()));
    NAM_ASSIGN_OR_RETURN(const CheckoutOutcome outcome, run.Run(nullptr, run_.progress()));
    adds_up_ = adds_up_ && outcome.ok();
    return outcome.rates.committed_per_s;
  }

  const CheckoutBenchOptions& options_;
  Run& run_;
  const tpcw::CheckoutOptions checkout_;
  tpcw::DriverOptions driver_;
  catalog::Attachment* attachment_ = nullptr;  // while RunOn runs
  std::unique_ptr<CheckoutLoop> loop_;
  std::unique_ptr<CheckoutSqlite> sqlite_;
  std::map<std::string, std::vector<double>> rates_;  // commits per second, by contender
  bool adds_up_ = true;
};

Report ReportOf(const CheckoutBenchOptions& options, const CheckoutWork& work) {
  const double rsi = work.MedianOf("rsi");
  const auto over = [&](const char* side) { return Rounded(rsi / work.MedianOf(side)); };
  Report report{.config = {{"clients", options.clients[0]}},
                .summary = {{"rsi_committed_per_s", std::round(rsi)},
                            {"rsi_over_equal_loop", over("equal loop")},
                            {"rsi_over_sqlite", over("SQLite")},
                            {"rsi_over_2pc_tcp", over("2pc-tcp")},
                            {"rsi_over_2pc_send", over("2pc-send")},
                            {"four_versions_over_one", Rounded(work.MedianOf("rsi, 4 versions") / rsi)},
                            {"adds_up", work.adds_up()}},
                .remarks = "Medians of the rounds.\n",
                .correct = work.adds_up()};
  BarPlot plot{
      .title = "Checkouts a second", .y_label = "committed/s", .categories = {}, .series = {{"median", {}}}};
  for (const char* side : kSides) {
    const std::vector<double>& rates = work.rates().at(side);
    report.rows.push_back(
        {{"side", side}, {"committed_per_s", std::llround(Median(rates))}, {"rounds_per_s", rates}});
    plot.categories.push_back(side);
    plot.series[0].values.push_back(Median(rates));
    plot.series[0].spread.push_back(SpreadOf(rates));
  }
  report.charts = {SvgOf(plot)};
  return report;
}

class Checkout final : public Command {
 public:
  Checkout()
      : Command("checkout", "transactions, compared to a loop without any, SQLite and two-phase commit") {}

  std::vector<Option> Options() override {
    SimulatedCheckoutOptions& world = options_.world;
    return {Option::OneOf("--fabric", &options_.fabric, {"shm", "tcp", "verbs", "sim"},
                          "transport of the cluster; sim: a figure in virtual time"),
            {"--memory-servers", &options_.memory_servers, "number of memory servers"},
            Option::Within("--clients", &options_.clients, 1, 2'000,
                           "threads per contender (2); sim: all of these (1,2,5,10,20,…,140)"),
            Option::Within("--seconds", &options_.seconds, 0.001, 86'400, "seconds per contender and round"),
            Option::Within("--repeat", &options_.repeat, 1, 1'000, "rounds"),
            {"--products", &world.checkout.products, "products to buy from; 0: 1,000,000, in sim 200,000"},
            {"--product-bytes", &world.checkout.product_bytes, "size of a product's row"},
            {"--zipf", &world.checkout.zipf_theta, "skew of the products' popularity, below 1; 0: uniform"},
            {"--seed", &world.seed, "seed of the purchases"},
            {"--generation", &options_.generation, "sim: fdr, edr, hdr, ndr, or a model's file"},
            Option::OneOf("--protocols", &options_.protocols, {kRsi, kTwoPhaseSend, kTwoPhaseTcp},
                          "sim: any of rsi,2pc-send,2pc-tcp (all)"),
            Option::Within("--row-servers", &world.row_servers, 1, 60,
                           "sim: servers for rows, in addition to the one for the transaction state"),
            Option::Within("--client-machines", &world.client_machines, 1, 256, "sim: client machines"),
            Option::Within("--participants", &world.participants, 1, 60,
                           "sim: threads of two-phase commit's servers"),
            Option::Within("--coordinators", &world.coordinators, 1, 20,
                           "sim: threads of its transaction manager's machine")};
  }
  bool has_charts() const override { return true; }
  bool simulated() const override { return options_.fabric == "sim"; }
  absl::Status Check() override {
    if (options_.world.checkout.products == 0)
      options_.world.checkout.products = simulated() ? kSimulatedProducts : kProducts;
    if (simulated()) return CheckFigureOptions(options_);
    if (options_.clients.empty()) options_.clients = {2};
    if (options_.clients.size() > 1 || options_.clients[0] > 256)
      return absl::InvalidArgumentError("--clients is one number, 1 to 256; several with --fabric=sim");
    return absl::OkStatus();
  }
  absl::StatusOr<Report> Measure(Run& run) override {
    if (simulated()) return MeasureCheckoutFigure(options_, run);
    // Rows with 4 versions, their order lines, and the old tables until they are dropped.
    const uint64_t rows_bytes =
        options_.world.checkout.products * (options_.world.checkout.product_bytes + 64) * 5;
    const uint64_t memory_bytes =
        (rows_bytes + (uint64_t{6} << 30)) / static_cast<uint64_t>(std::max(1, options_.memory_servers));
    CheckoutWork work(options_, run);
    NAM_RETURN_IF_ERROR(run.InCluster(
        {.fabric = options_.fabric,
         .memory_servers = options_.memory_servers,
         .compute_servers = 1,
         .memory_bytes = memory_bytes / 4096 * 4096},
        [&](catalog::Attachment& attachment, const ClusterOptions&) { return work.RunOn(attachment); }));
    return ReportOf(options_, work);
  }

 private:
  CheckoutBenchOptions options_;
};

}  // namespace

std::unique_ptr<Command> CheckoutCommand() {
  return std::make_unique<Checkout>();
}

}  // namespace nam::bench
