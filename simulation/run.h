#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/sim/nic_model.h"
#include "simulation/benchmark_answers.h"
#include "simulation/faults.h"
#include "simulation/result.h"

/// Whole clusters in virtual time, one scenario per seed:
///
///     cluster of drawn shape ─▶ load ─▶ clients query, or commit ─▶ everything mended ─▶ drop all tables
///              └──────────────── an adversary breaks things ───────────┘      │               │
///                                                          everything must succeed      no memory is left
///
/// Meanwhile every answer is right or an error of an expected code that names a server, no commit is lost,
/// and every statement ends in time. docs/design/simulated-clusters.md.
namespace nam::simulation {

enum class Workloads : uint8_t {
  kAll,  // each seed draws one
  kSsb,
  kTpch,
  kCheckout,
  kBank,
  kShop,
};

struct RunOptions {
  uint64_t seed = 1;
  Workloads workload = Workloads::kAll;
  fabric::sim::NicModel nic;
  FaultKinds faults;
  std::string trace_path;  // empty: no trace
};

/// `all`, `ssb`, `tpch`, `checkout`, `bank`, `shop`.
absl::StatusOr<Workloads> ParseWorkload(const std::string& name);
const char* WorkloadName(Workloads workload);

/// The command that replays a seed.
std::string ReplayCommand(const RunOptions& options);

/// The benchmarks that a workload may need; others are null.
struct QueryAnswers {
  std::unique_ptr<BenchmarkAnswers> ssb, tpch;
};
absl::StatusOr<QueryAnswers> MakeAnswers(Workloads workload, double scale_factor);

/// Runs one seed to its end. A hang or a deadlock prints all waiting threads and the replay command, and ends
/// the process with exit code 1.
RunResult Run(const RunOptions& options, const QueryAnswers& answers);

}  // namespace nam::simulation
