#include "catalog/server.h"

#include <sys/random.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/header.h"
#include "catalog/methods.h"
#include "catalog/suspect_watch.h"
#include "fabric/threads.h"

namespace nam::catalog {
namespace {

constexpr int kAwaitingCallsMax = 16;
constexpr int64_t kAwaitUs = 5'000;
/// Less than callers wait for an answer.
constexpr int64_t kQuietHeldUs = 3'000'000;

uint64_t SystemRandom() {
  uint64_t word = 0;
  NAM_CHECK(::getrandom(&word, sizeof(word), 0) == ssize_t{sizeof(word)});
  return word;
}

/// Holds calls while the service awaits its memory servers, or is quiet for a backup, so that callers need
/// not retry.
class HeldCalls {
 public:
  HeldCalls(Service& service, Clock& clock) : service_(service), clock_(clock) {}

  void Pass(const IncomingCall& call) {
    if (!service_.AwaitsMembers()) return;
    if (++calls_ <= kAwaitingCallsMax) {  // others are told to retry
      while (service_.AwaitsMembers() && !call.Cancelled()) clock_.SleepUntil(clock_.After(kAwaitUs));
    }
    --calls_;
  }

  /// What `ask` is answered, once that is not that a backup is under way: they let go soon, mostly.
  template <typename Ask>
  auto PassQuiet(const IncomingCall& call, const Ask& ask) {
    auto answer = ask();
    if (!Quiet(answer.status())) return answer;
    const Deadline deadline = clock_.After(kQuietHeldUs);
    if (++quiet_calls_ <= kAwaitingCallsMax) {
      while (Quiet(answer.status()) && !call.Cancelled() && !clock_.Passed(deadline)) {
        clock_.SleepUntil(clock_.After(kAwaitUs));
        answer = ask();
      }
    }
    --quiet_calls_;
    return answer;
  }

 private:
  static bool Quiet(const absl::Status& status) { return status.GetPayload(kQuietPayload).has_value(); }

  Service& service_;
  Clock& clock_;
  std::atomic<int> calls_ = 0;
  std::atomic<int> quiet_calls_ = 0;
};

// `lease_port` is set once the port for leases is open, which precedes any call.
Handlers CatalogHandlers(Service& service, HeldCalls& held, const uint32_t& lease_port) {
  Handlers handlers("nam.proto.Catalog");
  const auto add = [&](const auto& method, auto member) {
    handlers.Add(method, [&service, &held, member](const auto& request, const IncomingCall& call) {
      held.Pass(call);
      return (service.*member)(request);
    });
  };
  const auto add_change = [&](const auto& method, auto member) {
    handlers.Add(method, [&service, &held, member](const auto& request, const IncomingCall& call) {
      held.Pass(call);
      return held.PassQuiet(call, [&] { return (service.*member)(request); });
    });
  };
  handlers.Add(kGetCluster, [&](const proto::GetClusterRequest& request, const IncomingCall& call) {
    if (!HeaderOf(request).only_leases()) held.Pass(call);
    absl::StatusOr<proto::Cluster> cluster = HeaderOf(request).only_leases()
                                                 ? absl::StatusOr<proto::Cluster>(service.ClusterForLeases())
                                                 : service.GetCluster(request);
    if (cluster.ok()) cluster->set_lease_port(lease_port);
    return cluster;
  });
  add(kJoin, &Service::Join);
  add(kLeave, &Service::Leave);
  add(kBury, &Service::Bury);
  add(kListTables, &Service::ListTables);
  add(kGetTable, &Service::GetTable);
  add(kGetTables, &Service::GetTables);
  add_change(kBeginLoad, &Service::BeginLoad);
  add(kCommitLoad, &Service::CommitLoad);
  add(kAbortLoad, &Service::AbortLoad);
  add_change(kDropTable, &Service::DropTable);
  add_change(kBeginExtend, &Service::BeginExtend);
  add(kCommitExtend, &Service::CommitExtend);
  add(kChangePart, &Service::ChangePart);
  add_change(kChangeCatalog, &Service::ChangeCatalog);
  add(kQuiet, &Service::Quiet);
  add(kAllocateGroups, &Service::AllocateGroups);
  add(kReleaseGroups, &Service::ReleaseGroups);
  add(kCalibrate, &Service::Calibrate);
  return handlers;
}

Handlers LeaseHandlers(Service& service) {
  Handlers handlers("nam.proto.Leases");
  handlers.Add(kRenew, [&](const proto::RenewRequest& request, const IncomingCall& call) {
    return service.Renew(request, call.Connection());
  });
  handlers.Add(kPulse, [&](const proto::PulseRequest&, const IncomingCall&) {
    service.Pulse();
    return absl::StatusOr<proto::PulseReply>(proto::PulseReply());
  });
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
  CatalogServerImpl(std::unique_ptr<Service> service, Clock& clock)
      : service_(std::move(service)),
        held_(*service_, clock),
        handlers_(CatalogHandlers(*service_, held_, lease_port_)),
        lease_handlers_(LeaseHandlers(*service_)) {}
  ~CatalogServerImpl() override {
    ended_->Set();
    pulse_end_.Cancel();
  }

  absl::Status Listen(const CatalogServerOptions& options) {
    NAM_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(options.listen_address));
    NAM_ASSIGN_OR_RETURN(
        lease_server_,
        options.control_plane->Serve({.address = absl::StrCat(host_port.first, ":", options.lease_port),
                                      .secret = options.secret,
                                      .handlers = &lease_handlers_,
                                      .request_bytes_max = kRenewalBytesMax}));
    NAM_ASSIGN_OR_RETURN(const auto leases, SplitAddress(lease_server_->address()));
    lease_port_ = leases.second;
    NAM_ASSIGN_OR_RETURN(
        server_, options.control_plane->Serve(
                     {.address = options.listen_address, .secret = options.secret, .handlers = &handlers_}));
    // In a simulated catalog the watch gives the pulse.
    if (options.clock == &RealClock()) StartPulse(options);
    watch_ = std::make_unique<SuspectWatch>(
        *service_, SuspectWatchOptions{.clock = options.clock,
                                       .pause_us = int64_t{options.lease_ms} * 1'000 / kPulsesOfLease,
                                       .control_plane = options.control_plane,
                                       .connected =
                                           [this](const std::string& connection) {
                                             return lease_server_->Connected(connection);
                                           },
                                       .fabric = options.fabric_of_threads});
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }
  std::string lease_address() const override { return lease_server_->address(); }
  const ClusterIdentity& identity() const override { return service_->identity(); }
  void Shutdown(Deadline deadline) override {
    server_->Shutdown(deadline);
    lease_server_->Shutdown(deadline);
  }

 private:
  static constexpr int kPulsesOfLease = 10;
  static constexpr int kRenewalBytesMax = 4 << 20;  // ten bytes per allocation and key holder

  // Takes the path of renewals, so that a delay of renewals delays the pulse.
  void StartPulse(const CatalogServerOptions& options) {
    lease_peer_ = std::make_unique<Peer>(
        "the port for leases", options.control_plane->Open(lease_server_->address(), options.secret));
    const int64_t lease_us = int64_t{options.lease_ms} * 1'000;
    pulse_ = fabric::StartRealThread("nam-pulse", [this, lease_us] {
      do {
        lease_peer_->Call(kPulse, proto::PulseRequest(), lease_us, &pulse_end_).status().IgnoreError();
      } while (!ended_->Wait(RealClock().After(lease_us / kPulsesOfLease)));
    });
  }

  const std::unique_ptr<Service> service_;
  uint32_t lease_port_ = 0;
  HeldCalls held_;
  const Handlers handlers_;
  const Handlers lease_handlers_;
  // Destroyed before the objects that they call.
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<ControlServer> lease_server_;
  const std::unique_ptr<fabric::Event> ended_ = fabric::MakeRealEvent();
  CallCancellation pulse_end_;
  std::unique_ptr<Peer> lease_peer_;
  std::unique_ptr<fabric::Thread> pulse_;  // joined before what it calls
  std::unique_ptr<SuspectWatch> watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CatalogServer>> CatalogServer::Start(const CatalogServerOptions& options) {
  if (options.secret.empty()) {
    return absl::InvalidArgumentError("a cluster needs a secret; every member must be given the same one");
  }
  if (options.encrypt && !fabric::CanEncrypt(options.fabric)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--encrypt is for --fabric=tcp: %s does not encrypt the data plane",
                        std::string(fabric::KindName(options.fabric))));
  }
  const std::function<uint64_t()> random = options.random ? options.random : SystemRandom;
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<Store> store,
      OpenEmbeddedStore(options.store_path, {options.cluster_name.empty() ? "nam" : options.cluster_name,
                                             std::string(fabric::KindName(options.fabric)), random()}));
  ServiceOptions service_options{
      .lease_ms = options.lease_ms,
      .bury_after_ms = options.bury_after_ms,
      .timestamps = options.timestamps,
      .encrypt = options.encrypt,
      .epoch_id_high = random(),
      .epoch_id_low = random(),
      .accept_older_store = options.accept_older_store,
      .check_identity = [options](const ClusterIdentity& stored) { return CheckIdentity(stored, options); }};
  NAM_ASSIGN_OR_RETURN(auto service,
                       Service::Open(std::move(store), *options.clock, std::move(service_options)));
  auto server = std::make_unique<CatalogServerImpl>(std::move(service), *options.clock);
  NAM_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace nam::catalog
