#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// The fabric between processes of one host: regions are sealed memfds, peers map each other's, and
/// the initiator executes one-sided operations itself. Addresses are paths of UNIX sockets (at most
/// 107 bytes), or `@name` for an abstract one that leaves nothing in the file system; `@` alone picks
/// a name. Everything created from a fabric is destroyed before it.
absl::StatusOr<std::unique_ptr<Fabric>> OpenShm(const FabricOptions& options);

}  // namespace nam::fabric
