#include "tests/fabric/socket_provider.h"

namespace nam::fabric::conformance {
namespace {

class TcpProvider final : public SocketProvider {
 public:
  TcpProvider() : SocketProvider("127.0.0.1") {}
  absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) override {
    return fabric::Open({.kind = Kind::kTcp, .secret = secret});
  }
};

}  // namespace

Provider& CurrentProvider() {
  static TcpProvider provider;
  return provider;
}

}  // namespace nam::fabric::conformance
