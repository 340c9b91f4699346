#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/shuffle_bench.h"
#include "localcluster/memory_room.h"
#include "simulation/cluster.h"
#include "ssb/generator.h"
#include "terminal/plot.h"
#include "workload/benchmark.h"

namespace nam::bench {
namespace {

constexpr double kBytesPerMib = 1 << 20;

double PerRow(int64_t ns, uint64_t rows) {
  return rows == 0 ? 0 : Rounded(static_cast<double>(ns) / static_cast<double>(rows));
}

/// `shuffle_materialized`, for the summary.
std::string KeyOf(const std::string& plan) {
  return absl::StrReplaceAll(plan, {{", ", "_"}});
}

Json ShuffleRow(const ShuffleCase& of, const ContenderTimes& plan, uint64_t lineorder_rows, bool simulated) {
  Json row = of.figures.settings;
  row["plan"] = plan.name;
  row["median_ms"] = Rounded(plan.median_ms());
  row["rounds_ms"] = Rounded(plan.times_ms);
  SetIf(row, "over_pipelined", of.figures.Ratio(plan.name, kPipelined));
  row["rows_per_second"] = std::llround(static_cast<double>(lineorder_rows) * 1e3 / plan.median_ms());
  row["answer"] = plan.equal ? "equal" : "DIFFERENT";
  const ShuffleMoved& moved = of.moved.at(plan.name);
  if (simulated) {
    row["network_mib"] = Rounded(moved.network_bytes / kBytesPerMib);
    row["busiest_card"] = moved.busiest.what;
    row["busy"] = Rounded(moved.busiest.fraction);
  }
  if (plan.name == kPipelined) return row;
  const ShuffleWork& work = moved.work;
  row["shuffled_mib"] = Rounded(static_cast<double>(moved.sent_bytes) / kBytesPerMib);
  row["route_ns_per_row"] = PerRow(work.ns[ShuffleWork::kRoute], work.routed_rows);
  row["probe_ns_per_row"] = PerRow(work.ns[ShuffleWork::kProbe], work.probed_rows);
  row["sink_ns_per_row"] = PerRow(work.ns[ShuffleWork::kSink], work.sunk_rows);
  return row;
}

/// The paper's text gives times as ratios.
std::string RatiosOf(Json rows) {
  std::erase_if(rows.get_ref<Json::array_t&>(), [](const Json& row) { return row["plan"] == kPipelined; });
  LinePlot lines = PlotRows(rows, {.title = "Time over the pipelined plan's, by joined tables",
                                   .series = "plan",
                                   .x = "tables",
                                   .y = "over_pipelined",
                                   .x_label = "tables",
                                   .y_label = "over pipelined"});
  constexpr char kFigure7a[] = "I-Store, figure 7a";
  lines.paper = {{kShuffle, kFigure7a, 2, 1}, {kShuffle, kFigure7a, 4, 3}};
  return SvgOf(lines);
}

Json ShuffleSummary(const std::vector<CaseFigures>& cases) {
  Json summary = Json::object();
  for (const char* plan : {kShuffle, kMaterialized}) {
    for (const CaseFigures& each : cases) {
      SetIf(summary,
            absl::StrCat(KeyOf(plan), "_over_pipelined_", each.settings.at("tables").get<int>(), "_tables"),
            each.Ratio(plan, kPipelined));
    }
  }
  summary["equal_answers"] = AllEqual(cases);
  return summary;
}

constexpr uint32_t kServersMost = 64;
constexpr uint32_t kThreadsMost = 64;
constexpr int kSimulatedServersOfEachKind = 8;
constexpr uint32_t kSimulatedThreadsPerServer = 10;  // as in I-Store's experiment

class Shuffle final : public Command {
 public:
  Shuffle() : Command("shuffle", "star joins by pipelined plans, compared to shuffle-based ones") {}

  std::vector<Option> Options() override {
    ShuffleOptions& bench = options_;
    return {
        Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs", "sim"}, "transport of the cluster"),
        Option::Within("--tables", &bench.tables, 2, 4, "numbers of joined tables: 2, 3, 4 (all)"),
        Option::Within("--memory-servers", &memory_servers_, 0, kServersMost,
                       "number of memory servers; 0: 2, in sim 8"),
        Option::Within("--compute-servers", &compute_servers_, 0, kServersMost,
                       "per contender; 0: 2, in sim 8"),
        Option::Within("--threads", &bench.threads, 0, kThreadsMost,
                       "per compute server; 0: processors shared out, in sim 10"),
        {"--scale-factor", &bench.scale_factor, "size of the data: 1 is six million lineorder rows"},
        {"--seed", &bench.seed, "seed of the data; changes their values, not their size"},
        Option::Within("--fan-out", &bench.fan_out, 0, 32,
                       "parts per join key; 0: 8, or 16 for more than 8 compute servers"),
        Option::Within("--batch-bytes", Option::Bytes{&batch_bytes_}, 1024, fabric::kMaxSendBytes,
                       "size of a shuffle's messages"),
        Option::OneOf("--multicast", &bench.multicast, {"auto", "on", "off"}, "for pipelined build sides"),
        Option::OneOf("--tuples", &tuples_, {"narrow", "whole"},
                      "tuples of lineorder: narrow (needed columns) or whole"),
        Option::Within("--credits", &bench.messages.credits, 2, 64, "batches that a peer may send ahead"),
        Option::Within("--repeat", &bench.repeat, 1, 1'000, "rounds; figures are medians"),
        {"--generation", &generation_, "sim: fdr, edr, hdr, ndr, or a model's file"}};
  }
  bool has_charts() const override { return true; }
  bool simulated() const override { return fabric_ == "sim"; }
  absl::Status Check() override;
  absl::StatusOr<Report> Measure(Run& run) override { return simulated() ? InSim(run) : OnProcesses(run); }

 private:
  absl::StatusOr<Report> OnProcesses(Run& run);
  absl::StatusOr<Report> InSim(Run& run);
  Report ReportOf(const ShuffleFigures& figures) const;
  uint64_t TableMemory() const {
    return MemoryForTables(SsbBenchmark().bytes_per_scale_factor * options_.scale_factor, memory_servers_);
  }

  std::string fabric_ = "shm";
  int memory_servers_ = 0, compute_servers_ = 0;  // 0: 2, in sim 8
  uint64_t batch_bytes_ = 16 << 10;
  std::string tuples_ = "narrow";
  std::string generation_ = "fdr";
  ShuffleOptions options_ = {
      .tables = {2, 3, 4}, .threads = 0, .fan_out = 0, .repeat = 5, .messages = {.credits = 4}};
  // Checked:
  fabric::Kind kind_ = fabric::Kind::kShm;
  fabric::sim::NicModel nic_;
};

absl::Status Shuffle::Check() {
  ShuffleOptions& bench = options_;
  if (batch_bytes_ % 64 != 0) return absl::InvalidArgumentError("--batch-bytes is a multiple of 64");
  if (bench.messages.credits % 2 != 0) return absl::InvalidArgumentError("--credits is even");
  if (simulated()) {
    NAM_ASSIGN_OR_RETURN(nic_, fabric::sim::NicModel::Parse(generation_));
    bench.repeat = 1;
  } else {
    NAM_ASSIGN_OR_RETURN(kind_, fabric::ParseRealKind(fabric_));
  }
  const int servers = simulated() ? kSimulatedServersOfEachKind : 2;
  if (memory_servers_ == 0) memory_servers_ = servers;
  if (compute_servers_ == 0) compute_servers_ = servers;
  const auto processors = static_cast<uint32_t>(HostProcessors());
  if (bench.threads == 0)
    bench.threads = simulated()
                        ? kSimulatedThreadsPerServer
                        : std::clamp(processors / static_cast<uint32_t>(compute_servers_), 1u, kThreadsMost);
  if (bench.fan_out == 0) bench.fan_out = compute_servers_ > 8 ? 16 : 8;
  bench.whole_tuples = tuples_ == "whole";
  bench.messages.legs = *std::max_element(bench.tables.begin(), bench.tables.end()) - 1;
  bench.messages.batch_bytes = static_cast<uint32_t>(batch_bytes_);
  return dataset::Validate(dataset::GeneratorOptions{.scale_factor = bench.scale_factor});
}

Report Shuffle::ReportOf(const ShuffleFigures& figures) const {
  std::vector<CaseFigures> cases;
  Json rows = Json::array();
  for (const ShuffleCase& each : figures.cases) {
    cases.push_back(each.figures);
    for (const ContenderTimes& plan : each.figures.contenders)
      rows.push_back(ShuffleRow(each, plan, figures.lineorder_rows, simulated()));
  }
  Report report{
      .rows = rows,
      .summary = ShuffleSummary(cases),
      .remarks = absl::StrFormat(
          "%s; %d memory servers, %d threads a compute server, SSB at scale factor %g split into %d "
          "by each key, %s of lineorder, batches of %d bytes. \"shuffle\" finds its rows in the "
          "compute servers, as a shared-nothing system does; the pipelined plan reads them from "
          "memory servers.\n",
          simulated() ? absl::StrCat("Virtual time, ", generation_, ", ", nic_.ports, " ports a card")
                      : absl::StrCat("Medians over ", fabric_),
          memory_servers_, options_.threads, options_.scale_factor, options_.fan_out,
          options_.whole_tuples ? "whole tuples" : "the columns that are wanted", batch_bytes_),
      .charts = {TimeChart(absl::StrCat("Milliseconds on ", compute_servers_, " compute servers"), cases),
                 RatiosOf(rows)},
      .correct = AllEqual(cases)};
  if (simulated()) report.config["ports"] = nic_.ports;
  return report;
}

/// Runs in a private cluster. The shuffle's servers are fabrics of this process.
absl::StatusOr<Report> Shuffle::OnProcesses(Run& run) {
  Report report;
  const auto measure = [&](catalog::Attachment& attachment, const ClusterOptions& options) -> absl::Status {
    NAM_ASSIGN_OR_RETURN(const ClusterAddress address, FindCluster(options));
    ShuffleEnvironment cluster{.attachment = &attachment};
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    for (int i = 0; i < compute_servers_; ++i) {
      NAM_ASSIGN_OR_RETURN(fabrics.emplace_back(),
                           fabric::Open({.kind = kind_, .secret = address.secret, .host = "127.0.0.1"}));
      cluster.fabrics.push_back(fabrics.back().get());
    }
    NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
    cluster.session = session.get();
    run.OnCancel([&] { session->Cancel(); });
    const auto figures = MeasureShuffle(cluster, options_, run);
    run.OnCancel();
    if (figures.ok()) report = ReportOf(*figures);
    return figures.status();
  };
  NAM_RETURN_IF_ERROR(run.InCluster({.fabric = fabric_,
                                     .memory_servers = memory_servers_,
                                     .compute_servers = compute_servers_,
                                     .memory_bytes = TableMemory(),
                                     .threads = static_cast<int>(options_.threads)},
                                    measure));
  return report;
}

/// Runs in virtual time. The shuffle's servers are processes on the hosts of the cluster's compute servers.
absl::StatusOr<Report> Shuffle::InSim(Run& run) {
  fabric::sim::World world({.seed = options_.seed, .nic = nic_, .replay = "nam bench shuffle --fabric=sim"});
  NAM_ASSIGN_OR_RETURN(
      const auto cluster,
      simulation::Cluster::Start(world, {.memory_servers = memory_servers_,
                                         .compute_servers = compute_servers_,
                                         .threads = static_cast<int>(options_.threads),
                                         .memory_bytes = (TableMemory() + kServerRegionBytes) /
                                                         kServerRegionBytes * kServerRegionBytes,
                                         .region_bytes = kServerRegionBytes}));
  NAM_ASSIGN_OR_RETURN(const auto client, cluster->NewClient("client"));
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  ShuffleEnvironment on{
      .attachment = &client->attachment(), .session = &client->session(), .world = &world, .nic = nic_};
  for (int i = 0; i < memory_servers_; ++i)
    on.cards.push_back({cluster->HostOf(simulation::Cluster::Role::kMemory, i), CardRole::kRows});
  for (int i = 0; i < compute_servers_; ++i) {
    on.cards.push_back({cluster->HostOf(simulation::Cluster::Role::kCompute, i), CardRole::kClients});
    NAM_ASSIGN_OR_RETURN(fabrics.emplace_back(),
                         world.OpenFabric(on.cards.back().host, {.secret = simulation::kClusterSecret}));
    on.fabrics.push_back(fabrics.back().get());
  }
  NAM_ASSIGN_OR_RETURN(const ShuffleFigures figures, MeasureShuffle(on, options_, run));
  return ReportOf(figures);
}

}  // namespace

std::unique_ptr<Command> ShuffleCommand() {
  return std::make_unique<Shuffle>();
}

}  // namespace nam::bench
