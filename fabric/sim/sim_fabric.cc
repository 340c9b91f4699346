#include "fabric/sim/sim_fabric.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/share.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/datagrams.h"
#include "fabric/sim/endpoint.h"
#include "fabric/sim/listener.h"
#include "fabric/sim/memory.h"
#include "fabric/sim/queue_pair.h"

namespace nam::fabric::sim {
namespace {

/// Handshake and authentication, when nothing is in the way.
constexpr int64_t kConnectNs = 20'000;
constexpr size_t kBacklogMax = 256;
/// A thread that only asks whether an event is set lets the others run every so often.
constexpr int64_t kSpinNs = 10'000;

class JoinedThread final : public Thread {
 public:
  JoinedThread(Scheduler& scheduler, uint32_t index) : scheduler_(scheduler), index_(index) {}
  ~JoinedThread() override { scheduler_.Join(index_); }

 private:
  Scheduler& scheduler_;
  const uint32_t index_;
};

}  // namespace

void SimEvent::Set() {
  set_ns_ = std::min(set_ns_, scheduler_.NowNs());
  scheduler_.Notify(waiters_);
}

bool SimEvent::IsSet() const {
  scheduler_.Charge(poll_ns_);
  scheduler_.SettleBeyond(kSpinNs);
  return scheduler_.NowNs() >= set_ns_;
}

bool SimEvent::Wait(Deadline deadline) {
  scheduler_.Charge(poll_ns_);
  if (scheduler_.NowNs() < set_ns_) scheduler_.Settle();
  while (scheduler_.NowNs() < std::min(set_ns_, deadline.ns)) {
    scheduler_.Wait({&waiters_}, {"event", id_}, {std::min(set_ns_, deadline.ns)});
  }
  return scheduler_.NowNs() >= set_ns_;
}

void SimEvent::WaitOr(WaitList& other, const WaitReason& reason, Deadline deadline) {
  scheduler_.Wait({&waiters_, &other}, reason, {std::min(set_ns_, deadline.ns)});
}

void JoinDetached(Scheduler& scheduler, Process& process) {
  while (!process.detached.empty()) {
    const uint32_t thread = process.detached.back();
    process.detached.pop_back();
    scheduler.Join(thread);
  }
}

SimFabric::SimFabric(Network& network, Process& process, Clock& clock, uint64_t seed, bool in_place)
    : network_(network), process_(process), clock_(clock), in_place_(in_place), random_(seed) {}

SimFabric::~SimFabric() {
  JoinDetached(network_.scheduler(), process_);
  network_.End(process_, "its fabric was closed", false);
  process_.has_fabric = false;
}

absl::Status SimFabric::CheckAlive() const {
  if (process_.alive) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat("simulated process %d on %s is no more: %s",
                                                process_.id.value(), process_.host.name, process_.end));
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SimFabric::Allocate(size_t bytes,
                                                                  const AllocateOptions& options) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  return SimRegion::Allocate(network_, process_, bytes, options.access);
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SimFabric::Share(MemoryRegion& region, size_t offset,
                                                               size_t bytes, Access access) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  NAM_RETURN_IF_ERROR(CheckShare(region, offset, bytes, access));
  auto* simulated = dynamic_cast<SimRegion*>(&region);
  NAM_CHECK(simulated != nullptr, "a region of another fabric");
  return simulated->Share(network_, offset, bytes, access);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> SimFabric::CreateCompletionQueue(uint32_t depth) {
  if (depth == 0) return absl::InvalidArgumentError("a completion queue of depth 0");
  return std::make_unique<SimCompletionQueue>(network_.scheduler(), network_.model().poll_ns,
                                              network_.NextId(), depth);
}

absl::StatusOr<std::unique_ptr<Listener>> SimFabric::Listen(const ListenOptions& options) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  NAM_ASSIGN_OR_RETURN(auto port, network_.Listen(process_, options.address, options.passive));
  return std::make_unique<SimListener>(network_, std::move(port), in_place_);
}

// Until bits pass between this host and the address's.
absl::Status SimFabric::AwaitPath(const std::string& address, Deadline deadline) {
  Scheduler& scheduler = network_.scheduler();
  const std::string host = address.substr(0, address.rfind(':'));
  const Host* there = network_.FindHost(host);
  if (there == nullptr) {
    return absl::UnavailableError(
        absl::StrFormat("cannot reach %s: there is no simulated host %s", address, host));
  }
  const int64_t lost_ns = scheduler.NowNs() + process_.options.peer_timeout_us * 1000;
  while (process_.alive && !network_.PassesBothWays(process_.host, *there)) {
    const int64_t until_ns = std::min(deadline.ns, lost_ns);
    scheduler.Wait({&network_.changes()}, {"a path from process", process_.id.value()}, {until_ns});
    if (scheduler.NowNs() < until_ns) continue;
    if (until_ns == deadline.ns) {
      return absl::DeadlineExceededError(absl::StrFormat("%s did not answer in time", address));
    }
    return absl::UnavailableError(
        absl::StrFormat("cannot reach %s: its host is down, or the network is parted", address));
  }
  return CheckAlive();
}

// The port, once the handshake is over.
absl::StatusOr<std::shared_ptr<ListeningPort>> SimFabric::KnockAt(const std::string& address,
                                                                  Deadline deadline) {
  Scheduler& scheduler = network_.scheduler();
  if (clock_.Passed(deadline)) {
    return absl::DeadlineExceededError(absl::StrFormat("no time left to connect to %s", address));
  }
  scheduler.SleepUntil({scheduler.NowNs() + kConnectNs});
  NAM_RETURN_IF_ERROR(AwaitPath(address, deadline));
  auto port = network_.FindPort(address);
  if (port == nullptr) return absl::UnavailableError(absl::StrFormat("nobody listens at %s", address));
  if (port->process.options.secret != process_.options.secret) {
    return absl::UnauthenticatedError(
        absl::StrFormat("%s has another secret: use the secret of its cluster", address));
  }
  if (port->backlog.size() >= kBacklogMax) {
    return absl::UnavailableError(
        absl::StrFormat("%s has %d connections that it has not accepted", address, kBacklogMax));
  }
  return port;
}

absl::StatusOr<std::unique_ptr<QueuePair>> SimFabric::Connect(const std::string& address,
                                                              CompletionQueue& completions,
                                                              const QueuePairOptions& options,
                                                              Deadline deadline) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  const uint32_t depth_max = network_.model().queue_depth_max;
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options, depth_max, depth_max));
  auto* queue = dynamic_cast<SimCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(queue->CheckRoom(uint64_t{options.send_depth} + options.receive_depth));
  if (address.size() > 1000 || address.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no address: simulated ones are HOST:PORT", address.substr(0, 100)));
  }
  NAM_ASSIGN_OR_RETURN(const auto port, KnockAt(address, deadline));
  const auto here = Endpoint::Create(network_, process_, queue, options, address);
  const auto there = Endpoint::Create(network_, port->process, nullptr, {}, process_.host.name);
  Endpoint::Connect(here, there, port->passive);
  port->process.unowned.emplace(there->id(), there);
  if (!port->passive) {
    port->backlog.push_back(there);
    network_.scheduler().Notify(port->acceptors);
  }
  return MakeQueuePair(network_.scheduler(), here, in_place_);
}

absl::StatusOr<std::unique_ptr<DatagramQueuePair>> SimFabric::CreateDatagramQueuePair(
    CompletionQueue& completions, const DatagramOptions& options) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  auto* queue = dynamic_cast<SimCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(CheckDatagramOptions(options, network_.model().queue_depth_max));
  NAM_RETURN_IF_ERROR(queue->CheckRoom(uint64_t{options.send_depth} + options.receive_depth));
  return std::make_unique<SimDatagramQueuePair>(network_, process_, *queue, options);
}

uint64_t SimFabric::Random() {
  const uint64_t bits = random_.Next();
  network_.Record(Trace::Kind::kRandom, bits);
  return bits;
}

std::unique_ptr<Event> SimFabric::CreateEvent() {
  return std::make_unique<SimEvent>(network_.scheduler(), network_.model().poll_ns, network_.NextId());
}

std::unique_ptr<Thread> SimFabric::StartThread(const std::string& name, std::function<void()> body) {
  Scheduler& scheduler = network_.scheduler();
  return std::make_unique<JoinedThread>(scheduler, scheduler.Start(process_.id, name, std::move(body)));
}

}  // namespace nam::fabric::sim
