#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "fabric/sim/fault_plan.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"

namespace nam::simulation {

/// Kinds of faults that a run may meet.
struct FaultKinds {
  bool delays = true;      // operations, threads and calls are late; queue pairs overtake each other
  bool errors = true;      // queue pairs break, singly or all between two hosts
  bool torn = true;        // large operations take effect in parts
  bool partitions = true;  // hosts do not reach each other for a while
  bool deaths = true;      // memory and compute servers end, alone or with their host, and come back
  bool clients = true;     // clients that load, query, or commit end
  bool pauses = true;      // processes stand still, and go on
  bool asymmetric = true;  // one host reaches another, which does not reach it
  bool slow = true;        // cards are many times slower for a while
  bool overtaking = true;  // READs fetch their words in any order, and are passed by what is behind them
  bool catalog = true;     // the catalog ends, and starts again on its store

  /// `all`, `none`, or some of the names above, with commas between.
  static absl::StatusOr<FaultKinds> Parse(const std::string& text);
  std::string ToString() const;
};

/// What is drawn for every operation, of the kinds that are on. Statements have so many times the operations
/// of a query of SSB: as many of them are to come through without a broken queue pair.
fabric::sim::FaultPlan DrawPlan(const FaultKinds& kinds, RandomStream& random, double operations = 1);

/// Breaks things at drawn moments while a cluster works, and mends them later: servers that it killed are
/// started again, partitions end. One thread, of a host that nothing happens to.
class Adversary {
 public:
  /// `faults_max` in all. Starts at once.
  static absl::StatusOr<std::unique_ptr<Adversary>> Start(Cluster& cluster, const FaultKinds& kinds,
                                                          RandomStream random, int faults_max);
  ~Adversary();

  /// No more faults; returns once everything is mended and all servers run. DEADLINE_EXCEEDED if a server
  /// does not come up though nothing is in its way.
  absl::Status Stop();
  /// A client that may be killed from now on, until it is told otherwise.
  void Expose(const Client& client) { clients_.push_back(client.process()); }
  void Protect(const Client& client) { std::erase(clients_, client.process()); }
  /// By kind.
  const std::map<std::string, int>& injected() const { return injected_; }

 private:
  struct Repair {
    enum class Kind : uint8_t { kHeal, kStart, kStartCatalog, kResume, kSpeedUp };
    int64_t at_ns = 0;
    Kind kind = Kind::kHeal;
    std::string a, b;  // hosts
    Cluster::Role role = Cluster::Role::kMemory;
    int number = -1;  // of the server
    fabric::sim::ProcessId process;
  };
  Adversary(Cluster& cluster, const FaultKinds& kinds, RandomStream random, int faults_max);
  void Run();
  void Inject();
  void BreakQueuePairs();
  void Partition();
  void KillServer();
  void KillClient();
  void KillCatalog();
  void PauseProcess();
  void PartitionOneWay();
  void SlowCard();
  /// Servers that the cluster gave up shall start again.
  void NoticeDeaths();
  absl::Status MendAll();
  /// Those that are due, or all of them.
  void Mend(bool all);
  absl::Status Mend(const Repair& repair);
  /// A moment up to so much later: every order of magnitude as likely.
  int64_t Until() { return world_.NowNs() + random_.Magnitude(kFaultNsMin, kFaultNsMax); }
  std::string AnyHost();

  /// A fault that breaks nothing for longer than a lease or a peer's timeout is another than one that does.
  static constexpr int64_t kFaultNsMin = 100'000, kFaultNsMax = 8'000'000'000;
  /// client-0 and the following, as many as a run has customers at most.
  static constexpr uint64_t kClientHosts = 4;

  Cluster& cluster_;
  fabric::sim::World& world_;
  RandomStream random_;
  int faults_left_;
  std::vector<void (Adversary::*)()> faults_;
  std::vector<Repair> repairs_;
  std::vector<fabric::sim::ProcessId> clients_;
  std::map<std::string, int> injected_;
  absl::Status failure_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Event> stop_;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first
};

}  // namespace nam::simulation
