#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "simulation/cluster.h"
#include "simulation/result.h"

namespace nam::simulation {

/// What may have happened to a statement or a transaction from outside.
struct Circumstances {
  bool cancelled = false;
  bool replaced = false;  // its tables, meanwhile
  bool killed = false;    // its client
};

/// Judges what clients are told, and writes it to a RunResult.
class Examiner {
 public:
  static constexpr int kAttemptsMax = 60;
  static constexpr int64_t kAttemptPauseUs = 500'000;
  /// Far beyond the sum of all timeouts that a statement can run into.
  static constexpr int64_t kStatementNsMax = 120'000'000'000;

  Examiner(Cluster& cluster, RunResult& result) : cluster_(cluster), result_(result) {}

  Cluster& cluster() { return cluster_; }
  RunResult& result() { return result_; }

  void Fail(const std::string& what);
  /// An error must have an expected code, and a message that names a server, or follow from what happened.
  void CheckClean(const std::string& what, const absl::Status& status, const Circumstances& circumstances);
  void CheckDuration(const std::string& what, int64_t took_ns);

  /// Attaches, for as long as it takes; null, and a failure, if it is too long.
  std::unique_ptr<Client> NewClient(const std::string& host);
  bool Alive(const Client& client) const { return cluster_.world().Alive(client.process()); }
  void Pause(int64_t us);
  /// No memory server holds more than `bytes`, soon.
  void AwaitFreed(uint64_t bytes);

 private:
  Cluster& cluster_;
  RunResult& result_;
};

}  // namespace nam::simulation
