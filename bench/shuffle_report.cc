#include "bench/shuffle_report.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/report.h"
#include "terminal/plot.h"

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

/// What the paper's text gives: times as ratios.
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

}  // namespace

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

}  // namespace nam::bench
