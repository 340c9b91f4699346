#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/certificates.h"
#include "catalog/client.h"

namespace nam {

/// Which cluster a command is for: the one of a catalog's address, or the local one of a state directory.
struct ClusterOptions {
  std::string catalog;  // host:port; needs secret_file
  std::string secret_file;
  std::string state_dir;  // empty: DefaultStateDirectory()
  catalog::TlsFiles tls;  // of a cluster with certificates of its own
  /// FabricOptions' of the same names.
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
};

struct ClusterAddress {
  std::string catalog;
  std::string secret;
  catalog::ControlPlane* control_plane = nullptr;
  std::vector<std::string> events = {};  // of a local cluster's supervisor

  catalog::ClientOptions client_options() const {
    return {.address = catalog, .secret = secret, .control_plane = control_plane};
  }
};

/// That of this process, with its own certificates if files are given; lives until the process ends.
absl::StatusOr<catalog::ControlPlane*> OpenControlPlane(const catalog::TlsFiles& tls);

/// INVALID_ARGUMENT when the options contradict each other; UNAVAILABLE without a cluster, with a hint.
absl::StatusOr<ClusterAddress> FindCluster(const ClusterOptions& options);

absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachToCluster(const ClusterOptions& options);

/// Says on stderr why there is no connection; the exit code.
int ReportNoConnection(const absl::Status& status);
/// Says on stderr why the work failed; the exit code.
int ReportFailure(const absl::Status& status);
/// Says on stderr why a command is not begun as it was given; kExitUsage.
int Refuse(const absl::Status& status);

}  // namespace nam
