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
  /// ROLE_UNKNOWN: an observer without a lease, with member id 0.
  proto::Role role = proto::ROLE_CLIENT;
  int64_t peer_timeout_us = 3'000'000;
  /// As in FabricOptions.
  std::string rdma;
  std::string host;
  std::string multicast_interface;
  int multicast_ttl = 1;
  /// Further facts for other members (addresses, threads). Role, host and pid are filled in.
  proto::Member self;
  /// Runs once, on a thread of the attachment, when the membership is lost; its loads are then aborted.
  std::function<void(absl::Status)> on_lost;
};

/// A process's access to a cluster: the catalog's client, the cluster's fabric, the process's membership (a
/// client's lease keeps its loads alive), and the memory servers' control plane. Thread-safe. One per
/// process, by convention owned by main().
///
/// A MemoryServerId below is a member id; the memory that a server hands out under it ends with the member.
/// Remote pointers to columnar tables carry storage ids (catalog/server_ids.h): Lookup finds the member that
/// has adopted the storage id.
class Attachment : public fabric::RegionDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<Attachment>> Attach(const AttachOptions& options);

  virtual Client& catalog() = 0;
  virtual fabric::Fabric& fabric() = 0;
  virtual MemberId member() const = 0;
  /// Opens another server of the cluster by its control address; `name` is for messages.
  virtual std::unique_ptr<Peer> OpenPeer(const std::string& name, const std::string& address) = 0;
  /// Membership::Confirm. Not needed before writes: writing connections end with the lease.
  virtual absl::Status ConfirmLease() = 0;
  /// Membership::Ask. Without a membership of its own: OK.
  virtual absl::Status AskMembership() = 0;
  /// Joins again as another member if the membership is over; otherwise has no effect. The former member's
  /// connections, loads and groups are gone, and the caller must create them anew.
  virtual absl::Status Rejoin() = 0;
  /// Hooks for a membership held outside the attachment; they report buried memory servers to the attachment.
  virtual Membership::Hooks HooksOfMembership() = 0;
  /// For such a membership, once it has joined: its id becomes member() and Self().id. Requires that the
  /// attachment has no membership of its own.
  virtual void ActAs(const Membership& membership) = 0;

  /// Live members of the role, by id; no suspects.
  virtual absl::StatusOr<std::vector<proto::Member>> Members(proto::Role role) = 0;

  /// Memory servers' extents. Errors name the server. A server refuses to release a load in progress or a
  /// table: abort or drop it first. Memory that is not released is freed soon anyway, so Release waits at
  /// most a second. Allocations wait for memory that members have yet to close: at most three leases, and
  /// only until the thread is interrupted. RESOURCE_EXHAUSTED: the server lacks the room.
  virtual absl::StatusOr<std::vector<GrantedExtent>> Allocate(MemoryServerId server, AllocationId allocation,
                                                              uint64_t bytes) = 0;
  /// The same, contiguous; RESOURCE_EXHAUSTED if impossible.
  virtual absl::StatusOr<GrantedExtent> AllocateContiguous(MemoryServerId server, AllocationId allocation,
                                                           uint64_t bytes) = 0;
  /// One extent of the server's scratch share, not zeroed, for this attempt's writes. RESOURCE_EXHAUSTED: the
  /// share has no contiguous room. CANCELLED soon after `cancel` is set.
  virtual absl::StatusOr<GrantedExtent> AllocateScratch(MemoryServerId server, AllocationId allocation,
                                                        uint64_t attempt, uint64_t bytes,
                                                        const std::atomic<bool>& cancel) = 0;
  /// Gives back the attempt's scratch memory there; the attempt gets no more. The memory is free once each of
  /// its writers has closed it. Waits as Release does.
  virtual absl::Status ReleaseScratch(MemoryServerId server, AllocationId allocation, uint64_t attempt) = 0;
  /// This process writes no more for the attempt. Tells the memory servers, now or when requests in flight
  /// have ended.
  virtual void CloseScratch(AllocationId allocation, uint64_t attempt) = 0;
  /// All extents of these allocations there, opened for changes by this process.
  virtual absl::StatusOr<std::vector<GrantedExtent>> OpenExtents(
      MemoryServerId server, const std::vector<AllocationId>& allocations) = 0;
  /// The grant of one allocation. Asks the server only the first time.
  virtual absl::StatusOr<std::shared_ptr<fabric::Grant>> OpenAllocation(MemoryServerId server,
                                                                        AllocationId allocation) = 0;
  /// OK: no past or future request of the member changes a byte in any memory server. FAILED_PRECONDITION:
  /// the member is alive. UNAVAILABLE: some memory server cannot confirm it now; try again.
  virtual absl::Status Fence(MemberId member) = 0;
  /// Writes the memory that a load of this member has on the server to the server's data directory; no effect
  /// without one. The allocation gets no more memory there. RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status Seal(MemoryServerId server, AllocationId allocation, uint64_t bytes) = 0;
  virtual absl::Status Release(MemoryServerId server, AllocationId allocation) = 0;
  /// A memory server's multicast streams. Errors name the server.
  virtual absl::StatusOr<proto::StartMulticastReply> StartMulticast(
      MemoryServerId server, const proto::StartMulticastRequest& request) = 0;
  virtual absl::StatusOr<proto::EndMulticastReply> EndMulticast(MemoryServerId server, uint64_t stream) = 0;
  /// Current used_bytes and memory_bytes. With `renew_first`, the server first renews its lease, and learns
  /// what it may free.
  virtual absl::StatusOr<proto::ListRegionsReply> MemoryUsage(MemoryServerId server,
                                                              bool renew_first = false) = 0;

  /// Objects that other parts of the process share. Unused once the attachment is destroyed.
  SharedObjects& shared() { return shared_; }
  /// The catalog versions at which the process's statements see tables; renewals report them.
  VersionsRead& versions_read() { return versions_read_; }

 private:
  SharedObjects shared_;
  VersionsRead versions_read_;
};

}  // namespace nam::catalog
