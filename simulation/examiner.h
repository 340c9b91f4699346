#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "simulation/cluster.h"
#include "simulation/result.h"

namespace nam::simulation {

/// Outside events that may have affected a statement or a transaction.
struct Circumstances {
  bool cancelled = false;
  bool replaced = false;  // its tables were replaced meanwhile
  bool killed = false;    // its client was killed
};

/// Judges the answers to clients, and records failures in a RunResult.
class Examiner {
 public:
  static constexpr int kAttemptsMax = 60;
  static constexpr int64_t kAttemptPauseUs = 500'000;
  /// Far beyond the sum of all timeouts of a statement.
  static constexpr int64_t kStatementNsMax = 120'000'000'000;

  Examiner(Cluster& cluster, RunResult& result) : cluster_(cluster), result_(result) {}

  Cluster& cluster() { return cluster_; }
  RunResult& result() { return result_; }

  void Fail(const std::string& what);
  /// An error must have an expected code and a message that names a server, or follow from the circumstances.
  void CheckClean(const std::string& what, const absl::Status& status, const Circumstances& circumstances);
  void CheckDuration(const std::string& what, int64_t took_ns);

  /// Attaches, retrying; null, and a failure, if it takes too long.
  std::unique_ptr<Client> NewClient(const std::string& host);
  bool Alive(const Client& client) const { return cluster_.world().Alive(client.process()); }
  void Pause(int64_t us);
  /// Checks that soon no memory server holds more than `bytes`.
  void AwaitFreed(uint64_t bytes);

 private:
  Cluster& cluster_;
  RunResult& result_;
};

}  // namespace nam::simulation
