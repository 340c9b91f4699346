#include "bench/testbed_command.h"

#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "fabric/sim/nic_model.h"

namespace nam::bench {
namespace {

constexpr int kRoundMs = 4;           // less than a time slice, so that most rounds are undisturbed
constexpr int kSimulatedRoundMs = 1;  // virtual time

}  // namespace

std::vector<Option> TestbedCommand::WithTestbed(std::vector<Option> own) {
  std::vector<Option> common = {
      Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs", "sim"}, "to be measured"),
      {"--generation", &testbed_.generation, "sim: fdr, edr, hdr or ndr"},
      Option::Place("--rdma", &testbed_.rdma, "DEVICE[:PORT][,gid=N]", "verbs: the client's device"),
      Option::Place("--server-rdma", &testbed_.server_rdma, "DEVICE[:PORT][,gid=N]",
                    "verbs: the server's device"),
      {"--encrypt", &testbed_.encrypt, "encrypt network traffic (tcp)"},
      Option::Place("--server-host", &testbed_.server_host, "HOST", "the address that the server listens on"),
      Option::Within("--repeat", &repeat_, 1, 10'000, "rounds; figures are medians"),
      Option::Within("--round-ms", &round_ms_, 0, 60'000,
                     "duration of a measurement; 0: the fabric's default")};
  std::move(common.begin(), common.end(), std::back_inserter(own));
  return own;
}

absl::Status TestbedCommand::Check() {
  testbed_.kind = fabric::Kind::kSim;  // not a cluster's fabric, so it is not parsed
  if (!simulated()) {
    NAM_ASSIGN_OR_RETURN(testbed_.kind, fabric::ParseKind(fabric_));
  }
  if (testbed_.encrypt && testbed_.kind != fabric::Kind::kTcp)
    return absl::InvalidArgumentError("--encrypt is for --fabric=tcp");
  if (simulated()) repeat_ = 1;
  if (round_ms_ == 0) round_ms_ = simulated() ? kSimulatedRoundMs : kRoundMs;
  return simulated() ? fabric::sim::NicModel::Parse(testbed_.generation).status() : absl::OkStatus();
}

absl::StatusOr<Report> TestbedCommand::Measure(Run& run) {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Testbed> testbed, Testbed::Open(testbed_));
  return MeasureOn(*testbed, run);
}

}  // namespace nam::bench
