#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/member_connections.h"
#include "fabric/sim/nic.h"
#include "fabric/sim/regions.h"
#include "fabric/sim/scheduler.h"
#include "fabric/sim/trace.h"
#include "fabric/sim/world.h"

/// Hosts, their processes, the switch between them, and their current faults. Everything lives as long as the
/// world, so that events may refer to it. Only the thread with the baton touches it.
namespace nam::fabric::sim {

class Endpoint;
class DatagramEndpoint;

/// First number of a kFault record.
enum class Fault : uint64_t {
  kProcessEnds = 1,
  kHostDies,
  kHostStarts,
  kParted,
  kHealed,
  kBroken,
  kOperationBreaks,
  kDatagramLost,
  kDatagramDoubled,
  kPaused,
  kResumed,
  kCardSlowed,
};

struct Host {
  Host(std::string host_name, uint32_t host_index, const NicModel& model)
      : name(std::move(host_name)), index(host_index), nic(model) {}
  const std::string name;
  const uint32_t index;
  Nic nic;
  bool up = true;
  uint32_t next_port = 40'000;
};

struct Process {
  Process(ProcessId process_id, Host& its_host, FabricOptions its_options)
      : id(process_id), host(its_host), options(std::move(its_options)) {}
  const ProcessId id;
  Host& host;
  const FabricOptions options;
  bool has_fabric = true;
  bool alive = true;          // until killed, or its fabric is destroyed
  bool card_stopped = false;  // paused, with a card that works only while its process runs
  uint64_t pauses = 0;        // total
  std::string end;            // why it ended, for messages
  Regions regions;
  std::map<uint64_t, std::weak_ptr<Endpoint>> endpoints;
  /// Ends without a queue pair: those of passive listeners, and those not yet accepted.
  std::map<uint64_t, std::shared_ptr<Endpoint>> unowned;
  std::map<uint64_t, DatagramEndpoint*> datagrams;
  DatagramDrops drops;
  std::vector<uint32_t> detached;  // threads
};

/// A listening address, until its Listener is destroyed or its process killed.
struct ListeningPort {
  Process& process;
  std::string address;
  bool passive;
  MemberKeys* member_keys = nullptr;  // for passive listeners; null: connections belong to no member
  bool open = true;
  std::deque<std::shared_ptr<Endpoint>> backlog;  // connected, not accepted
  WaitList acceptors;
  std::shared_ptr<MemberConnections> connections = std::make_shared<MemberConnections>();
  uint64_t questions = 0;  // to member_keys, in flight
};

class Network {
 public:
  Network(const WorldOptions& options, Scheduler& scheduler, Trace& trace);
  /// Checks that no fabric is left.
  void CheckClosed() const;

  Scheduler& scheduler() { return scheduler_; }
  const NicModel& model() const { return model_; }
  const FaultPlan& faults() const { return faults_; }
  /// The random stream of the fault plan and the keys.
  RandomStream& random() { return random_; }
  void Record(Trace::Kind kind, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
              uint64_t e = 0, uint64_t f = 0) {
    trace_.Add(kind, scheduler_.NowNs(), a, b, c, d, e, f);
  }

  Host& HostNamed(const std::string& name);
  const Host* FindHost(const std::string& name) const;
  /// Starts counting words on the cards of all existing hosts.
  void CountWords() {
    for (const auto& host : hosts_) host->nic.CountWords();
  }
  absl::StatusOr<Process*> AddProcess(const std::string& host, FabricOptions options);
  Process& At(ProcessId process);
  const Process& At(ProcessId process) const;
  uint64_t NextId() { return ++ids_made_; }

  /// True if packets pass from one host to the other.
  bool Passes(const Host& from, const Host& to) const;
  bool PassesBothWays(const Host& a, const Host& b) const { return Passes(a, b) && Passes(b, a); }
  bool Reachable(ProcessId from, ProcessId to) const;
  /// True if the host of `ended` can report that the process has ended.
  bool Tells(ProcessId ended, ProcessId to) const;
  bool HostAnswers(ProcessId from, const Host& host) const;
  /// Notified when a process, host or path comes or goes.
  WaitList& changes() { return changes_; }

  absl::StatusOr<std::shared_ptr<ListeningPort>> Listen(Process& process, const ListenOptions& options);
  void Close(ListeningPort& port);
  std::shared_ptr<ListeningPort> FindPort(const std::string& address) const;
  std::vector<std::string> AddressesOf(const Process& process) const;

  /// `silent`: peers are not told.
  void End(Process& process, const std::string& why, bool silent);
  void KillHost(Host& host);
  void RestartHost(Host& host);
  /// Drops everything sent from one host to the other; the reverse direction is unchanged.
  void Partition(const Host& from, const Host& to);
  void Heal(const Host& from, const Host& to);
  void Pause(Process& process, bool stop_card);
  void Resume(Process& process);
  void SlowDown(Host& host, int64_t times);
  void BreakQueuePairs(const Host& a, const Host& b);

  /// One-way time: half that of a small WRITE.
  int64_t WayNs() const { return model_.write_ns / 2; }
  int64_t ExtraDelayNs();
  int64_t RpcDelayNs();

  // -- Datagrams.
  struct Group {
    DatagramEndpoint* sender = nullptr;
    std::map<uint64_t, DatagramEndpoint*> members;
  };
  std::map<std::string, DatagramEndpoint*>& datagram_addresses() { return datagram_addresses_; }
  std::map<std::string, Group>& groups() { return groups_; }

 private:
  using Way = std::pair<uint32_t, uint32_t>;  // from, to
  static Way WayOf(const Host& from, const Host& to) { return {from.index, to.index}; }
  /// Both ends of every connection between the hosts.
  std::vector<std::shared_ptr<Endpoint>> EndpointsBetween(const Host& a, const Host& b) const;
  void Schedule(const FaultPlan& plan);
  /// The ready ends of the process.
  std::vector<std::shared_ptr<Endpoint>> EndpointsOf(const Process& process) const;

  Scheduler& scheduler_;
  Trace& trace_;
  const NicModel model_;
  const FaultPlan faults_;
  RandomStream random_;
  uint64_t ids_made_ = 0;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::string, std::shared_ptr<ListeningPort>> ports_;
  std::map<Way, uint64_t> parted_;  // value: the partition's number
  uint64_t partitions_made_ = 0;
  WaitList changes_;
  std::map<std::string, DatagramEndpoint*> datagram_addresses_;
  std::map<std::string, Group> groups_;
};

}  // namespace nam::fabric::sim
