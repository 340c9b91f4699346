#include "catalog/server.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/methods.h"
#include "catalog/suspect_watch.h"
#include "fabric/threads.h"

namespace nam::catalog {
namespace {

Handlers HandlersOf(Service& service) {
  Handlers handlers("nam.proto.Catalog");
  const auto add = [&](const auto& method, auto member) {
    handlers.Add(method, [&service, member](const auto& request, const IncomingCall&) {
      return (service.*member)(request);
    });
  };
  add(kGetCluster, &Service::GetCluster);
  add(kJoin, &Service::Join);
  add(kRenew, &Service::Renew);
  add(kLeave, &Service::Leave);
  add(kBury, &Service::Bury);
  add(kListTables, &Service::ListTables);
  add(kGetTable, &Service::GetTable);
  add(kBeginLoad, &Service::BeginLoad);
  add(kCommitLoad, &Service::CommitLoad);
  add(kAbortLoad, &Service::AbortLoad);
  add(kDropTable, &Service::DropTable);
  add(kBeginExtend, &Service::BeginExtend);
  add(kCommitExtend, &Service::CommitExtend);
  add(kChangePart, &Service::ChangePart);
  add(kAllocateGroups, &Service::AllocateGroups);
  add(kReleaseGroups, &Service::ReleaseGroups);
  return handlers;
}

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
  explicit CatalogServerImpl(std::unique_ptr<Service> service)
      : service_(std::move(service)), handlers_(HandlersOf(*service_)) {}

  absl::Status Listen(const CatalogServerOptions& options) {
    NAM_ASSIGN_OR_RETURN(
        server_, options.control_plane->Serve(
                     {.address = options.listen_address, .secret = options.secret, .handlers = &handlers_}));
    // In a simulated world no process stands still unawares.
    if (options.clock == &RealClock()) StartPulse(int64_t{options.lease_ms} * 1'000 / kPulsesOfLease);
    watch_ = std::make_unique<SuspectWatch>(
        *service_, SuspectWatchOptions{.clock = options.clock,
                                       .pause_us = int64_t{options.lease_ms} * 1'000 / kPulsesOfLease,
                                       .control_plane = options.control_plane,
                                       .fabric = options.fabric_of_threads});
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }
  const ClusterIdentity& identity() const override { return service_->identity(); }
  void Shutdown(Deadline deadline) override { server_->Shutdown(deadline); }
  ~CatalogServerImpl() override { ended_->Set(); }

 private:
  static constexpr int kPulsesOfLease = 10;

  void StartPulse(int64_t pause_us) {
    pulse_ = fabric::StartRealThread("nam-pulse", [this, pause_us] {
      do {
        service_->Pulse();
      } while (!ended_->Wait(RealClock().After(pause_us)));
    });
  }

  const std::unique_ptr<Service> service_;
  const Handlers handlers_;
  const std::unique_ptr<fabric::Event> ended_ = fabric::MakeRealEvent();
  std::unique_ptr<fabric::Thread> pulse_;
  std::unique_ptr<SuspectWatch> watch_;
  std::unique_ptr<ControlServer> server_;  // last: stops before what it calls
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
  NAM_ASSIGN_OR_RETURN(auto service, Service::Open(std::move(store), *options.clock, options.lease_ms,
                                                   options.timestamps, options.bury_after_ms));
  NAM_RETURN_IF_ERROR(CheckIdentity(service->identity(), options));
  auto server = std::make_unique<CatalogServerImpl>(std::move(service));
  NAM_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace nam::catalog
