#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/host_memory.h"
#include "bench/algorithm.h"
#include "bench/algorithm_report.h"
#include "bench/workload.h"

namespace nam::bench {

/// The common options of `nam bench join` and `nam bench aggregate`.
struct AlgorithmBenchOptions {
  std::vector<std::string> algorithms;
  std::string fabric = "shm";  // or sim, for a figure in virtual time
  int memory_servers = 0;      // 0: 2, in sim 4
  int compute_servers = 0;     // 0: 2, in sim 4
  int threads = 0;             // per side; 0: one per processor, in sim 8 or 10 per server
  uint64_t scratch_bytes = 0;  // per memory server; 0: enough
  uint64_t seed = 1;
  int repeat = 3;
  std::string peer = "none";  // none, duckdb
  std::string peer_dir = "bench/duckdb_peer";
  std::string html;
  std::string format = "table";
  // In sim:
  std::string generation = "fdr";
  int cache_divisor = 8;

  bool simulated() const { return fabric == "sim"; }
};
/// Fills in open numbers of servers, threads and rounds; in sim as in the redesign paper, with
/// `simulated_threads` per server.
AlgorithmBenchOptions WithDefaults(AlgorithmBenchOptions options, int simulated_threads);

/// The total memory of a benchmark's largest case, beyond what servers need to run.
struct MemoryNeed {
  uint64_t table_bytes = 0;    // in memory servers, for two cases: see MemoryOf
  uint64_t scratch_bytes = 0;  // the same
  uint64_t query_bytes = 0;    // in compute servers
  uint64_t own_bytes = 0;      // this process's tuples, and the output of the hand-written loop
  uint64_t peer_bytes = 0;

  uint64_t total() const { return table_bytes + scratch_bytes + query_bytes + own_bytes + peer_bytes; }
};
/// The memory of each memory server of a private cluster.
struct ServerMemory {
  uint64_t memory_bytes = 0;
  uint64_t scratch_bytes = 0;
};
ServerMemory MemoryOf(const AlgorithmBenchOptions& options, const MemoryNeed& need);
/// INVALID_ARGUMENT, with the figures, if the host lacks the memory.
absl::Status CheckNeed(const MemoryNeed& need, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// Tuples per relation in figure 8.
inline constexpr uint64_t kFigure8Tuples = uint64_t{64} << 20;
/// A remark on what smaller sizes do not show.
std::string BelowFigure8();

/// Checks the options except the algorithms. INVALID_ARGUMENT names the wrong one.
absl::Status Validate(const AlgorithmBenchOptions& options);
/// Threads per side: a multiple of the number of compute servers.
int ThreadsOf(const AlgorithmBenchOptions& options);
/// Threads of this host that generate data, also in sim.
int HostThreadsOf(const AlgorithmBenchOptions& options);

/// The parsed options.
struct AlgorithmBench {
  std::string command;               // `bench join`
  std::string title;                 // title of the HTML page
  Json config;                       // added to the report's configuration
  std::vector<std::string> remarks;  // sentences below the table and in the configuration
  std::vector<Algorithm> algorithms;
  MemoryNeed need;
  std::function<Json(const std::vector<CaseFigures>&)> summarize;
};

/// Lets a private cluster, DuckDB in its own process, and this process take turns. Leaves nothing behind.
/// kExitCheckFailed if an answer differs from the expected one.
int RunAlgorithmBench(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, Workload& workload);

}  // namespace nam::bench
