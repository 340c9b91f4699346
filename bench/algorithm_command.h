#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "bench/algorithm_case.h"
#include "bench/algorithm_report.h"
#include "bench/algorithm_work.h"
#include "bench/command.h"
#include "fabric/sim/cache_model.h"
#include "fabric/sim/nic_model.h"

namespace nam::bench {

/// The total memory of a benchmark's largest case, beyond what servers need to run.
struct MemoryNeed {
  /// In memory servers, for two cases: memory is freed within a second of DROP TABLE.
  uint64_t table_bytes = 0;
  uint64_t scratch_bytes = 0;  // the same
  uint64_t query_bytes = 0;    // in compute servers
  uint64_t own_bytes = 0;      // this process's tuples
  uint64_t peer_bytes = 0;

  uint64_t total() const { return table_bytes + scratch_bytes + query_bytes + own_bytes + peer_bytes; }
  /// The session's limit per query.
  uint64_t query_mib_max() const;
};
/// INVALID_ARGUMENT, with the figures, if the host lacks the memory.
absl::Status CheckNeed(const MemoryNeed& need, const std::vector<MemoryLimit>& limits = ReadMemoryLimits());
/// Estimates the memory for a join of `tuples` in both relations, without the peer.
MemoryNeed JoinNeed(uint64_t tuples);

/// The servers of a private cluster, with the memory for `need`. `threads`: of all compute servers.
/// `scratch_bytes`: per memory server; 0: enough.
LocalClusterOptions ClusterFor(const MemoryNeed& need, const std::string& fabric, int memory_servers,
                               int compute_servers, int threads, uint64_t scratch_bytes = 0);

/// Tuples per relation in figure 8.
inline constexpr uint64_t kFigure8Tuples = uint64_t{64} << 20;

/// The common parts of `nam bench join` and `nam bench aggregate`: a private cluster, DuckDB in its own
/// process and this process take turns; or, in `sim`, figure 8 of the redesign paper in virtual time.
class AlgorithmCommand : public Command {
 public:
  bool has_charts() const override { return true; }
  bool simulated() const override { return fabric_ == "sim"; }
  absl::Status Check() final;
  absl::StatusOr<Report> Measure(Run& run) final;

 protected:
  /// `simulated_threads`: per server in the paper's figure.
  AlgorithmCommand(std::string name, std::string help, const std::vector<Algorithm>& known,
                   std::vector<std::string> algorithms, int simulated_threads)
      : Command(std::move(name), std::move(help)),
        known_(known),
        simulated_threads_(simulated_threads),
        algorithm_names_(std::move(algorithms)) {}
  /// `own`, and the common options.
  std::vector<Option> WithAlgorithms(std::vector<Option> own);

  /// Fills in what was left open and makes the cases, after the common options are complete. Sets cases_,
  /// need_, config_ and remarks_.
  virtual absl::Status MakeCases() = 0;
  virtual Json Summarize(const std::vector<CaseFigures>& figures) const = 0;

  bool has_peer() const { return peer_ == "duckdb"; }
  uint64_t seed() const { return seed_; }
  /// Threads of this host that generate data, also in sim.
  int host_threads() const { return simulated() ? ThreadsOf(0, 1) : threads_; }
  /// Adds a remark on what fewer tuples than the paper's do not show.
  void RemarkOnSizes(const std::vector<uint64_t>& sizes);

  std::vector<AlgorithmCase> cases_;
  MemoryNeed need_;
  Json config_ = Json::object();
  std::vector<std::string> remarks_;  // sentences below the table and in the configuration

 private:
  absl::StatusOr<Report> OnProcesses(Run& run);
  absl::StatusOr<Report> InSim(Run& run);
  fabric::sim::NicModel NicInSim() const;
  fabric::sim::CacheModel CachesInSim() const;
  Json ModelJson() const;
  std::string ModelText() const;
  Report ReportOf(const AlgorithmWork& work, Json config);

  const std::vector<Algorithm>& known_;
  const int simulated_threads_;
  std::vector<std::string> algorithm_names_;
  std::vector<Algorithm> algorithms_;
  std::string fabric_ = "shm";
  int memory_servers_ = 0;      // 0: 2, in sim 4
  int compute_servers_ = 0;     // 0: 2, in sim 4
  int threads_ = 0;             // per side; 0: one per processor, in sim the paper's number per server
  uint64_t scratch_bytes_ = 0;  // per memory server; 0: enough
  uint64_t seed_ = 1;
  int repeat_ = 3;
  std::string peer_ = "none";
  std::string peer_dir_ = "bench/duckdb_peer";
  // In sim:
  std::string generation_ = "fdr";
  int cache_divisor_ = 8;
};

}  // namespace nam::bench
