#include "cli/demo.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/memory_room.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"
#include "workload/benchmark_data.h"
#include "workload/benchmark_queries.h"
#include "workload/checkout_run.h"

namespace nam::cli {
namespace {

constexpr uint64_t kProducts = 10'000;
constexpr uint64_t kCheckoutsMax = 300'000;  // bounds their memory
constexpr int64_t kCheckoutUs = 2'000'000;

/// The demo's work as a client of the cluster: one thread runs it, another one may cancel it.
class DemoWork final : public ClusterWork {
 public:
  DemoWork(const DemoOptions& options, ClusterOptions cluster)
      : options_(options), cluster_(std::move(cluster)) {
    source_.scale_factor = options.scale_factor;
    source_.seed = options.seed;
  }

  void Cancel() override {
    cancelled_ = true;
    const MutexLock lock(session_mutex_);
    if (session_ != nullptr) session_->Cancel();
    if (checkout_ != nullptr) checkout_->Stop();
  }

  absl::Status Run() override {
    NAM_ASSIGN_OR_RETURN(const auto attachment, AttachToCluster(cluster_));
    NAM_RETURN_IF_ERROR(Load(*attachment));
    NAM_ASSIGN_OR_RETURN(outcomes_, RunAll(*attachment));
    NAM_RETURN_IF_ERROR(Check(*attachment, outcomes_));
    return CheckOut(*attachment);
  }

  /// After Run.
  const std::vector<QueryOutcome>& outcomes() const { return outcomes_; }
  const std::vector<tpcw::CheckoutRates>& checkout_lines() const { return checkout_lines_; }
  const CheckoutOutcome& checkout() const { return checkout_outcome_; }

 private:
  void Say(const std::string& text) {
    progress_.Clear();
    std::cout << text << std::endl;
  }

  absl::Status Load(catalog::Attachment& attachment) {
    const Clock& clock = attachment.fabric().clock();
    const int64_t start_ns = clock.NowNs();
    partitioner::LoadOptions load{.threads = source_.threads_used()};
    NAM_ASSIGN_OR_RETURN(const auto loaded,
                         LoadBenchmark(attachment, SsbBenchmark(), source_, load, progress_, cancelled_));
    uint64_t rows = 0, bytes = 0;
    for (const LoadedTable& table : loaded) {
      rows += table.rows;
      for (const proto::ServerUsage& usage : table.table.usage()) bytes += usage.bytes();
    }
    Say(absl::StrFormat("Loaded SSB at scale factor %g: %s rows, %s, in %.1f s.", options_.scale_factor,
                        FormatCount(rows), FormatBytes(bytes),
                        static_cast<double>(clock.NowNs() - start_ns) / 1e9));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<QueryOutcome>> RunAll(catalog::Attachment& attachment) {
    NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
    SetSession(session.get());
    NAM_ASSIGN_OR_RETURN(const auto queries, SelectQueries(SsbBenchmark(), {}, {}));
    auto outcomes =
        RunQueries(*session, queries, options_.repeat, progress_, [this] { return cancelled_.load(); });
    SetSession(nullptr);
    return outcomes;
  }

  absl::Status Check(catalog::Attachment& attachment, std::vector<QueryOutcome>& outcomes) {
    Say("Ran the 13 queries; checking every answer against SQLite.");
    NAM_ASSIGN_OR_RETURN(const auto oracle, LoadOracle(attachment.fabric(), SsbBenchmark(), source_,
                                                       SsbBenchmark().queries({}), progress_, cancelled_));
    return CheckQueries(*oracle, SsbBenchmark(), progress_, outcomes);
  }

  /// Transactions on record tables of the same cluster.
  absl::Status CheckOut(catalog::Attachment& attachment) {
    CheckoutRunOptions run_options;
    run_options.checkout.products = kProducts;
    run_options.driver.clients = static_cast<uint32_t>(std::min(source_.threads_used(), 4));
    run_options.driver.run_us = kCheckoutUs;
    run_options.driver.transactions = kCheckoutsMax;
    run_options.driver.interval_us = kCheckoutUs / 4;
    run_options.driver.seed = options_.seed;
    run_options.tables.expected_orders = kCheckoutsMax / 4;
    RsiBackend backend(attachment);
    CheckoutRun run(backend, run_options);
    Say(absl::StrFormat("Checkout: %d clients buy three of %s products in each transaction.",
                        run_options.driver.clients, FormatCount(kProducts)));
    SetCheckout(&run);
    absl::Status status = cancelled_ ? absl::CancelledError("interrupted") : run.Load(progress_);
    if (status.ok()) {
      auto outcome =
          run.Run([this](const tpcw::CheckoutRates& rates) { checkout_lines_.push_back(rates); }, progress_);
      status = outcome.status();
      if (outcome.ok()) checkout_outcome_ = *std::move(outcome);
    }
    SetCheckout(nullptr);
    return status;
  }

  void SetCheckout(CheckoutRun* run) {
    const MutexLock lock(session_mutex_);
    checkout_ = run;
  }

  void SetSession(session::Session* session) {
    const MutexLock lock(session_mutex_);
    session_ = session;
  }

  const DemoOptions& options_;
  const ClusterOptions cluster_;
  DataSource source_;
  ProgressLine progress_;
  std::vector<QueryOutcome> outcomes_;
  std::atomic<bool> cancelled_ = false;
  Mutex session_mutex_;
  session::Session* session_ ABSL_GUARDED_BY(session_mutex_) = nullptr;  // of the running queries
  CheckoutRun* checkout_ ABSL_GUARDED_BY(session_mutex_) = nullptr;      // the running one
  std::vector<tpcw::CheckoutRates> checkout_lines_;
  CheckoutOutcome checkout_outcome_;
};

int Conclude(const DemoWork& work) {
  const std::vector<QueryOutcome>& outcomes = work.outcomes();
  std::cout << Render(QueriesReport(outcomes), {.footer = false})
            << Render(CheckoutTable(work.checkout_lines()), {.footer = false})
            << CheckoutSummary(work.checkout());
  const size_t correct = CorrectQueries(outcomes), all = SsbBenchmark().queries({}).size();
  std::cout << correct << " of " << all << " queries correct" << std::endl;
  return correct == all && work.checkout().ok() ? kExitOk : kExitCheckFailed;
}

/// Runs with the cluster up. Stops it in every case.
int WorkOn(LocalCluster& cluster, const DemoOptions& options, StopSignals& stop,
           const std::string& directory) {
  DemoWork work(options, {.catalog = cluster.catalog_address(), .secret_file = cluster.secret_file()});
  const absl::Status status = RunClusterWork(cluster, work, stop, directory);
  return status.ok() ? Conclude(work) : ReportFailure(status);
}

absl::Status ValidateDemo(const DemoOptions& options) {
  if (options.repeat < 1) return absl::InvalidArgumentError("--repeat is at least 1");
  NAM_RETURN_IF_ERROR(fabric::ParseRealKind(options.fabric).status());
  return nam::Validate(DataSource{.scale_factor = options.scale_factor, .seed = options.seed});
}

int RunIn(const std::string& directory, const DemoOptions& options, StopSignals& stop) {
  const LocalClusterOptions local{
      .directory = directory,
      .name = "demo",
      .fabric = options.fabric,
      .memory_servers = options.memory_servers,
      .compute_servers = options.compute_servers,
      .memory_bytes = options.memory_bytes != 0
                          ? options.memory_bytes
                          : MemoryForTables(SsbBenchmark().bytes_per_scale_factor * options.scale_factor,
                                            options.memory_servers),
      .scratch_bytes = options.scratch_bytes,
      .threads = options.threads,
      .timestamps = options.timestamps};
  absl::Status status = nam::Validate(local);
  if (status.ok()) status = CheckMemoryRoom(local.memory_bytes, local.memory_servers);
  if (status.ok()) status = CheckScratch(local.memory_bytes, local.scratch_bytes);
  if (!status.ok()) {
    ReportFailure(status);
    return kExitUsage;
  }
  const auto cluster = LocalCluster::Start(local, stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  std::cout << "A private cluster over " << options.fabric << ": "
            << CountOf(static_cast<uint64_t>(options.memory_servers), "memory server") << " of up to "
            << FormatBytes(local.memory_bytes) << ", "
            << CountOf(static_cast<uint64_t>(options.compute_servers), "compute server") << "." << std::endl;
  return WorkOn(**cluster, options, stop, directory);
}

}  // namespace

int RunDemo(const DemoOptions& options) {
  if (const absl::Status status = ValidateDemo(options); !status.ok()) {
    ReportFailure(status);
    return kExitUsage;
  }
  StopSignals stop;  // before there is anything to leave behind
  const auto directory = CreateTemporaryDirectory("nam-demo-");
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunIn(*directory, options, stop);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::cli
