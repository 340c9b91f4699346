#include "bench/shuffle_report.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/report.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

using Figures = ShuffleBench::Figures;
using Plan = ShuffleBench::Plan;

constexpr uint32_t kFigureServers = 8;  // in the paper's figure
constexpr double kMiB = 1 << 20;

std::vector<uint32_t> Numbers(const ShuffleBench& bench, uint32_t Figures::*number) {
  std::set<uint32_t> numbers;
  for (const Figures& each : bench.figures()) numbers.insert(each.*number);
  return {numbers.begin(), numbers.end()};
}

uint32_t FigureServers(const ShuffleBench& bench) {
  const std::vector<uint32_t> servers = Numbers(bench, &Figures::servers);
  const bool there = std::find(servers.begin(), servers.end(), kFigureServers) != servers.end();
  return there ? kFigureServers : servers.back();
}

/// 0 if one of them was not measured.
double OverPipelined(const ShuffleBench& bench, uint32_t tables, uint32_t servers, Plan plan) {
  const Figures* const ours = bench.Find(tables, servers, Plan::kPipelined);
  const Figures* const theirs = bench.Find(tables, servers, plan);
  return ours == nullptr || theirs == nullptr ? 0 : theirs->median_ms() / ours->median_ms();
}

double Efficiency(const ShuffleBench& bench, uint32_t tables, uint32_t servers, uint32_t fewest, Plan plan) {
  const double all = bench.Find(tables, servers, plan)->median_ms() * servers;
  return bench.Find(tables, fewest, plan)->median_ms() * fewest / all;
}

double PerRow(int64_t ns, uint64_t rows) {
  return rows == 0 ? 0 : Rounded(static_cast<double>(ns) / static_cast<double>(rows));
}

/// `shuffle_materialized`, for the summary.
std::string KeyOf(Plan plan) {
  switch (plan) {
    case Plan::kPipelined:
      return "pipelined";
    case Plan::kShuffle:
      return "shuffle";
    case Plan::kShuffleMaterialized:
      return "shuffle_materialized";
    case Plan::kShuffleFromMemory:
      return "shuffle_from_memory_servers";
  }
  return "";
}

std::string BarsOf(const ShuffleBench& bench) {
  BarPlot bars{.title = absl::StrCat("Milliseconds on ", FigureServers(bench), " compute servers"),
               .y_label = "ms"};
  for (const uint32_t tables : Numbers(bench, &Figures::tables))
    bars.categories.push_back(absl::StrCat(tables, " tables"));
  for (const Plan plan : ShuffleBench::kPlans) {
    BarPlot::Series& series = bars.series.emplace_back(BarPlot::Series{.name = ShuffleBench::NameOf(plan)});
    for (const uint32_t tables : Numbers(bench, &Figures::tables)) {
      const Figures& figures = *bench.Find(tables, FigureServers(bench), plan);
      series.values.push_back(figures.median_ms());
      series.spread.push_back(SpreadOf(figures.ms));
    }
  }
  return SvgOf(bars);
}

/// What the paper's text gives: times as ratios.
std::string RatiosOf(const ShuffleBench& bench) {
  LinePlot lines{.title = "Time over the pipelined plan's, by joined tables",
                 .x_label = "tables",
                 .y_label = "over pipelined",
                 .series = {}};
  for (const Plan plan : ShuffleBench::kPlans) {
    if (plan == Plan::kPipelined) continue;
    LinePlot::Series& series =
        lines.series.emplace_back(LinePlot::Series{.name = ShuffleBench::NameOf(plan), .points = {}});
    for (const uint32_t tables : Numbers(bench, &Figures::tables)) {
      series.points.push_back(
          {static_cast<double>(tables), OverPipelined(bench, tables, FigureServers(bench), plan)});
    }
  }
  constexpr char kFigure7a[] = "I-Store, figure 7a";
  const std::string shuffle = ShuffleBench::NameOf(Plan::kShuffle);
  lines.paper = {{shuffle, kFigure7a, 2, 1}, {shuffle, kFigure7a, 4, 3}};
  return SvgOf(lines);
}

std::string LinesOf(const ShuffleBench& bench, uint32_t tables) {
  LinePlot lines{.title = absl::StrCat("Rows a second by compute servers, ", tables, " tables"),
                 .x_label = "compute servers",
                 .y_label = "lineorder rows/s",
                 .series = {}};
  const std::vector<uint32_t> all = Numbers(bench, &Figures::servers);
  const auto rate = [&](uint32_t servers, Plan plan) {
    return static_cast<double>(bench.lineorder_rows()) * 1e3 / bench.Find(tables, servers, plan)->median_ms();
  };
  for (const Plan plan : ShuffleBench::kPlans) {
    LinePlot::Series& series =
        lines.series.emplace_back(LinePlot::Series{.name = ShuffleBench::NameOf(plan), .points = {}});
    for (const uint32_t servers : all)
      series.points.push_back({static_cast<double>(servers), rate(servers, plan)});
  }
  LinePlot::Series& linear =
      lines.series.emplace_back(LinePlot::Series{.name = "linear", .points = {}, .dashed = true});
  for (const uint32_t servers : all) {
    linear.points.push_back(
        {static_cast<double>(servers), rate(all.front(), Plan::kPipelined) / all.front() * servers});
  }
  return SvgOf(lines);
}

}  // namespace

bool EqualAnswers(const ShuffleBench& bench) {
  return std::all_of(bench.figures().begin(), bench.figures().end(),
                     [](const Figures& each) { return each.equal; });
}

Json ShuffleRows(const ShuffleBench& bench) {
  Json rows = Json::array();
  for (const Figures& each : bench.figures()) {
    Json& row = rows.emplace_back(
        Json{{"tables", each.tables},
             {"compute_servers", each.servers},
             {"plan", ShuffleBench::NameOf(each.plan)},
             {"median_ms", Rounded(each.median_ms())},
             {"rounds_ms", Rounded(each.ms)},
             {"over_pipelined", Rounded(OverPipelined(bench, each.tables, each.servers, each.plan))},
             {"answer", each.equal ? "equal" : "DIFFERENT"}});
    if (each.busiest_fraction >= 0) {
      row["network_mib"] = Rounded(each.network_bytes / kMiB);
      row["busiest_card"] = each.busiest_card;
      row["busy"] = Rounded(each.busiest_fraction);
    }
    if (each.plan == Plan::kPipelined) continue;
    const ShuffleWork& work = each.work;
    row["shuffled_mib"] = Rounded(static_cast<double>(each.sent_bytes) / kMiB);
    row["route_ns_per_row"] = PerRow(work.ns[ShuffleWork::kRoute], work.routed_rows);
    row["probe_ns_per_row"] = PerRow(work.ns[ShuffleWork::kProbe], work.probed_rows);
    row["sink_ns_per_row"] = PerRow(work.ns[ShuffleWork::kSink], work.sunk_rows);
  }
  return rows;
}

Json ShuffleSummary(const ShuffleBench& bench) {
  Json summary = Json::object();
  for (const Plan plan : ShuffleBench::kPlans) {
    if (plan == Plan::kPipelined) continue;
    for (const uint32_t tables : Numbers(bench, &Figures::tables)) {
      summary[absl::StrCat(KeyOf(plan), "_over_pipelined_", tables, "_tables")] =
          Rounded(OverPipelined(bench, tables, FigureServers(bench), plan));
    }
  }
  const std::vector<uint32_t> servers = Numbers(bench, &Figures::servers);
  const uint32_t tables = Numbers(bench, &Figures::tables).back();
  for (const Plan plan : {Plan::kPipelined, Plan::kShuffle}) {
    for (size_t i = 1; i < servers.size(); ++i) {
      summary[absl::StrCat(KeyOf(plan), "_efficiency_", servers[i], "_servers")] =
          Rounded(Efficiency(bench, tables, servers[i], servers[0], plan));
    }
  }
  summary["equal_answers"] = EqualAnswers(bench);
  return summary;
}

std::vector<std::string> ShuffleCharts(const ShuffleBench& bench) {
  std::vector<std::string> charts = {BarsOf(bench), RatiosOf(bench)};
  if (Numbers(bench, &Figures::servers).size() > 1) {
    for (const uint32_t tables : Numbers(bench, &Figures::tables)) charts.push_back(LinesOf(bench, tables));
  }
  return charts;
}

}  // namespace nam::bench
