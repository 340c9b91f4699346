#include "cli/benchmark_page.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "terminal/plot.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

constexpr double kMib = 1 << 20;

BarPlot::Series SeriesOf(const std::string& name, const std::vector<QueryOutcome>& outcomes,
                         const std::function<double(const QueryOutcome&)>& value) {
  BarPlot::Series series{.name = name};
  for (const QueryOutcome& outcome : outcomes) series.values.push_back(value(outcome));
  return series;
}

std::string CountIn(const Json& config, const char* key, const char* one) {
  return CountOf(config.value(key, uint64_t{0}), one);
}

std::string Remarks(const Benchmark& benchmark, const Json& config) {
  return absl::StrCat(
      "Fabric ", config.value("fabric", "?"), ", ", CountIn(config, "memory_servers", "memory server"), ", ",
      CountIn(config, "compute_servers", "compute server"), "; ", benchmark.largest_table, " has ",
      CountIn(config, absl::StrCat(benchmark.largest_table, "_rows").c_str(), "row"), ", blocks are of ",
      config.value("block_bytes", uint64_t{0}), " bytes at most. Each query was run ",
      CountIn(config, "repeat", "time"),
      "; times are medians, thin lines all runs. Rows and bytes are those of the last run, over all "
      "pipelines and compute "
      "servers; bytes that were looked at in place count too. Working and waiting are sums over the compute "
      "servers' threads.");
}

}  // namespace

std::string BenchmarkPage(const Benchmark& benchmark, const std::vector<QueryOutcome>& outcomes,
                          const Json& config) {
  PlotPage page{.title = absl::StrCat("nam ", benchmark.name, " run"),
                .text = Remarks(benchmark, config),
                .rows = QueriesJson(outcomes)};
  std::vector<std::string> queries;
  for (const QueryOutcome& outcome : outcomes) queries.push_back(outcome.id);
  const auto add = [&](const std::string& title, const std::string& unit,
                       std::vector<BarPlot::Series> series) {
    page.figures.push_back(
        SvgOf(BarPlot{.title = title, .y_label = unit, .categories = queries, .series = std::move(series)}));
  };
  BarPlot::Series times = SeriesOf("median", outcomes, [](const QueryOutcome& o) { return o.median_ms; });
  for (const QueryOutcome& outcome : outcomes)
    times.spread.push_back(SpreadOf({outcome.min_ms, outcome.max_ms}));
  add("Time of each query", "ms", {std::move(times)});
  add("Rows that compute servers streamed", "rows", {SeriesOf("rows", outcomes, [](const QueryOutcome& o) {
        return static_cast<double>(o.result.work.rows);
      })});
  add("Bytes moved from memory servers", "MiB", {SeriesOf("MiB", outcomes, [](const QueryOutcome& o) {
        return static_cast<double>(o.result.work.bytes) / kMib;
      })});
  add("Time of their threads", "ms",
      {SeriesOf("working", outcomes, [](const QueryOutcome& o) { return o.working_ms; }),
       SeriesOf("waiting for blocks", outcomes, [](const QueryOutcome& o) { return o.waiting_ms; })});
  return HtmlOf(page);
}

}  // namespace nam::cli
