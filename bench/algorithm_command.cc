#include "bench/algorithm_command.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "bench/algorithm_work.h"
#include "bench/duckdb.h"
#include "bench/tuple_table.h"
#include "execution/exchange/endpoint.h"
#include "fabric/sim/world.h"
#include "localcluster/memory_room.h"
#include "simulation/cluster.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr int kServers = 2, kSimulatedServers = 4, kSimulatedServersMax = 64;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kQueryMibLeast = 4096;
constexpr int kCacheDivisorMax = 1024;
/// The longest loop over all tuples between two calls of the fabric.
constexpr int64_t kStuckRealMs = 1'800'000;

uint64_t RoundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

uint64_t MemoryNeed::query_mib_max() const {
  return std::max(kQueryMibLeast, query_bytes / kMiB);
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

LocalClusterOptions ClusterFor(const MemoryNeed& need, const std::string& fabric, int memory_servers,
                               int compute_servers, int threads, uint64_t scratch_bytes) {
  const auto servers = static_cast<uint64_t>(memory_servers);
  const uint64_t scratch =
      scratch_bytes != 0 ? RoundUp(scratch_bytes, kMiB)
                         : RoundUp(need.scratch_bytes / servers, kServerRegionBytes) + kServerRegionBytes;
  return {
      .fabric = fabric,
      .memory_servers = memory_servers,
      .compute_servers = compute_servers,
      .memory_bytes = scratch + RoundUp(need.table_bytes / servers, kServerRegionBytes) + kServerRegionBytes,
      .scratch_bytes = scratch,
      .threads = threads / compute_servers};
}

std::vector<Option> AlgorithmCommand::WithAlgorithms(std::vector<Option> own) {
  std::vector<Option> common = {
      Option::OneOf("--algorithms", &algorithm_names_, NamesOf(known_),
                    absl::StrCat("only these (", absl::StrJoin(algorithm_names_, ","), ")")),
      Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs", "sim"},
                    "transport of the cluster; sim: figure 8 in virtual time"),
      {"--memory-servers", &memory_servers_, "number of memory servers; 0: 2, in sim 4"},
      {"--compute-servers", &compute_servers_, "number of compute servers; 0: 2, in sim 4"},
      Option::Within("--threads", &threads_, 0, kQueryThreadsMax,
                     "total per contender; 0: one per processor, in sim the paper's number per server"),
      {"--scratch", Option::Bytes{&scratch_bytes_}, "per memory server; default: enough"},
      {"--seed", &seed_, "seed of the data; changes their values, not their size"},
      Option::Within("--repeat", &repeat_, 1, 1'000, "rounds after a warm-up; figures are medians"),
      Option::OneOf("--peer", &peer_, {"none", "duckdb"}, "to take turns with"),
      Option::Place("--peer-dir", &peer_dir_, "DIR", "DuckDB's process"),
      {"--generation", &generation_, "sim: fdr, edr, hdr, ndr, or a model's file"},
      Option::Within("--cache-divisor", &cache_divisor_, 1, kCacheDivisorMax,
                     "sim: divisor of the paper's cache sizes")};
  std::move(common.begin(), common.end(), std::back_inserter(own));
  return own;
}

absl::Status AlgorithmCommand::Check() {
  const int servers = simulated() ? kSimulatedServers : kServers;
  if (memory_servers_ == 0) memory_servers_ = servers;
  if (compute_servers_ == 0) compute_servers_ = servers;
  algorithms_ = Named(known_, algorithm_names_);
  if (simulated()) {
    if (has_peer()) return absl::InvalidArgumentError("--peer is none in sim");
    for (const int number : {memory_servers_, compute_servers_}) {
      if (number < 1 || number > kSimulatedServersMax)
        return absl::InvalidArgumentError(absl::StrCat("--memory-servers and --compute-servers are 1 to ",
                                                       kSimulatedServersMax, " in sim"));
    }
    repeat_ = 1;  // every round takes the same time
    if (threads_ == 0) threads_ = simulated_threads_ * compute_servers_;
    NAM_RETURN_IF_ERROR(fabric::sim::NicModel::Parse(generation_).status());
  } else {
    NAM_RETURN_IF_ERROR(nam::Validate(
        LocalClusterOptions{.memory_servers = memory_servers_, .compute_servers = compute_servers_}));
    if (has_peer()) NAM_RETURN_IF_ERROR(DuckDb::Check(peer_dir_));
  }
  threads_ = ThreadsOf(threads_, compute_servers_);
  NAM_RETURN_IF_ERROR(MakeCases());
  return CheckNeed(need_);
}

void AlgorithmCommand::RemarkOnSizes(const std::vector<uint64_t>& sizes) {
  if (!simulated() || *std::min_element(sizes.begin(), sizes.end()) >= kFigure8Tuples) return;
  remarks_.push_back(
      absl::StrCat("paper_order is of ", CountLabel(kFigure8Tuples),
                   " tuples: of fewer, fixed costs of stages and messages may turn it round."));
}

absl::StatusOr<Report> AlgorithmCommand::Measure(Run& run) {
  return simulated() ? InSim(run) : OnProcesses(run);
}

absl::StatusOr<Report> AlgorithmCommand::OnProcesses(Run& run) {
  NAM_ASSIGN_OR_RETURN(const std::string directory, run.Directory());
  std::unique_ptr<DuckDb> duckdb;
  if (has_peer()) {
    NAM_ASSIGN_OR_RETURN(
        duckdb,
        DuckDb::Start({.peer_dir = peer_dir_, .log_file = directory + "/duckdb.log", .threads = threads_}));
  }
  AlgorithmWork work(run, cases_,
                     {.algorithms = algorithms_,
                      .repeat = repeat_,
                      .threads = threads_,
                      .query_mib_max = need_.query_mib_max(),
                      .directory = directory + "/columns",
                      .duckdb = duckdb.get()});
  NAM_RETURN_IF_ERROR(run.InCluster(
      ClusterFor(need_, fabric_, memory_servers_, compute_servers_, threads_, scratch_bytes_),
      [&](catalog::Attachment& attachment, const ClusterOptions&) { return work.RunOn(attachment); }));
  Json config = Json::object();
  if (duckdb != nullptr) config["duckdb"] = {{"version", duckdb->version()}, {"threads", threads_}};
  return ReportOf(work, std::move(config));
}

/// Joins and groups in virtual time: the real servers, sessions and operators over the sim fabric. Constants
/// (plan/work_cost.h) charge the work per row; the cache model charges its accesses. The calling thread
/// drives the world; Ctrl-C ends it between two turns.
absl::StatusOr<Report> AlgorithmCommand::InSim(Run& run) {
  AlgorithmWork work(run, cases_,
                     {.algorithms = algorithms_,
                      .repeat = repeat_,
                      .warm_up = 1,
                      .threads = 1,
                      .query_mib_max = need_.query_mib_max()});
  const LocalClusterOptions like =
      ClusterFor(need_, fabric_, memory_servers_, compute_servers_, threads_, scratch_bytes_);
  fabric::sim::WorldOptions options;
  options.seed = seed_;
  options.nic = NicInSim();
  options.caches = CachesInSim();
  options.stuck_real_ms = kStuckRealMs;
  options.replay = absl::StrCat("nam bench ", name(), " --fabric=sim");
  fabric::sim::World world(options);
  NAM_ASSIGN_OR_RETURN(
      const auto cluster,
      simulation::Cluster::Start(
          world, {.memory_servers = memory_servers_,
                  .compute_servers = compute_servers_,
                  .threads = like.threads,
                  .shared_hosts = true,
                  .memory_bytes = like.memory_bytes,
                  .region_bytes = kServerRegionBytes,
                  .scratch_bytes = like.scratch_bytes,
                  .compute_memory_bytes = std::max(need_.query_mib_max() * kMiB, uint64_t{4} << 30)}));
  NAM_ASSIGN_OR_RETURN(const auto client, cluster->NewClient("client"));
  NAM_RETURN_IF_ERROR(work.RunOn(client->attachment()));
  return ReportOf(work, {{"model", ModelJson()}});
}

fabric::sim::NicModel AlgorithmCommand::NicInSim() const {
  return *fabric::sim::NicModel::Parse(generation_);  // checked
}

fabric::sim::CacheModel AlgorithmCommand::CachesInSim() const {
  return fabric::sim::CacheModel::XeonE5(static_cast<uint32_t>(threads_ / compute_servers_),
                                         static_cast<uint32_t>(cache_divisor_));
}

/// The model, for the report's configuration.
Json AlgorithmCommand::ModelJson() const {
  const fabric::sim::CacheModel caches = CachesInSim();
  const fabric::sim::NicModel nic = NicInSim();
  return {{"generation", nic.name},
          {"ports", nic.ports},
          {"port_bytes_per_us", nic.port_bytes_per_us},
          {"processors", caches.name},
          {"cache_divisor", cache_divisor_},
          {"l1_bytes", caches.l1_bytes},
          {"l2_bytes", caches.l2_bytes},
          {"l3_bytes_of_thread", caches.l3_bytes},
          {"l2_access_ps", caches.l2_ps},
          {"l3_access_ps", caches.l3_ps},
          {"memory_access_ps", caches.memory_ps},
          {"socket_message_ps", execution::kIpOverInfinibandCost.message_ps},
          {"socket_window_bytes", execution::kIpOverInfinibandCost.window_bytes}};
}

std::string AlgorithmCommand::ModelText() const {
  const fabric::sim::CacheModel caches = CachesInSim();
  const fabric::sim::NicModel nic = NicInSim();
  const auto ns = [](int64_t ps) { return static_cast<double>(ps) / 1e3; };
  return absl::StrFormat(
      "Virtual time: %d servers for memory and %d for queries with %d threads each, %s network of %d ports. "
      "Caches of %s, %d times smaller: %s, %s and %s of a thread; an access costs %.1f ns in the second, "
      "%.1f in the third, %.1f in memory. A message of sockets costs either side %.1f µs for up to %d "
      "bytes.\n",
      memory_servers_, compute_servers_, threads_ / compute_servers_, nic.name, nic.ports, caches.name,
      cache_divisor_, FormatBytes(caches.l1_bytes), FormatBytes(caches.l2_bytes),
      FormatBytes(caches.l3_bytes), ns(caches.l2_ps), ns(caches.l3_ps), ns(caches.memory_ps),
      ns(execution::kIpOverInfinibandCost.message_ps) / 1e3, execution::kIpOverInfinibandCost.window_bytes);
}

Report AlgorithmCommand::ReportOf(const AlgorithmWork& work, Json config) {
  const std::vector<CaseFigures>& figures = work.figures();
  Report report{.config = config_,
                .rows = FigureRows(figures),
                .summary = Summarize(figures),
                .charts = {simulated() ? TimeChart("Time of each algorithm", figures)
                                       : SpeedChart("Throughput of each algorithm", figures)},
                .correct = AllEqual(figures)};
  report.summary["equal_answers"] = report.correct;
  report.config.update(config);
  if (!remarks_.empty()) report.config["remarks"] = remarks_;
  Json& skipped = report.config["skipped"] = Json::object();
  report.remarks = simulated() ? ModelText()
                               : absl::StrFormat(
                                     "Medians of %d rounds over %s, in milliseconds; %d threads on "
                                     "each side, ours on %d compute servers and %d memory servers. "
                                     "Of ratios, more is better.\n",
                                     repeat_, fabric_, threads_, compute_servers_, memory_servers_);
  for (const AlgorithmWork::Skipped& each : work.skipped()) {
    skipped[each.algorithm] = each.why;
    absl::StrAppend(&report.remarks, "Left out: ", each.algorithm, ": ", each.why, ".\n");
  }
  for (const std::string& remark : remarks_) absl::StrAppend(&report.remarks, remark, "\n");
  return report;
}

}  // namespace nam::bench
