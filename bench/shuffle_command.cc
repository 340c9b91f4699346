#include "bench/shuffle_command.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/rate_report.h"
#include "bench/shuffle_bench.h"
#include "bench/shuffle_report.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "simulation/cluster.h"
#include "ssb/generator.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "terminal/table_printer.h"
#include "workload/benchmark.h"

namespace nam::bench {
namespace {

constexpr char kCommand[] = "bench shuffle";
constexpr char kSim[] = "sim";
constexpr char kSecret[] = "simulated";
constexpr uint32_t kServersMost = 64;
constexpr uint32_t kThreadsMost = 64;
constexpr uint32_t kSimulatedServers = 8;
constexpr uint32_t kSimulatedThreads = 10;  // per server, as in I-Store's experiment
constexpr uint64_t kRegionBytes = uint64_t{64} << 20;

/// The parsed options.
struct Plan {
  OutputFormat format = OutputFormat::kTable;
  bool simulated = false;
  fabric::Kind kind = fabric::Kind::kShm;
  fabric::sim::NicModel nic;
  int memory_servers = 2;
  ShuffleBench::Options bench;
  uint32_t servers_most() const { return *std::max_element(bench.servers.begin(), bench.servers.end()); }
};

absl::Status CheckNumbers(const ShuffleBenchOptions& options) {
  for (const uint32_t tables : options.tables) {
    if (tables < 2 || tables > 4) return absl::InvalidArgumentError("--tables is 2, 3 or 4");
  }
  for (const uint32_t servers : options.compute_servers) {
    if (servers < 1 || servers > kServersMost)
      return absl::InvalidArgumentError(absl::StrCat("--compute-servers is 1 to ", kServersMost));
  }
  if (options.memory_servers < 0 || options.memory_servers > static_cast<int>(kServersMost))
    return absl::InvalidArgumentError(absl::StrCat("--memory-servers is 1 to ", kServersMost));
  if (options.threads > kThreadsMost)
    return absl::InvalidArgumentError(absl::StrCat("--threads is 0 to ", kThreadsMost));
  if (options.fan_out > 32) return absl::InvalidArgumentError("--fan-out is 1 to 32");
  if (options.repeat < 1 || options.repeat > 1'000)
    return absl::InvalidArgumentError("--repeat is 1 to 1000");
  if (options.batch_bytes < 1024 || options.batch_bytes > fabric::kMaxSendBytes ||
      options.batch_bytes % 64 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch-bytes is 1024 to ", fabric::kMaxSendBytes, " in steps of 64"));
  }
  if (options.multicast != "auto" && options.multicast != "on" && options.multicast != "off")
    return absl::InvalidArgumentError("--multicast is auto, on or off");
  if (options.tuples != "narrow" && options.tuples != "whole")
    return absl::InvalidArgumentError("--tuples is narrow or whole");
  if (options.credits < 2 || options.credits > 64 || options.credits % 2 != 0)
    return absl::InvalidArgumentError("--credits is 2 to 64, and even");
  return absl::OkStatus();
}

absl::StatusOr<Plan> MakePlan(const ShuffleBenchOptions& options) {
  NAM_RETURN_IF_ERROR(CheckNumbers(options));
  Plan plan;
  NAM_ASSIGN_OR_RETURN(plan.format, ParseOutputFormat(options.format));
  plan.simulated = options.fabric == kSim;
  if (plan.simulated) {
    NAM_ASSIGN_OR_RETURN(plan.nic, fabric::sim::NicModel::Parse(options.generation));
  } else {
    NAM_ASSIGN_OR_RETURN(plan.kind, fabric::ParseRealKind(options.fabric));
  }
  ShuffleBench::Options& bench = plan.bench;
  bench.tables = options.tables.empty() ? std::vector<uint32_t>{2, 3, 4} : options.tables;
  bench.servers = options.compute_servers;
  if (bench.servers.empty()) bench.servers = {plan.simulated ? kSimulatedServers : 2};
  if (!plan.simulated && bench.servers.size() > 1)
    return absl::InvalidArgumentError("--compute-servers is one number; several with --fabric=sim");
  plan.memory_servers = options.memory_servers != 0 ? options.memory_servers
                        : plan.simulated            ? static_cast<int>(kSimulatedServers)
                                                    : 2;
  const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  bench.threads = options.threads != 0 ? options.threads
                  : plan.simulated     ? kSimulatedThreads
                                       : std::clamp(processors / bench.servers[0], 1u, kThreadsMost);
  bench.scale_factor = options.scale_factor == 0 ? 1 : options.scale_factor;
  NAM_RETURN_IF_ERROR(dataset::Validate(dataset::GeneratorOptions{.scale_factor = bench.scale_factor}));
  bench.seed = options.seed;
  bench.fan_out = options.fan_out != 0 ? options.fan_out : plan.servers_most() > 8 ? 16 : 8;
  bench.repeat = plan.simulated ? 1 : options.repeat;
  bench.multicast = options.multicast;
  bench.whole_tuples = options.tuples == "whole";
  bench.messages = {.legs = *std::max_element(bench.tables.begin(), bench.tables.end()) - 1,
                    .batch_bytes = static_cast<uint32_t>(options.batch_bytes),
                    .credits = options.credits};
  return plan;
}

std::string Remarks(const ShuffleBenchOptions& options, const Plan& plan) {
  return absl::StrFormat(
      "%s; %d memory servers, %d threads a compute server, SSB at scale factor %g split into %d by each key, "
      "%s of lineorder, batches of %d bytes. \"shuffle\" finds its rows in the compute servers, as a "
      "shared-nothing system "
      "does; the pipelined plan reads them from memory servers.\n",
      plan.simulated
          ? absl::StrCat("Virtual time, ", options.generation, ", ", plan.nic.ports, " ports a card")
          : absl::StrCat("Medians over ", options.fabric),
      plan.memory_servers, plan.bench.threads, plan.bench.scale_factor, plan.bench.fan_out,
      plan.bench.whole_tuples ? "whole tuples" : "the columns that are wanted", options.batch_bytes);
}

Json ConfigJson(const ShuffleBenchOptions& options, const Plan& plan) {
  Json config{{"fabric", options.fabric},
              {"memory_servers", plan.memory_servers},
              {"compute_servers", plan.bench.servers},
              {"threads", plan.bench.threads},
              {"scale_factor", plan.bench.scale_factor},
              {"seed", plan.bench.seed},
              {"fan_out", plan.bench.fan_out},
              {"batch_bytes", options.batch_bytes},
              {"credits", options.credits},
              {"multicast", options.multicast},
              {"tuples", options.tuples},
              {"repeat", plan.bench.repeat}};
  if (plan.simulated) {
    config["generation"] = options.generation;
    config["ports"] = plan.nic.ports;
  }
  return config;
}

int Conclude(const ShuffleBenchOptions& options, const Plan& plan, const ShuffleBench& bench) {
  Json rows = ShuffleRows(bench);
  Json summary = ShuffleSummary(bench);
  if (!options.html.empty()) {
    const absl::Status written = WritePage(options.html, ShufflePage(bench, Remarks(options, plan)));
    if (!written.ok()) return ReportFailure(written);
  }
  if (plan.format == OutputFormat::kJson) {
    std::cout << JsonReport{.command = kCommand,
                            .config = ConfigJson(options, plan),
                            .rows = std::move(rows),
                            .summary = std::move(summary)}
                     .ToString();
  } else {
    std::cout << Render(TableOf(rows), {.format = plan.format, .footer = false});
    if (plan.format == OutputFormat::kTable) {
      for (const auto& [name, value] : summary.items()) std::cout << name << ": " << value << "\n";
      std::cout << Remarks(options, plan);
    }
  }
  std::cout.flush();
  return EqualAnswers(bench) ? kExitOk : kExitCheckFailed;
}

/// Runs in a private cluster of processes. The shuffle's servers are fabrics of this process.
class ShuffleOnProcesses final : public ClusterWork {
 public:
  ShuffleOnProcesses(const Plan& plan, ClusterOptions cluster) : plan_(plan), cluster_(std::move(cluster)) {}

  void Cancel() override {
    cancelled_ = true;
    const std::lock_guard lock(mutex_);
    if (session_ != nullptr) session_->Cancel();
  }
  absl::Status Run() override {
    NAM_ASSIGN_OR_RETURN(attachment_, AttachToCluster(cluster_));
    NAM_ASSIGN_OR_RETURN(const ClusterAddress address, FindCluster(cluster_));
    ShuffleBench::Cluster cluster{.attachment = attachment_.get()};
    for (uint32_t i = 0; i < plan_.servers_most(); ++i) {
      NAM_ASSIGN_OR_RETURN(fabrics_.emplace_back(),
                           fabric::Open({.kind = plan_.kind, .secret = address.secret, .host = "127.0.0.1"}));
      cluster.fabrics.push_back(fabrics_.back().get());
    }
    {
      NAM_ASSIGN_OR_RETURN(auto session, session::Session::Open(*attachment_));
      const std::lock_guard lock(mutex_);
      session_ = std::move(session);
    }
    cluster.session = session_.get();
    bench_ = std::make_unique<ShuffleBench>(cluster, plan_.bench);
    const auto proceed = [this](const std::string& doing) {
      progress_.Show(absl::StrCat(kCommand, ": ", doing));
      return !cancelled_.load();
    };
    absl::Status status = bench_->Load(proceed);
    if (status.ok()) status = bench_->Measure(proceed);
    progress_.Clear();
    return status;
  }
  const ShuffleBench& bench() const { return *bench_; }

 private:
  const Plan& plan_;
  const ClusterOptions cluster_;
  ProgressLine progress_;
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics_;
  std::mutex mutex_;
  std::unique_ptr<session::Session> session_;
  std::unique_ptr<ShuffleBench> bench_;
};

int RunOnProcesses(const ShuffleBenchOptions& options, const Plan& plan, const std::string& directory) {
  StopSignals stop;
  const auto cluster = LocalCluster::Start(
      {.directory = directory,
       .name = "bench",
       .fabric = options.fabric,
       .memory_servers = plan.memory_servers,
       .compute_servers = static_cast<int>(plan.servers_most()),
       .memory_bytes = MemoryForTables(SsbBenchmark().bytes_per_scale_factor * plan.bench.scale_factor,
                                       plan.memory_servers),
       .threads = static_cast<int>(plan.bench.threads)},
      stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  ShuffleOnProcesses work(
      plan, {.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()});
  const absl::Status status = RunClusterWork(**cluster, work, stop, directory);
  return status.ok() ? Conclude(options, plan, work.bench()) : ReportFailure(status);
}

/// Runs in virtual time. The shuffle's servers are processes on the hosts of the cluster's compute servers.
absl::Status MeasureInSim(const Plan& plan, const ShuffleBench::Proceed& proceed,
                          const std::function<void(const ShuffleBench&)>& conclude) {
  fabric::sim::WorldOptions options;
  options.seed = plan.bench.seed;
  options.nic = plan.nic;
  options.replay = absl::StrCat("nam ", kCommand, " --fabric=sim");
  fabric::sim::World world(options);
  const uint64_t memory_bytes =
      MemoryForTables(SsbBenchmark().bytes_per_scale_factor * plan.bench.scale_factor, plan.memory_servers);
  NAM_ASSIGN_OR_RETURN(
      const auto cluster,
      simulation::Cluster::Start(world,
                                 {.memory_servers = plan.memory_servers,
                                  .compute_servers = static_cast<int>(plan.servers_most()),
                                  .threads = static_cast<int>(plan.bench.threads),
                                  .memory_bytes = (memory_bytes + kRegionBytes) / kRegionBytes * kRegionBytes,
                                  .region_bytes = kRegionBytes}));
  NAM_ASSIGN_OR_RETURN(const auto client, cluster->NewClient("client"));
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  ShuffleBench::Cluster on{
      .attachment = &client->attachment(), .session = &client->session(), .world = &world, .nic = plan.nic};
  for (int i = 0; i < plan.memory_servers; ++i)
    on.hosts.push_back(cluster->HostOf(simulation::Cluster::Role::kMemory, i));
  for (int i = 0; i < static_cast<int>(plan.servers_most()); ++i) {
    on.hosts.push_back(cluster->HostOf(simulation::Cluster::Role::kCompute, i));
    NAM_ASSIGN_OR_RETURN(fabrics.emplace_back(), world.OpenFabric(on.hosts.back(), {.secret = kSecret}));
    on.fabrics.push_back(fabrics.back().get());
  }
  ShuffleBench bench(on, plan.bench);
  NAM_RETURN_IF_ERROR(bench.Load(proceed));
  NAM_RETURN_IF_ERROR(bench.Measure(proceed));
  conclude(bench);
  return absl::OkStatus();
}

int RunInSim(const ShuffleBenchOptions& options, const Plan& plan) {
  StopSignals stop;
  ProgressLine progress;
  int code = kExitOk;
  const absl::Status status = MeasureInSim(
      plan,
      [&](const std::string& doing) {
        progress.Show(absl::StrCat(kCommand, ": ", doing));
        return !stop.Pending();
      },
      [&](const ShuffleBench& bench) {
        progress.Clear();
        code = Conclude(options, plan, bench);
      });
  progress.Clear();
  return status.ok() ? code : ReportFailure(status);
}

}  // namespace

int RunShuffleBench(const ShuffleBenchOptions& options) {
  const auto plan = MakePlan(options);
  if (!plan.ok()) {
    ReportFailure(plan.status());
    return kExitUsage;
  }
  if (plan->simulated) return RunInSim(options, *plan);
  const auto directory = CreateTemporaryDirectory("nam-bench-");
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunOnProcesses(options, *plan, *directory);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::bench
