#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/sim/nic_model.h"
#include "simulation/faults.h"
#include "simulation/ssb_answers.h"

/// Whole clusters in virtual time, one scenario a seed:
///
///     cluster of drawn shape ─▶ load SSB ─▶ clients run queries ─▶ everything mended ─▶ drop all tables
///              └──────────────── an adversary breaks things ───────────┘      │               │
///                                                          every query must succeed     no memory is left
///
/// Meanwhile every answer is right, or an error of an expected code that names a server, and no statement
/// takes for ever. docs/design/simulated-clusters.md.
namespace nam::simulation {

struct RunOptions {
  uint64_t seed = 1;
  fabric::sim::NicModel nic;
  FaultKinds faults;
  std::string trace_path;  // empty: no trace
};

struct RunResult {
  uint64_t seed = 0;
  int statements = 0;
  int right = 0;
  int clean_errors = 0;
  int loads = 0;                      // of all tables, complete
  std::map<std::string, int> faults;  // injected, by kind
  std::map<std::string, int> errors;  // of statements and loads, by code
  double virtual_ms = 0;
  uint64_t trace_hash = 0;
  uint64_t trace_events = 0;
  /// Wrong answers, errors that are not clean, statements that took too long, memory left. Empty is good.
  std::vector<std::string> failures;
};

/// The command that runs a seed again.
std::string ReplayCommand(const RunOptions& options);

/// Runs one seed to its end. A hang or a deadlock prints who waits for what and the replay command, and
/// ends the process with exit code 1.
RunResult Run(const RunOptions& options, const SsbAnswers& answers);

}  // namespace nam::simulation
