#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "catalog/attach_over_fabric.h"
#include "computeserver/server.h"

namespace nam::computeserver {

/// ComputeServer::Start over the fabric that `open` makes.
absl::StatusOr<std::unique_ptr<ComputeServer>> StartOverFabric(const ComputeServerOptions& options,
                                                               const catalog::FabricOpener& open);

}  // namespace nam::computeserver
