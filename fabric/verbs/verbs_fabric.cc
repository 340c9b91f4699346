#include "fabric/verbs/verbs_fabric.h"

#include <errno.h>
#include <string.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "fabric/net/handshake.h"
#include "fabric/threads.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/datagrams.h"
#include "fabric/verbs/listener.h"
#include "fabric/verbs/memory.h"
#include "fabric/verbs/queue_pair.h"

namespace nam::fabric {
namespace verbs {
namespace {

class VerbsFabric final : public Fabric {
 public:
  explicit VerbsFabric(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  // Objects that the application still holds must not be used, but can be destroyed.
  ~VerbsFabric() override { core_->control().Stop(); }

  Kind kind() const override { return Kind::kVerbs; }
  Capabilities capabilities() const override { return {.card_moves = true, .processors = HostProcessors()}; }
  Clock& clock() override { return RealClock(); }

  absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                         const AllocateOptions& options) override {
    return VerbsRegion::Allocate(core_, bytes, options);
  }
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return VerbsCompletionQueue::Create(core_, depth);
  }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) override {
    return VerbsListener::Create(core_, options);
  }
  absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address, CompletionQueue& completions,
                                                     const QueuePairOptions& options,
                                                     Deadline deadline) override;
  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) override {
    return VerbsDatagramQueuePair::Create(core_, QueueOf(completions), options);
  }
  /// Excludes datagrams that the NIC dropped by itself for want of a receive: it does not report them.
  DatagramDrops datagram_drops() const override {
    return {.no_receive = core_->datagrams_unreceived, .refused = core_->datagrams_refused};
  }
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
  static VerbsCompletionQueue& QueueOf(CompletionQueue& completions) {
    auto* queue = dynamic_cast<VerbsCompletionQueue*>(&completions);
    NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
    return *queue;
  }

  const std::shared_ptr<Core> core_;
};

absl::StatusOr<std::unique_ptr<QueuePair>> VerbsFabric::Connect(const std::string& address,
                                                                CompletionQueue& completions,
                                                                const QueuePairOptions& options,
                                                                Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(auto pair, VerbsQueuePair::Create(core_, QueueOf(completions), options, address));
  NAM_ASSIGN_OR_RETURN(net::AuthenticatedSocket peer,
                       net::ConnectAuthenticated(address, {.member = options.member},
                                                 {.secret = core_->options().secret}, deadline));
  const int fd = peer.fd.get();
  NAM_RETURN_IF_ERROR(SendOffer(fd, pair->offer(), deadline));
  NAM_ASSIGN_OR_RETURN(const Offer offer, ReceiveOffer(fd, address, deadline));
  NAM_RETURN_IF_ERROR(pair->BringUp(offer));
  NAM_RETURN_IF_ERROR(SendReady(fd, deadline));
  NAM_RETURN_IF_ERROR(pair->Start(std::move(peer.fd), peer.mode == net::ListenMode::kPassive));
  return pair;
}

/// Copy-on-write of registered memory in a forked child would leave the NIC with the wrong copy.
absl::Status MakeForkSafe() {
  static const int error = ibv_fork_init();
  if (error == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "libibverbs cannot make registered memory safe for fork() (%s): it was used before in this process",
      strerror(error)));
}

}  // namespace
}  // namespace verbs

absl::StatusOr<std::unique_ptr<Fabric>> OpenVerbs(const FabricOptions& options) {
  if (options.secret.empty()) {
    return absl::InvalidArgumentError(
        "the verbs fabric needs the cluster's secret: without one, any process that reaches the port could "
        "read and write all memory");
  }
  if (options.peer_timeout_us < 1000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("peer_timeout_us is %d: at least 1000", options.peer_timeout_us));
  }
  NAM_RETURN_IF_ERROR(verbs::MakeForkSafe());
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<verbs::Core> core, verbs::Core::Open(options));
  return std::unique_ptr<Fabric>(new verbs::VerbsFabric(std::move(core)));
}

}  // namespace nam::fabric
