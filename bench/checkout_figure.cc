#include "bench/checkout_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "terminal/plot.h"

namespace nam::bench {
namespace {

constexpr std::array<const char*, 3> kProtocols = {kRsi, kTwoPhaseSend, kTwoPhaseTcp};
constexpr int64_t kRsiRunUs = 3'000;
constexpr int64_t kSendRunUs = 6'000;
constexpr int64_t kTcpRunUs = 60'000;
constexpr uint32_t kTwoPhaseClientsMost = 250;
constexpr uint32_t kPaperClients = 70;  // the paper's figure ends there

/// Figures 2 and 3 of the redesign paper, with 2.2 GHz processors: an RDMA message costs its sender and its
/// receiver 450 cycles each; one of TCP over InfiniBand costs 13,264 cycles and has a latency of 20 µs, at
/// 3.5 GB/s.
constexpr double kCyclesPerNs = 2.2;
constexpr MessageCost kRdmaMessage = {.message_cpu_ns = static_cast<int64_t>(450 / kCyclesPerNs)};
constexpr MessageCost kTcpMessage = {.message_cpu_ns = static_cast<int64_t>(13'264 / kCyclesPerNs),
                                     .latency_ns = 20'000,
                                     .port_bytes_per_us = 3'500};

struct ProtocolCurve {
  std::string protocol;
  std::vector<SimulatedRates> rates;  // by clients

  double At(uint32_t clients) const {
    for (const SimulatedRates& each : rates) {
      if (each.clients == clients) return each.committed_per_s;
    }
    return 0;
  }
};

/// The rate at which the cards' busiest unit would never be idle.
double LimitOf(const SimulatedRates& rates) {
  return rates.busiest.fraction <= 0 ? 0 : rates.committed_per_s / rates.busiest.fraction;
}

class CheckoutFigure {
 public:
  CheckoutFigure(const CheckoutBenchOptions& options, fabric::sim::NicModel nic)
      : options_(options), world_(options.world) {
    world_.nic = std::move(nic);
  }

  absl::Status Measure(Run& run) {
    for (const char* protocol : kProtocols) {
      if (!Wanted(protocol)) continue;
      ProtocolCurve& curve = curves_.emplace_back(ProtocolCurve{.protocol = protocol});
      if (!run.Proceed(absl::StrCat(protocol, ", loading"))) return absl::CancelledError("interrupted");
      NAM_ASSIGN_OR_RETURN(const std::unique_ptr<SimulatedCheckout> checkout, Open(protocol));
      for (const uint32_t clients : options_.clients) {
        if (!run.Proceed(absl::StrCat(protocol, ", ", clients, " clients"))) {
          return absl::CancelledError("interrupted");
        }
        NAM_ASSIGN_OR_RETURN(curve.rates.emplace_back(), checkout->Run(clients));
      }
      NAM_ASSIGN_OR_RETURN(const tpcw::CheckoutInvariants invariants, checkout->Check());
      if (!invariants.ok()) {
        adds_up_ = false;
        std::cerr << protocol << ": " << invariants.ToString() << "\n";
      }
    }
    return absl::OkStatus();
  }

  bool adds_up() const { return adds_up_; }
  Json Rows() const;
  Json Summary() const;
  Json Config() const;
  std::string Remarks() const;
  std::string Chart(bool log_y) const;

 private:
  absl::StatusOr<std::unique_ptr<SimulatedCheckout>> Open(const std::string& protocol) const {
    SimulatedCheckoutOptions world = world_;
    if (protocol == kRsi) {
      world.measured_us = kRsiRunUs;
      return SimulatedCheckout::Rsi(world);
    }
    world.measured_us = protocol == kTwoPhaseSend ? kSendRunUs : kTcpRunUs;
    world.message = protocol == kTwoPhaseSend ? kRdmaMessage : kTcpMessage;
    return SimulatedCheckout::TwoPhase(world);
  }
  bool Wanted(const std::string& protocol) const {
    const std::vector<std::string>& wanted = options_.protocols;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), protocol) != wanted.end();
  }
  /// Null if it was not run.
  const ProtocolCurve* CurveOf(const std::string& protocol) const {
    const auto found = std::find_if(curves_.begin(), curves_.end(),
                                    [&](const ProtocolCurve& curve) { return curve.protocol == protocol; });
    return found == curves_.end() ? nullptr : &*found;
  }
  static double Ideal(const ProtocolCurve& curve, uint32_t clients) {
    const SimulatedRates& first = curve.rates.front();
    return std::min(first.committed_per_s / first.clients * clients, LimitOf(curve.rates.back()));
  }
  void SummarizeRsi(const ProtocolCurve& rsi, Json& summary) const;

  const CheckoutBenchOptions& options_;
  SimulatedCheckoutOptions world_;
  std::vector<ProtocolCurve> curves_;
  bool adds_up_ = true;
};

Json CheckoutFigure::Rows() const {
  Json rows = Json::array();
  for (const ProtocolCurve& curve : curves_) {
    for (const SimulatedRates& each : curve.rates) {
      rows.push_back({{"protocol", curve.protocol},
                      {"clients", each.clients},
                      {"committed_per_s", std::llround(each.committed_per_s)},
                      {"p50_us", Rounded(each.p50_us)},
                      {"p99_us", Rounded(each.p99_us)},
                      {"aborts_per_commit", Rounded(each.aborts_per_commit)},
                      {"server_bytes_per_commit", std::llround(each.bytes_per_commit)},
                      {"server_messages_per_commit", Rounded(each.messages_per_commit)},
                      {"busiest_card", each.busiest.what},
                      {"busy", Rounded(each.busiest.fraction)}});
    }
  }
  return rows;
}

void CheckoutFigure::SummarizeRsi(const ProtocolCurve& rsi, Json& summary) const {
  const SimulatedRates& most = rsi.rates.back();
  const double limit = LimitOf(most);
  double linearity = 1;
  for (const SimulatedRates& each : rsi.rates) {
    const double linear = rsi.rates.front().committed_per_s / rsi.rates.front().clients * each.clients;
    if (linear <= limit) linearity = std::min(linearity, each.committed_per_s / linear);
  }
  summary["rsi_committed_per_s"] = std::llround(most.committed_per_s);
  summary["rsi_limit_per_s"] = std::llround(limit);
  summary["rsi_first_bottleneck"] = most.busiest.what;
  summary["rsi_linearity"] = Rounded(linearity);
  for (const SimulatedRates& each : rsi.rates) {
    if (each.clients != kPaperClients && each.clients != most.clients) continue;
    summary[absl::StrCat("rsi_over_limit_at_", each.clients)] = Rounded(each.busiest.fraction);
  }
}

Json CheckoutFigure::Summary() const {
  Json summary = Json::object();
  const ProtocolCurve* const rsi = CurveOf(kRsi);
  if (rsi != nullptr) SummarizeRsi(*rsi, summary);
  for (const auto& [protocol, name] :
       {std::pair(kTwoPhaseSend, "2pc_send"), std::pair(kTwoPhaseTcp, "2pc_tcp")}) {
    const ProtocolCurve* const other = CurveOf(protocol);
    if (rsi == nullptr || other == nullptr) continue;
    const SimulatedRates& most = rsi->rates.back();
    summary[absl::StrCat("rsi_over_", name)] =
        Rounded(most.committed_per_s / std::max(1e-9, other->At(most.clients)));
  }
  summary["adds_up"] = adds_up_;
  return summary;
}

Json CheckoutFigure::Config() const {
  return {{"ports", world_.nic.ports},
          {"send_message_cpu_ns", kRdmaMessage.message_cpu_ns},
          {"tcp_message_cpu_ns", kTcpMessage.message_cpu_ns}};
}

std::string CheckoutFigure::Remarks() const {
  return absl::StrFormat(
      "Virtual time, %s network, %d ports a card: %d servers with %d products of %d bytes, 1 for timestamps "
      "or as transaction manager (%d threads, and %d participants), clients on %d machines. rsi_limit is "
      "the rate at which the busiest unit of all cards would never be idle.\n",
      world_.nic.name, world_.nic.ports, world_.row_servers, world_.checkout.products,
      world_.checkout.product_bytes, world_.coordinators, world_.participants, world_.client_machines);
}

std::string CheckoutFigure::Chart(bool log_y) const {
  LinePlot lines =
      PlotRows(Rows(), {.title = log_y ? "The same on a logarithmic scale" : "Checkouts a second by clients",
                        .series = "protocol",
                        .x = "clients",
                        .y = "committed_per_s",
                        .x_label = "clients",
                        .y_label = "committed/s"});
  lines.log_y = log_y;
  constexpr char kFigure6[] = "figure 6 (of sockets: over InfiniBand)";
  lines.paper = {{kRsi, kFigure6, kPaperClients, 1.8e6},
                 {kTwoPhaseSend, kFigure6, {}, 1.1e6},
                 {kTwoPhaseSend, kFigure6, kPaperClients, 0.32e6},
                 {kTwoPhaseTcp, kFigure6, {}, 22e3}};
  const ProtocolCurve* const rsi = CurveOf(kRsi);
  if (rsi == nullptr) return SvgOf(lines);
  LinePlot::Series& ideal = lines.series.emplace_back(
      LinePlot::Series{.name = "linear, up to the limit", .points = {}, .dashed = true});
  for (uint32_t clients = 1; clients <= rsi->rates.back().clients; ++clients)
    ideal.points.push_back({static_cast<double>(clients), Ideal(*rsi, clients)});
  return SvgOf(lines);
}

}  // namespace

absl::Status CheckFigureOptions(CheckoutBenchOptions& options) {
  const std::vector<std::string>& protocols = options.protocols;
  const bool rsi_alone = !protocols.empty() && std::all_of(protocols.begin(), protocols.end(),
                                                           [](const auto& name) { return name == kRsi; });
  if (options.clients.empty()) options.clients = {1, 2, 5, 10, 20, 30, 40, 50, 60, kPaperClients, 100, 140};
  std::sort(options.clients.begin(), options.clients.end());
  if (!rsi_alone && options.clients.back() > kTwoPhaseClientsMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--clients is 1 to ", kTwoPhaseClientsMost, "; with --protocols=rsi more"));
  }
  return fabric::sim::NicModel::Parse(options.generation).status();
}

absl::StatusOr<Report> MeasureCheckoutFigure(const CheckoutBenchOptions& options, Run& run) {
  NAM_ASSIGN_OR_RETURN(fabric::sim::NicModel nic, fabric::sim::NicModel::Parse(options.generation));
  CheckoutFigure figure(options, std::move(nic));
  NAM_RETURN_IF_ERROR(figure.Measure(run));
  return Report{.config = figure.Config(),
                .rows = figure.Rows(),
                .summary = figure.Summary(),
                .remarks = figure.Remarks(),
                .charts = {figure.Chart(false), figure.Chart(true)},
                .correct = figure.adds_up()};
}

}  // namespace nam::bench
