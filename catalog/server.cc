#include "catalog/server.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/rpc.h"
#include "proto/catalog.grpc.pb.h"

namespace nam::catalog {
namespace {

// gRPC around the service: the token, then one method each.
class GrpcService final : public proto::Catalog::Service {
 public:
  GrpcService(nam::catalog::Service& service, const std::string& secret)
      : service_(service), check_(secret) {}

#define NAM_CATALOG_METHOD(method)                                                         \
  grpc::Status method(grpc::ServerContext* context, const proto::method##Request* request, \
                      proto::method##Reply* reply) override {                              \
    return ServeCall(check_, *context, reply, [&] { return service_.method(*request); });  \
  }
  NAM_CATALOG_METHOD(Join)
  NAM_CATALOG_METHOD(Renew)
  NAM_CATALOG_METHOD(Leave)
  NAM_CATALOG_METHOD(ListTables)
  NAM_CATALOG_METHOD(GetTable)
  NAM_CATALOG_METHOD(BeginLoad)
  NAM_CATALOG_METHOD(CommitLoad)
  NAM_CATALOG_METHOD(AbortLoad)
  NAM_CATALOG_METHOD(DropTable)
#undef NAM_CATALOG_METHOD
  grpc::Status GetCluster(grpc::ServerContext* context, const proto::GetClusterRequest* request,
                          proto::Cluster* reply) override {
    return ServeCall(check_, *context, reply, [&] { return service_.GetCluster(*request); });
  }

 private:
  nam::catalog::Service& service_;
  const TokenCheck check_;
};

absl::Status CheckIdentity(const ClusterIdentity& stored, const CatalogServerOptions& options) {
  const std::string fabric(fabric::KindName(options.fabric));
  if (stored.fabric != fabric) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the store `%s` belongs to a cluster on the fabric %s, not %s; use --fabric=%s or another store",
        options.store_path, stored.fabric, fabric, stored.fabric));
  }
  if (!options.cluster_name.empty() && stored.name != options.cluster_name) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the store `%s` belongs to the cluster `%s`, not `%s`; use its name or another store",
                        options.store_path, stored.name, options.cluster_name));
  }
  return absl::OkStatus();
}

class CatalogServerImpl final : public CatalogServer {
 public:
  CatalogServerImpl(std::unique_ptr<nam::catalog::Service> service, const std::string& secret)
      : service_(std::move(service)), grpc_service_(*service_, secret) {}

  absl::Status Listen(const CatalogServerOptions& options) {
    RpcServerOptions rpc;
    rpc.address = options.listen_address;
    rpc.services = {&grpc_service_};
    NAM_ASSIGN_OR_RETURN(rpc_server_, RpcServer::Start(rpc));
    return absl::OkStatus();
  }

  std::string address() const override { return rpc_server_->address(); }
  const ClusterIdentity& identity() const override { return service_->identity(); }
  void Shutdown(Deadline deadline) override { rpc_server_->Shutdown(deadline); }

 private:
  const std::unique_ptr<nam::catalog::Service> service_;
  GrpcService grpc_service_;
  std::unique_ptr<RpcServer> rpc_server_;  // last: stops before what it calls
};

}  // namespace

absl::StatusOr<std::unique_ptr<CatalogServer>> CatalogServer::Start(const CatalogServerOptions& options) {
  if (options.secret.empty()) {
    return absl::InvalidArgumentError("a cluster needs a secret; every member must be given the same one");
  }
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<Store> store,
      OpenEmbeddedStore(options.store_path, {options.cluster_name.empty() ? "nam" : options.cluster_name,
                                             std::string(fabric::KindName(options.fabric))}));
  NAM_ASSIGN_OR_RETURN(auto service,
                       nam::catalog::Service::Open(std::move(store), *options.clock, options.lease_ms));
  NAM_RETURN_IF_ERROR(CheckIdentity(service->identity(), options));
  auto server = std::make_unique<CatalogServerImpl>(std::move(service), options.secret);
  NAM_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace nam::catalog
