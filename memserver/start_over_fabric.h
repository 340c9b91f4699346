#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "catalog/attach_over_fabric.h"
#include "memserver/server.h"

namespace nam::memserver {

/// MemoryServer::Start over a fabric that `open` makes.
absl::StatusOr<std::unique_ptr<MemoryServer>> StartOverFabric(const MemoryServerOptions& options,
                                                              const catalog::FabricOpener& open);

}  // namespace nam::memserver
