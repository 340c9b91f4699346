#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"

namespace nam::catalog {

/// fabric::Open or a substitute.
using FabricOpener =
    std::function<absl::StatusOr<std::unique_ptr<fabric::Fabric>>(const fabric::FabricOptions& options)>;

/// Attachment::Attach over a fabric that `open` makes.
absl::StatusOr<std::unique_ptr<Attachment>> AttachOverFabric(const AttachOptions& options,
                                                             const FabricOpener& open);

}  // namespace nam::catalog
