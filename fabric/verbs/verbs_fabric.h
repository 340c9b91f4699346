#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// The fabric of RDMA NICs: InfiniBand verbs over RoCE or InfiniBand, through libibverbs.
/// FAILED_PRECONDITION without a device, saying how to get one; INVALID_ARGUMENT without a secret: whoever
/// reaches the port could read and write everything.
absl::StatusOr<std::unique_ptr<Fabric>> OpenVerbs(const FabricOptions& options);

}  // namespace nam::fabric
