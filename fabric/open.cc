#include "absl/status/status.h"
#include "fabric/fabric.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/tcp/tcp_fabric.h"
#include "fabric/verbs/verbs_fabric.h"

namespace nam::fabric {

absl::StatusOr<std::unique_ptr<Fabric>> Open(const FabricOptions& options) {
  switch (options.kind) {
    case Kind::kShm:
      return OpenShm(options);
    case Kind::kTcp:
      return OpenTcp(options);
    case Kind::kVerbs:
      return OpenVerbs(options);
    case Kind::kSim:
      return absl::InvalidArgumentError("the simulator's fabrics belong to a simulated world (nam sim)");
  }
  return absl::InvalidArgumentError("no such fabric");
}

}  // namespace nam::fabric
