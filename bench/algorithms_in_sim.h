#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/algorithm_work.h"
#include "fabric/sim/cache_model.h"
#include "fabric/sim/nic_model.h"
#include "terminal/json_report.h"

/// Joins and groups in virtual time: the real servers, sessions and operators over the sim fabric. Constants
/// (plan/work_cost.h) charge the work per row; the cache model charges its accesses.
namespace nam::bench {

inline constexpr int kCacheDivisorMax = 1024;

struct SimulatedServers {
  fabric::sim::NicModel nic;
  fabric::sim::CacheModel caches;  // the redesign paper's, scaled by 1/`cache_divisor`
  int memory_servers = 4;
  int compute_servers = 4;  // each on a memory server's host, if there are as many
  int threads = 8;          // per compute server
  // Per memory server:
  uint64_t memory_bytes = 0;
  uint64_t scratch_bytes = 0;
  uint64_t query_bytes = 0;  // per compute server, for queries
  uint64_t seed = 1;
};

/// The calling thread drives the world. `what`: `join`.
absl::Status RunInSim(const SimulatedServers& servers, const std::string& what, AlgorithmWork& work);

/// The model, for the report's configuration.
Json ModelJson(const SimulatedServers& servers, int cache_divisor);
/// The model as a sentence.
std::string ModelText(const SimulatedServers& servers, int cache_divisor);

}  // namespace nam::bench
