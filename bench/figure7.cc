#include "bench/figure7.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/commands.h"
#include "bench/report.h"
#include "optimizer/join_cost.h"
#include "terminal/plot.h"

namespace nam::bench {

using plan::JoinAlgorithm;

namespace {

constexpr int kSteps = 20;
constexpr double kMsOfS = 1e3;
constexpr char kRemarks[] =
    "Milliseconds of a join of two relations of 1M tuples of 8 bytes, by the equations of the paper's "
    "sections 5.1 and 5.2 alone: c_mem = 1e-9 s a byte, c_net of messages of 2 KiB, Bloom filters with 10 % "
    "errors.\n";

struct AlgorithmCurve {
  const char* figure;
  Figure7Network network;
  JoinAlgorithm algorithm;

  std::string name() const { return absl::StrCat(network.name, " ", plan::NameOf(algorithm)); }
};
constexpr std::array kCurves = {AlgorithmCurve{"7a", kIpOverEthernet, JoinAlgorithm::kGhj},
                                AlgorithmCurve{"7a", kIpOverEthernet, JoinAlgorithm::kGhjBloom},
                                AlgorithmCurve{"7b", kIpOverInfiniBand, JoinAlgorithm::kGhj},
                                AlgorithmCurve{"7b", kIpOverInfiniBand, JoinAlgorithm::kGhjBloom},
                                AlgorithmCurve{"7b", kRdma, JoinAlgorithm::kRdmaGhj},
                                AlgorithmCurve{"7b", kRdma, JoinAlgorithm::kRrj}};

/// The largest selectivity at which the reduction does not lose.
double PaysBelow(const Figure7Network& network) {
  constexpr int kFine = 10'000;
  int pays = 0;
  for (int s = 0; s <= kFine; ++s) {
    const double selectivity = static_cast<double>(s) / kFine;
    if (Figure7Cost(JoinAlgorithm::kGhjBloom, network, selectivity) <=
        Figure7Cost(JoinAlgorithm::kGhj, network, selectivity))
      pays = s;
  }
  return static_cast<double>(pays) / kFine;
}

std::string ChartOf(const std::string& number, const std::string& title) {
  LinePlot plot{.title = title, .x_label = "join selectivity", .y_label = "ms", .series = {}};
  // A reduction pays up to where both curves meet: 0.8 by the paper's text, 0.7 by its graph.
  for (const auto& [selectivity, source] :
       {std::pair(0.8, "figure 7b: where a reduction stops to pay, by the text"),
        std::pair(0.7, "the same, by the graph")}) {
    plot.paper.push_back({.series = AlgorithmCurve{"7b", kIpOverInfiniBand, JoinAlgorithm::kGhjBloom}.name(),
                          .source = source,
                          .x = selectivity,
                          .y = kMsOfS * Figure7Cost(JoinAlgorithm::kGhj, kIpOverInfiniBand, selectivity)});
  }
  for (const AlgorithmCurve& curve : kCurves) {
    if (number != curve.figure) continue;
    LinePlot::Series& series = plot.series.emplace_back();
    series.name = curve.name();
    for (int s = 0; s <= kSteps; ++s) {
      const double selectivity = static_cast<double>(s) / kSteps;
      series.points.push_back(
          {selectivity, kMsOfS * Figure7Cost(curve.algorithm, curve.network, selectivity)});
    }
  }
  return SvgOf(plot);
}

}  // namespace

double Figure7Cost(JoinAlgorithm algorithm, const Figure7Network& network, double selectivity) {
  const double left = std::min(1.0, selectivity + kFigure7BloomError);
  const optimizer::ByteCosts costs{
      .memory = kFigure7MemoryByteS, .network = network.byte_s, .background = network.byte_s};
  return 2 * kFigure7Rows * kFigure7RowBytes * CostOf(optimizer::PassesOf(algorithm, left), costs);
}

Json Figure7Rows() {
  Json rows = Json::array();
  for (const AlgorithmCurve& curve : kCurves) {
    for (int s = 0; s <= kSteps; ++s) {
      const double selectivity = static_cast<double>(s) / kSteps;
      rows.push_back({{"figure", curve.figure},
                      {"network", curve.network.name},
                      {"algorithm", plan::NameOf(curve.algorithm)},
                      {"selectivity", selectivity},
                      {"ms", Rounded(kMsOfS * Figure7Cost(curve.algorithm, curve.network, selectivity))}});
    }
  }
  return rows;
}

Json Figure7Summary() {
  constexpr Figure7Network kLikeMemory{"memory", kFigure7MemoryByteS};
  const double rrj = Figure7Cost(JoinAlgorithm::kRrj, kLikeMemory, 1);
  return {{"reduction_pays_below_ipoeth", PaysBelow(kIpOverEthernet)},
          {"reduction_pays_below_ipoib", PaysBelow(kIpOverInfiniBand)},
          {"rrj_over_ghj", Rounded(Figure7Cost(JoinAlgorithm::kGhj, kLikeMemory, 1) / rrj)},
          {"rrj_over_rdma_ghj", Rounded(Figure7Cost(JoinAlgorithm::kRdmaGhj, kLikeMemory, 1) / rrj)}};
}

namespace {

class Figure7 final : public Command {
 public:
  Figure7() : Command("figure7", "costs of distributed joins by selectivity, by the paper's equations") {}

  std::vector<Option> Options() override { return {}; }
  bool has_charts() const override { return true; }
  bool simulated() const override { return true; }
  absl::StatusOr<Report> Measure(Run&) override {
    return Report{.config = {{"rows", kFigure7Rows},
                             {"row_bytes", kFigure7RowBytes},
                             {"memory_byte_s", kFigure7MemoryByteS},
                             {"bloom_error", kFigure7BloomError},
                             {"ipoeth_byte_s", kIpOverEthernet.byte_s},
                             {"ipoib_byte_s", kIpOverInfiniBand.byte_s},
                             {"rdma_byte_s", kRdma.byte_s}},
                  .rows = Figure7Rows(),
                  .summary = Figure7Summary(),
                  .remarks = kRemarks,
                  .charts = {ChartOf("7a", "Figure 7(a): joins over Ethernet"),
                             ChartOf("7b", "Figure 7(b): joins over InfiniBand")}};
  }
};

}  // namespace

std::unique_ptr<Command> Figure7Command() {
  return std::make_unique<Figure7>();
}

}  // namespace nam::bench
