#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// Opens the fabric of RDMA NICs: InfiniBand verbs over RoCE or InfiniBand, through libibverbs.
/// FAILED_PRECONDITION without a device, with a hint. INVALID_ARGUMENT without a secret, because any process
/// that reaches the port could read and write all memory.
absl::StatusOr<std::unique_ptr<Fabric>> OpenVerbs(const FabricOptions& options);

}  // namespace nam::fabric
