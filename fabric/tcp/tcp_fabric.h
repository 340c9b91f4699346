#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// Opens the fabric between any Linux hosts: a software NIC serves one-sided operations over TCP.
/// INVALID_ARGUMENT without a secret, because any process that reaches the port could read and write all
/// memory.
absl::StatusOr<std::unique_ptr<Fabric>> OpenTcp(const FabricOptions& options);

}  // namespace nam::fabric
