#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "tests/fabric/socket_provider.h"

namespace nam::fabric::conformance {
namespace {

/// The addresses of this host's RDMA ports, from NAM_TEST_HOSTS (`10.98.0.1,10.98.0.2`).
std::vector<std::string> Hosts() {
  const char* text = std::getenv("NAM_TEST_HOSTS");
  std::string rest = text != nullptr ? text : "";
  std::vector<std::string> hosts;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    hosts.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  if (hosts.empty()) hosts.emplace_back("127.0.0.1");
  return hosts;
}

/// Every fabric uses another device, so that messages cross the network.
class VerbsProvider final : public SocketProvider {
 public:
  VerbsProvider() : SocketProvider(Hosts().front()), hosts_(Hosts()) {}
  absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) override {
    return fabric::Open(
        {.kind = Kind::kVerbs, .secret = secret, .host = hosts_[opened_.fetch_add(1) % hosts_.size()]});
  }

  /// The NIC does not report its own drops.
  bool counts_dropped_datagrams() const override { return false; }

 private:
  const std::vector<std::string> hosts_;
  std::atomic<size_t> opened_{0};
};

}  // namespace

Provider& CurrentProvider() {
  static VerbsProvider provider;
  return provider;
}

}  // namespace nam::fabric::conformance
