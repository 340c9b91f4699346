#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "catalog/header.h"
#include "catalog/member_events.h"
#include "catalog/store.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

inline constexpr uint32_t kDefaultLeaseMs = 3'000;
inline constexpr uint32_t kDefaultBuryAfterMs = 60'000;
inline constexpr char kDefaultTimestamps[] = "leased";
inline constexpr size_t kTablesMax = 65'536;  // with views and schemas

/// The payload of errors that a backup under way causes: the request may succeed once the backup has ended
/// its pause of the catalog (Quiet).
inline constexpr char kQuietPayload[] = "nam/quiet";

struct ServiceOptions {
  uint32_t lease_ms = kDefaultLeaseMs;
  uint32_t bury_after_ms = kDefaultBuryAfterMs;
  std::string timestamps = kDefaultTimestamps;  // for the transaction state, until it exists
  bool encrypt = false;                         // tells members to encrypt their data plane
  /// The id of the epoch that this start begins.
  uint64_t epoch_id_high = 0, epoch_id_low = 0;
  /// Serves although members know a newer store, and gives up the newer state.
  bool accept_older_store = false;
  /// Checks the store before anything is written to it; empty: any will do.
  std::function<absl::Status(const ClusterIdentity&)> check_identity;
};

/// The metadata service of proto/catalog.proto without gRPC, one method per call. Thread-safe.
///
///     member:  Join ─▶ alive ──Renew──▶ alive ──lease over, Leave──▶ gone: its id never lives again
///
///     memory server:  Join ─▶ alive ─lease over─▶ suspect ─bury_after, ProcessEnded, Bury─▶ buried ─▶ gone
///                              ▲ ▲─────Renew────────┘ (alive to those who ask, with all that it holds)
///                              └─Renew  ProcessEnded and Leave bury it from here, too. Buried, it stays
///                                       listed, not alive, while blocks of a table lie there.
///     storage id of a data directory:
///              its first Join ─▶ a member's ──the member's end──▶ absent: its tables wait
///                                    ▲────Join with the directory────┘
///
///     load:    BeginLoad ─▶ under way ──CommitLoad──▶ table ──DropTable, replaced──▶ over
///                               └────────AbortLoad, owner dead────────────────────▶ over
///
///     extend:  BeginExtend ─▶ under way ──CommitExtend──▶ its table's, one of several
///                               └────────AbortLoad, owner dead───────────────────▶ over
///
///     chain group: of an extend ──CommitExtend of a later one that replaces it──▶ retired
///                  retired ──every client has said that its statements see the commit──▶ over
///
///     multicast group: AllocateGroups ─▶ a member's ──ReleaseGroups, owner dead──▶ free, given out again
///
/// A member gets a random proof when it joins, and keeps it across restarts of the catalog. With it memory
/// servers distinguish members, to which they give keys, from other processes that know the secret and an id.
///
/// Memory servers free an allocation when a renewal finds that it is neither in progress nor a table's.
///
///     start:   awaiting memory servers ──all have reported, or a lease is over──▶ serving
///                     └──a mark or an id that the store does not know──▶ refused, for good ◀── serving
///
/// A store may be an older copy of the cluster's state. Members send the newest mark that they were given
/// (StoreMark in proto/catalog_header.proto); memory servers also send what they hold. While the catalog
/// awaits its memory servers it renews leases and answers everything else with UNAVAILABLE; it buries no
/// server and releases nothing. Once refused, it answers everything with FAILED_PRECONDITION.
///
/// State is held in memory and written through to the store, one transaction per change; a change is visible
/// only once it is durable. Leases live in memory alone: a restarted catalog gives every member a whole new
/// one. They are checked on every call, and ten times per lease (SuspectWatch). A catalog that stalled has
/// missed renewals: it extends leases by the time without a pulse.
class Service {
 public:
  static absl::StatusOr<std::unique_ptr<Service>> Open(std::unique_ptr<Store> store, Clock& clock,
                                                       const ServiceOptions& options = {});

  const ClusterIdentity& identity() const { return identity_; }

  /// Reports that renewals are heard. Must be called ten times per lease, forever from the first call on.
  void Pulse();
  /// True while the catalog serves only renewals; a caller may retry until it is false.
  bool AwaitsMembers();

  /// A memory server that has not renewed for at least half a lease, so its process must be checked.
  struct Overdue {
    uint32_t id = 0;
    std::string control_address;
    int64_t lease_end_ns = 0;
    std::string connection;  // of its last renewal since this catalog started; empty: there was none
  };
  /// Also ends leases that are over.
  std::vector<Overdue> OverdueMemoryServers();
  /// The process of an overdue server has ended: buries the server, unless it has renewed since.
  void ProcessEnded(const Overdue& server);
  /// Events of members since the last call.
  std::vector<MemberEvent> TakeEvents();

  absl::StatusOr<proto::Cluster> GetCluster(const proto::GetClusterRequest& request);
  /// The information that a member needs to renew its lease.
  proto::Cluster ClusterForLeases() const;
  absl::StatusOr<proto::JoinReply> Join(const proto::JoinRequest& request);
  /// `connection`: the one that it has come over, in the transport's words; empty: none.
  absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request,
                                          const std::string& connection = {});
  absl::StatusOr<proto::LeaveReply> Leave(const proto::LeaveRequest& request);
  absl::StatusOr<proto::BuryReply> Bury(const proto::BuryRequest& request);
  absl::StatusOr<proto::ListTablesReply> ListTables(const proto::ListTablesRequest& request);
  absl::StatusOr<proto::GetTableReply> GetTable(const proto::GetTableRequest& request);
  absl::StatusOr<proto::BeginLoadReply> BeginLoad(const proto::BeginLoadRequest& request);
  absl::StatusOr<proto::CommitLoadReply> CommitLoad(const proto::CommitLoadRequest& request);
  absl::StatusOr<proto::AbortLoadReply> AbortLoad(const proto::AbortLoadRequest& request);
  absl::StatusOr<proto::DropTableReply> DropTable(const proto::DropTableRequest& request);
  absl::StatusOr<proto::BeginExtendReply> BeginExtend(const proto::BeginExtendRequest& request);
  absl::StatusOr<proto::CommitExtendReply> CommitExtend(const proto::CommitExtendRequest& request);
  absl::StatusOr<proto::ChangePartReply> ChangePart(const proto::ChangePartRequest& request);
  absl::StatusOr<proto::ChangeCatalogReply> ChangeCatalog(const proto::ChangeCatalogRequest& request);
  absl::StatusOr<proto::QuietReply> Quiet(const proto::QuietRequest& request);
  absl::StatusOr<proto::AllocateGroupsReply> AllocateGroups(const proto::AllocateGroupsRequest& request);
  absl::StatusOr<proto::ReleaseGroupsReply> ReleaseGroups(const proto::ReleaseGroupsRequest& request);
  absl::StatusOr<proto::CalibrateReply> Calibrate(const proto::CalibrateRequest& request);

 private:
  /// Another process's wish to serve a member's storage id.
  struct Claim {
    std::string control_address;
    uint64_t renewals = 0;  // the member's at the first call
  };
  struct MemberState {
    proto::Member member;
    int64_t lease_end_ns = 0;
    bool told_suspect = false;    // reported in the events
    uint64_t reads_from = 0;      // of a client: from its last renewal
    uint64_t renewals = 0;        // a memory server's, since this catalog started
    std::string connection = {};  // of its last renewal
    Claim claim = {};             // the last one
  };
  struct Former {
    uint64_t until_version = 0;  // the version that replaced it
    std::shared_ptr<const proto::Table> table;
  };
  struct TableState {
    std::shared_ptr<const proto::Table> table;
    std::set<uint32_t> servers;   // that hold its bytes
    std::vector<Former> formers;  // before its last compactions, while statements may read them
  };

  Service(std::unique_ptr<Store> store, Clock& clock, const ServiceOptions& options, StoredState state);

  // All below require mutex_.
  Mutation NewMutation() const;
  absl::Status Apply(Mutation mutation);
  bool ChangesPlans(const Mutation& mutation) const;
  void Install(const Mutation& mutation);
  /// True even if suspect.
  bool Living(const MemberState& member) const;
  bool Suspect(const MemberState& member) const;
  bool Late(const MemberState& member) const;
  const MemberState* FindLiving(uint32_t id) const;
  absl::Status CheckLiving(uint32_t id) const;
  /// Also that the proof is the member's: for calls that only the member itself makes.
  absl::Status CheckSelf(uint32_t id, const std::string& proof) const;
  bool Proven(const proto::MemberClaim& claim) const;
  void AddKeys(const proto::RenewRequest& request, proto::RenewReply& reply) const;
  absl::StatusOr<const TableState*> FindTable(const std::string& name) const;
  absl::Status CheckRoomForLoad() const;
  absl::Status CheckNewGroups(const LoadRecord& load, const proto::Table& table, uint32_t first) const;
  absl::Status CheckAppended(const LoadRecord& load, const proto::Table& table,
                             const proto::CommitExtendRequest& request) const;
  /// The table's allocations that are loads in progress.
  std::vector<uint64_t> LoadsInProgressOf(const proto::Table& table) const;
  absl::Status CheckStateLost() const;
  absl::StatusOr<proto::Table> Extended(const LoadRecord& load,
                                        const proto::CommitExtendRequest& request) const;
  absl::Status CheckNewPart(const proto::Table& table, const proto::RecordPart& part) const;

  // service_storage.cc
  static bool HasBlocksOf(const proto::Member& server, const TableState& table);
  /// The live memory server for remote pointers with this server id.
  const MemberState* FindServing(uint32_t server) const;
  bool AdoptedSince(const proto::Member& server, const Mutation& mutation) const;
  bool Remembered(const proto::Member& dead, const Mutation& mutation) const;
  absl::Status CheckIsStorage(const proto::Member& member) const;
  absl::Status CheckDirectory(const proto::Member& member);
  absl::Status BuryFormer(const proto::Member& member);
  void FindLost(const proto::Member& joining, proto::Member& member, std::vector<std::string>& tables) const;
  absl::Status CheckServers(const proto::Table& table, const std::set<uint32_t>& servers) const;

  // service_changes.cc: views, schemas, ALTER
  absl::Status CheckSchema(const std::string& name) const;
  std::vector<std::string> ViewsOn(const std::string& name) const;
  absl::Status CheckNoViewOn(const proto::Table& table) const;
  absl::Status CheckViewsKeep(const proto::Table& was, const proto::Table& now) const;
  int ViewDepth(const proto::View& view, const std::string& name) const;
  absl::Status CheckNewView(const proto::CreateEntry& create) const;
  absl::Status AddEntry(const proto::CreateEntry& create, Mutation& mutation) const;
  absl::Status Rename(const proto::RenameTable& rename, Mutation& mutation) const;
  absl::Status Alter(const proto::AlterTable& alter, Mutation& mutation) const;
  absl::Status DropWithDependents(const std::string& name, bool cascade, Mutation& mutation) const;
  /// During a backup only the system's own tables may change.
  absl::Status CheckNotQuiet(const std::string& table);
  /// True if the member has a load of the table in progress. A backup waits for such loads, so they may go
  /// on.
  bool LoadsInto(const std::string& table, uint32_t member) const;

  // service_fills.cc: loads into record tables
  bool IsFilled(const proto::FillTables& fills) const;
  absl::Status Fill(const proto::FillTable& fill, Mutation& mutation) const;
  void EndFills(uint32_t member, Mutation& mutation) const;

  // service_references.cc: foreign keys
  proto::Table& Changed(const std::string& name, Mutation& mutation) const;
  absl::Status CheckParent(const proto::ForeignKey& key) const;
  /// Registers the foreign keys of `child`, a new table in the mutation, with their parents.
  absl::Status AddReferences(const std::string& child, Mutation& mutation) const;
  void RemoveReferences(const proto::Table& child, Mutation& mutation) const;
  void LeaveParents(const std::string& child, Mutation& mutation) const;
  absl::Status CheckNotReferenced(const proto::Table& parent) const;
  absl::Status CheckNoKeyNeeds(const proto::Table& table, const std::string& index) const;

  // service_readers.cc
  void KeepFormer(std::shared_ptr<const proto::Table> former, uint64_t version);
  uint64_t OldestVersionRead() const;
  void ForgetRetiredGroups();
  static std::shared_ptr<const proto::Table> FindVersion(const TableState& table, uint64_t allocation);

  /// True if tables have blocks under this server id after the mutation.
  bool HoldsBlocks(uint32_t server, const Mutation& mutation = {}) const;
  void EndMembership(const MemberState& member, Mutation& mutation) const;
  absl::Status BuryNow(const MemberState& server, const std::string& why);
  void BuryAtAddress(const std::string& control_address);
  void NoteSuspicion(MemberState& member);
  std::vector<LostBlocks> BlocksAt(const proto::Member& server) const;
  size_t CountLoadsOf(uint32_t member) const;
  std::string EndText(const MemberState& member, const std::string& why) const;
  void ForgetDeadServers(Mutation& mutation) const;
  void Expire();
  void ExtendLeasesAfterStall();

  // service_epochs.cc
  absl::Status BeginEpoch();
  void AwaitMembers(bool existing);
  absl::Status Enter(const proto::StoreMark& newest);
  absl::Status EnterRenewal(const proto::RenewRequest& request);
  absl::Status CheckServing();
  void HearFrom(uint32_t member);
  void EndAwaiting();
  bool OfAnotherStore(const proto::StoreMark& newest) const;
  std::string WhyOlder(const proto::StoreMark& newest) const;
  std::string WhyOlder(const proto::RenewRequest& request) const;
  absl::Status Refuse(const std::string& why);
  absl::Status GiveUpNewer(const proto::RenewRequest& request, const std::string& why);
  bool MissedAcceptance(const proto::StoreMark& newest) const;
  absl::Status GiveUpLostTables(const proto::RenewRequest& request);
  proto::StoreMark Mark() const;

  int64_t LeaseNs() const { return int64_t{lease_ms_} * 1'000'000; }
  int64_t LeaseEndNs() const { return clock_.NowNs() + LeaseNs(); }

  const std::unique_ptr<Store> store_;
  Clock& clock_;
  const ServiceOptions options_;
  const uint32_t lease_ms_;
  const uint32_t bury_after_ms_;
  const ClusterIdentity identity_;

  std::mutex mutex_;
  MemberEvents events_;
  int64_t pulse_ns_ = 0;  // the last one; 0: no pulse yet
  uint64_t version_;
  uint64_t plans_version_;  // the last one that affected plans
  uint32_t next_member_;
  uint64_t next_allocation_;
  std::map<uint32_t, MemberState> members_;
  std::map<uint64_t, LoadRecord> loads_;
  std::map<uint32_t, MemberId> groups_;  // multicast group number to owner
  std::map<std::string, TableState> tables_;
  std::set<uint64_t> table_allocations_;
  std::map<uint64_t, EpochRecord> epochs_;
  std::map<std::string, proto::FabricConstants> constants_;  // by fabric
  uint64_t saved_records_ = 0;                               // proto::MarkSaved

  uint32_t quiet_for_ = 0;  // the member whose backup runs; 0: none

  std::atomic<bool> awaiting_ = true;  // changed with mutex_ held
  std::set<uint32_t> unheard_;         // memory servers that have not reported since the start
  int64_t await_from_ns_ = 0;          // their reports end the wait no earlier than this
  int64_t await_until_ns_ = 0;         // the wait ends by then in any case
  absl::Status refused_;               // why nothing is served
  std::set<uint32_t> looked_through_;  // memory servers checked by GiveUpLostTables
};

}  // namespace nam::catalog
