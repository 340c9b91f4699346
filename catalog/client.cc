#include "catalog/client.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "catalog/rpc.h"
#include "proto/catalog.grpc.pb.h"

namespace nam::catalog {
namespace {

constexpr size_t kCachedTablesMax = 1'024;
constexpr int64_t kLeaseCallUsMin = 100'000;

class GrpcClient final : public Client {
 public:
  explicit GrpcClient(const ClientOptions& options)
      : timeout_us_(options.timeout_us),
        lease_call_us_(options.timeout_us),
        peer_(absl::StrCat("the catalog at ", options.address), options.address, options.secret),
        stub_(proto::Catalog::NewStub(peer_.channel())) {}

  absl::StatusOr<proto::Cluster> GetCluster() override;
  absl::StatusOr<std::shared_ptr<const proto::Table>> GetTable(const std::string& name) override;
  absl::StatusOr<std::vector<proto::Table>> ListTables() override;
  absl::StatusOr<proto::JoinReply> Join(const proto::Member& member) override;
  absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest& request) override;
  absl::Status Leave(MemberId member) override;
  absl::StatusOr<AllocationId> BeginLoad(MemberId member, const std::string& table, bool replace) override;
  absl::StatusOr<uint64_t> CommitLoad(const proto::Table& table) override;
  absl::Status AbortLoad(AllocationId allocation) override;
  absl::Status DropTable(const std::string& name) override;

 private:
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (proto::Catalog::StubInterface::*method)(grpc::ClientContext*,
                                                                                   const Request&, Reply*),
                             const Request& request, int64_t timeout_us) const {
    return peer_.Call<proto::Catalog::StubInterface>(*stub_, method, request, timeout_us);
  }

  const int64_t timeout_us_;
  // Renewals and leaving wait for a third of a lease at most, so that there is time for another try.
  std::atomic<int64_t> lease_call_us_;
  const Peer peer_;
  const std::unique_ptr<proto::Catalog::StubInterface> stub_;

  std::mutex mutex_;  // of tables_
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_;
};

using CatalogStub = proto::Catalog::StubInterface;

absl::StatusOr<proto::Cluster> GrpcClient::GetCluster() {
  NAM_ASSIGN_OR_RETURN(proto::Cluster cluster,
                       Call(&CatalogStub::GetCluster, proto::GetClusterRequest(), timeout_us_));
  const int64_t third_us = int64_t{cluster.lease_ms()} * 1'000 / 3;
  lease_call_us_ = std::min(timeout_us_, std::max(third_us, kLeaseCallUsMin));
  return cluster;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> GrpcClient::GetTable(const std::string& name) {
  std::shared_ptr<const proto::Table> cached;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tables_.find(name);
    if (found != tables_.end()) cached = found->second;
  }
  proto::GetTableRequest request;
  request.set_name(name);
  request.set_known_version(cached == nullptr ? 0 : cached->version());
  absl::StatusOr<proto::GetTableReply> reply = Call(&CatalogStub::GetTable, request, timeout_us_);
  const std::lock_guard lock(mutex_);
  if (!reply.ok()) {
    if (absl::IsNotFound(reply.status())) tables_.erase(name);
    return std::move(reply).status();
  }
  if (cached != nullptr && reply->unchanged()) return cached;
  auto fresh = std::make_shared<const proto::Table>(std::move(*reply->mutable_table()));
  std::shared_ptr<const proto::Table>& entry = tables_[name];
  // Threads may ask at the same time: the newest stays, and equal versions are one object.
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

absl::StatusOr<std::vector<proto::Table>> GrpcClient::ListTables() {
  NAM_ASSIGN_OR_RETURN(proto::ListTablesReply reply,
                       Call(&CatalogStub::ListTables, proto::ListTablesRequest(), timeout_us_));
  return std::vector<proto::Table>(std::make_move_iterator(reply.mutable_tables()->begin()),
                                   std::make_move_iterator(reply.mutable_tables()->end()));
}

absl::StatusOr<proto::JoinReply> GrpcClient::Join(const proto::Member& member) {
  proto::JoinRequest request;
  *request.mutable_member() = member;
  return Call(&CatalogStub::Join, request, timeout_us_);
}

absl::StatusOr<proto::RenewReply> GrpcClient::Renew(const proto::RenewRequest& request) {
  return Call(&CatalogStub::Renew, request, lease_call_us_);
}

absl::Status GrpcClient::Leave(MemberId member) {
  proto::LeaveRequest request;
  request.set_id(member.value());
  return Call(&CatalogStub::Leave, request, lease_call_us_).status();
}

absl::StatusOr<AllocationId> GrpcClient::BeginLoad(MemberId member, const std::string& table, bool replace) {
  proto::BeginLoadRequest request;
  request.set_member(member.value());
  request.set_table(table);
  request.set_replace(replace);
  NAM_ASSIGN_OR_RETURN(const proto::BeginLoadReply reply,
                       Call(&CatalogStub::BeginLoad, request, timeout_us_));
  return AllocationId(reply.allocation());
}

absl::StatusOr<uint64_t> GrpcClient::CommitLoad(const proto::Table& table) {
  proto::CommitLoadRequest request;
  *request.mutable_table() = table;
  NAM_ASSIGN_OR_RETURN(const proto::CommitLoadReply reply,
                       Call(&CatalogStub::CommitLoad, request, timeout_us_));
  return reply.version();
}

absl::Status GrpcClient::AbortLoad(AllocationId allocation) {
  proto::AbortLoadRequest request;
  request.set_allocation(allocation.value());
  return Call(&CatalogStub::AbortLoad, request, timeout_us_).status();
}

absl::Status GrpcClient::DropTable(const std::string& name) {
  proto::DropTableRequest request;
  request.set_name(name);
  return Call(&CatalogStub::DropTable, request, timeout_us_).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  NAM_RETURN_IF_ERROR(SplitAddress(options.address).status());
  if (options.timeout_us <= 0)
    return absl::InvalidArgumentError("the catalog's calls need a timeout above 0");
  auto client = std::make_unique<GrpcClient>(options);
  NAM_RETURN_IF_ERROR(client->GetCluster().status());  // somebody is there and takes the secret
  return client;
}

}  // namespace nam::catalog
