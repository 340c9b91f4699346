#include "catalog/attachment.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/attach_over_fabric.h"
#include "catalog/grant_closer.h"
#include "catalog/methods.h"
#include "catalog/server_ids.h"

namespace nam::catalog {
namespace {

// Allocate zeroes memory and touches pages before it answers; no server is slower than this.
constexpr int64_t kAllocateBytesPerUs = 128;
/// No disk is slower than this, and other loads may be written first.
constexpr int64_t kSealBytesPerUs = 4;
constexpr int64_t kSealTimeoutUs = 120'000'000;
/// Timeout of calls that only hasten work that happens soon anyway.
constexpr int64_t kHastenTimeoutUs = 1'000'000;
constexpr int64_t kJoinPauseUs = 10'000;
/// Pauses between requests for memory that is about to be free.
constexpr int64_t kLeavingPauseUs = 2'000;
constexpr int64_t kLeavingPauseMaxUs = 50'000;
/// Limit for members to close memory that is over: a silent member has lost its lease by then.
constexpr int64_t kLeavingLeases = 3;

// One memory server's control plane. Its addresses never change: member ids are not reused.
struct MemoryPeer {
  MemoryServerId member;
  std::string fabric_address;
  std::unique_ptr<Peer> peer;
};

class ClusterAttachment final : public Attachment {
 public:
  ClusterAttachment(const AttachOptions& options, int64_t lease_us, std::unique_ptr<Client> client,
                    std::unique_ptr<fabric::Fabric> fabric)
      : control_plane_(*options.catalog.control_plane),
        secret_(options.catalog.secret),
        timeout_us_(options.catalog.timeout_us),
        leaving_timeout_us_(kLeavingLeases * lease_us),
        client_(std::move(client)),
        fabric_(std::move(fabric)),
        closer_(std::make_unique<GrantCloser>(
            *fabric_, grants(),
            [this](MemoryServerId server, const std::vector<fabric::Grants::Closed>& closed) {
              return TellClosed(server, closed);
            })) {}
  // Queue pairs must go before the fabric, and the closing thread before its peers.
  ~ClusterAttachment() override {
    membership_.reset();
    closer_.reset();
    grants().DropConnections();
  }

  absl::Status Join(const AttachOptions& options);

  Client& catalog() override { return *client_; }
  fabric::Fabric& fabric() override { return *fabric_; }
  MemberId member() const override { return MemberId(member_.load(std::memory_order_acquire)); }
  std::unique_ptr<Peer> OpenPeer(const std::string& name, const std::string& address) override {
    return std::make_unique<Peer>(name, control_plane_.Open(address, secret_));
  }
  absl::Status ConfirmLease() override {
    const std::shared_ptr<Membership> membership = Now();
    return membership == nullptr ? absl::OkStatus() : membership->Confirm();
  }
  absl::Status AskMembership() override {
    const std::shared_ptr<Membership> membership = Now();
    return membership == nullptr ? absl::OkStatus() : membership->Ask();
  }
  absl::Status Rejoin() override;
  Membership::Hooks HooksOfMembership() override;
  void ActAs(const Membership& membership) override {
    const MutexLock lock(mutex_);
    NAM_CHECK(membership_ == nullptr, "an attachment acts for one membership");
    proof_ = membership.proof();
    member_.store(membership.id().value(), std::memory_order_release);
  }
  bool Buried(MemoryServerId server, bool ask) override;
  fabric::MemberProof Self() override {
    const MutexLock lock(mutex_);
    if (membership_ == nullptr) return {member(), proof_};
    return {membership_->id(), membership_->proof()};
  }

  absl::StatusOr<std::vector<proto::Member>> Members(proto::Role role) override;
  absl::StatusOr<std::vector<GrantedExtent>> Allocate(MemoryServerId server, AllocationId allocation,
                                                      uint64_t bytes) override;
  absl::StatusOr<GrantedExtent> AllocateContiguous(MemoryServerId server, AllocationId allocation,
                                                   uint64_t bytes) override;
  absl::StatusOr<GrantedExtent> AllocateScratch(MemoryServerId server, AllocationId allocation,
                                                uint64_t attempt, uint64_t bytes,
                                                const std::atomic<bool>& cancel) override;
  absl::Status ReleaseScratch(MemoryServerId server, AllocationId allocation, uint64_t attempt) override;
  void CloseScratch(AllocationId allocation, uint64_t attempt) override {
    grants().EndAttempt(allocation, attempt);
    closer_->Wake();
  }
  absl::StatusOr<std::vector<GrantedExtent>> OpenExtents(
      MemoryServerId server, const std::vector<AllocationId>& allocations) override;
  absl::StatusOr<std::shared_ptr<fabric::Grant>> OpenAllocation(MemoryServerId server,
                                                                AllocationId allocation) override;
  absl::Status Fence(MemberId member) override;
  absl::Status Seal(MemoryServerId server, AllocationId allocation, uint64_t bytes) override;
  absl::Status Release(MemoryServerId server, AllocationId allocation) override;
  absl::StatusOr<proto::StartMulticastReply> StartMulticast(
      MemoryServerId server, const proto::StartMulticastRequest& request) override;
  absl::StatusOr<proto::EndMulticastReply> EndMulticast(MemoryServerId server, uint64_t stream) override;
  absl::StatusOr<proto::ListRegionsReply> MemoryUsage(MemoryServerId server, bool renew_first) override;
  absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server,
                                                                      bool refresh) override;

 private:
  std::shared_ptr<Membership> Now() {
    const MutexLock lock(mutex_);
    return membership_;
  }
  /// Adds the requesting member and its proof, without which memory servers give no memory.
  template <typename Request>
  void Sign(Request& request) {
    const fabric::MemberProof self = Self();
    request.set_member(self.id.value());
    request.set_proof(self.proof);
  }
  absl::Status JoinAs(const proto::Member& self);
  /// False if another thread is joining.
  bool BeginToJoin() {
    const MutexLock lock(mutex_);
    return !std::exchange(joining_, true);
  }
  void Bury(MemoryServerId server);
  absl::StatusOr<std::shared_ptr<MemoryPeer>> FindPeer(MemoryServerId server);
  /// `kind` selects the memory and the attempt.
  absl::StatusOr<std::vector<GrantedExtent>> Allocate(MemoryServerId server, AllocationId allocation,
                                                      uint64_t bytes, proto::AllocateRequest kind,
                                                      const std::atomic<bool>* cancel = nullptr);
  absl::StatusOr<GrantedExtent> AllocateOne(MemoryServerId server, AllocationId allocation, uint64_t bytes,
                                            proto::AllocateRequest kind,
                                            const std::atomic<bool>* cancel = nullptr);
  void EndGrants(const proto::RenewReply& reply);
  /// Asks the catalog now which allocations opened by this process are over.
  void LookForEnds();
  absl::Status TellClosed(MemoryServerId server, const std::vector<fabric::Grants::Closed>& closed);
  /// OK if the server's answer concerns the current member. Otherwise the process has joined again meanwhile,
  /// or the grant is over.
  absl::Status CheckGrant(fabric::Grants::Opening& opening, const fabric::Grant& grant);

  ControlPlane& control_plane_;
  const std::string secret_;
  const int64_t timeout_us_;
  const int64_t leaving_timeout_us_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<fabric::Fabric> fabric_;

  proto::Member self_;
  std::function<void(absl::Status)> on_lost_;
  std::atomic<uint32_t> member_{0};

  Mutex mutex_;  // never held during a call
  std::map<MemoryServerId, std::shared_ptr<MemoryPeer>> peers_ ABSL_GUARDED_BY(mutex_);
  std::map<MemoryServerId, std::shared_ptr<const fabric::ServerRegions>> regions_ ABSL_GUARDED_BY(mutex_);
  std::set<MemoryServerId> buried_ ABSL_GUARDED_BY(mutex_);
  std::string proof_ ABSL_GUARDED_BY(mutex_);     // of membership_
  bool joining_ ABSL_GUARDED_BY(mutex_) = false;  // again
  // Must leave while client and fabric exist.
  std::shared_ptr<Membership> membership_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GrantCloser> closer_;
};

absl::Status ClusterAttachment::Join(const AttachOptions& options) {
  if (options.role == proto::ROLE_UNKNOWN) return absl::OkStatus();
  self_ = options.self;
  self_.set_role(options.role);
  if (self_.host().empty()) self_.set_host(control_plane_.host_name());
  self_.set_pid(static_cast<uint32_t>(::getpid()));
  on_lost_ = options.on_lost;
  return JoinAs(self_);
}

Membership::Hooks ClusterAttachment::HooksOfMembership() {
  Membership::Hooks hooks;
  hooks.before_renew = [this](proto::RenewRequest& request) {
    // First this: a statement that begins after the look at the running ones sees this version or a later
    // one.
    const uint64_t known_version = client_->KnownVersion();
    request.set_reads_from(std::min(known_version, versions_read().Oldest()));
    const MutexLock lock(mutex_);
    std::set<MemoryServerId> watched;
    for (const auto& [server, peer] : peers_) watched.insert(peer->member);
    for (const MemoryServerId member : watched) request.add_watched_members(member.value());
    for (const AllocationId allocation : grants().Allocations()) request.add_held(allocation.value());
  };
  hooks.after_renew = [this](const proto::RenewReply& reply) {
    for (const uint32_t server : reply.over()) Bury(MemoryServerId(static_cast<uint16_t>(server)));
    EndGrants(reply);
  };
  return hooks;
}

absl::Status ClusterAttachment::JoinAs(const proto::Member& self) {
  Membership::Hooks hooks = HooksOfMembership();
  hooks.on_lost = on_lost_;
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<Membership> joined,
                       Membership::Join(*client_, *fabric_, self, std::move(hooks)));
  member_.store(joined->id().value(), std::memory_order_release);
  const MutexLock lock(mutex_);
  std::swap(membership_, joined);
  grants().EndAll();
  return absl::OkStatus();  // the former membership ends without the lock
}

absl::Status ClusterAttachment::Rejoin() {
  if (!absl::IsNotFound(AskMembership())) return absl::OkStatus();
  Clock& clock = fabric_->clock();
  const Deadline deadline = clock.After(timeout_us_);
  while (!BeginToJoin()) {  // another thread is joining
    if (clock.Passed(deadline)) return absl::UnavailableError("this process is joining the cluster again");
    clock.SleepUntil(clock.After(kJoinPauseUs));
  }
  // Another thread may have joined since the check above.
  const absl::Status joined = absl::IsNotFound(AskMembership()) ? JoinAs(self_) : absl::OkStatus();
  const MutexLock lock(mutex_);
  joining_ = false;
  return joined;
}

// The storage id may return with another member.
void ClusterAttachment::Bury(MemoryServerId server) {
  {
    const MutexLock lock(mutex_);
    if (!buried_.insert(server).second) return;
    std::erase_if(peers_, [&](const auto& peer) { return peer.second->member == server; });
    std::erase_if(regions_, [&](const auto& regions) { return regions.second->member == server; });
  }
  CountBurial();
  LogWarning(absl::StrFormat("memory server %d is buried; it is not used any more", server.value()));
}

bool ClusterAttachment::Buried(MemoryServerId server, bool ask) {
  {
    const MutexLock lock(mutex_);
    if (buried_.contains(server)) return true;
  }
  if (!ask) return false;
  const absl::StatusOr<proto::Cluster> cluster = client_->GetCluster();
  if (!cluster.ok()) return false;
  for (const proto::Member& member : cluster->members()) {
    if (member.id() == server.value() && member.alive()) return false;
  }
  // Ids come from the catalog and are never reused: the server existed.
  Bury(server);
  return true;
}

absl::StatusOr<std::vector<proto::Member>> ClusterAttachment::Members(proto::Role role) {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, client_->GetCluster());
  std::vector<proto::Member> members;
  for (const proto::Member& member : cluster.members()) {
    if (member.alive() && !member.suspect() && member.role() == role) members.push_back(member);
  }
  return members;
}

void ClusterAttachment::EndGrants(const proto::RenewReply& reply) {
  std::vector<AllocationId> over;
  for (const uint64_t allocation : reply.release()) over.emplace_back(allocation);
  if (grants().End(over)) closer_->Wake();
}

void ClusterAttachment::LookForEnds() {
  const fabric::MemberProof self = Self();
  if (self.id == MemberId()) return;
  proto::RenewRequest request;
  request.set_id(self.id.value());
  request.set_proof(self.proof);
  for (const AllocationId allocation : grants().Allocations()) request.add_held(allocation.value());
  const absl::StatusOr<proto::RenewReply> reply = client_->Renew(request);
  if (reply.ok()) EndGrants(*reply);
}

absl::Status ClusterAttachment::TellClosed(MemoryServerId server,
                                           const std::vector<fabric::Grants::Closed>& closed) {
  if (Buried(server, /*ask=*/false)) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::CloseExtentsRequest request;
  request.set_openings_from(closed.front().openings_from);
  for (const fabric::Grants::Closed& told : closed) {
    proto::ClosedAllocation& one = *request.add_closed();
    one.set_allocation(told.grant->allocation().value());
    one.set_attempt(told.grant->attempt());
  }
  Sign(request);
  const absl::Status told = memory->peer->Call(kCloseExtents, request, timeout_us_).status();
  // The membership is over, and the server fences it.
  return absl::IsFailedPrecondition(told) ? absl::OkStatus() : told;
}

absl::Status ClusterAttachment::CheckGrant(fabric::Grants::Opening& opening, const fabric::Grant& grant) {
  if (opening.Confirm(grant)) return absl::OkStatus();
  closer_->Wake();
  return absl::UnavailableError(
      absl::StrFormat("allocation %d is over, or this process has joined the cluster again; try again",
                      grant.allocation().value()));
}

absl::Status BuriedError(const std::string& name) {
  return absl::UnavailableError(
      absl::StrCat(name,
                   " is gone: it is buried; columnar tables with blocks there must be loaded again, record "
                   "tables dropped"));
}

absl::StatusOr<std::shared_ptr<MemoryPeer>> ClusterAttachment::FindPeer(MemoryServerId server) {
  {
    const MutexLock lock(mutex_);
    const auto found = peers_.find(server);
    if (found != peers_.end()) return found->second;
  }
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, client_->GetCluster());
  if (const proto::Member* const member = FindServer(cluster, server.value()); member != nullptr) {
    const std::string name =
        absl::StrFormat("memory server %d (%s)", member->id(), member->control_address());
    if (!member->alive()) {
      Bury(MemberServerId(*member));
      if (member->id() == server.value()) return BuriedError(name);
      return absl::UnavailableError(absl::StrFormat(
          "storage %d is missing: no memory server runs on its data directory `%s` of host %s",
          server.value(), member->data_directory(), member->host()));
    }
    auto peer = std::make_shared<MemoryPeer>(MemoryPeer{MemberServerId(*member), member->fabric_address(),
                                                        OpenPeer(name, member->control_address())});
    const MutexLock lock(mutex_);
    if (!buried_.contains(peer->member)) return peers_.emplace(server, std::move(peer)).first->second;
  }
  // Ids come from the catalog and are never reused: the server existed.
  return absl::UnavailableError(absl::StrFormat(
      "memory server %d is gone: it has left the cluster, or is buried and no table has blocks there",
      server.value()));
}

absl::StatusOr<std::vector<GrantedExtent>> ClusterAttachment::Allocate(MemoryServerId server,
                                                                       AllocationId allocation,
                                                                       uint64_t bytes,
                                                                       proto::AllocateRequest request,
                                                                       const std::atomic<bool>* cancel) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  request.set_allocation(allocation.value());
  request.set_bytes(bytes);
  const int64_t timeout_us = timeout_us_ + static_cast<int64_t>(bytes / kAllocateBytesPerUs);
  fabric::Grants::Opening opening(grants(), server);
  const std::shared_ptr<fabric::Grant> grant = opening.Add(allocation, request.attempt());
  request.set_opening(opening.number());
  Sign(request);  // after Add, as in OpenExtents
  Clock& clock = fabric_->clock();
  const Deadline deadline = clock.After(leaving_timeout_us_);
  for (int64_t pause_us = kLeavingPauseUs;; pause_us = std::min(2 * pause_us, kLeavingPauseMaxUs)) {
    NAM_ASSIGN_OR_RETURN(proto::AllocateReply reply, memory->peer->Call(kAllocate, request, timeout_us));
    if (!reply.leaving()) {
      NAM_RETURN_IF_ERROR(CheckGrant(opening, *grant));
      std::vector<GrantedExtent> extents;
      for (const proto::Extent& extent : reply.extents())
        extents.push_back({extent.offset(), extent.bytes(), grant});
      return extents;
    }
    if (clock.Passed(deadline)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          memory->peer->name(),
          " is out of memory: dropped memory is not free yet, because members have not closed it"));
    }
    if (Interruption::requested() || (cancel != nullptr && cancel->load(std::memory_order_relaxed)))
      return absl::CancelledError("cancelled");
    LookForEnds();  // the server may wait for this process
    clock.SleepUntil(clock.After(pause_us));
  }
}

absl::StatusOr<std::vector<GrantedExtent>> ClusterAttachment::Allocate(MemoryServerId server,
                                                                       AllocationId allocation,
                                                                       uint64_t bytes) {
  return Allocate(server, allocation, bytes, proto::AllocateRequest());
}

absl::StatusOr<GrantedExtent> ClusterAttachment::AllocateContiguous(MemoryServerId server,
                                                                    AllocationId allocation, uint64_t bytes) {
  return AllocateOne(server, allocation, bytes, proto::AllocateRequest());
}

absl::StatusOr<GrantedExtent> ClusterAttachment::AllocateScratch(MemoryServerId server,
                                                                 AllocationId allocation, uint64_t attempt,
                                                                 uint64_t bytes,
                                                                 const std::atomic<bool>& cancel) {
  proto::AllocateRequest request;
  request.set_scratch(true);
  request.set_attempt(attempt);
  return AllocateOne(server, allocation, bytes, std::move(request), &cancel);
}

absl::Status ClusterAttachment::ReleaseScratch(MemoryServerId server, AllocationId allocation,
                                               uint64_t attempt) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::ReleaseScratchRequest request;
  request.set_allocation(allocation.value());
  request.set_attempt(attempt);
  Sign(request);
  return memory->peer->Call(kReleaseScratch, request, std::min(timeout_us_, kHastenTimeoutUs)).status();
}

absl::StatusOr<GrantedExtent> ClusterAttachment::AllocateOne(MemoryServerId server, AllocationId allocation,
                                                             uint64_t bytes, proto::AllocateRequest kind,
                                                             const std::atomic<bool>* cancel) {
  kind.set_contiguous(true);
  NAM_ASSIGN_OR_RETURN(const std::vector<GrantedExtent> extents,
                       Allocate(server, allocation, bytes, std::move(kind), cancel));
  if (extents.size() == 1) return extents[0];
  return absl::InternalError(
      absl::StrFormat("memory server %d gave %d extents instead of one", server.value(), extents.size()));
}

absl::StatusOr<std::vector<GrantedExtent>> ClusterAttachment::OpenExtents(
    MemoryServerId server, const std::vector<AllocationId>& allocations) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::OpenExtentsRequest request;
  fabric::Grants::Opening opening(grants(), server);
  request.set_opening(opening.number());
  std::map<uint64_t, std::shared_ptr<fabric::Grant>> opened;
  for (const AllocationId allocation : allocations) {
    request.add_allocations(allocation.value());
    opened[allocation.value()] = opening.Add(allocation, /*attempt=*/0);
  }
  // After Add: if the process joins again in between, the grants are over. The other way round, they would be
  // grants of the new member, and the server would have opened the memory for the former one.
  request.set_member(Self().id.value());
  NAM_ASSIGN_OR_RETURN(const proto::OpenExtentsReply reply,
                       memory->peer->Call(kOpenExtents, request, timeout_us_));
  if (reply.extents_size() != reply.allocations_size())
    return absl::InternalError("extents of no allocation, or allocations without extents");
  absl::Status granted;
  for (const auto& [allocation, grant] : opened) granted.Update(CheckGrant(opening, *grant));
  NAM_RETURN_IF_ERROR(granted);
  std::vector<GrantedExtent> extents;
  for (int i = 0; i < reply.extents_size(); ++i) {
    const auto found = opened.find(reply.allocations(i));
    if (found == opened.end())
      return absl::InternalError("an extent of an allocation that was not asked for");
    extents.push_back({reply.extents(i).offset(), reply.extents(i).bytes(), found->second});
  }
  return extents;
}

absl::StatusOr<std::shared_ptr<fabric::Grant>> ClusterAttachment::OpenAllocation(MemoryServerId server,
                                                                                 AllocationId allocation) {
  std::shared_ptr<fabric::Grant> known = grants().Find(allocation, server);
  if (known != nullptr && !known->over()) return known;
  NAM_ASSIGN_OR_RETURN(const std::vector<GrantedExtent> extents, OpenExtents(server, {allocation}));
  if (!extents.empty()) return extents[0].grant;
  return absl::NotFoundError(absl::StrFormat("allocation %d has no memory there", allocation.value()));
}

// A server that joins after this list was made refuses the member. A buried server's memory is void: every
// member refuses it. A suspect must answer, because it may come back.
absl::Status ClusterAttachment::Fence(MemberId member) {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, client_->GetCluster());
  for (const proto::Member& other : cluster.members()) {
    if (other.id() != member.value() || !other.alive()) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("member %d is alive and keeps its connections", member.value()));
  }
  proto::FenceRequest request;
  request.set_member(member.value());
  request.set_kill(true);
  absl::Status outcome;
  for (const proto::Member& server : cluster.members()) {
    if (server.role() != proto::ROLE_MEMORY || !server.alive()) continue;
    const MemoryServerId id(static_cast<uint16_t>(server.id()));
    const absl::StatusOr<std::shared_ptr<MemoryPeer>> memory = FindPeer(id);
    const absl::StatusOr<proto::FenceReply> reply =
        memory.ok() ? (*memory)->peer->Call(kFence, request, timeout_us_) : memory.status();
    if (absl::IsFailedPrecondition(reply.status())) return reply.status();
    if (!reply.ok()) {
      outcome = absl::UnavailableError(reply.status().message());
    } else if (!reply->drained()) {
      outcome = absl::UnavailableError(
          absl::StrFormat("a process of member %d is stalled while changing memory server %d; try again",
                          member.value(), id.value()));
    }
  }
  return outcome;
}

absl::Status ClusterAttachment::Seal(MemoryServerId server, AllocationId allocation, uint64_t bytes) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::SealRequest request;
  request.set_allocation(allocation.value());
  Sign(request);
  const int64_t timeout_us = kSealTimeoutUs + static_cast<int64_t>(bytes / kSealBytesPerUs);
  return memory->peer->Call(kSeal, request, timeout_us).status();
}

absl::Status ClusterAttachment::Release(MemoryServerId server, AllocationId allocation) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::ReleaseRequest request;
  request.set_allocation(allocation.value());
  const absl::Status released =
      memory->peer->Call(kRelease, request, std::min(timeout_us_, kHastenTimeoutUs)).status();
  if (released.ok() && grants().End({&allocation, 1})) closer_->Wake();
  return released;
}

absl::StatusOr<proto::StartMulticastReply> ClusterAttachment::StartMulticast(
    MemoryServerId server, const proto::StartMulticastRequest& request) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  return memory->peer->Call(kStartMulticast, request, timeout_us_);
}

absl::StatusOr<proto::EndMulticastReply> ClusterAttachment::EndMulticast(MemoryServerId server,
                                                                         uint64_t stream) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::EndMulticastRequest request;
  request.set_stream(stream);
  return memory->peer->Call(kEndMulticast, request, std::min(timeout_us_, kHastenTimeoutUs));
}

absl::StatusOr<proto::ListRegionsReply> ClusterAttachment::MemoryUsage(MemoryServerId server,
                                                                       bool renew_first) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  proto::ListRegionsRequest request;
  request.set_renew_first(renew_first);
  return memory->peer->Call(kListRegions, request, timeout_us_);
}

absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> ClusterAttachment::Lookup(MemoryServerId server,
                                                                                       bool refresh) {
  if (!refresh) {
    const MutexLock lock(mutex_);
    const auto found = regions_.find(server);
    if (found != regions_.end()) return found->second;
  }
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPeer> memory, FindPeer(server));
  NAM_ASSIGN_OR_RETURN(const proto::ListRegionsReply reply, MemoryUsage(server, /*renew_first=*/false));
  auto regions = std::make_shared<fabric::ServerRegions>();
  regions->member = memory->member;
  regions->fabric_address = memory->fabric_address;
  regions->name = memory->peer->name();
  for (const proto::Region& region : reply.regions()) {
    regions->regions.push_back({region.offset(), region.bytes(), fabric::RemoteKey{region.rkey()}});
  }
  const MutexLock lock(mutex_);
  if (buried_.contains(memory->member))
    return BuriedError(memory->peer->name());  // while the server was asked
  // Servers only add regions, so the longer of two crossing answers is the newer.
  std::shared_ptr<const fabric::ServerRegions>& entry = regions_[server];
  if (entry == nullptr || entry->member != regions->member ||
      entry->regions.size() <= regions->regions.size())
    entry = std::move(regions);
  return entry;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Attachment>> AttachOverFabric(const AttachOptions& options,
                                                             const FabricOpener& open) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(options.catalog));
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, client->GetCluster());
  fabric::FabricOptions fabric_options;
  NAM_ASSIGN_OR_RETURN(fabric_options.kind, fabric::ParseKind(cluster.fabric()));
  fabric_options.secret = options.catalog.secret;
  fabric_options.encrypt = cluster.encrypt();
  fabric_options.peer_timeout_us = options.peer_timeout_us;
  fabric_options.rdma = options.rdma;
  fabric_options.multicast_interface = options.multicast_interface;
  fabric_options.multicast_ttl = options.multicast_ttl;
  fabric_options.host = options.host;
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<fabric::Fabric> fabric, open(fabric_options));
  auto attachment = std::make_unique<ClusterAttachment>(options, int64_t{cluster.lease_ms()} * 1'000,
                                                        std::move(client), std::move(fabric));
  NAM_RETURN_IF_ERROR(attachment->Join(options));
  return attachment;
}

}  // namespace nam::catalog
