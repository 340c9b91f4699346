#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// Opens the fabric between processes of one host. Regions are sealed memfds that peers map, and the
/// initiator itself executes one-sided operations. Addresses are paths of UNIX sockets (at most 107 bytes),
/// or `@name` for an abstract one that leaves nothing in the file system; `@` alone picks a name. Everything
/// created from a fabric must be destroyed before it.
absl::StatusOr<std::unique_ptr<Fabric>> OpenShm(const FabricOptions& options);

}  // namespace nam::fabric
