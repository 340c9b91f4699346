#include "memserver/server.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/methods.h"
#include "memserver/memory_pool.h"
#include "memserver/multicast_streams.h"
#include "memserver/start_over_fabric.h"

namespace nam::memserver {
namespace {

// Asks the catalog whether an allocation is over; OK when its memory may be freed.
using ReleaseCheck = std::function<absl::Status(AllocationId allocation)>;

class MemoryService {
 public:
  /// `self` is known once this server has joined.
  MemoryService(MemoryPool& pool, MulticastStreams& streams, ReleaseCheck may_release,
                std::function<MemoryServerId()> self)
      : pool_(pool), may_release_(std::move(may_release)), handlers_("nam.proto.Memory") {
    using Call = catalog::IncomingCall;
    handlers_.Add(catalog::kAllocate,
                  [this](const proto::AllocateRequest& request, const Call&) { return Allocate(request); });
    handlers_.Add(catalog::kRelease,
                  [this](const proto::ReleaseRequest& request, const Call&) { return Release(request); });
    handlers_.Add(catalog::kListRegions,
                  [this](const proto::ListRegionsRequest&, const Call&) { return ListRegions(); });
    handlers_.Add(catalog::kStartMulticast,
                  [&streams, self = std::move(self)](const proto::StartMulticastRequest& request,
                                                     const Call&) { return streams.Start(self(), request); });
    handlers_.Add(catalog::kEndMulticast, [&streams](const proto::EndMulticastRequest& request, const Call&) {
      return streams.End(request);
    });
  }
  const catalog::Handlers& handlers() const { return handlers_; }

 private:
  absl::StatusOr<proto::AllocateReply> Allocate(const proto::AllocateRequest& request) {
    NAM_ASSIGN_OR_RETURN(const std::vector<MemoryPool::Grant> grants,
                         pool_.Allocate(AllocationId(request.allocation()), request.bytes()));
    proto::AllocateReply reply;
    for (const MemoryPool::Grant& grant : grants) {
      proto::Extent& added = *reply.add_extents();
      added.set_offset(grant.extent.offset);
      added.set_bytes(grant.extent.bytes);
      added.set_rkey(grant.rkey.value);
    }
    return reply;
  }

  absl::StatusOr<proto::ReleaseReply> Release(const proto::ReleaseRequest& request) {
    NAM_RETURN_IF_ERROR(may_release_(AllocationId(request.allocation())));
    proto::ReleaseReply reply;
    reply.set_bytes(pool_.Release(AllocationId(request.allocation())).freed_bytes);
    return reply;
  }

  absl::StatusOr<proto::ListRegionsReply> ListRegions() {
    proto::ListRegionsReply reply;
    for (const MemoryPool::Region& region : pool_.Regions()) {
      proto::Region& added = *reply.add_regions();
      added.set_offset(region.offset);
      added.set_bytes(region.bytes);
      added.set_rkey(region.rkey.value);
    }
    reply.set_used_bytes(pool_.used_bytes());
    reply.set_memory_bytes(pool_.capacity_bytes());
    return reply;
  }

  MemoryPool& pool_;
  const ReleaseCheck may_release_;
  catalog::Handlers handlers_;
};

class MemoryServerImpl final : public MemoryServer {
 public:
  MemoryServerImpl(const MemoryServerOptions& options, std::unique_ptr<catalog::Client> client,
                   std::unique_ptr<fabric::Fabric> fabric, std::unique_ptr<MemoryPool> pool)
      : options_(options),
        client_(std::move(client)),
        fabric_(std::move(fabric)),
        pool_(std::move(pool)),
        streams_(*fabric_, *pool_),
        service_(
            *pool_, streams_, [this](AllocationId allocation) { return MayRelease(allocation); },
            [this] { return id(); }) {}
  ~MemoryServerImpl() override { Shutdown(Deadline{0}); }

  absl::Status Listen();
  absl::Status Join();

  MemoryServerId id() const override { return MemoryServerId(static_cast<uint16_t>(member_.load())); }
  std::string control_address() const override { return control_address_; }
  std::string fabric_address() const override { return fabric_address_; }
  uint64_t used_bytes() const override { return pool_->used_bytes(); }
  uint64_t capacity_bytes() const override { return pool_->capacity_bytes(); }
  void Shutdown(Deadline deadline) override;

 private:
  std::string FabricListenAddress() const;
  absl::Status MayRelease(AllocationId allocation);
  void BeforeRenew(proto::RenewRequest& request);
  void AfterRenew(const proto::RenewReply& reply);

  const MemoryServerOptions options_;
  const std::unique_ptr<catalog::Client> client_;
  const std::unique_ptr<fabric::Fabric> fabric_;
  const std::unique_ptr<MemoryPool> pool_;
  MulticastStreams streams_;
  MemoryService service_;
  std::unique_ptr<catalog::ControlServer> control_server_;
  std::unique_ptr<fabric::Listener> listener_;
  std::string control_address_;
  std::string fabric_address_;
  std::atomic<uint32_t> member_{0};
  std::vector<uint64_t> released_;  // since the last renewal; the renewing thread's
  std::mutex shutdown_mutex_;       // of membership_, control_server_ and listener_ once started
  std::unique_ptr<catalog::Membership> membership_;
};

std::string MemoryServerImpl::FabricListenAddress() const {
  if (!options_.fabric_listen_address.empty()) return options_.fabric_listen_address;
  const auto control = catalog::SplitAddress(control_server_->address());
  return fabric::AnyAddress(fabric_->kind(), control->first);
}

absl::Status MemoryServerImpl::Listen() {
  catalog::ControlPlane& control_plane = *options_.catalog.control_plane;
  NAM_ASSIGN_OR_RETURN(control_server_, control_plane.Serve({.address = options_.control_listen_address,
                                                             .secret = options_.catalog.secret,
                                                             .handlers = &service_.handlers()}));
  const auto advertised = [&](const std::string& address) {
    return catalog::AdvertisedAddress(address, options_.advertised_host, control_plane.host_name());
  };
  control_address_ = advertised(control_server_->address());
  NAM_ASSIGN_OR_RETURN(listener_, fabric_->Listen({.address = FabricListenAddress(), .passive = true}));
  // Only host:port has a host to advertise; other addresses are good on this machine alone.
  fabric_address_ = listener_->address();
  if (catalog::SplitAddress(fabric_address_).ok()) fabric_address_ = advertised(fabric_address_);
  return absl::OkStatus();
}

absl::Status MemoryServerImpl::Join() {
  proto::Member self;
  self.set_role(proto::ROLE_MEMORY);
  self.set_host(options_.catalog.control_plane->host_name());
  self.set_pid(static_cast<uint32_t>(::getpid()));
  self.set_control_address(control_address_);
  self.set_fabric_address(fabric_address_);
  self.set_memory_bytes(pool_->capacity_bytes());
  catalog::Membership::Hooks hooks;
  hooks.before_renew = [this](proto::RenewRequest& request) { BeforeRenew(request); };
  hooks.after_renew = [this](const proto::RenewReply& reply) { AfterRenew(reply); };
  hooks.on_lost = options_.on_lost;
  NAM_ASSIGN_OR_RETURN(membership_, catalog::Membership::Join(*client_, *fabric_, self, std::move(hooks)));
  member_ = membership_->id().value();
  return absl::OkStatus();
}

// Only the catalog knows: an allocation that is over never comes back, so its answer stays true.
absl::Status MemoryServerImpl::MayRelease(AllocationId allocation) {
  proto::RenewRequest request;
  request.set_id(member_);
  request.set_used_bytes(pool_->used_bytes());
  request.add_held(allocation.value());
  NAM_ASSIGN_OR_RETURN(const proto::RenewReply reply, client_->Renew(request));
  if (reply.release_size() == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "allocation %d is a load under way or a table; abort or drop it, then its memory is freed",
      allocation.value()));
}

void MemoryServerImpl::BeforeRenew(proto::RenewRequest& request) {
  request.set_used_bytes(pool_->used_bytes());
  for (const AllocationId allocation : pool_->Held()) request.add_held(allocation.value());
  for (const uint64_t allocation : released_) request.add_released(allocation);
}

void MemoryServerImpl::AfterRenew(const proto::RenewReply& reply) {
  released_.clear();
  for (const uint64_t allocation : reply.release()) {
    // What drains is still held: the next renewal lists it again, and so comes back to it.
    if (pool_->Release(AllocationId(allocation)).draining_bytes == 0) released_.push_back(allocation);
  }
}

void MemoryServerImpl::Shutdown(Deadline deadline) {
  const std::lock_guard lock(shutdown_mutex_);
  membership_.reset();
  if (control_server_ != nullptr) control_server_->Shutdown(deadline);
  listener_.reset();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryServer>> StartOverFabric(const MemoryServerOptions& options,
                                                              const catalog::FabricOpener& open) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<catalog::Client> client, catalog::Client::Connect(options.catalog));
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, client->GetCluster());
  fabric::FabricOptions fabric_options;
  NAM_ASSIGN_OR_RETURN(fabric_options.kind, fabric::ParseKind(cluster.fabric()));
  fabric_options.secret = options.catalog.secret;
  fabric_options.nic_threads = options.nic_threads;
  fabric_options.rdma = options.rdma;
  fabric_options.multicast_interface = options.multicast_interface;
  fabric_options.multicast_ttl = options.multicast_ttl;
  fabric_options.host = catalog::FabricHost(options.advertised_host, options.fabric_listen_address,
                                            options.control_listen_address);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<fabric::Fabric> fabric, open(fabric_options));
  MemoryPoolOptions pool_options;
  pool_options.memory_bytes = options.memory_bytes;
  pool_options.region_bytes = options.region_bytes;
  pool_options.huge_pages = options.huge_pages;
  pool_options.populate = options.populate;
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<MemoryPool> pool, MemoryPool::Create(*fabric, pool_options));
  auto server =
      std::make_unique<MemoryServerImpl>(options, std::move(client), std::move(fabric), std::move(pool));
  NAM_RETURN_IF_ERROR(server->Listen());
  NAM_RETURN_IF_ERROR(server->Join());
  return server;
}

}  // namespace nam::memserver
