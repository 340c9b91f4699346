#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/shuffle_bench.h"
#include "simulation/cluster.h"
#include "ssb/generator.h"
#include "terminal/plot.h"
#include "workload/benchmark.h"

namespace nam::bench {
namespace {

using Case = ShuffleBench::Case;

constexpr uint32_t kFigureServers = 8;  // in the paper's figure
constexpr double kMiB = 1 << 20;

std::vector<uint32_t> Numbers(const ShuffleBench& bench, uint32_t Case::*number) {
  std::set<uint32_t> numbers;
  for (const Case& each : bench.cases()) numbers.insert(each.*number);
  return {numbers.begin(), numbers.end()};
}

/// The cases of the paper's figure, by number of tables.
std::vector<CaseFigures> FigureCases(const ShuffleBench& bench) {
  const std::vector<uint32_t> tables = Numbers(bench, &Case::tables);
  uint32_t servers = Numbers(bench, &Case::servers).back();
  if (bench.Find(tables.back(), kFigureServers) != nullptr) servers = kFigureServers;
  std::vector<CaseFigures> cases;
  for (const uint32_t number : tables) cases.push_back(bench.Find(number, servers)->figures);
  return cases;
}

double PerRow(int64_t ns, uint64_t rows) {
  return rows == 0 ? 0 : Rounded(static_cast<double>(ns) / static_cast<double>(rows));
}

/// `shuffle_materialized`, for the summary.
std::string KeyOf(const std::string& plan) {
  return absl::StrReplaceAll(plan, {{", ", "_"}});
}

Json RowOf(const ShuffleBench& bench, const Case& of, const ContenderTimes& plan) {
  Json row = of.figures.settings;
  row["plan"] = plan.name;
  row["median_ms"] = Rounded(plan.median_ms());
  row["rounds_ms"] = Rounded(plan.times_ms);
  SetIf(row, "over_pipelined", of.figures.Ratio(plan.name, kPipelined));
  row["rows_per_second"] = std::llround(static_cast<double>(bench.lineorder_rows()) * 1e3 / plan.median_ms());
  row["answer"] = plan.equal ? "equal" : "DIFFERENT";
  const ShuffleBench::Moved& moved = of.moved.at(plan.name);
  if (bench.simulated()) {
    row["network_mib"] = Rounded(moved.network_bytes / kMiB);
    row["busiest_card"] = moved.busiest.what;
    row["busy"] = Rounded(moved.busiest.fraction);
  }
  if (plan.name == kPipelined) return row;
  const ShuffleWork& work = moved.work;
  row["shuffled_mib"] = Rounded(static_cast<double>(moved.sent_bytes) / kMiB);
  row["route_ns_per_row"] = PerRow(work.ns[ShuffleWork::kRoute], work.routed_rows);
  row["probe_ns_per_row"] = PerRow(work.ns[ShuffleWork::kProbe], work.probed_rows);
  row["sink_ns_per_row"] = PerRow(work.ns[ShuffleWork::kSink], work.sunk_rows);
  return row;
}

/// The paper's text gives times as ratios.
std::string RatiosOf(const std::vector<CaseFigures>& cases) {
  Json rows = Json::array();
  for (const CaseFigures& each : cases) {
    for (const char* plan : {kShuffle, kMaterialized}) {
      rows.push_back({{"plan", plan},
                      {"tables", each.settings.at("tables")},
                      {"over_pipelined", *each.Ratio(plan, kPipelined)}});
    }
  }
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

std::string LinesOf(const Json& all, uint32_t tables) {
  Json rows = Json::array();
  for (const Json& row : all) {
    if (row.at("tables") == tables) rows.push_back(row);
  }
  LinePlot lines =
      PlotRows(rows, {.title = absl::StrCat("Rows a second by compute servers, ", tables, " tables"),
                      .series = "plan",
                      .x = "compute_servers",
                      .y = "rows_per_second",
                      .x_label = "compute servers",
                      .y_label = "lineorder rows/s"});
  LinePlot::Series linear{.name = "linear", .points = {}, .dashed = true};
  const auto first = lines.series[0].points[0];
  for (const auto& point : lines.series[0].points)
    linear.points.push_back({point.x, first.y / first.x * point.x});
  lines.series.push_back(std::move(linear));
  return SvgOf(lines);
}

bool EqualAnswers(const ShuffleBench& bench) {
  for (const Case& each : bench.cases()) {
    if (!each.figures.equal()) return false;
  }
  return true;
}

Json ShuffleRows(const ShuffleBench& bench) {
  Json rows = Json::array();
  for (const Case& each : bench.cases()) {
    for (const ContenderTimes& plan : each.figures.contenders) rows.push_back(RowOf(bench, each, plan));
  }
  return rows;
}

/// Ratios are for 8 compute servers if measured, else for the most. Efficiency is the throughput per server
/// relative to the fewest servers, for the most tables.
Json ShuffleSummary(const ShuffleBench& bench) {
  Json summary = Json::object();
  const std::vector<CaseFigures> cases = FigureCases(bench);
  for (const char* plan : {kShuffle, kMaterialized}) {
    for (const CaseFigures& each : cases) {
      SetIf(summary,
            absl::StrCat(KeyOf(plan), "_over_pipelined_", each.settings.at("tables").get<int>(), "_tables"),
            each.Ratio(plan, kPipelined));
    }
  }
  const std::vector<uint32_t> servers = Numbers(bench, &Case::servers);
  const uint32_t tables = Numbers(bench, &Case::tables).back();
  for (const char* plan : {kPipelined, kShuffle}) {
    const auto work_ms = [&](uint32_t of) { return *bench.Find(tables, of)->figures.median_ms(plan) * of; };
    for (size_t i = 1; i < servers.size(); ++i) {
      summary[absl::StrCat(KeyOf(plan), "_efficiency_", servers[i], "_servers")] =
          Rounded(work_ms(servers[0]) / work_ms(servers[i]));
    }
  }
  summary["equal_answers"] = EqualAnswers(bench);
  return summary;
}

/// The paper's figure, times and ratios, and throughput by servers if there are several numbers of them.
std::vector<std::string> ShuffleCharts(const ShuffleBench& bench, const Json& rows) {
  const std::vector<CaseFigures> cases = FigureCases(bench);
  const auto servers = cases[0].settings.at("compute_servers").get<int>();
  std::vector<std::string> charts = {
      TimeChart(absl::StrCat("Milliseconds on ", servers, " compute servers"), cases), RatiosOf(cases)};
  if (Numbers(bench, &Case::servers).size() > 1) {
    for (const uint32_t tables : Numbers(bench, &Case::tables)) charts.push_back(LinesOf(rows, tables));
  }
  return charts;
}

constexpr char kSecret[] = "simulated";
constexpr uint32_t kServersMost = 64;
constexpr uint32_t kThreadsMost = 64;
constexpr uint32_t kSimulatedServers = 8;
constexpr uint32_t kSimulatedThreads = 10;  // per server, as in I-Store's experiment
constexpr uint64_t kRegionBytes = uint64_t{64} << 20;

class Shuffle final : public Command {
 public:
  Shuffle() : Command("shuffle", "star joins by pipelined plans, compared to shuffle-based ones") {}

  std::vector<Option> Options() override {
    ShuffleBench::Options& bench = options_;
    return {
        Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs", "sim"}, "that the cluster uses"),
        {"--tables", &bench.tables, "numbers of joined tables: 2, 3, 4 (all)", {{2, 4}}},
        {"--memory-servers",
         &memory_servers_,
         "number of memory servers; 0: 2, in sim 8",
         {{0, kServersMost}}},
        {"--compute-servers",
         &bench.servers,
         "per contender (2); sim: all of these (8)",
         {{1, kServersMost}}},
        {"--threads",
         &bench.threads,
         "per compute server; 0: processors shared out, in sim 10",
         {{0, kThreadsMost}}},
        {"--scale-factor", &bench.scale_factor, "1 is six million lineorder rows"},
        {"--seed", &bench.seed, "other data of the same size"},
        {"--fan-out",
         &bench.fan_out,
         "parts per join key; 0: 8, or 16 for more than 8 compute servers",
         {{0, 32}}},
        {"--batch-bytes",
         Option::Bytes{&batch_bytes_},
         "size of a shuffle's messages",
         {{1024, fabric::kMaxSendBytes}}},
        Option::OneOf("--multicast", &bench.multicast, {"auto", "on", "off"}, "for pipelined build sides"),
        Option::OneOf("--tuples", &tuples_, {"narrow", "whole"},
                      "tuples of lineorder: narrow (needed columns) or whole"),
        {"--credits", &bench.messages.credits, "batches that a peer may send ahead", {{2, 64}}},
        {"--repeat", &bench.repeat, "rounds; figures are medians", {{1, 1'000}}},
        {"--generation", &generation_, "sim: fdr, edr, hdr, ndr, or a model's file"}};
  }
  bool has_charts() const override { return true; }
  bool simulated() const override { return fabric_ == "sim"; }
  absl::Status Check() override;
  absl::StatusOr<Report> Measure(Run& run) override { return simulated() ? InSim(run) : OnProcesses(run); }

 private:
  absl::StatusOr<Report> OnProcesses(Run& run);
  absl::StatusOr<Report> InSim(Run& run);
  Report ReportOf(const ShuffleBench& bench) const;
  int servers_most() const {
    return static_cast<int>(*std::max_element(options_.servers.begin(), options_.servers.end()));
  }
  uint64_t TableMemory() const {
    return MemoryForTables(SsbBenchmark().bytes_per_scale_factor * options_.scale_factor, memory_servers_);
  }

  std::string fabric_ = "shm";
  int memory_servers_ = 0;  // 0: 2, in sim 8
  uint64_t batch_bytes_ = 16 << 10;
  std::string tuples_ = "narrow";
  std::string generation_ = "fdr";
  ShuffleBench::Options options_ = {
      .tables = {2, 3, 4}, .threads = 0, .fan_out = 0, .repeat = 5, .messages = {.credits = 4}};
  // Checked:
  fabric::Kind kind_ = fabric::Kind::kShm;
  fabric::sim::NicModel nic_;
};

absl::Status Shuffle::Check() {
  ShuffleBench::Options& bench = options_;
  if (batch_bytes_ % 64 != 0) return absl::InvalidArgumentError("--batch-bytes is a multiple of 64");
  if (bench.messages.credits % 2 != 0) return absl::InvalidArgumentError("--credits is even");
  if (simulated()) {
    NAM_ASSIGN_OR_RETURN(nic_, fabric::sim::NicModel::Parse(generation_));
    bench.repeat = 1;
  } else {
    NAM_ASSIGN_OR_RETURN(kind_, fabric::ParseRealKind(fabric_));
  }
  if (bench.servers.empty()) bench.servers = {simulated() ? kSimulatedServers : 2};
  if (!simulated() && bench.servers.size() > 1)
    return absl::InvalidArgumentError("--compute-servers is one number; several with --fabric=sim");
  if (memory_servers_ == 0) memory_servers_ = simulated() ? static_cast<int>(kSimulatedServers) : 2;
  const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  if (bench.threads == 0)
    bench.threads =
        simulated() ? kSimulatedThreads : std::clamp(processors / bench.servers[0], 1u, kThreadsMost);
  if (bench.fan_out == 0) bench.fan_out = servers_most() > 8 ? 16 : 8;
  bench.whole_tuples = tuples_ == "whole";
  bench.messages.legs = *std::max_element(bench.tables.begin(), bench.tables.end()) - 1;
  bench.messages.batch_bytes = static_cast<uint32_t>(batch_bytes_);
  return dataset::Validate(dataset::GeneratorOptions{.scale_factor = bench.scale_factor});
}

Report Shuffle::ReportOf(const ShuffleBench& bench) const {
  Report report{
      .rows = ShuffleRows(bench),
      .summary = ShuffleSummary(bench),
      .remarks = absl::StrFormat(
          "%s; %d memory servers, %d threads a compute server, SSB at scale factor %g split into %d "
          "by each key, %s of lineorder, batches of %d bytes. \"shuffle\" finds its rows in the "
          "compute servers, as a shared-nothing system does; the pipelined plan reads them from "
          "memory servers.\n",
          simulated() ? absl::StrCat("Virtual time, ", generation_, ", ", nic_.ports, " ports a card")
                      : absl::StrCat("Medians over ", fabric_),
          memory_servers_, options_.threads, options_.scale_factor, options_.fan_out,
          options_.whole_tuples ? "whole tuples" : "the columns that are wanted", batch_bytes_),
      .correct = EqualAnswers(bench)};
  report.charts = ShuffleCharts(bench, report.rows);
  if (simulated()) report.config["ports"] = nic_.ports;
  return report;
}

/// Runs in a private cluster. The shuffle's servers are fabrics of this process.
absl::StatusOr<Report> Shuffle::OnProcesses(Run& run) {
  Report report;
  const auto measure = [&](catalog::Attachment& attachment, const ClusterOptions& options) -> absl::Status {
    NAM_ASSIGN_OR_RETURN(const ClusterAddress address, FindCluster(options));
    ShuffleBench::Cluster cluster{.attachment = &attachment};
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    for (int i = 0; i < servers_most(); ++i) {
      NAM_ASSIGN_OR_RETURN(fabrics.emplace_back(),
                           fabric::Open({.kind = kind_, .secret = address.secret, .host = "127.0.0.1"}));
      cluster.fabrics.push_back(fabrics.back().get());
    }
    NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
    cluster.session = session.get();
    run.OnCancel([&] { session->Cancel(); });
    ShuffleBench bench(cluster, options_);
    absl::Status status = bench.Load(run);
    if (status.ok()) status = bench.Measure(run);
    run.OnCancel();
    if (status.ok()) report = ReportOf(bench);
    return status;
  };
  NAM_RETURN_IF_ERROR(run.InCluster({.fabric = fabric_,
                                     .memory_servers = memory_servers_,
                                     .compute_servers = servers_most(),
                                     .memory_bytes = TableMemory(),
                                     .threads = static_cast<int>(options_.threads)},
                                    measure));
  return report;
}

/// Runs in virtual time. The shuffle's servers are processes on the hosts of the cluster's compute servers.
absl::StatusOr<Report> Shuffle::InSim(Run& run) {
  fabric::sim::World world({.seed = options_.seed, .nic = nic_, .replay = "nam bench shuffle --fabric=sim"});
  NAM_ASSIGN_OR_RETURN(const auto cluster,
                       simulation::Cluster::Start(world, {.memory_servers = memory_servers_,
                                                          .compute_servers = servers_most(),
                                                          .threads = static_cast<int>(options_.threads),
                                                          .memory_bytes = (TableMemory() + kRegionBytes) /
                                                                          kRegionBytes * kRegionBytes,
                                                          .region_bytes = kRegionBytes}));
  NAM_ASSIGN_OR_RETURN(const auto client, cluster->NewClient("client"));
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  ShuffleBench::Cluster on{
      .attachment = &client->attachment(), .session = &client->session(), .world = &world, .nic = nic_};
  for (int i = 0; i < memory_servers_; ++i)
    on.cards.push_back({cluster->HostOf(simulation::Cluster::Role::kMemory, i), CardRole::kRows});
  for (int i = 0; i < servers_most(); ++i) {
    on.cards.push_back({cluster->HostOf(simulation::Cluster::Role::kCompute, i), CardRole::kClients});
    NAM_ASSIGN_OR_RETURN(fabrics.emplace_back(), world.OpenFabric(on.cards.back().host, {.secret = kSecret}));
    on.fabrics.push_back(fabrics.back().get());
  }
  ShuffleBench bench(on, options_);
  NAM_RETURN_IF_ERROR(bench.Load(run));
  NAM_RETURN_IF_ERROR(bench.Measure(run));
  return ReportOf(bench);
}

}  // namespace

std::unique_ptr<Command> ShuffleCommand() {
  return std::make_unique<Shuffle>();
}

}  // namespace nam::bench
