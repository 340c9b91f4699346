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

/// What `nam bench join` and `nam bench aggregate` have in common.
struct AlgorithmBenchOptions {
  std::vector<std::string> algorithms;
  std::string fabric = "shm";  // or sim, for a figure in virtual time
  int memory_servers = 0;      // 0: 2, in sim 4
  int compute_servers = 0;     // likewise
  int threads = 0;             // each side has; 0: one a processor, in sim 8 or 10 a server
  uint64_t scratch_bytes = 0;  // of each memory server; 0: enough
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
/// The numbers of servers and threads, and of rounds, that the options leave open; in sim as in the redesign
/// paper, with so many threads of a server.
AlgorithmBenchOptions WithDefaults(AlgorithmBenchOptions options, int simulated_threads);

/// Memory that a benchmark's largest case takes in all, beyond what servers need to run.
struct MemoryNeed {
  uint64_t table_bytes = 0;    // in memory servers: of two cases, see MemoryOf
  uint64_t scratch_bytes = 0;  // likewise
  uint64_t query_bytes = 0;    // in compute servers
  uint64_t own_bytes = 0;      // the tuples in this process, and what the loop by hand writes
  uint64_t peer_bytes = 0;

  uint64_t total() const { return table_bytes + scratch_bytes + query_bytes + own_bytes + peer_bytes; }
};
/// A private cluster gives each of its memory servers this.
struct ServerMemory {
  uint64_t memory_bytes = 0;
  uint64_t scratch_bytes = 0;
};
ServerMemory MemoryOf(const AlgorithmBenchOptions& options, const MemoryNeed& need);
/// INVALID_ARGUMENT, with the figures, if the host has less left.
absl::Status CheckNeed(const MemoryNeed& need, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());

/// Figure 8 is of so many tuples, of each relation.
inline constexpr uint64_t kFigure8Tuples = uint64_t{64} << 20;
/// The remark says what smaller sizes do not show.
std::string BelowFigure8();

/// The options but for the algorithms. INVALID_ARGUMENT says which one is wrong.
absl::Status Validate(const AlgorithmBenchOptions& options);
/// Threads of each side: a whole number a compute server.
int ThreadsOf(const AlgorithmBenchOptions& options);
/// Threads that make the data: of this host, also in sim.
int HostThreadsOf(const AlgorithmBenchOptions& options);

/// The options, understood.
struct AlgorithmBench {
  std::string command;               // `bench join`
  std::string title;                 // The page has it
  Json config;                       // The benchmark adds it to the report's
  std::vector<std::string> remarks;  // sentences below the table, and in the config
  std::vector<Algorithm> algorithms;
  MemoryNeed need;
  std::function<Json(const std::vector<CaseFigures>&)> summarize;
};

/// A private cluster, DuckDB in a process of its own and this process take turns. Leaves nothing behind.
/// kExitCheckFailed if their answers differ from what is expected.
int RunAlgorithmBench(const AlgorithmBenchOptions& options, const AlgorithmBench& bench, Workload& workload);

}  // namespace nam::bench
