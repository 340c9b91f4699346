#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/algorithm_work.h"
#include "fabric/sim/cache_model.h"
#include "fabric/sim/nic_model.h"
#include "terminal/json_report.h"

/// Joins and groups in virtual time: the real servers, sessions and operators over the sim fabric. What a row
/// costs is charged by constants (plan/work_cost.h), what its accesses cost by the caches' model.
namespace nam::bench {

struct SimulatedServers {
  fabric::sim::NicModel nic;
  fabric::sim::CacheModel caches;
  int memory_servers = 4;
  int compute_servers = 4;  // each on the host of a memory server, if there are as many
  int threads = 8;          // that each compute server has
  // Each memory server has:
  uint64_t memory_bytes = 0;
  uint64_t scratch_bytes = 0;
  uint64_t query_bytes = 0;  // that queries have on each compute server
  uint64_t seed = 1;
};

/// `generation`: fdr, or a model's file. The caches are those of the redesign paper's machine, a `divisor` of
/// their size. NOT_FOUND, INVALID_ARGUMENT.
absl::StatusOr<SimulatedServers> ParseSimulatedServers(const std::string& generation, int threads,
                                                       int cache_divisor);

/// The calling thread drives the world. `what`: `bench join`.
absl::Status RunInSim(const SimulatedServers& servers, const std::string& what, AlgorithmWork& work);

/// What the report's configuration says of the model.
Json ModelJson(const SimulatedServers& servers, int cache_divisor);
/// The same as a sentence.
std::string ModelText(const SimulatedServers& servers, int cache_divisor);

}  // namespace nam::bench
