#include "tests/fabric/socket_provider.h"

namespace nam::fabric::conformance {
namespace {

class EncryptedTcpProvider final : public SocketProvider {
 public:
  EncryptedTcpProvider() : SocketProvider("127.0.0.1") {}
  absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) override {
    return fabric::Open({.kind = Kind::kTcp, .secret = secret, .encrypt = true});
  }
};

}  // namespace

Provider& CurrentProvider() {
  static EncryptedTcpProvider provider;
  return provider;
}

}  // namespace nam::fabric::conformance
