#include "catalog/attach_over_fabric.h"
#include "catalog/attachment.h"

namespace nam::catalog {

absl::StatusOr<std::unique_ptr<Attachment>> Attachment::Attach(const AttachOptions& options) {
  return AttachOverFabric(options, &fabric::Open);
}

}  // namespace nam::catalog
