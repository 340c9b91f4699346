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

/// Runs an application's customers under an adversary, and checks all that they saw:
///
///     tables made, filled ─▶ customers, each in a process of its own; who is lost is followed by another
///         ▲                     │
///         └── all tables anew ──┤ a memory server with rows died: what was seen until then is checked
///                               ▼
///     everything mended ─▶ all is looked at and changed once ─▶ tables dropped, memory freed
///
/// Histories of sessions are checked twice: by the engine's timestamps, and by dependencies alone. A commit
/// that was acknowledged and is not there is a lost write; so the last look at everything is in them too.
class TransactionWorkload {
 public:
  using Factory = std::function<std::unique_ptr<Application>(RandomStream)>;
  TransactionWorkload(Cluster& cluster, Adversary& adversary, Factory make, RandomStream random,
                      RunResult& result);
  ~TransactionWorkload();

  /// `customers` at once, each for `transactions`.
  void Run(int customers, int transactions);
  /// All is mended: everything can be read and changed, and is as it should be.
  void Conclude();
  /// Drops all tables; then no memory server holds anything but the state of transactions.
  void DropAll();

 private:
  class CustomerThread;

  /// What a memory server held that died is gone, and with it the tables' meaning.
  bool TablesLost() const { return made_at_deaths_ != cluster_.memory_deaths(); }
  void MakeTables();
  absl::Status MakeTables(Client& client);
  /// And the state of all transactions, if it is lost.
  absl::Status DropTables(Client& client);
  /// On a thread of the client's process, so that it stands still when that does.
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
  std::unique_ptr<fabric::Fabric> harness_;  // of the threads that look after customers
  std::unique_ptr<Application> application_;
  int made_at_deaths_ = -1;
  int made_ = 0;  // attempts
};

}  // namespace nam::simulation
