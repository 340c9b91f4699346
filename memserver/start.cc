#include "memserver/server.h"
#include "memserver/start_over_fabric.h"

namespace nam::memserver {

absl::StatusOr<std::unique_ptr<MemoryServer>> MemoryServer::Start(const MemoryServerOptions& options) {
  return StartOverFabric(options, &fabric::Open);
}

}  // namespace nam::memserver
