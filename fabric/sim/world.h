#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/sim/cache_model.h"
#include "fabric/sim/fault_plan.h"
#include "fabric/sim/nic_model.h"

/// Whole clusters in virtual time, deterministic from one seed. See docs/design/simulator.md.
///
///     World ── hosts, by name ── processes (one Fabric each) ── threads (Fabric::StartThread)
///       ├── one scheduler: one thread runs at a time, the seed decides which
///       ├── one clock: moves only when no thread can run, and by what threads charge
///       └── one network: NicModel per host, a switch, a FaultPlan
namespace nam::fabric::sim {

/// Names a process for the life of its world. 0 is the driver's (see World).
using ProcessId = StrongId<struct ProcessTag, uint32_t>;

struct WorldOptions {
  uint64_t seed = 1;
  NicModel nic;
  /// The caches of each host. Empty: working sets cost nothing.
  std::optional<CacheModel> caches;
  FaultPlan faults;
  /// Virtual time after which the world is reported as hanging.
  int64_t duration_ns_max = 3'600'000'000'000;
  /// Real time after which a thread that has made no fabric call stops the process: it loops, or waits for
  /// another thread by other means (a mutex held across a wait).
  int64_t stuck_real_ms = 60'000;
  /// Receives one line per decision, operation and fault. Empty: no file.
  std::string trace_path;
  /// The command to replay this seed, for the report of a hang: `nam sim … --seed=17`.
  std::string replay;
  /// Called with the report of a hang or deadlock just before the process stops.
  std::function<void(const std::string& report)> on_hang;
  /// Makes fabrics show peers' memory in place (Capabilities::in_place), as `shm` does.
  bool in_place = false;
};

/// A set of simulated hosts. The thread that creates a World is its driver: a simulated thread that belongs
/// to no process. The driver may call everything here and on every fabric. Other threads start by
/// Fabric::StartThread.
///
/// Threads switch only in calls that wait: Poll, Wait, SleepUntil, Event::Wait, Event::IsSet, Connect,
/// Accept, Await, AwaitDetached and joining a Thread. No mutex may be held across those; other calls allow
/// it.
///
/// The process stops with a report of all waiting threads on deadlock (no thread can run and no event is
/// pending) and on a hang (virtual time runs out).
///
/// Must be destroyed after every fabric, and when only the driver is left.
class World {
 public:
  /// Clocks start here, so that small deadlines lie in the past.
  static constexpr int64_t kStartNs = 1'000'000'000;

  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Creates a process on `host`; creates the host when first named. Listen addresses are HOST:PORT; port 0
  /// picks one. UNAVAILABLE while the host is down. Ignores `options.kind` and replaces `options.host`.
  absl::StatusOr<std::unique_ptr<Fabric>> OpenFabric(const std::string& host, FabricOptions options);
  ProcessId ProcessOf(const Fabric& fabric) const;
  /// The addresses at which the process can be reached: its listeners and its datagram queue pairs.
  std::vector<std::string> AddressesOf(ProcessId process) const;
  const std::string& HostOf(ProcessId process) const;

  /// The world's clock. Each thread sees it ahead by the thread's own charges.
  Clock& clock();
  int64_t NowNs() { return clock().NowNs(); }

  // -- Faults in addition to the plan's. Callable from the driver and any thread.

  /// Kills the process: its requests in flight have no effect from now on, and its peers' connections break.
  /// Its threads continue so that they unwind: operations are flushed; Connect, Listen and Allocate return
  /// UNAVAILABLE. The owners of its objects still destroy them.
  void KillProcess(ProcessId process);
  /// Cuts the host's power: all its processes end, and peers notice only by their timeout. After RestartHost,
  /// fabrics can be opened there again.
  void KillHost(const std::string& host);
  void RestartHost(const std::string& host);
  /// Drops everything between the hosts until Heal. Connections survive unless that takes longer than the
  /// peer timeout.
  void Partition(const std::string& a, const std::string& b);
  /// Drops only what `from` sends to `to`.
  void PartitionOneWay(const std::string& from, const std::string& to);
  /// Heals both directions.
  void Heal(const std::string& a, const std::string& b);
  /// Stops the process's threads until Resume, as for a stopped process or a migrating virtual machine; time
  /// passes. Its card continues, like an RDMA card. With `card_too` the card stops as well, like a card in
  /// software: posted requests do not leave, incoming requests wait, and peers give up after their timeout.
  /// The caller must not belong to the process. KillProcess resumes.
  void Pause(ProcessId process, bool card_too);
  void Resume(ProcessId process);
  bool Paused(ProcessId process) const;
  /// Makes the host's card `times` as slow; 1 restores the model.
  void SlowDown(const std::string& host, int64_t times);
  /// Breaks every connection between the hosts.
  void BreakQueuePairs(const std::string& a, const std::string& b);
  bool Alive(ProcessId process) const;

  // -- For in-process control-plane calls under the same faults: a call is a thread in the server's process
  // that first
  //    sleeps for RpcDelayNs(), while its caller Awaits an event.

  /// True if both are alive and messages from one reach the other. The driver's process reaches all
  /// processes.
  bool Reachable(ProcessId from, ProcessId to) const;
  /// True if the host is up and messages pass between it and the process in both directions.
  bool HostAnswers(ProcessId from, const std::string& host) const;
  /// The current one-way delay of a control-plane message.
  int64_t RpcDelayNs();
  /// Waits for `event`, of any fabric of this world. UNAVAILABLE once `to` is dead, or cut off from `from` in
  /// either direction for the peer timeout of `from`; DEADLINE_EXCEEDED.
  absl::Status Await(Event& event, ProcessId from, ProcessId to, Deadline deadline);
  /// Starts a thread of `process` that is never joined. The process's fabric must outlive it.
  void StartDetached(ProcessId process, const std::string& name, std::function<void()> body);
  /// Waits until `process` has no thread of StartDetached left.
  void AwaitDetached(ProcessId process);

  // -- Observations.

  /// Traffic of a known host's card.
  NicTraffic TrafficOf(const std::string& host) const;
  /// Makes the cards of all known hosts count atomics by word, from zero. Costs a few dozen bytes of memory
  /// per word.
  void CountWords();
  /// The word whose atomics kept the host's card busy the longest since CountWords. busy_ns is 0 if there
  /// were none.
  WordTraffic BusiestWordOf(const std::string& host) const;

  /// Hash of all scheduling decisions, operations, completions and faults so far: equal for equal seeds.
  uint64_t TraceHash() const;
  uint64_t TraceEvents() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nam::fabric::sim
