#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/certificates.h"
#include "catalog/client.h"

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

/// The control plane of this process, with its own certificates if files are given. Lives until the process
/// ends.
absl::StatusOr<catalog::ControlPlane*> OpenControlPlane(const catalog::TlsFiles& tls);

/// INVALID_ARGUMENT if the options contradict each other; UNAVAILABLE if there is no cluster, with a hint.
absl::StatusOr<ClusterAddress> FindCluster(const ClusterOptions& options);

absl::StatusOr<std::unique_ptr<catalog::Attachment>> AttachToCluster(const ClusterOptions& options);

/// Reports on stderr why there is no connection; returns the exit code.
int ReportNoConnection(const absl::Status& status);
/// Reports on stderr why the work failed; returns the exit code.
int ReportFailure(const absl::Status& status);
/// Reports on stderr why a command was not started; returns kExitUsage.
int Refuse(const absl::Status& status);

}  // namespace nam
