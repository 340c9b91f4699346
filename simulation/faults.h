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

/// Kinds of faults that a run may have.
struct FaultKinds {
  bool delays = true;      // operations, threads and calls are late; queue pairs overtake each other
  bool errors = true;      // queue pairs break, singly or all between two hosts
  bool torn = true;        // large operations take effect in parts
  bool partitions = true;  // hosts cannot reach each other for a while
  bool deaths = true;      // memory and compute servers end, alone or with their host, and return
  bool clients = true;     // clients end while they load, query or commit
  bool pauses = true;      // processes stop, and resume
  bool asymmetric = true;  // one host reaches another, but not vice versa
  bool slow = true;        // cards are many times slower for a while
  bool overtaking = true;  // READs fetch their words in any order, and later requests pass them
  bool catalog = true;     // the catalog ends, and restarts on its store

  /// Parses `all`, `none`, or a comma-separated list of the names above.
  static absl::StatusOr<FaultKinds> Parse(const std::string& text);
  std::string ToString() const;
};

/// Draws the per-operation faults of the enabled kinds. `operations`: a statement's operations relative to an
/// SSB query's, so that as many statements complete without a broken queue pair.
fabric::sim::FaultPlan DrawPlan(const FaultKinds& kinds, RandomStream& random, double operations = 1);

/// Injects faults at random times while a cluster works, and mends them later: restarts killed servers, ends
/// partitions. One thread, on a host without faults.
class Adversary {
 public:
  /// Starts at once; injects at most `faults_max` faults.
  static absl::StatusOr<std::unique_ptr<Adversary>> Start(Cluster& cluster, const FaultKinds& kinds,
                                                          RandomStream random, int faults_max);
  ~Adversary();

  /// Ends the faults; returns once everything is mended and all servers run. DEADLINE_EXCEEDED if a server
  /// does not come up although nothing prevents it.
  absl::Status Stop();
  /// Allows killing the client, until Protect.
  void Expose(const Client& client) { clients_.push_back(client.process()); }
  void Protect(const Client& client) { std::erase(clients_, client.process()); }
  /// Counts by kind.
  const std::map<std::string, int>& injected() const { return injected_; }

 private:
  struct Repair {
    enum class Kind : uint8_t { kHeal, kStart, kStartCatalog, kResume, kSpeedUp };
    int64_t at_ns = 0;
    Kind kind = Kind::kHeal;
    std::string a, b;  // hosts
    Cluster::Role role = Cluster::Role::kMemory;
    int number = -1;  // the server's
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
  /// Schedules restarts of servers that the cluster gave up.
  void NoticeDeaths();
  absl::Status MendAll();
  /// Mends what is due, or everything.
  void Mend(bool all);
  absl::Status Mend(const Repair& repair);
  /// A random later time, with every order of magnitude equally likely.
  int64_t Until() { return world_.NowNs() + random_.Magnitude(kFaultNsMin, kFaultNsMax); }
  std::string AnyHost();

  /// The range includes faults that are shorter, and longer, than a lease and a peer timeout.
  static constexpr int64_t kFaultNsMin = 100'000, kFaultNsMax = 8'000'000'000;
  /// client-0 and the following: the most customers of a run.
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
