#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/sim/nic_model.h"
#include "simulation/faults.h"
#include "simulation/result.h"
#include "simulation/ssb_answers.h"

/// Whole clusters in virtual time, one scenario a seed:
///
///     cluster of drawn shape ─▶ load ─▶ clients query, or commit ─▶ everything mended ─▶ drop all tables
///              └──────────────── an adversary breaks things ───────────┘      │               │
///                                                          everything must succeed      no memory is left
///
/// Meanwhile every answer is right, or an error of an expected code that names a server, no commit is lost,
/// and no statement takes for ever. docs/design/simulated-clusters.md.
namespace nam::simulation {

enum class Workloads : uint8_t {
  kAll,  // each seed draws one
  kSsb,
  kCheckout,
  kBank,
};

struct RunOptions {
  uint64_t seed = 1;
  Workloads workload = Workloads::kAll;
  fabric::sim::NicModel nic;
  FaultKinds faults;
  std::string trace_path;  // empty: no trace
};

/// `all`, `ssb`, `checkout`, `bank`.
absl::StatusOr<Workloads> ParseWorkload(const std::string& name);
const char* WorkloadName(Workloads workload);

/// The command that runs a seed again.
std::string ReplayCommand(const RunOptions& options);

/// Runs one seed to its end. A hang or a deadlock prints who waits for what and the replay command, and
/// ends the process with exit code 1.
RunResult Run(const RunOptions& options, const SsbAnswers& answers);

}  // namespace nam::simulation
