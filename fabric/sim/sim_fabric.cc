#include "fabric/sim/sim_fabric.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/datagram_rules.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/datagrams.h"
#include "fabric/sim/endpoint.h"
#include "fabric/sim/listener.h"
#include "fabric/sim/memory.h"
#include "fabric/sim/queue_pair.h"

namespace nam::fabric::sim {
namespace {

/// Time of an unobstructed handshake with authentication.
constexpr int64_t kConnectNs = 20'000;
constexpr size_t kBacklogMax = 256;
/// A thread that only polls an event lets others run this often.
constexpr int64_t kSpinNs = 10'000;

/// A member's connection to a passive listener. Nothing takes effect once its end there has failed.
class ServedEndpoint final : public ServedEnd {
 public:
  explicit ServedEndpoint(std::weak_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
  bool Stop(bool /*kill*/) override {
    if (const auto endpoint = endpoint_.lock()) endpoint->Fail(CompletionStatus::kFlushed, true);
    return true;
  }

 private:
  const std::weak_ptr<Endpoint> endpoint_;
};

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
  scheduler_.SyncBeyond(kSpinNs);
  return scheduler_.NowNs() >= set_ns_;
}

bool SimEvent::Wait(Deadline deadline) {
  scheduler_.Charge(poll_ns_);
  if (scheduler_.NowNs() < set_ns_) scheduler_.Sync();
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
  return absl::UnavailableError(absl::StrFormat("simulated process %d on %s has ended: %s",
                                                process_.id.value(), process_.host.name, process_.end));
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SimFabric::Allocate(size_t bytes,
                                                                  const AllocateOptions& options) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  return SimRegion::Allocate(network_, process_, bytes, options.access);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> SimFabric::CreateCompletionQueue(uint32_t depth) {
  if (depth == 0) return absl::InvalidArgumentError("a completion queue of depth 0");
  return std::make_unique<SimCompletionQueue>(network_.scheduler(), network_.model().poll_ns,
                                              network_.NextId(), depth);
}

absl::StatusOr<std::unique_ptr<Listener>> SimFabric::Listen(const ListenOptions& options) {
  NAM_RETURN_IF_ERROR(CheckAlive());
  NAM_ASSIGN_OR_RETURN(auto port, network_.Listen(process_, options));
  return std::make_unique<SimListener>(network_, std::move(port), in_place_);
}

// Waits until packets pass between this host and the address's.
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

// Returns the port after the handshake.
absl::StatusOr<std::shared_ptr<ListeningPort>> SimFabric::KnockAt(const std::string& address,
                                                                  Deadline deadline) {
  Scheduler& scheduler = network_.scheduler();
  if (clock_.Passed(deadline)) {
    return absl::DeadlineExceededError(absl::StrFormat("no time left to connect to %s", address));
  }
  scheduler.SleepUntil({scheduler.NowNs() + kConnectNs});
  NAM_RETURN_IF_ERROR(AwaitPath(address, deadline));
  auto port = network_.FindPort(address);
  if (port == nullptr) return absl::UnavailableError(absl::StrFormat("no process listens at %s", address));
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

namespace {

/// A question to the owner of a port, shared by the asking and the connecting thread.
struct Question {
  Question(Scheduler& scheduler, int64_t poll_ns, uint64_t id) : done(scheduler, poll_ns, id) {}
  SimEvent done;
  absl::StatusOr<std::vector<std::optional<MemberKey>>> keys = absl::UnavailableError("not asked");
};

// Runs on a thread of the listener's process: a paused process admits no member.
void AskOwner(Scheduler& scheduler, const std::shared_ptr<ListeningPort>& port, MemberId member,
              const std::shared_ptr<Question>& question) {
  ++port->questions;
  scheduler.Reap(port->process.detached);
  port->process.detached.push_back(
      scheduler.Start(port->process.id, "nam-admission", [&scheduler, port, member, question] {
        const MemberId members[] = {member};
        if (port->open) question->keys = port->member_keys->KeysOf(members);
        question->done.Set();
        --port->questions;
        scheduler.Notify(port->acceptors);
      }));
}

}  // namespace

// Registers the connection before asking: fabric/member_connections.h.
absl::StatusOr<SimFabric::Admitted> SimFabric::Introduce(const std::shared_ptr<ListeningPort>& port,
                                                         const MemberCredentials& member, Deadline deadline) {
  Admitted admitted;
  if (port->member_keys == nullptr) return admitted;
  if (member.id == MemberId()) {
    admitted.rights = Access::kRead;
    return admitted;
  }
  admitted.place = std::make_shared<MemberConnections::Place>(port->connections->Register(member.id));
  std::optional<MemberKey> key = port->connections->KnownKey(member.id);
  if (!key.has_value()) {
    Scheduler& scheduler = network_.scheduler();
    const auto question = std::make_shared<Question>(scheduler, network_.model().poll_ns, network_.NextId());
    AskOwner(scheduler, port, member.id, question);
    if (!question->done.Wait(deadline)) {
      return absl::DeadlineExceededError(absl::StrFormat("%s did not answer in time", port->address));
    }
    if (!question->keys.ok()) {
      return absl::UnavailableError(absl::StrFormat("%s cannot find out now whether member %d lives",
                                                    port->address, member.id.value()));
    }
    key = question->keys->at(0);
  }
  MemberClaim claim{.id = member.id};
  const uint64_t number = network_.NextId();
  std::memcpy(claim.challenge.data(), &number, sizeof(number));
  claim.answer = AnswerChallenge(member.key, claim.challenge);
  if (!key.has_value() || !Proves(claim, *key)) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s knows no living member %d with this key", port->address, member.id.value()));
  }
  admitted.key = *key;
  NAM_RETURN_IF_ERROR(CheckAlive());
  if (!port->open) return absl::UnavailableError(absl::StrFormat("no process listens at %s", port->address));
  return admitted;
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
  NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
  if (address.size() > 1000 || address.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no address: simulated ones are HOST:PORT", address.substr(0, 100)));
  }
  NAM_ASSIGN_OR_RETURN(const auto port, KnockAt(address, deadline));
  NAM_ASSIGN_OR_RETURN(const Admitted admitted, Introduce(port, options.member, deadline));
  const auto there = Endpoint::Create(network_, port->process, nullptr, {}, process_.host.name);
  if (admitted.place != nullptr &&
      !admitted.place->Serve(admitted.key, std::make_shared<ServedEndpoint>(there))) {
    there->Fail(CompletionStatus::kFlushed, false);
    return absl::PermissionDeniedError(
        absl::StrFormat("%s: member %d was fenced meanwhile", address, options.member.id.value()));
  }
  there->Serve(admitted.rights, admitted.place);
  const auto here = Endpoint::Create(network_, process_, queue, options, address);
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
  NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
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
