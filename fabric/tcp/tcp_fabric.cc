#include "fabric/tcp/tcp_fabric.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "fabric/anonymous_mapping.h"
#include "fabric/net/handshake.h"
#include "fabric/net/socket.h"
#include "fabric/request_rules.h"
#include "fabric/tcp/completion_queue.h"
#include "fabric/tcp/core.h"
#include "fabric/tcp/datagram_queue_pair.h"
#include "fabric/tcp/listener.h"
#include "fabric/tcp/queue_pair.h"
#include "fabric/tcp/regions.h"
#include "fabric/threads.h"

namespace nam::fabric {
namespace tcp {
namespace {

constexpr int kNicThreadsMax = 256;

/// Memory with its key.
class TcpRegion final : public MemoryRegion {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Create(std::shared_ptr<Core> core, size_t bytes,
                                                              const AllocateOptions& options) {
    NAM_ASSIGN_OR_RETURN(AnonymousMapping mapping,
                         AnonymousMapping::Create(bytes, options.huge_pages, options.populate));
    const Regions::View view{mapping.data(), bytes, options.access};
    NAM_ASSIGN_OR_RETURN(const uint32_t key, core->regions().Register(view));
    return std::unique_ptr<MemoryRegion>(new TcpRegion(std::move(core), std::move(mapping), view, key));
  }
  // Before mapping_ frees the memory.
  ~TcpRegion() override { Revoke(); }
  /// Waits for NIC threads only, so no peer can delay it. A second caller waits for the first.
  bool Revoke() override {
    std::call_once(revoked_, [this] { core_->ReleaseRegion(rkey_.value); });
    return true;
  }

 private:
  TcpRegion(std::shared_ptr<Core> core, AnonymousMapping mapping, const Regions::View& view, uint32_t key)
      : core_(std::move(core)), mapping_(std::move(mapping)) {
    data_ = view.data;
    bytes_ = view.bytes;
    access_ = view.access;
    rkey_ = {key};
    lkey_ = {key};
  }

  const std::shared_ptr<Core> core_;
  const AnonymousMapping mapping_;
  std::once_flag revoked_;
};

class TcpFabric final : public Fabric {
 public:
  explicit TcpFabric(const FabricOptions& options) : core_(std::make_shared<Core>(options)) {}
  // Objects that the application still holds must not be used, but can be destroyed.
  ~TcpFabric() override { core_->StopNics(); }

  Kind kind() const override { return Kind::kTcp; }
  Capabilities capabilities() const override {
    return {.posts_are_calls = true, .sockets = true, .processors = HostProcessors()};
  }
  Clock& clock() override { return RealClock(); }

  absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                         const AllocateOptions& options) override {
    return TcpRegion::Create(core_, bytes, options);
  }
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return TcpCompletionQueue::Create(depth);
  }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) override {
    return TcpListener::Create(core_, options);
  }
  absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address, CompletionQueue& completions,
                                                     const QueuePairOptions& options,
                                                     Deadline deadline) override;

  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) override {
    auto* queue = dynamic_cast<TcpCompletionQueue*>(&completions);
    NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
    return TcpDatagramQueuePair::Create(core_, *queue, options);
  }
  DatagramDrops datagram_drops() const override { return core_->datagram_counters().Read(); }
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
  const std::shared_ptr<Core> core_;
};

absl::StatusOr<std::unique_ptr<QueuePair>> TcpFabric::Connect(const std::string& address,
                                                              CompletionQueue& completions,
                                                              const QueuePairOptions& options,
                                                              Deadline deadline) {
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
  auto* queue = dynamic_cast<TcpCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
  const FabricOptions& fabric = core_->options();
  NAM_ASSIGN_OR_RETURN(
      net::AuthenticatedSocket forward,
      net::ConnectAuthenticated(address, {.role = net::Role::kForward, .member = options.member},
                                core_->credentials(), deadline));
  net::ConfigurePeerSocket(forward.fd.get(), fabric.peer_timeout_us);
  net::AuthenticatedSocket reverse;
  if (forward.mode == net::ListenMode::kPaired) {
    NAM_ASSIGN_OR_RETURN(
        reverse, net::ConnectAuthenticated(address, {.role = net::Role::kReverse, .token = forward.token},
                                           core_->credentials(), deadline));
    net::ConfigurePeerSocket(reverse.fd.get(), fabric.peer_timeout_us);
  }
  return TcpQueuePair::Create(
      core_, *queue, options, net::Stream(std::move(forward.fd), forward.keys, net::Stream::Side::kClient),
      net::Stream(std::move(reverse.fd), reverse.keys, net::Stream::Side::kClient), address);
}

}  // namespace
}  // namespace tcp

absl::StatusOr<std::unique_ptr<Fabric>> OpenTcp(const FabricOptions& options) {
  if (options.secret.empty()) {
    return absl::InvalidArgumentError(
        "the tcp fabric needs the cluster's secret: without one, any process that reaches the port could "
        "read and write all memory");
  }
  if (options.nic_threads < 1 || options.nic_threads > tcp::kNicThreadsMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("nic_threads is %d: 1 to %d", options.nic_threads, tcp::kNicThreadsMax));
  }
  if (options.peer_timeout_us < 1000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("peer_timeout_us is %d: at least 1000", options.peer_timeout_us));
  }
  if (options.multicast_ttl < 0 || options.multicast_ttl > 255) {
    return absl::InvalidArgumentError(
        absl::StrFormat("multicast_ttl is %d: 0 to 255", options.multicast_ttl));
  }
  // An unknown interface is an error even if datagrams are never used; the host's interface may lack IPv4.
  if (!options.multicast_interface.empty()) {
    NAM_RETURN_IF_ERROR(tcp::FindDatagramInterface(options).status());
  }
  return std::unique_ptr<Fabric>(new tcp::TcpFabric(options));
}

}  // namespace nam::fabric
