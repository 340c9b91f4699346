#include "bench/algorithm_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/algorithm_work.h"
#include "bench/algorithms_in_sim.h"
#include "bench/duckdb.h"
#include "bench/surroundings.h"
#include "bench/tuple_count.h"
#include "fabric/fabric.h"
#include "localcluster/cluster_work.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/plot.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr int kRepeatMax = 1'000;
constexpr int kThreadsMax = 256;
constexpr int kServers = 2, kSimulatedServers = 4, kSimulatedServersMax = 64, kSimulatedThreadsMax = 1024;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kQueryMibLeast = 4096;
constexpr uint64_t kRegionBytes = 64 * kMiB;  // of a memory server

uint64_t RoundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

std::vector<CaseFigures> FiguresOf(const AlgorithmWork& work, const Workload& workload) {
  std::vector<CaseFigures> figures;
  for (const AlgorithmWork::Case& each : work.cases()) {
    figures.push_back({.title = workload.TitleOf(each.index),
                       .settings = workload.SettingsOf(each.index),
                       .tuples = workload.TuplesOf(each.index),
                       .contenders = each.contenders});
  }
  return figures;
}

/// Requires valid options.
SimulatedServers ServersOf(const AlgorithmBenchOptions& options) {
  SimulatedServers servers = *ParseSimulatedServers(
      options.generation, ThreadsOf(options) / options.compute_servers, options.cache_divisor);
  servers.memory_servers = options.memory_servers;
  servers.compute_servers = options.compute_servers;
  servers.seed = options.seed;
  return servers;
}

Json ConfigJson(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, const AlgorithmWork& work,
                const DuckDb* duckdb) {
  Json config = bench.config;
  config["seed"] = options.seed;
  config["fabric"] = options.fabric;
  config["memory_servers"] = options.memory_servers;
  config["compute_servers"] = options.compute_servers;
  config["threads"] = ThreadsOf(options);
  config["repeat"] = options.repeat;
  config["peer"] = options.peer;
  if (options.simulated()) config["model"] = ModelJson(ServersOf(options), options.cache_divisor);
  if (duckdb != nullptr) config["duckdb"] = {{"version", duckdb->version()}, {"threads", ThreadsOf(options)}};
  if (!bench.remarks.empty()) config["remarks"] = bench.remarks;
  Json& skipped = config["skipped"] = Json::object();
  for (const AlgorithmWork::Skipped& each : work.skipped()) skipped[each.algorithm] = each.why;
  return config;
}

std::string Remarks(const AlgorithmBenchOptions& options, const AlgorithmBench& bench,
                    const AlgorithmWork& work) {
  std::string text =
      options.simulated()
          ? ModelText(ServersOf(options), options.cache_divisor)
          : absl::StrFormat(
                "Medians of %d rounds over %s, in milliseconds; %d threads on each side, ours on %d compute "
                "servers and %d memory servers. Of ratios, more is better.\n",
                options.repeat, options.fabric, ThreadsOf(options), options.compute_servers,
                options.memory_servers);
  for (const AlgorithmWork::Skipped& each : work.skipped())
    absl::StrAppend(&text, "Left out: ", each.algorithm, ", as this engine refuses it: ", each.why, ".\n");
  for (const std::string& remark : bench.remarks) absl::StrAppend(&text, remark, "\n");
  return text;
}

int Conclude(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, const Workload& workload,
             const AlgorithmWork& work, const DuckDb* duckdb) {
  const std::vector<CaseFigures> figures = FiguresOf(work, workload);
  const Json rows = FigureRows(figures);
  Json summary = bench.summarize(figures);
  summary["equal_answers"] = AllEqual(figures);
  if (!options.html.empty()) {
    const std::string plot =
        options.simulated() ? TimePlot(bench.title, figures) : SpeedPlot(bench.title, figures);
    const absl::Status written = WritePage(options.html, {.title = bench.title,
                                                          .text = Remarks(options, bench, work),
                                                          .figures = {plot},
                                                          .rows = WithoutRounds(rows)});
    if (!written.ok()) return ReportFailure(written);
  }
  const OutputFormat format = *ParseOutputFormat(options.format);
  if (format == OutputFormat::kJson) {
    std::cout << JsonReport{.command = bench.command,
                            .config = ConfigJson(options, bench, work, duckdb),
                            .rows = rows,
                            .summary = summary}
                     .ToString();
  } else {
    std::cout << Render(TableOf(WithoutRounds(rows)), {.format = format, .footer = false});
    if (format == OutputFormat::kTable) {
      for (const auto& [name, value] : summary.items()) std::cout << name << ": " << value << "\n";
      std::cout << Remarks(options, bench, work);
    }
  }
  std::cout.flush();
  return AllEqual(figures) ? kExitOk : kExitCheckFailed;
}

int RunIn(const std::string& directory, const AlgorithmBenchOptions& options, const AlgorithmBench& bench,
          Workload& workload) {
  StopSignals stop;
  std::unique_ptr<DuckDb> duckdb;
  if (options.peer == "duckdb") {
    auto started = DuckDb::Start({.peer_dir = options.peer_dir,
                                  .log_file = absl::StrCat(directory, "/duckdb.log"),
                                  .threads = ThreadsOf(options)});
    if (!started.ok()) {
      return absl::IsFailedPrecondition(started.status()) ? Refuse(started.status())
                                                          : ReportFailure(started.status());
    }
    duckdb = std::move(started).value();
  }
  const ServerMemory memory = MemoryOf(options, bench.need);
  const auto cluster = LocalCluster::Start({.directory = directory,
                                            .name = "bench",
                                            .fabric = options.fabric,
                                            .memory_servers = options.memory_servers,
                                            .compute_servers = options.compute_servers,
                                            .memory_bytes = memory.memory_bytes,
                                            .scratch_bytes = memory.scratch_bytes,
                                            .threads = ThreadsOf(options) / options.compute_servers},
                                           stop.fd());
  if (!cluster.ok()) return ReportFailure(cluster.status());
  AlgorithmWork work({.catalog = (*cluster)->catalog_address(), .secret_file = (*cluster)->secret_file()},
                     workload,
                     {.algorithms = bench.algorithms,
                      .repeat = options.repeat,
                      .threads = ThreadsOf(options),
                      .query_mib_max = std::max(kQueryMibLeast, bench.need.query_bytes / kMiB),
                      .directory = directory + "/columns",
                      .duckdb = duckdb.get()});
  const absl::Status status = RunClusterWork(**cluster, work, stop, directory);
  return status.ok() ? Conclude(options, bench, workload, work, duckdb.get()) : ReportFailure(status);
}

/// Runs in this process, which Ctrl-C ends at once: it leaves nothing behind.
int RunSimulated(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, Workload& workload) {
  const ServerMemory memory = MemoryOf(options, bench.need);
  SimulatedServers servers = ServersOf(options);
  servers.memory_bytes = memory.memory_bytes;
  servers.scratch_bytes = memory.scratch_bytes;
  servers.query_bytes = std::max(kQueryMibLeast * kMiB, bench.need.query_bytes);
  AlgorithmWork work({}, workload,
                     {.algorithms = bench.algorithms,
                      .repeat = options.repeat,
                      .warm_up = 1,
                      .threads = 1,
                      .query_mib_max = servers.query_bytes / kMiB});
  const absl::Status status = RunInSim(servers, bench.command, work);
  return status.ok() ? Conclude(options, bench, workload, work, nullptr) : ReportFailure(status);
}

absl::Status CheckSimulated(const AlgorithmBenchOptions& options) {
  if (options.peer != "none") return absl::InvalidArgumentError("--peer is none in sim");
  if (options.memory_servers < 1 || options.memory_servers > kSimulatedServersMax ||
      options.compute_servers < 1 || options.compute_servers > kSimulatedServersMax)
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-servers and --compute-servers are 1 to ", kSimulatedServersMax, " in sim"));
  return ParseSimulatedServers(options.generation, 1, options.cache_divisor).status();
}

}  // namespace

ServerMemory MemoryOf(const AlgorithmBenchOptions& options, const MemoryNeed& need) {
  const auto servers = static_cast<uint64_t>(options.memory_servers);
  ServerMemory memory;
  memory.scratch_bytes = options.scratch_bytes != 0
                             ? RoundUp(options.scratch_bytes, kMiB)
                             : RoundUp(need.scratch_bytes / servers, kRegionBytes) + kRegionBytes;
  // Memory is freed within a second of DROP TABLE, so there is room for the tables of two cases.
  memory.memory_bytes =
      memory.scratch_bytes + RoundUp(need.table_bytes / servers, kRegionBytes) + kRegionBytes;
  return memory;
}

absl::Status CheckNeed(const MemoryNeed& need, const std::vector<MemoryLimit>& limits) {
  const MemoryLimit least = LeastAvailable(limits);
  if (need.total() <= least.available_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "so many tuples need about %s of memory (tables %s, scratch %s, queries %s, this process %s, the peer "
      "%s), and %s has %s left; choose fewer --tuples",
      FormatBytes(need.total()), FormatBytes(need.table_bytes), FormatBytes(need.scratch_bytes),
      FormatBytes(need.query_bytes), FormatBytes(need.own_bytes), FormatBytes(need.peer_bytes), least.name,
      FormatBytes(least.available_bytes)));
}

std::string BelowFigure8() {
  return absl::StrCat("paper_order is of ", CountLabel(kFigure8Tuples),
                      " tuples: of fewer, fixed costs of stages and messages may turn it round.");
}

absl::Status Validate(const AlgorithmBenchOptions& options) {
  if (options.repeat < 1 || options.repeat > kRepeatMax)
    return absl::InvalidArgumentError(absl::StrCat("--repeat is 1 to ", kRepeatMax));
  const int threads_max = options.simulated() ? kSimulatedThreadsMax : kThreadsMax;
  if (options.threads < 0 || options.threads > threads_max)
    return absl::InvalidArgumentError(absl::StrCat("--threads is 0 to ", threads_max));
  if (options.peer != "none" && options.peer != "duckdb")
    return absl::InvalidArgumentError(
        absl::StrCat("there is no peer \"", options.peer, "\"; --peer is none or duckdb"));
  if (options.algorithms.empty()) return absl::InvalidArgumentError("--algorithms names none");
  NAM_RETURN_IF_ERROR(ParseOutputFormat(options.format).status());
  if (!options.html.empty()) NAM_RETURN_IF_ERROR(CheckHtmlPath(options.html));
  if (options.simulated()) return CheckSimulated(options);
  NAM_RETURN_IF_ERROR(fabric::ParseKind(options.fabric).status());  // sim is no error here
  return Validate(LocalClusterOptions{.memory_servers = options.memory_servers,
                                      .compute_servers = options.compute_servers});
}

AlgorithmBenchOptions WithDefaults(AlgorithmBenchOptions options, int simulated_threads) {
  const int servers = options.simulated() ? kSimulatedServers : kServers;
  if (options.memory_servers == 0) options.memory_servers = servers;
  if (options.compute_servers == 0) options.compute_servers = servers;
  // In sim, every round takes the same time.
  if (options.simulated() && options.repeat > 0) options.repeat = 1;
  if (options.simulated() && options.threads == 0)
    options.threads = simulated_threads * std::max(options.compute_servers, 1);
  return options;
}

int ThreadsOf(const AlgorithmBenchOptions& options) {
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int wanted = options.threads > 0 ? options.threads : processors;
  return std::max(1, wanted / options.compute_servers) * options.compute_servers;
}

int HostThreadsOf(const AlgorithmBenchOptions& options) {
  return options.simulated() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency()))
                             : ThreadsOf(options);
}

int RunAlgorithmBench(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, Workload& workload) {
  if (const absl::Status enough = CheckNeed(bench.need); !enough.ok()) return Refuse(enough);
  if (options.simulated()) return RunSimulated(options, bench, workload);
  const double load_average = LoadAverage();
  WarnOfLoad(load_average);
  const auto directory = MakeLargeDirectory();
  if (!directory.ok()) return ReportFailure(directory.status());
  AlgorithmBench with_load = bench;
  with_load.config["load_average"] = load_average;
  const int code = RunIn(*directory, options, with_load, workload);
  RemoveTree(*directory);
  return code;
}

}  // namespace nam::bench
