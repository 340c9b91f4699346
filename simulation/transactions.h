#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "simulation/application.h"
#include "simulation/cluster.h"
#include "simulation/examiner.h"
#include "simulation/faults.h"
#include "simulation/result.h"

namespace nam::simulation {

/// Runs an application's customers under an adversary, and checks all their results:
///
///     tables made, filled ─▶ customers, each in its own process; a lost one is replaced
///         ▲                     │
///         └── all tables anew ──┤ a memory server with rows died: the history until then is checked
///                               ▼
///     everything mended ─▶ everything read and changed once ─▶ tables dropped, memory freed
///
/// Histories of sessions are checked twice: by the engine's timestamps, and by dependencies alone. They
/// include the final read of everything, because an acknowledged commit that is missing is a lost write.
class TransactionWorkload {
 public:
  using Factory = std::function<std::unique_ptr<Application>(RandomStream)>;
  TransactionWorkload(Cluster& cluster, Adversary& adversary, Factory make, RandomStream random,
                      RunResult& result);
  ~TransactionWorkload();

  /// Runs `customers` concurrently, `transactions` each.
  void Run(int customers, int transactions);
  /// Requires that all is mended. Checks that everything can be read and changed, and is correct.
  void Conclude();
  /// Drops all tables and checks that memory servers hold only the transaction state.
  void DropAll();

 private:
  class CustomerThread;

  /// True if a memory server with rows has died, so the tables' invariants no longer hold.
  bool TablesLost() const { return made_at_deaths_ != cluster_.memory_deaths(); }
  void MakeTables();
  absl::Status MakeTables(Client& client);
  /// Also drops the transaction state, if it is lost.
  absl::Status DropTables(Client& client);
  /// Runs on a thread of the client's process, so that it stops when the process does.
  absl::Status OnItsThread(Client& client, const std::function<absl::Status()>& body);
  absl::Status WithSession(Client& client, const txn::RsiOptions& options,
                           const std::function<absl::Status(txn::Session&)>& body);
  void CheckHistories();

  Cluster& cluster_;
  Adversary& adversary_;
  const Factory make_;
  RandomStream random_;
  RunResult& result_;
  Examiner examiner_;
  std::unique_ptr<fabric::Fabric> harness_;  // for the threads that run customers
  std::unique_ptr<Application> application_;
  int made_at_deaths_ = -1;
  int made_ = 0;  // attempts to make tables
};

}  // namespace nam::simulation
