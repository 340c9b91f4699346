#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/shared_objects.h"
#include "base/strong_id.h"
#include "catalog/client.h"
#include "catalog/control_plane.h"
#include "catalog/versions_read.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"
#include "fabric/region_directory.h"
#include "proto/catalog.pb.h"
#include "proto/memory.pb.h"

namespace nam::catalog {

/// A range of a memory server's address space that this process may change until the grant is over.
struct GrantedExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::shared_ptr<fabric::Grant> grant;
};

struct AttachOptions {
  ClientOptions catalog;
  /// ROLE_UNKNOWN: only looks on, takes no lease and has member id 0.
  proto::Role role = proto::ROLE_CLIENT;
  int64_t peer_timeout_us = 3'000'000;
  /// FabricOptions' of the same names.
  std::string rdma;
  std::string host;
  std::string multicast_interface;
  int multicast_ttl = 1;
  /// What else other members shall know of this one (addresses, threads); role, host and pid are filled in.
  proto::Member self;
  /// Runs once, on a thread of the attachment, when the membership is lost; its loads are then aborted.
  std::function<void(absl::Status)> on_lost;
};

/// Servers here are members: what they give ends with them. Remote pointers to columnar tables go by storage
/// ids (catalog/server_ids.h), for which Lookup finds the member that has adopted them.
///
/// What a process needs to work with a cluster: the catalog's client, the cluster's fabric, its own
/// membership (a client's lease keeps its loads alive), and the memory servers' control plane.
/// Thread-safe. One per process, by convention owned by main().
class Attachment : public fabric::RegionDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<Attachment>> Attach(const AttachOptions& options);

  virtual Client& catalog() = 0;
  virtual fabric::Fabric& fabric() = 0;
  virtual MemberId member() const = 0;
  /// Another server of the cluster, by its control address; `name` is for messages.
  virtual std::unique_ptr<Peer> OpenPeer(const std::string& name, const std::string& address) = 0;
  /// Membership::Confirm. Not needed before writing: the connections that write end with the lease.
  virtual absl::Status ConfirmLease() = 0;
  /// The catalog's word, asked now: the membership is over.
  virtual bool MembershipOver() = 0;
  /// After that joins again, as another member: what the former had (connections, loads, groups) is gone, and
  /// is to be had anew. OK without doing anything if the membership goes on.
  virtual absl::Status Rejoin() = 0;
  /// For a membership that the process holds beside the attachment: they hear for it of memory servers that
  /// are buried.
  virtual Membership::Hooks HooksOfMembership() = 0;
  /// For the same, once it has joined: member() is its id from now on, and so is Self().id. Only if the
  /// attachment has no membership of its own.
  virtual void ActAs(const Membership& membership) = 0;

  /// Living members of the role, by id; no suspects.
  virtual absl::StatusOr<std::vector<proto::Member>> Members(proto::Role role) = 0;

  /// Memory servers' extents. Errors name the server. A server releases nothing that is still a load
  /// under way or a table: abort or drop it first. Memory that nobody releases is freed soon after, so
  /// Release waits a second at most. Where memory is about to be free, since members have yet to close it,
  /// these wait: three leases at most, and as long as the thread is not interrupted.
  virtual absl::StatusOr<std::vector<GrantedExtent>> Allocate(MemoryServerId server, AllocationId allocation,
                                                              uint64_t bytes) = 0;
  /// The same in one piece, or RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<GrantedExtent> AllocateContiguous(MemoryServerId server, AllocationId allocation,
                                                           uint64_t bytes) = 0;
  /// One extent of the server's share of scratch memory, with any bytes, for what this attempt writes.
  /// RESOURCE_EXHAUSTED: the share does not have so much in one piece. CANCELLED soon after `cancel` is set.
  virtual absl::StatusOr<GrantedExtent> AllocateScratch(MemoryServerId server, AllocationId allocation,
                                                        uint64_t attempt, uint64_t bytes,
                                                        const std::atomic<bool>& cancel) = 0;
  /// Gives back what AllocateScratch gave for the attempt there, which gets no more. It is free once each of
  /// its writers has closed it. Waits as Release does.
  virtual absl::Status ReleaseScratch(MemoryServerId server, AllocationId allocation, uint64_t attempt) = 0;
  /// This process writes no more for the attempt: tells the memory servers, now or when what is under way has
  /// ended.
  virtual void CloseScratch(AllocationId allocation, uint64_t attempt) = 0;
  /// All extents there of these allocations, to be changed by this process.
  virtual absl::StatusOr<std::vector<GrantedExtent>> OpenExtents(
      MemoryServerId server, const std::vector<AllocationId>& allocations) = 0;
  /// The grant of one of them. Asks the server only the first time.
  virtual absl::StatusOr<std::shared_ptr<fabric::Grant>> OpenAllocation(MemoryServerId server,
                                                                        AllocationId allocation) = 0;
  /// OK: from now on nothing that the member has posted, or posts, changes a byte in any memory server.
  /// FAILED_PRECONDITION: it is alive. UNAVAILABLE: some memory server cannot say so now; try again.
  virtual absl::Status Fence(MemberId member) = 0;
  /// What the load, which is this member's, has there is as durable as the server's data directory; OK
  /// without doing anything if it has none. The allocation gets no more memory there. RESOURCE_EXHAUSTED: the
  /// disk is full.
  virtual absl::Status Seal(MemoryServerId server, AllocationId allocation, uint64_t bytes) = 0;
  virtual absl::Status Release(MemoryServerId server, AllocationId allocation) = 0;
  /// A memory server's multicast streams. Errors name the server.
  virtual absl::StatusOr<proto::StartMulticastReply> StartMulticast(
      MemoryServerId server, const proto::StartMulticastRequest& request) = 0;
  virtual absl::StatusOr<proto::EndMulticastReply> EndMulticast(MemoryServerId server, uint64_t stream) = 0;
  /// used_bytes and memory_bytes as of now; with `settle`, once the server has asked the catalog what it need
  /// not keep.
  virtual absl::StatusOr<proto::ListRegionsReply> MemoryUsage(MemoryServerId server, bool settle = false) = 0;

  /// What other parts of the process have once for the cluster. None of it is used once this is destroyed.
  SharedObjects& shared() { return shared_; }
  /// The versions of the catalog that its statements see tables at, which it tells with its renewals.
  VersionsRead& versions_read() { return versions_read_; }

 private:
  SharedObjects shared_;
  VersionsRead versions_read_;
};

}  // namespace nam::catalog
