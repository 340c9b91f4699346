#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric {

/// The fabric between any two Linux hosts: one-sided operations served by a software NIC, over TCP.
/// INVALID_ARGUMENT without a secret: whoever reaches the port could read and write everything.
absl::StatusOr<std::unique_ptr<Fabric>> OpenTcp(const FabricOptions& options);

}  // namespace nam::fabric
