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

/// Whole clusters in virtual time, deterministically from one seed. See docs/design/simulator.md.
///
///     World ── hosts, by name ── processes (one Fabric each) ── threads (Fabric::StartThread)
///       ├── one scheduler: one thread runs at a time, the seed decides which
///       ├── one clock: moves only when no thread can run, and by what threads charge
///       └── one network: NicModel per host, a switch, a FaultPlan
namespace nam::fabric::sim {

/// A process for the life of its world. 0 is none: the driver's (see World).
using ProcessId = StrongId<struct ProcessTag, uint32_t>;

struct WorldOptions {
  uint64_t seed = 1;
  NicModel nic;
  /// The caches of each host. Nothing: working sets cost nothing.
  std::optional<CacheModel> caches;
  FaultPlan faults;
  /// Virtual time after which the world is reported as hanging.
  int64_t duration_ns_max = 3'600'000'000'000;
  /// A thread that runs for so long in real time without a call of its fabric stops the process: it waits
  /// for another thread by other means (a mutex held across a wait), or loops.
  int64_t stuck_real_ms = 60'000;
  /// One line for every decision, operation and fault. Empty: none.
  std::string trace_path;
  /// How to run this seed again, for the report of a hang: `nam sim … --seed=17`.
  std::string replay;
  /// Called with the report of a hang or deadlock just before the process stops.
  std::function<void(const std::string& report)> on_hang;
  /// Fabrics show peers' memory in place (Capabilities::in_place), as `shm` does.
  bool in_place = false;
};

/// The thread that makes a World is its driver: a simulated thread that belongs to no process. It may call
/// everything here and on every fabric. Other threads are started by Fabric::StartThread.
///
/// Threads change only in calls that wait: Poll, Wait, SleepUntil, Event::Wait, Event::IsSet, Connect,
/// Accept, Await, AwaitDetached and the joining of a Thread. A mutex must not be held across those; across
/// all others it may be.
///
/// When no thread can run and nothing is under way (a deadlock), or virtual time runs out (a hang), the
/// process stops with a report of who waits for what.
///
/// Destroyed last: after every fabric, and when no thread but the driver is left.
class World {
 public:
  /// Clocks start here, so that small deadlines lie in the past.
  static constexpr int64_t kStartNs = 1'000'000'000;

  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// A process on `host`, which is made when first named. Listen addresses are HOST:PORT, port 0 picks one.
  /// UNAVAILABLE while the host is down. `options.kind` is ignored, `options.host` replaced.
  absl::StatusOr<std::unique_ptr<Fabric>> OpenFabric(const std::string& host, FabricOptions options);
  ProcessId ProcessOf(const Fabric& fabric) const;
  /// What others can find the process by: where it listens, its datagram queue pairs.
  std::vector<std::string> AddressesOf(ProcessId process) const;
  const std::string& HostOf(ProcessId process) const;

  /// One for the whole world. Each thread sees it ahead by what it has charged.
  Clock& clock();
  int64_t NowNs() { return clock().NowNs(); }

  // -- Faults, beside those of the plan. From the driver, or any thread.

  /// The process is gone: what it had under way has no effect from now on, its connections break at the
  /// others. Its threads go on, so that they unwind: their operations are flushed, Connect, Listen and
  /// Allocate fail with UNAVAILABLE. Whoever owns its objects destroys them as ever.
  void KillProcess(ProcessId process);
  /// Power off: all its processes, and nobody tells the others: they notice by their peer timeout. Fabrics
  /// are opened there again after RestartHost.
  void KillHost(const std::string& host);
  void RestartHost(const std::string& host);
  /// Nothing passes between the hosts until Heal. Connections outlive it unless it is longer than the peer
  /// timeout.
  void Partition(const std::string& a, const std::string& b);
  /// Only what goes from one to the other is lost.
  void PartitionOneWay(const std::string& from, const std::string& to);
  /// Both ways.
  void Heal(const std::string& a, const std::string& b);
  /// Its threads stand still until Resume (a stopped process, a virtual machine that is moved); time passes.
  /// Its card goes on, as an RDMA card does; with `card_too` it does nothing either, as a card of software:
  /// what it had posted has not left, what it is asked waits, and its peers give up after their timeout.
  /// Not from a thread of the process. KillProcess resumes.
  void Pause(ProcessId process, bool card_too);
  void Resume(ProcessId process);
  bool Paused(ProcessId process) const;
  /// A host's card takes so many times as long for everything; 1: as the model says.
  void SlowDown(const std::string& host, int64_t times);
  /// Breaks every connection between the hosts.
  void BreakQueuePairs(const std::string& a, const std::string& b);
  bool Alive(ProcessId process) const;

  // -- For the control plane's calls, in process, under the same faults: a call is a thread in the server's
  //    process that first sleeps for RpcDelayNs(), and whose caller Awaits an event.

  /// Both alive, and what one sends reaches the other. The driver's process reaches everybody.
  bool Reachable(ProcessId from, ProcessId to) const;
  /// The host is up, and what the process sends it, and what it answers, arrives.
  bool HostAnswers(ProcessId from, const std::string& host) const;
  /// How long a message of the control plane is under way now.
  int64_t RpcDelayNs();
  /// Waits for `event` (of any fabric of this world): OK; UNAVAILABLE as soon as `to` is dead, or
  /// cut off from `from`, either way, for that one's peer timeout; DEADLINE_EXCEEDED.
  absl::Status Await(Event& event, ProcessId from, ProcessId to, Deadline deadline);
  /// A thread of `process` that nobody joins. The process's fabric must outlive it.
  void StartDetached(ProcessId process, const std::string& name, std::function<void()> body);
  /// Waits until no thread of StartDetached is left in `process`.
  void AwaitDetached(ProcessId process);

  // -- What happened.

  /// Of a host that has been named.
  NicTraffic TrafficOf(const std::string& host) const;
  /// Cards of hosts that have been named count atomics by word from now on, beginning with none; a few dozen
  /// bytes of memory a word.
  void CountWords();
  /// The word whose atomics have kept the host's card busy for the longest since CountWords, one after the
  /// other: its busy_ns is 0 if there were none.
  WordTraffic BusiestWordOf(const std::string& host) const;

  /// Of every scheduling decision, operation, completion and fault so far: equal for equal seeds.
  uint64_t TraceHash() const;
  uint64_t TraceEvents() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nam::fabric::sim
