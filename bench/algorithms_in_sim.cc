#include "bench/algorithms_in_sim.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "execution/exchange/endpoint.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{64} << 20;
/// The longest loop over all tuples between two calls of the fabric.
constexpr int64_t kStuckRealMs = 1'800'000;

}  // namespace

absl::Status RunInSim(const SimulatedServers& servers, const std::string& what, AlgorithmWork& work) {
  fabric::sim::WorldOptions options;
  options.seed = servers.seed;
  options.nic = servers.nic;
  options.caches = servers.caches;
  options.stuck_real_ms = kStuckRealMs;
  options.replay = absl::StrCat("nam bench ", what, " --fabric=sim");
  fabric::sim::World world(options);
  NAM_ASSIGN_OR_RETURN(const auto cluster,
                       simulation::Cluster::Start(world, {.memory_servers = servers.memory_servers,
                                                          .compute_servers = servers.compute_servers,
                                                          .threads = servers.threads,
                                                          .shared_hosts = true,
                                                          .memory_bytes = servers.memory_bytes,
                                                          .region_bytes = kRegionBytes,
                                                          .scratch_bytes = servers.scratch_bytes,
                                                          .compute_memory_bytes = std::max(
                                                              servers.query_bytes, uint64_t{4} << 30)}));
  NAM_ASSIGN_OR_RETURN(const auto client, cluster->NewClient("client"));
  return work.RunOn(client->attachment());
}

Json ModelJson(const SimulatedServers& servers, int cache_divisor) {
  const fabric::sim::CacheModel& caches = servers.caches;
  return {{"generation", servers.nic.name},
          {"ports", servers.nic.ports},
          {"port_bytes_per_us", servers.nic.port_bytes_per_us},
          {"processors", caches.name},
          {"cache_divisor", cache_divisor},
          {"l1_bytes", caches.l1_bytes},
          {"l2_bytes", caches.l2_bytes},
          {"l3_bytes_of_thread", caches.l3_bytes},
          {"l2_access_ps", caches.l2_ps},
          {"l3_access_ps", caches.l3_ps},
          {"memory_access_ps", caches.memory_ps},
          {"socket_message_ps", execution::kIpOverInfinibandCost.message_ps},
          {"socket_window_bytes", execution::kIpOverInfinibandCost.window_bytes}};
}

std::string ModelText(const SimulatedServers& servers, int cache_divisor) {
  const fabric::sim::CacheModel& caches = servers.caches;
  const auto ns = [](int64_t ps) { return static_cast<double>(ps) / 1e3; };
  return absl::StrFormat(
      "Virtual time: %d servers for memory and %d for queries with %d threads each, %s network of %d ports. "
      "Caches of %s, %d times smaller: %s, %s and %s of a thread; an access costs %.1f ns in the second, "
      "%.1f "
      "in the third, %.1f in memory. A message of sockets costs either side %.1f us for up to %d bytes.\n",
      servers.memory_servers, servers.compute_servers, servers.threads, servers.nic.name, servers.nic.ports,
      caches.name, cache_divisor, FormatBytes(caches.l1_bytes), FormatBytes(caches.l2_bytes),
      FormatBytes(caches.l3_bytes), ns(caches.l2_ps), ns(caches.l3_ps), ns(caches.memory_ps),
      ns(execution::kIpOverInfinibandCost.message_ps) / 1e3, execution::kIpOverInfinibandCost.window_bytes);
}

}  // namespace nam::bench
