#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
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
  int64_t timeout_us = 5'000'000;  // per call
  /// The process's control plane; its servers listen there, too.
  ControlPlane* control_plane = &GrpcControlPlane();
};

/// Marks the error of a client that may not join, because the cluster is being stopped.
inline constexpr char kClosedPayload[] = "nam/closed_to_clients";
inline bool IsClosedToClients(const absl::Status& error) {
  return error.GetPayload(kClosedPayload).has_value();
}

/// A connection to the catalog. Thread-safe. Errors name the catalog and carry the service's code:
/// UNAVAILABLE if the catalog does not answer, UNAUTHENTICATED if the secrets differ.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  virtual ~Client() = default;

  virtual absl::StatusOr<proto::Cluster> GetCluster() = 0;
  /// The newest catalog version seen in an answer: later answers are of this version or a later one.
  virtual uint64_t KnownVersion() = 0;
  /// Revalidates the cached copy by its version; returns the same object while it is unchanged.
  virtual absl::StatusOr<std::shared_ptr<const proto::Table>> GetTable(const std::string& name) = 0;
  /// The same for many, by one call, as of one moment; null: there is no such table.
  virtual absl::StatusOr<std::vector<std::shared_ptr<const proto::Table>>> GetTables(
      std::span<const std::string> names) = 0;
  /// The table as of when `allocation` was its last load, append or compaction, if the catalog can tell; else
  /// a later version, which is possible in any case (CutBackTo in catalog/chain_groups.h).
  virtual absl::StatusOr<proto::Table> GetTableOf(const std::string& name, uint64_t allocation) = 0;
  /// Tables, views and schemas, without partitions.
  virtual absl::StatusOr<std::vector<proto::Table>> ListEntries() = 0;
  /// The tables among the entries.
  absl::StatusOr<std::vector<proto::Table>> ListTables();

  virtual absl::StatusOr<proto::JoinReply> Join(const proto::Member& member) = 0;
  /// Both with the member's proof: NOT_FOUND if it is another one, as if there were no such member.
  virtual absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request) = 0;
  virtual absl::Status Leave(MemberId member, const std::string& proof) = 0;
  /// Buries a suspect memory server. FAILED_PRECONDITION if it renews its lease.
  virtual absl::Status Bury(MemoryServerId server) = 0;

  virtual absl::StatusOr<AllocationId> BeginLoad(MemberId member, const std::string& table, bool replace) = 0;
  /// Begins a load without rows, instead of the table. Works with a full disk, as DROP does.
  virtual absl::StatusOr<AllocationId> BeginToEmpty(MemberId member, const std::string& table) = 0;
  /// `replaces`: the allocation of the only table that it may replace. ABORTED if the name now belongs to
  /// another table or to none.
  virtual absl::StatusOr<uint64_t> CommitLoad(const proto::Table& table, AllocationId replaces = {}) = 0;
  virtual absl::Status AbortLoad(AllocationId allocation) = 0;
  /// FAILED_PRECONDITION while another table has a foreign key to it.
  virtual absl::Status DropTable(const std::string& name) = 0;
  /// Drops a table, a view, or a schema with its contents; returns the names of the views dropped with it.
  /// FAILED_PRECONDITION like DropTable, and without `cascade` while such views exist.
  virtual absl::StatusOr<std::vector<std::string>> Drop(const std::string& name, bool cascade) = 0;
  /// The first half of dropping a table with foreign keys: its parents stop checking it.
  virtual absl::Status LeaveParents(const std::string& child, bool cascade) = 0;
  /// Returns the new version. ABORTED if the state that it was made for has changed, FAILED_PRECONDITION
  /// while a view depends on it.
  virtual absl::StatusOr<uint64_t> ChangeCatalog(const proto::ChangeCatalogRequest& request) = 0;
  /// Pauses loads and changes of tables for the member's backup; returns the tables with loads in progress.
  virtual absl::StatusOr<std::vector<std::string>> BeginQuiet(MemberId member) = 0;
  /// NOT_FOUND if the pause has ended early.
  virtual absl::Status EndQuiet(MemberId member) = 0;
  /// For the end of the cluster: a pause that also ends the memberships of all other clients, returns their
  /// ids, and refuses new clients until EndQuiet. Again by the same member: ends those that have joined
  /// since.
  virtual absl::StatusOr<std::vector<MemberId>> EndClients(MemberId member, const std::string& proof) = 0;
  /// For record tables: an allocation that CommitExtend adds to the table, and AbortLoad ends.
  virtual absl::StatusOr<AllocationId> BeginExtend(MemberId member, const std::string& table) = 0;
  /// Returns the new version. ABORTED if the part no longer has expected_extents.
  virtual absl::StatusOr<uint64_t> CommitExtend(const proto::CommitExtendRequest& request) = 0;
  /// Returns the new version. NOT_FOUND if the table has no such part.
  virtual absl::StatusOr<uint64_t> ChangePart(const proto::ChangePartRequest& request) = 0;

  /// Numbers for multicast groups; the member owns them until it releases them or its lease ends.
  virtual absl::StatusOr<std::vector<uint32_t>> AllocateGroups(MemberId member, uint32_t count) = 0;
  virtual absl::Status ReleaseGroups(MemberId member, const std::vector<uint32_t>& groups) = 0;

  /// Replaces the measurements of the cluster's fabric (catalog/fabric_constants.h).
  virtual absl::Status Calibrate(const proto::FabricConstants& constants) = 0;
};

/// A membership: joins, renews the lease on its own fabric thread every third of a lease, and leaves when
/// destroyed. While the catalog is out of reach it keeps trying. The membership is lost, and `on_lost` runs
/// once, when the catalog says that the lease has ended. Hooks run on that thread, so none may destroy the
/// membership.
class Membership {
 public:
  struct Hooks {
    /// Fills used_bytes and the role's other fields.
    std::function<void(proto::RenewRequest&)> before_renew;
    /// Handles the requests of the catalog to free memory (memory servers).
    std::function<void(const proto::RenewReply&)> after_renew;
    std::function<void(absl::Status)> on_lost;
  };
  static absl::StatusOr<std::unique_ptr<Membership>> Join(Client& client, fabric::Fabric& fabric,
                                                          const proto::Member& member, Hooks hooks);
  ~Membership();
  MemberId id() const { return id_; }
  /// The catalog's answer.
  const proto::JoinReply& joined() const { return joined_; }
  /// Secret: shown only to memory servers, for keys.
  const std::string& proof() const { return joined_.proof(); }
  /// OK while no other process can have been given this member's resources: the lease runs by this clock, or
  /// the catalog confirms it now. For callers that were refused something and need the reason. Any thread.
  absl::Status Confirm();
  /// Asks the catalog now: NOT_FOUND if the membership is over. Any thread.
  absl::Status Ask();

 private:
  Membership(Client& client, fabric::Fabric& fabric, const proto::JoinReply& reply, int64_t asked_ns,
             Hooks hooks);
  void RenewLoop();
  /// Adds the id and the proof.
  absl::StatusOr<proto::RenewReply> Renew(proto::RenewRequest request);

  Client& client_;
  fabric::Fabric& fabric_;
  const MemberId id_;
  const proto::JoinReply joined_;
  const int64_t lease_us_;
  Hooks hooks_;
  std::atomic<int64_t> lease_end_ns_;  // counted from the request, so never later than the catalog's
  std::unique_ptr<fabric::Event> stop_;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first
};

}  // namespace nam::catalog
