#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "catalog/attachment.h"
#include "catalog/certificates.h"
#include "catalog/client.h"
#include "localcluster/process.h"

namespace nam {

/// The cluster of a command: by a catalog's address, or the local one of a state directory.
struct ClusterOptions {
  std::string catalog;  // host:port; needs secret_file
  std::string secret_file;
  std::string state_dir;  // empty: DefaultStateDirectory()
  catalog::TlsFiles tls;  // for a cluster with its own certificates
  /// As in FabricOptions.
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  int64_t restart_wait_us = 2'000'000;  // how long to wait for a local catalog that is started again
};

struct ClusterAddress {
  std::string catalog;
  std::string secret;
  catalog::ControlPlane* control_plane = nullptr;
  // Of a local cluster.
  std::vector<std::string> events = {};            // the supervisor's
  std::optional<ProcessIdentity> supervisor = {};  // starts the catalog again when it has ended
  std::string supervisor_log = {};
  int64_t restart_wait_us = 0;

  catalog::ClientOptions client_options() const {
    return {.address = catalog, .secret = secret, .control_plane = control_plane};
  }
};

/// The control plane of this process, with its own certificates if files are given. Lives until the process
/// ends.
absl::StatusOr<catalog::ControlPlane*> OpenControlPlane(const catalog::TlsFiles& tls);

/// INVALID_ARGUMENT if the options contradict each other; UNAVAILABLE if there is no cluster, with a hint.
absl::StatusOr<ClusterAddress> FindCluster(const ClusterOptions& options);

/// Waits for a local cluster's catalog, which its supervisor starts again.
class CatalogRestart {
 public:
  explicit CatalogRestart(const ClusterAddress& address)
      : address_(address), deadline_(RealClock().After(address.restart_wait_us)) {}
  /// True, a moment later, if the catalog was not reached, and may be there soon.
  bool Await(const absl::Status& status) const;
  /// The status, with what else is known of a catalog that was not reached.
  absl::Status Explain(const absl::Status& status) const;

 private:
  bool Expected(const absl::Status& status) const;

  const ClusterAddress& address_;
  const Deadline deadline_;
};

/// The result of `connect`, a StatusOr; called again while CatalogRestart waits.
template <typename Connect>
auto OnceCatalogRuns(const ClusterAddress& address, const Connect& connect) {
  const CatalogRestart restart(address);
  auto result = connect();
  while (restart.Await(result.status())) result = connect();
  if (!result.ok()) result = restart.Explain(result.status());
  return result;
}

/// Attaches to this cluster, and waits for its catalog as OnceCatalogRuns does.
absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachTo(const ClusterAddress& address,
                                                              catalog::AttachOptions options);
absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachToCluster(const ClusterOptions& options);

/// Reports on stderr why there is no connection; returns the exit code.
int ReportNoConnection(const absl::Status& status);
/// Reports on stderr why the work failed; returns the exit code.
int ReportFailure(const absl::Status& status);
/// Reports on stderr why a command was not started; returns kExitUsage.
int Refuse(const absl::Status& status);

}  // namespace nam
