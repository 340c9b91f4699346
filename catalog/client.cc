#include "catalog/client.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/header.h"
#include "catalog/methods.h"

namespace nam::catalog {
namespace {

constexpr size_t kCachedTablesMax = 1'024;
constexpr int64_t kLeaseCallUsMin = 100'000;
/// Stacks and heaps of gRPC's threads, and of those of the fabric.
constexpr size_t kConnectionsBytes = size_t{192} << 20;

class RemoteClient final : public Client {
 public:
  explicit RemoteClient(const ClientOptions& options)
      : options_(options),
        timeout_us_(options.timeout_us),
        lease_call_us_(options.timeout_us),
        peer_(absl::StrCat("the catalog at ", options.address),
              options.control_plane->Open(options.address, options.secret)) {}

  absl::StatusOr<proto::Cluster> GetCluster() override;
  absl::StatusOr<std::shared_ptr<const proto::Table>> GetTable(const std::string& name) override;
  absl::StatusOr<std::vector<std::shared_ptr<const proto::Table>>> GetTables(
      std::span<const std::string> names) override;
  absl::StatusOr<proto::Table> GetTableOf(const std::string& name, uint64_t allocation) override;
  uint64_t KnownVersion() override { return Newest().version(); }
  absl::StatusOr<std::vector<proto::Table>> ListEntries() override;
  absl::StatusOr<proto::JoinReply> Join(const proto::Member& member) override;
  absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request) override;
  absl::Status Leave(MemberId member, const std::string& proof) override;
  absl::Status Bury(MemoryServerId server) override;
  absl::StatusOr<AllocationId> BeginLoad(MemberId member, const std::string& table, bool replace) override;
  absl::StatusOr<AllocationId> BeginToEmpty(MemberId member, const std::string& table) override;
  absl::StatusOr<uint64_t> CommitLoad(const proto::Table& table, AllocationId replaces) override;
  absl::Status AbortLoad(AllocationId allocation) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<std::string>> Drop(const std::string& name, bool cascade) override;
  absl::StatusOr<uint64_t> ChangeCatalog(const proto::ChangeCatalogRequest& request) override;
  absl::StatusOr<std::vector<std::string>> BeginQuiet(MemberId member) override;
  absl::Status EndQuiet(MemberId member) override;
  absl::StatusOr<std::vector<MemberId>> EndClients(MemberId member, const std::string& proof) override;
  absl::Status LeaveParents(const std::string& child, bool cascade) override;
  absl::StatusOr<AllocationId> BeginExtend(MemberId member, const std::string& table) override;
  absl::StatusOr<uint64_t> CommitExtend(const proto::CommitExtendRequest& request) override;
  absl::StatusOr<uint64_t> ChangePart(const proto::ChangePartRequest& request) override;
  absl::StatusOr<std::vector<uint32_t>> AllocateGroups(MemberId member, uint32_t count) override;
  absl::Status ReleaseGroups(MemberId member, const std::vector<uint32_t>& groups) override;
  absl::Status Calibrate(const proto::FabricConstants& constants) override;

 private:
  /// Makes a call with the newest known mark; learns the answer's mark.
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(const Peer& peer, const Method<Request, Reply>& method, Request request,
                             int64_t timeout_us);
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(const Method<Request, Reply>& method, const Request& request) {
    return Call(peer_, method, request, timeout_us_);
  }
  proto::StoreMark Newest();
  /// Learns an answer's mark, unless it is older than the mark sent.
  absl::Status Learn(const proto::StoreMark& mark, const proto::StoreMark& asked_with);
  absl::StatusOr<proto::Cluster> AskForCluster(const proto::GetClusterRequest& request, int64_t timeout_us);
  std::shared_ptr<const Peer> LeasePeer();
  std::shared_ptr<const proto::Table> Cached(const std::string& name);
  /// Keeps an answer; returns the newest one.
  std::shared_ptr<const proto::Table> Cache(proto::Table table);
  void Forget(const std::string& name);

  const ClientOptions options_;
  const int64_t timeout_us_;
  // Renewals and leaving take at most a third of a lease, which leaves time to retry.
  std::atomic<int64_t> lease_call_us_;
  const Peer peer_;

  Mutex mutex_;
  uint32_t lease_port_ ABSL_GUARDED_BY(mutex_) = 0;
  // Null: not opened since the port was learned.
  std::shared_ptr<const Peer> lease_peer_ ABSL_GUARDED_BY(mutex_);
  proto::StoreMark newest_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_ ABSL_GUARDED_BY(mutex_);
};

proto::StoreMark RemoteClient::Newest() {
  const MutexLock lock(mutex_);
  return newest_;
}

absl::Status RemoteClient::Learn(const proto::StoreMark& mark, const proto::StoreMark& asked_with) {
  if (mark.epoch() == 0) return absl::OkStatus();  // the catalog does not know yet
  const auto position = [](const proto::StoreMark& at) { return std::make_pair(at.epoch(), at.version()); };
  const bool other = mark.store() != asked_with.store() ||
                     (mark.epoch() == asked_with.epoch() &&
                      (mark.id_high() != asked_with.id_high() || mark.id_low() != asked_with.id_low()));
  if (asked_with.epoch() != 0 && (other || position(mark) < position(asked_with))) {
    return absl::FailedPreconditionError(absl::StrCat(
        peer_.name(), " runs on an older store than before, or on another one; start it on its own"));
  }
  const MutexLock lock(mutex_);
  if (position(newest_) < position(mark)) newest_ = mark;
  return absl::OkStatus();
}

template <typename Request, typename Reply>
absl::StatusOr<Reply> RemoteClient::Call(const Peer& peer, const Method<Request, Reply>& method,
                                         Request request, int64_t timeout_us) {
  const proto::StoreMark newest = Newest();
  SetMark(request, newest);
  NAM_ASSIGN_OR_RETURN(Reply reply, peer.Call(method, request, timeout_us));
  NAM_RETURN_IF_ERROR(Learn(MarkOf(reply), newest));
  return reply;
}

absl::StatusOr<proto::Cluster> RemoteClient::GetCluster() {
  return AskForCluster(proto::GetClusterRequest(), timeout_us_);
}

absl::StatusOr<proto::Cluster> RemoteClient::AskForCluster(const proto::GetClusterRequest& request,
                                                           int64_t timeout_us) {
  NAM_ASSIGN_OR_RETURN(proto::Cluster cluster, Call(peer_, kGetCluster, request, timeout_us));
  const MutexLock lock(mutex_);
  if (std::exchange(lease_port_, cluster.lease_port()) != cluster.lease_port()) lease_peer_ = nullptr;
  const int64_t third_us = int64_t{cluster.lease_ms()} * 1'000 / 3;
  lease_call_us_ = std::min(timeout_us_, std::max(third_us, kLeaseCallUsMin));
  return cluster;
}

// On the host by which the catalog was reached, whatever it calls itself.
std::shared_ptr<const Peer> RemoteClient::LeasePeer() {
  const MutexLock lock(mutex_);
  if (lease_peer_ == nullptr) {
    const std::string address = absl::StrCat(SplitAddress(options_.address)->first, ":", lease_port_);
    lease_peer_ = std::make_shared<const Peer>(absl::StrCat("the catalog's port for leases, ", address),
                                               options_.control_plane->Open(address, options_.secret));
  }
  return lease_peer_;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> RemoteClient::GetTable(const std::string& name) {
  std::shared_ptr<const proto::Table> cached = Cached(name);
  proto::GetTableRequest request;
  request.set_name(name);
  request.set_known_version(cached == nullptr ? 0 : cached->version());
  absl::StatusOr<proto::GetTableReply> reply = Call(kGetTable, request);
  if (!reply.ok()) {
    if (absl::IsNotFound(reply.status())) Forget(name);
    return std::move(reply).status();
  }
  if (cached != nullptr && reply->unchanged()) return cached;
  return Cache(std::move(*reply->mutable_table()));
}

absl::StatusOr<std::vector<std::shared_ptr<const proto::Table>>> RemoteClient::GetTables(
    std::span<const std::string> names) {
  std::vector<std::shared_ptr<const proto::Table>> tables;
  proto::GetTablesRequest request;
  for (const std::string& name : names) {
    tables.push_back(Cached(name));
    proto::GetTableRequest& wanted = *request.add_tables();
    wanted.set_name(name);
    wanted.set_known_version(tables.back() == nullptr ? 0 : tables.back()->version());
  }
  NAM_ASSIGN_OR_RETURN(proto::GetTablesReply reply, Call(kGetTables, request));
  if (static_cast<size_t>(reply.tables_size()) != names.size())
    return absl::InternalError("the catalog has answered for other tables than were asked for");
  for (int i = 0; i < reply.tables_size(); ++i) {
    std::shared_ptr<const proto::Table>& table = tables[static_cast<size_t>(i)];
    proto::GetTableReply& answer = *reply.mutable_tables(i);
    if (answer.unchanged() && table != nullptr) continue;
    table = answer.has_table() ? Cache(std::move(*answer.mutable_table())) : nullptr;
    if (table == nullptr) Forget(request.tables(i).name());
  }
  return tables;
}

std::shared_ptr<const proto::Table> RemoteClient::Cached(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : found->second;
}

void RemoteClient::Forget(const std::string& name) {
  const MutexLock lock(mutex_);
  tables_.erase(name);
}

std::shared_ptr<const proto::Table> RemoteClient::Cache(proto::Table table) {
  const std::string name = table.name();
  auto fresh = std::make_shared<const proto::Table>(std::move(table));
  const MutexLock lock(mutex_);
  std::shared_ptr<const proto::Table>& entry = tables_[name];
  // Threads may ask concurrently: the newest answer stays, and equal versions share one object.
  if (entry == nullptr || entry->version() < fresh->version())
    entry = fresh;
  else if (entry->version() == fresh->version())
    fresh = entry;
  if (tables_.size() > kCachedTablesMax) {
    const auto first = tables_.begin();
    tables_.erase(first->first == name ? std::next(first) : first);
  }
  return fresh;
}

absl::StatusOr<proto::Table> RemoteClient::GetTableOf(const std::string& name, uint64_t allocation) {
  proto::GetTableRequest request;
  request.set_name(name);
  request.set_allocation(allocation);
  NAM_ASSIGN_OR_RETURN(proto::GetTableReply reply, Call(kGetTable, request));
  return std::move(*reply.mutable_table());
}

absl::StatusOr<std::vector<proto::Table>> RemoteClient::ListEntries() {
  NAM_ASSIGN_OR_RETURN(proto::ListTablesReply reply, Call(kListTables, proto::ListTablesRequest()));
  return std::vector<proto::Table>(std::make_move_iterator(reply.mutable_tables()->begin()),
                                   std::make_move_iterator(reply.mutable_tables()->end()));
}

absl::StatusOr<proto::JoinReply> RemoteClient::Join(const proto::Member& member) {
  proto::JoinRequest request;
  *request.mutable_member() = member;
  return Call(kJoin, request);
}

absl::StatusOr<proto::RenewReply> RemoteClient::Renew(const proto::RenewRequest& request) {
  const std::shared_ptr<const Peer> peer = LeasePeer();
  absl::StatusOr<proto::RenewReply> reply = Call(*peer, kRenew, request, lease_call_us_);
  if (!Unanswered(reply.status())) return reply;
  // A restarted catalog may have a new port for leases, and another process the old one.
  proto::GetClusterRequest where;
  proto::CatalogHeader only_leases;
  only_leases.set_only_leases(true);
  SetHeader(where, only_leases);
  AskForCluster(where, lease_call_us_).IgnoreError();
  const std::shared_ptr<const Peer> fresh = LeasePeer();
  return fresh == peer ? reply : Call(*fresh, kRenew, request, lease_call_us_);
}

absl::Status RemoteClient::Leave(MemberId member, const std::string& proof) {
  proto::LeaveRequest request;
  request.set_proof(proof);
  request.set_id(member.value());
  return Call(peer_, kLeave, request, lease_call_us_).status();
}

absl::Status RemoteClient::Bury(MemoryServerId server) {
  proto::BuryRequest request;
  request.set_id(server.value());
  return Call(kBury, request).status();
}

absl::StatusOr<AllocationId> RemoteClient::BeginLoad(MemberId member, const std::string& table,
                                                     bool replace) {
  proto::BeginLoadRequest request;
  request.set_member(member.value());
  request.set_table(table);
  request.set_replace(replace);
  NAM_ASSIGN_OR_RETURN(const proto::BeginLoadReply reply, Call(kBeginLoad, request));
  return AllocationId(reply.allocation());
}

absl::StatusOr<AllocationId> RemoteClient::BeginToEmpty(MemberId member, const std::string& table) {
  proto::BeginLoadRequest request;
  request.set_member(member.value());
  request.set_table(table);
  request.set_replace(true);
  request.set_empties(true);
  NAM_ASSIGN_OR_RETURN(const proto::BeginLoadReply reply, Call(kBeginLoad, request));
  return AllocationId(reply.allocation());
}

absl::StatusOr<uint64_t> RemoteClient::CommitLoad(const proto::Table& table, AllocationId replaces) {
  proto::CommitLoadRequest request;
  *request.mutable_table() = table;
  request.set_replaces(replaces.value());
  NAM_ASSIGN_OR_RETURN(const proto::CommitLoadReply reply,
                       Call(peer_, kCommitLoad, std::move(request), timeout_us_));
  return reply.version();
}

absl::Status RemoteClient::AbortLoad(AllocationId allocation) {
  proto::AbortLoadRequest request;
  request.set_allocation(allocation.value());
  return Call(kAbortLoad, request).status();
}

absl::Status RemoteClient::DropTable(const std::string& name) {
  return Drop(name, /*cascade=*/false).status();
}

absl::StatusOr<std::vector<std::string>> RemoteClient::Drop(const std::string& name, bool cascade) {
  proto::DropTableRequest request;
  request.set_name(name);
  request.set_cascade(cascade);
  NAM_ASSIGN_OR_RETURN(const proto::DropTableReply reply, Call(kDropTable, request));
  return std::vector<std::string>(reply.views().begin(), reply.views().end());
}

absl::StatusOr<uint64_t> RemoteClient::ChangeCatalog(const proto::ChangeCatalogRequest& request) {
  NAM_ASSIGN_OR_RETURN(const proto::ChangeCatalogReply reply, Call(kChangeCatalog, request));
  return reply.version();
}

absl::StatusOr<std::vector<std::string>> RemoteClient::BeginQuiet(MemberId member) {
  proto::QuietRequest request;
  request.set_member(member.value());
  NAM_ASSIGN_OR_RETURN(const proto::QuietReply reply, Call(kQuiet, request));
  return std::vector<std::string>(reply.loads().begin(), reply.loads().end());
}

absl::Status RemoteClient::EndQuiet(MemberId member) {
  proto::QuietRequest request;
  request.set_member(member.value());
  request.set_end(true);
  return Call(kQuiet, request).status();
}

absl::StatusOr<std::vector<MemberId>> RemoteClient::EndClients(MemberId member, const std::string& proof) {
  proto::QuietRequest request;
  request.set_member(member.value());
  request.set_ends_clients(true);
  request.set_proof(proof);
  NAM_ASSIGN_OR_RETURN(const proto::QuietReply reply, Call(kQuiet, request));
  std::vector<MemberId> ended;
  for (const uint32_t id : reply.ended()) ended.emplace_back(id);
  return ended;
}

absl::Status RemoteClient::LeaveParents(const std::string& child, bool cascade) {
  proto::DropTableRequest request;
  request.set_name(child);
  request.set_leaving(true);
  request.set_cascade(cascade);
  return Call(kDropTable, request).status();
}

absl::StatusOr<AllocationId> RemoteClient::BeginExtend(MemberId member, const std::string& table) {
  proto::BeginExtendRequest request;
  request.set_member(member.value());
  request.set_table(table);
  NAM_ASSIGN_OR_RETURN(const proto::BeginExtendReply reply, Call(kBeginExtend, request));
  return AllocationId(reply.allocation());
}

absl::StatusOr<uint64_t> RemoteClient::CommitExtend(const proto::CommitExtendRequest& request) {
  NAM_ASSIGN_OR_RETURN(const proto::CommitExtendReply reply, Call(kCommitExtend, request));
  return reply.version();
}

absl::StatusOr<uint64_t> RemoteClient::ChangePart(const proto::ChangePartRequest& request) {
  NAM_ASSIGN_OR_RETURN(const proto::ChangePartReply reply, Call(kChangePart, request));
  return reply.version();
}

absl::StatusOr<std::vector<uint32_t>> RemoteClient::AllocateGroups(MemberId member, uint32_t count) {
  proto::AllocateGroupsRequest request;
  request.set_member(member.value());
  request.set_count(count);
  NAM_ASSIGN_OR_RETURN(const proto::AllocateGroupsReply reply, Call(kAllocateGroups, request));
  return std::vector<uint32_t>(reply.groups().begin(), reply.groups().end());
}

absl::Status RemoteClient::ReleaseGroups(MemberId member, const std::vector<uint32_t>& groups) {
  proto::ReleaseGroupsRequest request;
  request.set_member(member.value());
  request.mutable_groups()->Add(groups.begin(), groups.end());
  return Call(peer_, kReleaseGroups, request, lease_call_us_).status();
}

absl::Status RemoteClient::Calibrate(const proto::FabricConstants& constants) {
  proto::CalibrateRequest request;
  *request.mutable_constants() = constants;
  return Call(kCalibrate, request).status();
}

}  // namespace

absl::StatusOr<std::vector<proto::Table>> Client::ListTables() {
  NAM_ASSIGN_OR_RETURN(std::vector<proto::Table> tables, ListEntries());
  std::erase_if(tables, [](const proto::Table& entry) { return entry.has_view() || entry.schema(); });
  return tables;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  NAM_RETURN_IF_ERROR(SplitAddress(options.address).status());
  if (options.timeout_us <= 0)
    return absl::InvalidArgumentError("the catalog's calls need a timeout above 0");
  // Without them gRPC has too few threads, and its calls wait for ever, whatever their timeouts.
  NAM_RETURN_IF_ERROR(CheckRoomFor("the threads of its connections", kConnectionsBytes));
  auto client = std::make_unique<RemoteClient>(options);
  NAM_RETURN_IF_ERROR(
      client->GetCluster().status());  // checks that the catalog answers and accepts the secret
  return client;
}

}  // namespace nam::catalog
