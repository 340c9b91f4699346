#include "memserver/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/header.h"
#include "catalog/methods.h"
#include "memserver/data_directory.h"
#include "memserver/memory_pool.h"
#include "memserver/multicast_streams.h"
#include "memserver/start_over_fabric.h"

namespace nam::memserver {
namespace {

constexpr int kRequestBytesMax = 4 << 20;
/// Pause between tries to join while the data directory's former member still has its lease.
constexpr int64_t kJoinPauseUs = 50'000;
/// Duration of these tries, in addition to two leases.
constexpr int64_t kJoinTimeoutUs = 10'000'000;
/// Smaller servers have scratch memory only on request.
constexpr uint64_t kScratchMemoryMin = uint64_t{16} << 20;

uint64_t DefaultScratch(uint64_t memory_bytes) {
  if (memory_bytes < kScratchMemoryMin) return 0;
  return memory_bytes / 4 / kExtentAlignment * kExtentAlignment;
}

/// Questions that only the catalog can answer. The first two answers stay true once they are.
struct CatalogQuestions {
  /// OK if the allocation is over, so that its memory may be freed.
  std::function<absl::Status(AllocationId allocation)> may_release;
  std::function<absl::StatusOr<bool>(MemberId member)> membership_over;
  /// True if the member is alive and the proof is its own; and, if a load is named, it is the member's and in
  /// progress.
  std::function<absl::StatusOr<bool>(MemberId member, const std::string& proof, AllocationId load)> proven;
  /// Asks the catalog what need not be kept any more, and acts on the answer. May be empty.
  std::function<void()> renew;
};

absl::Status CheckMember(uint32_t member) {
  if (member != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("0 is no member: join the cluster first");
}

/// Ends the allocation; returns the bytes freed at once. Removes the file first: so memory that another
/// allocation gets and seals is in no older file. If the file cannot be removed, the memory stays held, and
/// the catalog has this server end the allocation again with its next renewal.
uint64_t EndAllocation(MemoryPool& pool, DataDirectory* directory, AllocationId allocation) {
  if (directory != nullptr && !directory->Remove(allocation)) return 0;
  return pool.Release(allocation).freed_bytes;
}

class MemoryService {
 public:
  /// `storage` is valid once this server has joined. `fence` is Listener::Fence.
  MemoryService(MemoryPool& pool, DataDirectory* directory, MulticastStreams& streams,
                CatalogQuestions catalog, std::function<MemoryServerId()> storage,
                std::function<bool(MemberId, bool)> fence)
      : pool_(pool),
        directory_(directory),
        catalog_(std::move(catalog)),
        fence_(std::move(fence)),
        handlers_("nam.proto.Memory") {
    using Call = catalog::IncomingCall;
    handlers_.Add(catalog::kAllocate,
                  [this](const proto::AllocateRequest& request, const Call&) { return Allocate(request); });
    handlers_.Add(catalog::kRelease,
                  [this](const proto::ReleaseRequest& request, const Call&) { return Release(request); });
    handlers_.Add(catalog::kReleaseScratch, [this](const proto::ReleaseScratchRequest& request, const Call&) {
      return ReleaseScratch(request);
    });
    handlers_.Add(catalog::kOpenExtents, [this](const proto::OpenExtentsRequest& request, const Call&) {
      return OpenExtents(request);
    });
    handlers_.Add(catalog::kCloseExtents, [this](const proto::CloseExtentsRequest& request, const Call&) {
      return CloseExtents(request);
    });
    handlers_.Add(catalog::kSeal, [this](const proto::SealRequest& request, const Call& call) {
      return Seal(request, call);
    });
    handlers_.Add(catalog::kFence,
                  [this](const proto::FenceRequest& request, const Call&) { return Fence(request); });
    handlers_.Add(catalog::kListRegions, [this](const proto::ListRegionsRequest& request, const Call&) {
      return ListRegions(request);
    });
    handlers_.Add(catalog::kStartMulticast, [&streams, storage = std::move(storage)](
                                                const proto::StartMulticastRequest& request, const Call&) {
      return streams.Start(storage(), request);
    });
    handlers_.Add(catalog::kEndMulticast, [&streams](const proto::EndMulticastRequest& request, const Call&) {
      return streams.End(request);
    });
  }
  const catalog::Handlers& handlers() const { return handlers_; }

 private:
  absl::Status CheckProof(uint32_t member, const std::string& proof, AllocationId load = {}) {
    NAM_RETURN_IF_ERROR(CheckMember(member));
    NAM_ASSIGN_OR_RETURN(const bool proven, catalog_.proven(MemberId(member), proof, load));
    if (proven) return absl::OkStatus();
    if (load != AllocationId()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "allocation %d is not a load in progress of member %d with this proof", load.value(), member));
    }
    return absl::FailedPreconditionError(
        absl::StrFormat("no member with the id %d and this proof lives", member));
  }

  // Memory that is over must not wait for the next renewal.
  absl::StatusOr<proto::AllocateReply> Allocate(const proto::AllocateRequest& request) {
    NAM_RETURN_IF_ERROR(CheckProof(request.member(), request.proof()));
    const auto use = request.scratch() ? MemoryPool::Use::kScratch : MemoryPool::Use::kData;
    const auto allocate = [&] {
      return pool_.Allocate(AllocationId(request.allocation()), request.bytes(), MemberId(request.member()),
                            request.contiguous() ? MemoryPool::Pieces::kOne : MemoryPool::Pieces::kAny, use,
                            request.attempt(), request.opening());
    };
    absl::StatusOr<std::vector<Extent>> extents = allocate();
    if (absl::IsResourceExhausted(extents.status())) {
      catalog_.renew();
      extents = allocate();
    }
    proto::AllocateReply reply;
    if (absl::IsResourceExhausted(extents.status()) && pool_.WillHave(request.bytes(), use)) {
      reply.set_leaving(true);
      return reply;
    }
    NAM_RETURN_IF_ERROR(extents.status());
    for (const Extent& extent : *extents) AddExtent(extent, *reply.mutable_extents());
    return reply;
  }

  // Needs no proof: a member that opens in another's name only delays the end of memory that it could write
  // to anyway.
  absl::StatusOr<proto::OpenExtentsReply> OpenExtents(const proto::OpenExtentsRequest& request) {
    NAM_RETURN_IF_ERROR(CheckMember(request.member()));
    proto::OpenExtentsReply reply;
    for (const uint64_t allocation : request.allocations()) {
      NAM_ASSIGN_OR_RETURN(
          const std::vector<Extent> extents,
          pool_.Open(AllocationId(allocation), MemberId(request.member()), request.opening()));
      for (const Extent& extent : extents) {
        AddExtent(extent, *reply.mutable_extents());
        reply.add_allocations(allocation);
      }
    }
    return reply;
  }

  absl::StatusOr<proto::CloseExtentsReply> CloseExtents(const proto::CloseExtentsRequest& request) {
    NAM_RETURN_IF_ERROR(CheckProof(request.member(), request.proof()));
    // First: what such an opening has opened by now is closed below.
    pool_.RefuseOpenings(MemberId(request.member()), request.openings_from());
    for (const proto::ClosedAllocation& closed : request.closed())
      pool_.Close(AllocationId(closed.allocation()), closed.attempt(), MemberId(request.member()));
    return proto::CloseExtentsReply();
  }

  // Checks the owner's proof first, so that no other process causes disk writes.
  absl::StatusOr<proto::SealReply> Seal(const proto::SealRequest& request,
                                        const catalog::IncomingCall& call) {
    const AllocationId allocation(request.allocation());
    if (allocation == AllocationId()) return absl::InvalidArgumentError("0 is no allocation");
    NAM_RETURN_IF_ERROR(CheckProof(request.member(), request.proof(), allocation));
    proto::SealReply reply;
    if (directory_ == nullptr) return reply;
    NAM_ASSIGN_OR_RETURN(const uint64_t bytes,
                         directory_->Seal(allocation, pool_, [&] { return call.Cancelled(); }));
    reply.set_bytes(bytes);
    return reply;
  }

  absl::StatusOr<proto::FenceReply> Fence(const proto::FenceRequest& request) {
    NAM_RETURN_IF_ERROR(CheckMember(request.member()));
    const MemberId member(request.member());
    NAM_ASSIGN_OR_RETURN(const bool over, catalog_.membership_over(member));
    if (!over) {
      return absl::FailedPreconditionError(
          absl::StrFormat("member %d is alive and keeps its connections", member.value()));
    }
    proto::FenceReply reply;
    reply.set_drained(fence_(member, request.kill()));
    return reply;
  }

  static void AddExtent(const Extent& extent, google::protobuf::RepeatedPtrField<proto::Extent>& extents) {
    proto::Extent& added = *extents.Add();
    added.set_offset(extent.offset);
    added.set_bytes(extent.bytes);
  }

  absl::StatusOr<proto::ReleaseReply> Release(const proto::ReleaseRequest& request) {
    NAM_RETURN_IF_ERROR(catalog_.may_release(AllocationId(request.allocation())));
    proto::ReleaseReply reply;
    reply.set_bytes(EndAllocation(pool_, directory_, AllocationId(request.allocation())));
    return reply;
  }

  // Needs no owner: members may write to any memory, so any member may release unread scratch memory.
  absl::StatusOr<proto::ReleaseReply> ReleaseScratch(const proto::ReleaseScratchRequest& request) {
    NAM_RETURN_IF_ERROR(CheckProof(request.member(), request.proof()));
    proto::ReleaseReply reply;
    reply.set_bytes(pool_.ReleaseAttempt(AllocationId(request.allocation()), request.attempt()).freed_bytes);
    return reply;
  }

  absl::StatusOr<proto::ListRegionsReply> ListRegions(const proto::ListRegionsRequest& request) {
    if (request.renew_first()) catalog_.renew();
    proto::ListRegionsReply reply;
    for (const MemoryPool::Region& region : pool_.Regions()) {
      proto::Region& added = *reply.add_regions();
      added.set_offset(region.offset);
      added.set_bytes(region.bytes);
      added.set_rkey(region.rkey.value);
    }
    reply.set_used_bytes(pool_.used_bytes());
    reply.set_leaving_bytes(pool_.leaving_bytes());
    reply.set_memory_bytes(pool_.capacity_bytes());
    reply.set_scratch_used_bytes(pool_.scratch_used_bytes());
    reply.set_scratch_highest_bytes(pool_.scratch_highest_bytes());
    reply.set_scratch_bytes(pool_.scratch_bytes());
    return reply;
  }

  MemoryPool& pool_;
  DataDirectory* const directory_;  // may be null
  const CatalogQuestions catalog_;
  const std::function<bool(MemberId, bool)> fence_;
  catalog::Handlers handlers_;
};

class MemoryServerImpl final : public MemoryServer, private fabric::MemberKeys {
 public:
  MemoryServerImpl(const MemoryServerOptions& options, std::unique_ptr<catalog::Client> client,
                   std::unique_ptr<fabric::Fabric> fabric, std::unique_ptr<MemoryPool> pool,
                   std::unique_ptr<DataDirectory> directory, DataDirectory::Contents contents)
      : options_(options),
        client_(std::move(client)),
        fabric_(std::move(fabric)),
        pool_(std::move(pool)),
        directory_(std::move(directory)),
        contents_(std::move(contents)),
        streams_(*fabric_, *pool_),
        service_(
            *pool_, directory_.get(), streams_,
            {.may_release = [this](AllocationId allocation) { return MayRelease(allocation); },
             .membership_over = [this](MemberId member) { return MembershipOver(member); },
             .proven = [this](MemberId member, const std::string& proof,
                              AllocationId load) { return Proven(member, proof, load); },
             .renew = [this] { RenewNow(); }},
            [this] { return storage(); },
            [this](MemberId member, bool kill) { return listener_->Fence(member, kill); }) {}
  ~MemoryServerImpl() override { Shutdown(Deadline{0}); }

  absl::Status Listen();
  absl::Status Join(int64_t lease_us);

  MemoryServerId id() const override { return MemoryServerId(static_cast<uint16_t>(member_.load())); }
  MemoryServerId storage() const override { return MemoryServerId(static_cast<uint16_t>(storage_.load())); }
  std::string control_address() const override { return control_address_; }
  std::string fabric_address() const override { return fabric_address_; }
  uint64_t used_bytes() const override { return pool_->used_bytes(); }
  uint64_t scratch_used_bytes() const override { return pool_->scratch_used_bytes(); }
  uint64_t capacity_bytes() const override { return pool_->capacity_bytes(); }
  void Shutdown(Deadline deadline) override;

 private:
  std::string FabricListenAddress() const;
  absl::StatusOr<proto::RenewReply> Ask(proto::RenewRequest about);
  absl::Status MayRelease(AllocationId allocation);
  absl::StatusOr<bool> MembershipOver(MemberId member);
  absl::StatusOr<bool> Proven(MemberId member, const std::string& proof, AllocationId load);
  proto::Member Self() const;
  absl::Status AdoptStorage(const proto::JoinReply& joined);
  absl::StatusOr<std::vector<std::optional<fabric::MemberKey>>> KeysOf(
      std::span<const MemberId> members) override;
  void RenewNow();
  void AddHeld(proto::RenewRequest& request);
  void BeforeRenew(proto::RenewRequest& request);
  void AfterRenew(const proto::RenewReply& reply);

  const MemoryServerOptions options_;
  const std::unique_ptr<catalog::Client> client_;
  const std::unique_ptr<fabric::Fabric> fabric_;
  const std::unique_ptr<MemoryPool> pool_;
  const std::unique_ptr<DataDirectory> directory_;  // nullptr: none
  const DataDirectory::Contents contents_;          // as read at the start
  MulticastStreams streams_;
  MemoryService service_;
  std::unique_ptr<catalog::ControlServer> control_server_;
  std::unique_ptr<fabric::Listener> listener_;
  std::string control_address_;
  std::string fabric_address_;
  std::string proof_;                 // written before member_
  std::atomic<uint32_t> storage_{0};  // written before member_
  std::atomic<uint32_t> member_{0};   // 0: not joined yet
  Mutex undrained_mutex_;
  std::set<uint32_t> undrained_ ABSL_GUARDED_BY(undrained_mutex_);  // members not fenced yet
  Mutex shutdown_mutex_;  // guards membership_, control_server_ and listener_ once started
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
                                                             .handlers = &service_.handlers(),
                                                             .request_bytes_max = kRequestBytesMax}));
  const auto advertised = [&](const std::string& address) {
    return catalog::AdvertisedAddress(address, options_.advertised_host, control_plane.host_name());
  };
  control_address_ = advertised(control_server_->address());
  NAM_ASSIGN_OR_RETURN(listener_, fabric_->Listen({.address = FabricListenAddress(), .member_keys = this}));
  // Only host:port has a host to advertise; other addresses are valid on this machine only.
  fabric_address_ = listener_->address();
  if (catalog::SplitAddress(fabric_address_).ok()) fabric_address_ = advertised(fabric_address_);
  if (fabric_->capabilities().one_host) return absl::OkStatus();
  return catalog::CheckAdvertised(options_.catalog.address, {control_address_, fabric_address_});
}

proto::Member MemoryServerImpl::Self() const {
  proto::Member self;
  self.set_role(proto::ROLE_MEMORY);
  self.set_host(options_.catalog.control_plane->host_name());
  self.set_pid(static_cast<uint32_t>(::getpid()));
  self.set_control_address(control_address_);
  self.set_fabric_address(fabric_address_);
  self.set_memory_bytes(pool_->table_bytes());
  if (directory_ == nullptr) return self;
  self.set_data_directory(directory_->path());
  self.set_storage(directory_->storage());
  for (const AllocationId allocation : contents_.whole) self.add_files(allocation.value());
  for (const DataDirectory::DamagedFile& file : contents_.damaged) {
    if (file.misnamed) continue;  // the catalog may never have given out that number
    proto::LostAllocation& lost = *self.add_lost();
    lost.set_allocation(file.allocation.value());
    lost.set_why(file.why);
  }
  return self;
}

// The lock on the directory says that the former member's process has ended. The catalog believes that after
// half a lease of silence, because two copies of a directory have two locks. If it hears of the former member
// again, it refuses this one for good.
absl::Status MemoryServerImpl::Join(int64_t lease_us) {
  catalog::Membership::Hooks hooks;
  hooks.before_renew = [this](proto::RenewRequest& request) { BeforeRenew(request); };
  hooks.after_renew = [this](const proto::RenewReply& reply) { AfterRenew(reply); };
  hooks.on_lost = [this](const absl::Status& why) {
    LogError(absl::StrFormat("buried, with %d allocations and %d bytes: %s", pool_->Held().size(),
                             pool_->used_bytes(), std::string(why.message())));
    if (options_.on_lost) options_.on_lost(why);
  };
  Clock& clock = fabric_->clock();
  const Deadline deadline = clock.After(2 * lease_us + kJoinTimeoutUs);
  absl::StatusOr<std::unique_ptr<catalog::Membership>> joined;
  while (true) {
    joined = catalog::Membership::Join(*client_, *fabric_, Self(), hooks);
    const bool again =
        directory_ != nullptr && directory_->storage() != 0 && absl::IsUnavailable(joined.status());
    if (!again || clock.Passed(deadline)) break;
    clock.SleepUntil(clock.After(kJoinPauseUs));
  }
  NAM_RETURN_IF_ERROR(joined.status());
  membership_ = *std::move(joined);
  NAM_RETURN_IF_ERROR(AdoptStorage(membership_->joined()));
  proof_ = membership_->proof();
  member_ = membership_->id().value();
  LogInfo(absl::StrFormat("joined the cluster as memory server %d", member_.load()));
  return absl::OkStatus();
}

absl::Status MemoryServerImpl::AdoptStorage(const proto::JoinReply& joined) {
  storage_ = joined.storage();
  if (directory_ == nullptr) return absl::OkStatus();
  if (directory_->storage() == 0) NAM_RETURN_IF_ERROR(directory_->SetStorage(joined.storage()));
  LogInfo(absl::StrFormat("has storage %d in `%s`: %d allocations, %s", joined.storage(), directory_->path(),
                          contents_.whole.size(), ReadableBytes(contents_.bytes)));
  for (const std::string& table : joined.missing()) {
    LogError(absl::StrFormat("table %s has memory in storage %d, and `%s` has no whole file of it", table,
                             joined.storage(), directory_->path()));
  }
  return absl::OkStatus();
}

// Asks the catalog about the listed allocations and members.
absl::StatusOr<proto::RenewReply> MemoryServerImpl::Ask(proto::RenewRequest about) {
  about.set_id(member_);
  about.set_proof(proof_);
  about.set_used_bytes(pool_->used_bytes());
  return client_->Renew(about);
}

// An allocation that is over never returns, so the catalog's answer stays true.
absl::Status MemoryServerImpl::MayRelease(AllocationId allocation) {
  proto::RenewRequest request;
  request.add_held(allocation.value());
  NAM_ASSIGN_OR_RETURN(const proto::RenewReply reply, Ask(std::move(request)));
  if (reply.release_size() == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "allocation %d is a load under way or a table; abort or drop it, then its memory is freed",
      allocation.value()));
}

absl::StatusOr<bool> MemoryServerImpl::MembershipOver(MemberId member) {
  proto::RenewRequest request;
  request.add_watched_members(member.value());
  NAM_ASSIGN_OR_RETURN(const proto::RenewReply reply, Ask(std::move(request)));
  return reply.over_size() == 1;
}

absl::StatusOr<bool> MemoryServerImpl::Proven(MemberId member, const std::string& proof, AllocationId load) {
  proto::RenewRequest request;
  proto::MemberClaim& claim = *request.add_claims();
  claim.set_member(member.value());
  claim.set_proof(proof);
  claim.set_load(load.value());
  NAM_ASSIGN_OR_RETURN(const proto::RenewReply reply, Ask(std::move(request)));
  return reply.proven_size() == 1;
}

absl::StatusOr<std::vector<std::optional<fabric::MemberKey>>> MemoryServerImpl::KeysOf(
    std::span<const MemberId> members) {
  if (member_ == 0) return absl::UnavailableError("this memory server has not joined the cluster yet");
  proto::RenewRequest request;
  for (const MemberId member : members) request.add_connecting(member.value());
  NAM_ASSIGN_OR_RETURN(const proto::RenewReply reply, Ask(std::move(request)));
  std::map<uint32_t, fabric::MemberKey> known;
  for (const proto::MemberKey& entry : reply.keys()) {
    fabric::MemberKey& key = known[entry.member()];
    if (entry.key().size() != key.size()) return absl::InternalError("a member's key of the wrong size");
    std::copy(entry.key().begin(), entry.key().end(), key.begin());
  }
  std::vector<std::optional<fabric::MemberKey>> keys;
  for (const MemberId member : members) {
    const auto found = known.find(member.value());
    keys.push_back(found == known.end() ? std::nullopt : std::optional(found->second));
  }
  return keys;
}

// Lists the allocations that could be freed, and the members to fence for that.
void MemoryServerImpl::AddHeld(proto::RenewRequest& request) {
  for (const AllocationId allocation : pool_->Held()) request.add_held(allocation.value());
  if (directory_ != nullptr) {
    for (const AllocationId allocation : directory_->Damaged()) request.add_held(allocation.value());
  }
  std::set<MemberId> watched;
  for (const MemberId member : listener_->Members()) watched.insert(member);
  for (const MemberId member : pool_->Openers()) watched.insert(member);
  for (const MemberId member : watched) request.add_watched_members(member.value());
}

// The control server answers before the listener is there.
void MemoryServerImpl::RenewNow() {
  if (member_ == 0) return;
  proto::RenewRequest request;
  AddHeld(request);
  const absl::StatusOr<proto::RenewReply> reply = Ask(std::move(request));
  if (reply.ok()) AfterRenew(*reply);
}

void MemoryServerImpl::BeforeRenew(proto::RenewRequest& request) {
  request.set_used_bytes(pool_->used_bytes());
  AddHeld(request);
  proto::CatalogHeader header;
  header.set_held_is_all(true);
  catalog::SetHeader(request, header);
}

// A fenced member is refused from then on, so no process opens memory in its name and then writes to it.
void MemoryServerImpl::AfterRenew(const proto::RenewReply& reply) {
  for (const uint32_t member : reply.over()) {
    const bool fenced = listener_->Fence(MemberId(member), false);
    if (fenced) pool_->Fenced(MemberId(member));
    const MutexLock lock(undrained_mutex_);
    if (fenced) {
      undrained_.erase(member);
      LogInfo(absl::StrFormat("the membership of member %d is over: its connections are ended", member));
    } else if (undrained_.insert(member).second) {
      LogWarning(absl::StrFormat(
          "the membership of member %d is over, but its process is stalled while changing memory; "
          "the memory stays in use until it continues or ends",
          member));
    }
  }
  for (const uint64_t allocation : reply.release())
    EndAllocation(*pool_, directory_.get(), AllocationId(allocation));
}

void MemoryServerImpl::Shutdown(Deadline deadline) {
  const MutexLock lock(shutdown_mutex_);
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
  fabric_options.encrypt = cluster.encrypt();
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
  pool_options.scratch_bytes = options.scratch_bytes.value_or(DefaultScratch(options.memory_bytes));
  pool_options.huge_pages = options.huge_pages;
  pool_options.populate = options.populate;
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<MemoryPool> pool, MemoryPool::Create(*fabric, pool_options));
  std::unique_ptr<DataDirectory> directory;
  DataDirectory::Contents contents;
  if (!options.data_directory.empty()) {
    NAM_ASSIGN_OR_RETURN(directory,
                         DataDirectory::Open(options.data_directory, cluster.store(), cluster.name()));
    // Before any peer can connect: with the former server's address, a peer would read memory that is not
    // filled yet.
    NAM_ASSIGN_OR_RETURN(contents, directory->ReadInto(*pool, *fabric));
  }
  auto server =
      std::make_unique<MemoryServerImpl>(options, std::move(client), std::move(fabric), std::move(pool),
                                         std::move(directory), std::move(contents));
  NAM_RETURN_IF_ERROR(server->Listen());
  NAM_RETURN_IF_ERROR(server->Join(int64_t{cluster.lease_ms()} * 1'000));
  return server;
}

}  // namespace nam::memserver
