#include "fabric/sim/network.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "fabric/sim/datagrams.h"
#include "fabric/sim/endpoint.h"

namespace nam::fabric::sim {
namespace {

constexpr uint32_t kPortMax = 65'535;

}  // namespace

Network::Network(const WorldOptions& options, Scheduler& scheduler, Trace& trace)
    : scheduler_(scheduler),
      trace_(trace),
      model_(options.nic),
      faults_(options.faults),
      random_(options.seed * 2 + 0x5eed) {
  Schedule(faults_);
}

void Network::Schedule(const FaultPlan& plan) {
  for (const FaultPlan::QueuePairError& error : plan.queue_pair_errors) {
    scheduler_.At(error.at_ns, [this, &error] { BreakQueuePairs(HostNamed(error.a), HostNamed(error.b)); });
  }
  for (const FaultPlan::Partition& partition : plan.partitions) {
    scheduler_.At(partition.from_ns, [this, &partition] {
      Partition(HostNamed(partition.a), HostNamed(partition.b));
      Partition(HostNamed(partition.b), HostNamed(partition.a));
    });
    scheduler_.At(partition.until_ns, [this, &partition] {
      Heal(HostNamed(partition.a), HostNamed(partition.b));
      Heal(HostNamed(partition.b), HostNamed(partition.a));
    });
  }
  for (const FaultPlan::Death& death : plan.deaths) {
    scheduler_.At(death.at_ns, [this, &death] { KillHost(HostNamed(death.host)); });
    if (death.restart_ns == 0) continue;
    scheduler_.At(death.restart_ns, [this, &death] { RestartHost(HostNamed(death.host)); });
  }
}

void Network::CheckClosed() const {
  for (const auto& process : processes_)
    NAM_CHECK(!process->has_fabric, "a world is destroyed after its fabrics");
}

Host& Network::HostNamed(const std::string& name) {
  for (const auto& host : hosts_) {
    if (host->name == name) return *host;
  }
  hosts_.push_back(std::make_unique<Host>(name, static_cast<uint32_t>(hosts_.size()), model_));
  return *hosts_.back();
}

const Host* Network::FindHost(const std::string& name) const {
  const auto found =
      std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& host) { return host->name == name; });
  return found == hosts_.end() ? nullptr : found->get();
}

absl::StatusOr<Process*> Network::AddProcess(const std::string& host_name, FabricOptions options) {
  if (host_name.empty() || host_name.find(':') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrFormat("a simulated host cannot be named \"%s\"", host_name));
  }
  if (options.peer_timeout_us < 1) return absl::InvalidArgumentError("peer_timeout_us must be positive");
  Host& host = HostNamed(host_name);
  if (!host.up) return absl::UnavailableError(absl::StrFormat("simulated host %s is down", host_name));
  options.kind = Kind::kSim;
  options.host = host_name;
  const ProcessId id(static_cast<uint32_t>(processes_.size() + 1));
  processes_.push_back(std::make_unique<Process>(id, host, std::move(options)));
  return processes_.back().get();
}

Process& Network::At(ProcessId process) {
  NAM_CHECK(process.value() >= 1 && process.value() <= processes_.size(), "no such simulated process");
  return *processes_[process.value() - 1];
}

const Process& Network::At(ProcessId process) const {
  return const_cast<Network*>(this)->At(process);
}

bool Network::Passes(const Host& from, const Host& to) const {
  return from.up && to.up && (&from == &to || !parted_.contains(WayOf(from, to)));
}

bool Network::Reachable(ProcessId from, ProcessId to) const {
  const ProcessId driver;
  if (from != driver && !At(from).alive) return false;
  if (to != driver && !At(to).alive) return false;
  return from == driver || to == driver || Passes(At(from).host, At(to).host);
}

bool Network::HostAnswers(ProcessId from, const Host& host) const {
  return PassesBothWays(At(from).host, host);
}

bool Network::Tells(ProcessId ended, ProcessId to) const {
  const Host& host = At(ended).host;
  return host.up && (to == ProcessId() || Passes(host, At(to).host));
}

absl::StatusOr<std::shared_ptr<ListeningPort>> Network::Listen(Process& process,
                                                               const ListenOptions& options) {
  const std::string& address = options.address;
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const char* end = address.data() + address.size();
  uint32_t port = kPortMax + 1;
  if (colon != std::string::npos && (host.empty() || host == process.host.name)) {
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end) port = kPortMax + 1;
  }
  if (port > kPortMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot listen on \"%s\": simulated host %s has addresses %s:PORT",
                        address.substr(0, 100), process.host.name, process.host.name));
  }
  const auto name_of = [&](uint32_t number) { return absl::StrCat(process.host.name, ":", number); };
  if (port == 0) {
    do {
      port = process.host.next_port++;
    } while (ports_.contains(name_of(port)));
  }
  const std::string name = name_of(port);
  if (ports_.contains(name)) {
    return absl::AlreadyExistsError(absl::StrFormat("%s is taken: a listener is already there", name));
  }
  const auto listening = std::make_shared<ListeningPort>(
      ListeningPort{process, name, options.passive, options.passive ? options.member_keys : nullptr});
  ports_.emplace(name, listening);
  return listening;
}

void Network::Close(ListeningPort& port) {
  if (!port.open) return;
  port.open = false;
  ports_.erase(port.address);
  for (const auto& waiting : port.backlog) {
    if (waiting->ready()) waiting->Fail(CompletionStatus::kFlushed, true);
  }
  port.backlog.clear();
  scheduler_.Notify(port.acceptors);
}

std::shared_ptr<ListeningPort> Network::FindPort(const std::string& address) const {
  const auto found = ports_.find(address);
  return found == ports_.end() ? nullptr : found->second;
}

std::vector<std::string> Network::AddressesOf(const Process& process) const {
  std::vector<std::string> addresses;
  for (const auto& [address, port] : ports_) {
    if (&port->process == &process) addresses.push_back(address);
  }
  for (const auto& [address, end] : datagram_addresses_) {
    if (process.datagrams.contains(end->id())) addresses.push_back(address);
  }
  return addresses;
}

void Network::End(Process& process, const std::string& why, bool silent) {
  if (!process.alive) return;
  process.alive = false;
  process.end = why;
  Resume(process);  // a stopped process can be killed
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kProcessEnds), process.id.value(), silent);
  const auto endpoints = process.endpoints;
  for (const auto& [id, weak] : endpoints) {
    const auto endpoint = weak.lock();
    if (endpoint == nullptr || !endpoint->ready()) continue;
    const auto peer = endpoint->peer();
    if (peer != nullptr && silent) {
      endpoint->TellPeer(peer->process().options.peer_timeout_us * 1000, true);
    } else {
      endpoint->TellPeer(WayNs(), false);
    }
    endpoint->Fail(CompletionStatus::kFlushed, false);
  }
  for (const auto& [id, datagrams] : std::map(process.datagrams)) datagrams->EndProcess();
  const auto ports = ports_;
  for (const auto& [address, port] : ports) {
    if (&port->process == &process) Close(*port);
  }
  scheduler_.Notify(changes_);
}

void Network::KillHost(Host& host) {
  if (!host.up) return;
  host.up = false;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kHostDies), host.index);
  for (const auto& process : processes_) {
    if (&process->host == &host) End(*process, absl::StrFormat("its host %s lost power", host.name), true);
  }
  scheduler_.Notify(changes_);
}

void Network::RestartHost(Host& host) {
  if (host.up) return;
  host.up = true;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kHostStarts), host.index);
  scheduler_.Notify(changes_);
}

std::vector<std::shared_ptr<Endpoint>> Network::EndpointsBetween(const Host& a, const Host& b) const {
  std::vector<std::shared_ptr<Endpoint>> found;
  for (const auto& process : processes_) {
    for (const auto& [id, weak] : process->endpoints) {
      const auto endpoint = weak.lock();
      const auto peer = endpoint == nullptr ? nullptr : endpoint->peer();
      if (peer == nullptr || !endpoint->ready()) continue;
      const Way way = WayOf(process->host, peer->process().host);
      if (way == WayOf(a, b) || way == WayOf(b, a)) found.push_back(endpoint);
    }
  }
  return found;
}

// Whichever direction is closed, no acknowledgement arrives: both ends give up.
void Network::Partition(const Host& from, const Host& to) {
  NAM_CHECK(&from != &to, "a host cannot be parted from itself");
  const Way way = WayOf(from, to);
  const auto [parted, is_new] = parted_.try_emplace(way, partitions_made_ + 1);
  if (!is_new) return;
  ++partitions_made_;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kParted), way.first, way.second);
  for (const auto& endpoint : EndpointsBetween(from, to)) {
    const int64_t timeout_ns = endpoint->process().options.peer_timeout_us * 1000;
    scheduler_.At(scheduler_.NowNs() + timeout_ns,
                  [this, way, number = partitions_made_, weak = std::weak_ptr(endpoint)] {
                    const auto still = parted_.find(way);
                    const auto cut_off = weak.lock();
                    if (still == parted_.end() || still->second != number || cut_off == nullptr) return;
                    cut_off->Fail(CompletionStatus::kPeerLost, true);
                  });
  }
  scheduler_.Notify(changes_);
}

void Network::Heal(const Host& from, const Host& to) {
  if (parted_.erase(WayOf(from, to)) == 0) return;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kHealed), from.index, to.index);
  scheduler_.Notify(changes_);
}

std::vector<std::shared_ptr<Endpoint>> Network::EndpointsOf(const Process& process) const {
  std::vector<std::shared_ptr<Endpoint>> found;
  for (const auto& [id, weak] : process.endpoints) {
    auto endpoint = weak.lock();
    if (endpoint != nullptr && endpoint->ready()) found.push_back(std::move(endpoint));
  }
  return found;
}

void Network::Pause(Process& process, bool stop_card) {
  if (!process.alive || scheduler_.IsPaused(process.id)) return;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kPaused), process.id.value(), stop_card);
  scheduler_.Pause(process.id);
  ++process.pauses;
  if (!stop_card) return;
  process.card_stopped = true;
  for (const auto& endpoint : EndpointsOf(process)) {
    const auto peer = endpoint->peer();
    if (peer == nullptr || &peer->process() == &process) continue;
    scheduler_.At(scheduler_.NowNs() + peer->process().options.peer_timeout_us * 1000,
                  [&process, number = process.pauses, weak = std::weak_ptr(peer)] {
                    const auto waits = weak.lock();
                    if (!process.card_stopped || process.pauses != number || waits == nullptr) return;
                    waits->Fail(CompletionStatus::kPeerLost, true);
                  });
  }
}

void Network::Resume(Process& process) {
  if (!scheduler_.IsPaused(process.id)) return;
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kResumed), process.id.value());
  scheduler_.Resume(process.id);
  process.card_stopped = false;
  for (const auto& endpoint : EndpointsOf(process)) endpoint->Continue();
}

void Network::SlowDown(Host& host, int64_t times) {
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kCardSlowed), host.index,
         static_cast<uint64_t>(times));
  host.nic.SlowDown(times);
}

void Network::BreakQueuePairs(const Host& a, const Host& b) {
  Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kBroken), a.index, b.index);
  for (const auto& endpoint : EndpointsBetween(a, b)) endpoint->Fail(CompletionStatus::kPeerLost, false);
}

int64_t Network::ExtraDelayNs() {
  return random_.Happens(faults_.delay_probability) ? random_.UpTo(faults_.delay_ns_max) : 0;
}

int64_t Network::RpcDelayNs() {
  return faults_.rpc_delay_ns_min + random_.UpTo(faults_.rpc_delay_ns_max - faults_.rpc_delay_ns_min);
}

}  // namespace nam::fabric::sim
