#include "fabric/shm/shm_fabric.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/mutex.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "fabric/admission.h"
#include "fabric/datagram_rules.h"
#include "fabric/shm/completion_queue.h"
#include "fabric/shm/datagram_directory.h"
#include "fabric/shm/datagram_queue_pair.h"
#include "fabric/shm/doorbell_allocator.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/link.h"
#include "fabric/shm/peer_process.h"
#include "fabric/shm/queue_pair.h"
#include "fabric/shm/region_registry.h"
#include "fabric/shm/service.h"
#include "fabric/shm/socket.h"
#include "fabric/threads.h"

namespace nam::fabric::shm {
namespace {

constexpr uint32_t kCompletionQueueDepthMax = 1u << 20;
constexpr int kHandshakesMax = 6;
constexpr int64_t kHandshakePauseUs = 500;  // doubled each time

/// Memory with its key.
class ShmRegion final : public MemoryRegion {
 public:
  /// The parts of its fabric that it uses; must outlive it.
  struct Environment {
    RegionRegistry* registry = nullptr;
    Initiators* initiators = nullptr;
    std::atomic<int>* live_objects = nullptr;
  };

  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Create(const Environment& environment,
                                                              std::shared_ptr<const SharedMemory> memory,
                                                              size_t bytes, Access access) {
    NAM_ASSIGN_OR_RETURN(const uint32_t key, environment.registry->Add(*memory, bytes, access));
    std::unique_ptr<ShmRegion> region(new ShmRegion(environment, std::move(memory)));
    region->data_ = region->memory_->mapping.data();
    region->bytes_ = bytes;
    region->access_ = access;
    region->rkey_ = {key};
    region->lkey_ = {key};
    return region;
  }
  ~ShmRegion() override {
    Remove();
    environment_.live_objects->fetch_sub(1);
  }

  bool Revoke() override {
    Remove();
    const bool changes = Allows(access_, Access::kWrite) || Allows(access_, Access::kAtomic);
    return !changes || !environment_.initiators->Executing(rkey_.value);
  }

 private:
  ShmRegion(const Environment& environment, std::shared_ptr<const SharedMemory> memory)
      : environment_(environment), memory_(std::move(memory)) {
    environment_.live_objects->fetch_add(1);
  }
  /// A second caller waits until the key is gone.
  void Remove() {
    std::call_once(removed_, [this] { environment_.registry->Remove(rkey_.value); });
  }

  const Environment environment_;
  const std::shared_ptr<const SharedMemory> memory_;
  std::once_flag removed_;
};

class ShmListener final : public Listener {
 public:
  ShmListener(ListeningSocket socket, const ListenOptions& options,
              const ShmQueuePair::Environment& environment)
      : admission_(options.passive && options.member_keys != nullptr
                       ? std::make_shared<Admission>(*options.member_keys)
                       : nullptr),
        backlog_(std::make_shared<Backlog>(
            std::move(socket), options.passive ? Purpose::kPassive : Purpose::kAccept, admission_)),
        environment_(environment) {
    environment_.service->AddBacklog(backlog_);
    environment_.live_objects->fetch_add(1);
  }
  ~ShmListener() override {
    if (admission_ != nullptr) admission_->Stop();
    backlog_->Close();
    environment_.service->RemoveBacklog(*backlog_);
    environment_.live_objects->fetch_sub(1);
  }

  std::string address() const override { return backlog_->socket().address(); }

  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override {
    if (backlog_->passive()) {
      return absl::FailedPreconditionError("a passive listener serves its connections by itself");
    }
    auto& queue = static_cast<ShmCompletionQueue&>(completions);
    NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options, kQueueDepthMax, kReceiveDepthMax));
    NAM_RETURN_IF_ERROR(queue.CheckRoom(PlacesOf(options)));
    std::shared_ptr<Link> link = backlog_->Pop(deadline);
    if (link == nullptr)
      return absl::DeadlineExceededError(absl::StrFormat("no peer connected to %s", address()));
    environment_.service->HandOver(*link);
    Established established = std::move(link->handshake->established());
    link->handshake.reset();
    NAM_ASSIGN_OR_RETURN(const pid_t pid, CheckPeerUser(link->socket()));
    return std::make_unique<ShmQueuePair>(environment_, &queue, options, std::move(link),
                                          std::move(established),
                                          absl::StrFormat("process %d at %s", pid, address()));
  }
  bool Fence(MemberId member, bool kill) override {
    return admission_ == nullptr || admission_->connections().Fence(member, kill);
  }
  std::vector<MemberId> Members() override {
    return admission_ == nullptr ? std::vector<MemberId>() : admission_->connections().Members();
  }

 private:
  const std::shared_ptr<Admission> admission_;  // null: passive without MemberKeys, or not passive
  const std::shared_ptr<Backlog> backlog_;
  const ShmQueuePair::Environment environment_;
};

class ShmFabric final : public Fabric {
 public:
  ShmFabric(const FabricOptions& options, std::unique_ptr<RegionRegistry> regions,
            std::unique_ptr<DoorbellAllocator> doorbells)
      : peer_timeout_us_(options.peer_timeout_us),
        regions_(std::move(regions)),
        doorbells_(std::move(doorbells)) {
    identity_ = {options.secret, RandomProcessId(), regions_.get(), &doorbells_->memory(),
                 &peers_,        &initiators_,      &datagrams_};
  }
  ~ShmFabric() override {
    NAM_CHECK(live_objects_ == 0, "regions, queue pairs and listeners are destroyed before their fabric");
  }

  absl::Status Start() {
    NAM_ASSIGN_OR_RETURN(service_, Service::Start(identity_, peer_timeout_us_));
    return absl::OkStatus();
  }

  Kind kind() const override { return Kind::kShm; }
  Capabilities capabilities() const override {
    return {.in_place = true, .one_host = true, .processors = HostProcessors()};
  }
  Clock& clock() override { return RealClock(); }

  absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                         const AllocateOptions& options) override {
    NAM_ASSIGN_OR_RETURN(SharedMemory memory, CreateShared("nam-region", bytes, PeerAccessFor(options.access),
                                                           options.huge_pages));
    if (options.populate) NAM_RETURN_IF_ERROR(Populate(memory.mapping));
    return ShmRegion::Create({regions_.get(), &initiators_, &live_objects_},
                             std::make_shared<const SharedMemory>(std::move(memory)), bytes, options.access);
  }
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    if (depth == 0 || depth > kCompletionQueueDepthMax) {
      return absl::InvalidArgumentError(absl::StrFormat("the depth of a completion queue is 1 to %d, not %d",
                                                        kCompletionQueueDepthMax, depth));
    }
    const auto bell = doorbells_->Allocate();
    if (!bell.has_value()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a process has at most %d completion queues", kCompletionQueuesMax - 1));
    }
    return std::make_unique<ShmCompletionQueue>(depth, doorbells_.get(), *bell);
  }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) override {
    NAM_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Bind(options.address));
    return std::make_unique<ShmListener>(std::move(socket), options, Environment());
  }

  absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address, CompletionQueue& completions,
                                                     const QueuePairOptions& options,
                                                     Deadline deadline) override {
    auto& queue = static_cast<ShmCompletionQueue&>(completions);
    NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options, kQueueDepthMax, kReceiveDepthMax));
    NAM_RETURN_IF_ERROR(queue.CheckRoom(PlacesOf(options)));
    const Deadline bounded{std::min(deadline.ns, RealClock().After(peer_timeout_us_).ns)};
    std::shared_ptr<Link> link;
    pid_t pid = 0;
    absl::StatusOr<Established> established = absl::UnavailableError("not tried");
    // Other connections may have pushed this one out (fabric/strangers.h).
    for (int i = 0; i < kHandshakesMax && absl::IsUnavailable(established.status()); ++i) {
      if (i > 0) RealClock().SleepUntil({std::min(bounded.ns, RealClock().After(kHandshakePauseUs << i).ns)});
      NAM_ASSIGN_OR_RETURN(UniqueFd socket, ConnectSocket(address, bounded));
      link = std::make_shared<Link>(std::move(socket));
      NAM_ASSIGN_OR_RETURN(pid, CheckPeerUser(link->socket()));
      established = ConnectHandshake(identity_, link->socket(), pid, options.member, bounded);
    }
    if (!established.ok()) {
      return absl::Status(established.status().code(),
                          absl::StrFormat("fabric shm: cannot connect to \"%s\": %s", address,
                                          established.status().message()));
    }
    service_->AddLink(link);
    return std::make_unique<ShmQueuePair>(Environment(), &queue, options, std::move(link),
                                          *std::move(established),
                                          absl::StrFormat("process %d at %s", pid, address));
  }

  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) override {
    auto& queue = static_cast<ShmCompletionQueue&>(completions);
    NAM_RETURN_IF_ERROR(CheckDatagramOptions(options));
    NAM_RETURN_IF_ERROR(queue.CheckRoom(PlacesOf(options)));
    NAM_ASSIGN_OR_RETURN(const std::string socket, DatagramSocket());
    const ShmDatagramQueuePair::Environment environment{&identity_, service_.get(), peer_timeout_us_,
                                                        &live_objects_, socket};
    return std::make_unique<ShmDatagramQueuePair>(environment, &queue, options);
  }
  DatagramDrops datagram_drops() const override { return datagrams_.drops(); }
  uint64_t Random() override { return RandomBits(); }
  std::unique_ptr<Event> CreateEvent() override { return MakeRealEvent(); }
  std::unique_ptr<Thread> StartThread(const std::string& name, std::function<void()> body) override {
    return StartRealThread(name, std::move(body));
  }
  absl::StatusOr<std::unique_ptr<Thread>> TryStartThread(const std::string& name,
                                                         std::function<void()> body) override {
    return TryStartRealThread(name, std::move(body));
  }

 private:
  /// The socket for peers' datagram requests; opened for the first queue pair.
  absl::StatusOr<std::string> DatagramSocket() {
    const MutexLock lock(datagram_mutex_);
    if (datagram_backlog_ == nullptr) {
      NAM_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Bind("@"));
      datagram_backlog_ = std::make_shared<Backlog>(std::move(socket), Purpose::kDatagrams);
      service_->AddBacklog(datagram_backlog_);
    }
    return datagram_backlog_->socket().address();
  }
  ShmQueuePair::Environment Environment() {
    return {regions_.get(), service_.get(), peer_timeout_us_, &live_objects_};
  }

  const int64_t peer_timeout_us_;
  std::atomic<int> live_objects_{0};
  const std::unique_ptr<RegionRegistry> regions_;
  const std::unique_ptr<DoorbellAllocator> doorbells_;
  PeerDirectory peers_;
  Initiators initiators_;
  DatagramDirectory datagrams_;
  Mutex datagram_mutex_;
  std::shared_ptr<Backlog> datagram_backlog_ ABSL_GUARDED_BY(datagram_mutex_);
  Identity identity_;
  std::unique_ptr<Service> service_;  // last: its thread uses all of the above
};

}  // namespace
}  // namespace nam::fabric::shm

namespace nam::fabric {

absl::StatusOr<std::unique_ptr<Fabric>> OpenShm(const FabricOptions& options) {
  if (options.peer_timeout_us <= 0) return absl::InvalidArgumentError("peer_timeout_us must be positive");
  NAM_ASSIGN_OR_RETURN(auto regions, shm::RegionRegistry::Create());
  NAM_ASSIGN_OR_RETURN(auto doorbells, shm::DoorbellAllocator::Create());
  auto fabric = std::make_unique<shm::ShmFabric>(options, std::move(regions), std::move(doorbells));
  NAM_RETURN_IF_ERROR(fabric->Start());
  return fabric;
}

}  // namespace nam::fabric
