#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/random.h"
#include "simulation/cluster.h"
#include "simulation/faults.h"
#include "simulation/run.h"
#include "simulation/ssb_answers.h"

namespace nam::simulation {

/// What the clients of a simulated cluster do, and what they may expect. Everything is written to a
/// RunResult. Its threads are the world's, so one runs at a time.
class Workload {
 public:
  Workload(Cluster& cluster, Adversary& adversary, const SsbAnswers& answers, const LoadShape& shape,
           RunResult& result);
  ~Workload();

  /// Loads all tables, again after errors, until they are there; whoever loads may be killed.
  void Load(RandomStream random);
  /// `clients` at once, `statements` each. The first reloads what dead memory servers have lost.
  void RunClients(RandomStream random, int clients, int statements);
  /// All is mended: every query must come to its right answer, after few attempts.
  void RunAllQueries();
  /// Drops all tables; then no memory server holds anything.
  void DropAll();

 private:
  /// What may have happened to a statement from outside.
  struct Circumstances {
    bool cancelled = false;
    bool replaced = false;  // its tables, meanwhile
    bool killed = false;    // its client
  };
  class QueryClient;

  void Fail(std::string what);
  void Check(const std::string& what, const absl::Status& status, const Circumstances& circumstances);
  std::unique_ptr<Client> NewClient(const std::string& host);
  bool Alive(const Client& client) const;
  bool TablesLost() const { return loaded_at_deaths_ != cluster_.memory_deaths(); }
  void Pause(int64_t us);

  Cluster& cluster_;
  Adversary& adversary_;
  fabric::sim::World& world_;
  const SsbAnswers& answers_;
  const LoadShape shape_;
  RunResult& result_;
  std::unique_ptr<fabric::Fabric> harness_;  // of the clients' threads
  int loaded_at_deaths_ = -1;
  int replacements_ = 0;  // begun
  bool replacing_ = false;
};

}  // namespace nam::simulation
