#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "catalog/grpc_control_plane.h"
#include "fabric/fabric.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

struct ClientOptions {
  std::string address;             // host:port
  std::string secret;              // the cluster's
  int64_t timeout_us = 5'000'000;  // of every call
  /// Of the whole process: its servers listen there too.
  ControlPlane* control_plane = &GrpcControlPlane();
};

/// A connection to the catalog. Thread-safe. Errors say which catalog and carry the service's code:
/// UNAVAILABLE when nobody answers, UNAUTHENTICATED when the secrets differ.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  virtual ~Client() = default;

  virtual absl::StatusOr<proto::Cluster> GetCluster() = 0;
  /// The newest version of the catalog that an answer has told: whatever is asked from now on is of this one
  /// or of a later one.
  virtual uint64_t KnownVersion() = 0;
  /// Revalidates the cached copy by its version; the same object as long as it is unchanged.
  virtual absl::StatusOr<std::shared_ptr<const proto::Table>> GetTable(const std::string& name) = 0;
  /// The table as it was when `allocation` was its last load, append or compaction, if the catalog can tell;
  /// else, or perhaps then too, a later version (CutBackTo in catalog/chain_groups.h).
  virtual absl::StatusOr<proto::Table> GetTableOf(const std::string& name, uint64_t allocation) = 0;
  virtual absl::StatusOr<std::vector<proto::Table>> ListTables() = 0;  // without partitions

  virtual absl::StatusOr<proto::JoinReply> Join(const proto::Member& member) = 0;
  virtual absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request) = 0;
  virtual absl::Status Leave(MemberId member) = 0;
  /// Of a suspect memory server. FAILED_PRECONDITION when it renews its lease.
  virtual absl::Status Bury(MemoryServerId server) = 0;

  virtual absl::StatusOr<AllocationId> BeginLoad(MemberId member, const std::string& table, bool replace) = 0;
  /// `replaces`: the allocation of the one table that it may replace; ABORTED when another one, or none, has
  /// its name by now.
  virtual absl::StatusOr<uint64_t> CommitLoad(const proto::Table& table, AllocationId replaces = {}) = 0;
  virtual absl::Status AbortLoad(AllocationId allocation) = 0;
  /// FAILED_PRECONDITION while another table has a foreign key to it.
  virtual absl::Status DropTable(const std::string& name) = 0;
  /// The first half of the drop of a table with foreign keys: their parents do not ask it any more.
  virtual absl::Status LeaveParents(const std::string& child) = 0;
  /// Record tables: an allocation that CommitExtend makes the table's, AbortLoad ends.
  virtual absl::StatusOr<AllocationId> BeginExtend(MemberId member, const std::string& table) = 0;
  /// The new version. ABORTED when the part does not have expected_extents any more.
  virtual absl::StatusOr<uint64_t> CommitExtend(const proto::CommitExtendRequest& request) = 0;
  /// The new version. NOT_FOUND when the table has no such part.
  virtual absl::StatusOr<uint64_t> ChangePart(const proto::ChangePartRequest& request) = 0;

  /// Numbers for multicast groups; the member's until it releases them or its lease ends.
  virtual absl::StatusOr<std::vector<uint32_t>> AllocateGroups(MemberId member, uint32_t count) = 0;
  virtual absl::Status ReleaseGroups(MemberId member, const std::vector<uint32_t>& groups) = 0;

  /// What has been measured of the cluster's fabric (catalog/fabric_constants.h), in the place of what was
  /// there.
  virtual absl::Status Calibrate(const proto::FabricConstants& constants) = 0;
};

/// Being a member: joins, renews the lease from an own fabric thread every third of it, leaves when
/// destroyed. While the catalog is out of reach it keeps asking; the membership is lost, and `on_lost` runs
/// once, when the catalog says that the lease has ended.
/// Hooks run on that thread, so none of them may destroy the membership.
class Membership {
 public:
  struct Hooks {
    /// Fills used_bytes, and what else its role renews with.
    std::function<void(proto::RenewRequest&)> before_renew;
    /// What the catalog wants freed (memory servers).
    std::function<void(const proto::RenewReply&)> after_renew;
    std::function<void(absl::Status)> on_lost;
  };
  static absl::StatusOr<std::unique_ptr<Membership>> Join(Client& client, fabric::Fabric& fabric,
                                                          const proto::Member& member, Hooks hooks);
  ~Membership();
  MemberId id() const { return id_; }
  /// What the catalog said.
  const proto::JoinReply& joined() const { return joined_; }
  /// To be shown to memory servers for keys, and to nobody else.
  const std::string& proof() const { return joined_.proof(); }
  /// OK as long as nobody can have been given what this member holds: by its own clock the lease runs, or
  /// the catalog says so now. For who was refused something and wants to know why. Any thread.
  absl::Status Confirm();
  /// The catalog's word now: NOT_FOUND when the membership is over. Any thread.
  absl::Status Ask();

 private:
  Membership(Client& client, fabric::Fabric& fabric, const proto::JoinReply& reply, int64_t asked_ns,
             Hooks hooks);
  void RenewLoop();
  absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request);

  Client& client_;
  fabric::Fabric& fabric_;
  const MemberId id_;
  const proto::JoinReply joined_;
  const int64_t lease_us_;
  Hooks hooks_;
  std::atomic<int64_t> lease_end_ns_;  // counted from when the catalog was asked: never later than its own
  std::unique_ptr<fabric::Event> stop_;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first
};

}  // namespace nam::catalog
