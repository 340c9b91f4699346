#include "absl/status/status.h"
#include "fabric/fabric.h"
#include "fabric/shm/shm_fabric.h"

namespace nam::fabric {

absl::StatusOr<std::unique_ptr<Fabric>> Open(const FabricOptions& options) {
  switch (options.kind) {
    case Kind::kShm:
      return OpenShm(options);
    case Kind::kTcp:
      return absl::UnimplementedError("fabric tcp is not in this build");
  }
  return absl::InvalidArgumentError("no such fabric");
}

}  // namespace nam::fabric
