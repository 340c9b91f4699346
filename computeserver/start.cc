#include "computeserver/server.h"
#include "computeserver/start_over_fabric.h"

namespace nam::computeserver {

absl::StatusOr<std::unique_ptr<ComputeServer>> ComputeServer::Start(const ComputeServerOptions& options) {
  return StartOverFabric(options, &fabric::Open);
}

}  // namespace nam::computeserver
