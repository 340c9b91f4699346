#include "localcluster/connect.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"

namespace nam {
namespace {

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
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<catalog::ControlPlane>>;
  const std::lock_guard lock(mutex);
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
  return ClusterAddress{state->catalog_address, std::move(secret), control_plane, state->events};
}

absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachToCluster(const ClusterOptions& options) {
  NAM_ASSIGN_OR_RETURN(const ClusterAddress address, FindCluster(options));
  return catalog::Attachment::Attach({.catalog = address.client_options(),
                                      .rdma = options.rdma,
                                      .multicast_interface = options.multicast_interface,
                                      .multicast_ttl = options.multicast_ttl});
}

int ReportNoConnection(const absl::Status& status) {
  PrintError(status);
  if (absl::IsInvalidArgument(status)) return kExitUsage;
  if (absl::IsUnavailable(status) && status.message().find("nam up") == absl::string_view::npos) {
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
