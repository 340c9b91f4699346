#include "localcluster/connect.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/interruption.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/control_plane.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"

namespace nam {
namespace {

constexpr int64_t kRestartPauseUs = 20'000;
constexpr absl::string_view kSupervisedPayload = "nam/supervised";
constexpr char kHint[] = "start one with `nam up`, or name another by --catalog and --secret-file";

void PrintError(const absl::Status& status) {
  std::fflush(stdout);
  std::fprintf(stderr, "nam: %s\n", std::string(status.message()).c_str());
}

}  // namespace

absl::StatusOr<catalog::ControlPlane*> OpenControlPlane(const catalog::TlsFiles& tls) {
  if (!tls.given()) return &catalog::GrpcControlPlane();
  NAM_ASSIGN_OR_RETURN(auto made, catalog::MakeGrpcControlPlane(tls));
  // Like GrpcControlPlane(), they are never destroyed. They stay reachable, so they are not leaks.
  static Mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<catalog::ControlPlane>>;
  const MutexLock lock(mutex);
  return kept.emplace_back(std::move(made)).get();
}

absl::StatusOr<ClusterAddress> FindCluster(const ClusterOptions& options) {
  NAM_ASSIGN_OR_RETURN(catalog::ControlPlane* const control_plane, OpenControlPlane(options.tls));
  if (!options.catalog.empty()) {
    if (options.secret_file.empty()) {
      return absl::InvalidArgumentError("--catalog needs --secret-file, the file with the cluster's secret");
    }
    NAM_ASSIGN_OR_RETURN(std::string secret, ReadSecret(options.secret_file));
    return ClusterAddress{options.catalog, std::move(secret), control_plane};
  }
  const std::string path = options.state_dir.empty() ? DefaultStateDirectory() : options.state_dir;
  const auto directory = StateDirectory::Open(path);
  const auto state = directory.ok() ? directory->LoadState() : directory.status();
  if (absl::IsNotFound(state.status())) {
    return absl::UnavailableError(absl::StrCat("no cluster in ", path, "; ", kHint));
  }
  if (absl::IsDataLoss(state.status())) {
    return absl::UnavailableError(absl::StrCat(std::string(state.status().message()), "; ", kHint));
  }
  NAM_RETURN_IF_ERROR(state.status());
  NAM_ASSIGN_OR_RETURN(std::string secret, options.secret_file.empty() ? directory->ReadSecret()
                                                                       : ReadSecret(options.secret_file));
  return ClusterAddress{.catalog = state->catalog_address,
                        .secret = std::move(secret),
                        .control_plane = control_plane,
                        .events = state->events,
                        .supervisor = state->supervisor.process,
                        .supervisor_log = absl::StrCat(path, "/supervisor.log"),
                        .restart_wait_us = options.restart_wait_us};
}

bool CatalogRestart::Expected(const absl::Status& status) const {
  return absl::IsUnavailable(status) && catalog::Unanswered(status) && address_.supervisor.has_value() &&
         IdentityOf(address_.supervisor->pid) == address_.supervisor;
}

bool CatalogRestart::Await(const absl::Status& status) const {
  if (!Expected(status) || RealClock().Passed(deadline_) || Interruption::requested()) return false;
  RealClock().SleepUntil(RealClock().After(kRestartPauseUs));
  return true;
}

absl::Status CatalogRestart::Explain(const absl::Status& status) const {
  if (!Expected(status)) return status;
  absl::Status explained(
      status.code(),
      absl::StrCat(std::string(status.message()), " Its supervisor (pid ", address_.supervisor->pid,
                   ") is, and starts it again: try again soon, or see ", address_.supervisor_log));
  explained.SetPayload(kSupervisedPayload, absl::Cord());
  return explained;
}

absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachTo(const ClusterAddress& address,
                                                              catalog::AttachOptions options) {
  options.catalog.address = address.catalog;
  options.catalog.secret = address.secret;
  options.catalog.control_plane = address.control_plane;
  return OnceCatalogRuns(address, [&] { return catalog::Attachment::Attach(options); });
}

absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachToCluster(const ClusterOptions& options) {
  NAM_ASSIGN_OR_RETURN(const ClusterAddress address, FindCluster(options));
  return AttachTo(address, {.rdma = options.rdma,
                            .multicast_interface = options.multicast_interface,
                            .multicast_ttl = options.multicast_ttl});
}

int ReportNoConnection(const absl::Status& status) {
  PrintError(status);
  if (absl::IsInvalidArgument(status)) return kExitUsage;
  if (absl::IsUnavailable(status) && !status.GetPayload(kSupervisedPayload).has_value() &&
      status.message().find("nam up") == absl::string_view::npos) {
    std::fprintf(stderr, "hint: %s\n", kHint);
  }
  return kExitCannotConnect;
}

int ReportFailure(const absl::Status& status) {
  PrintError(status);
  return ExitCodeOf(status);
}

int Refuse(const absl::Status& status) {
  PrintError(status);
  return kExitUsage;
}

}  // namespace nam
