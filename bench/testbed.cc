#include "bench/testbed.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/threads.h"

namespace nam::bench {
namespace {

class RealTestbed final : public Testbed {
 public:
  static absl::StatusOr<std::unique_ptr<Testbed>> Open(const TestbedOptions& options) {
    std::unique_ptr<RealTestbed> testbed(new RealTestbed(options.kind));
    fabric::FabricOptions fabric{.kind = options.kind, .rdma = options.rdma};
    // The process before any thread: it ends with the thread that started it. Both learn the secret here.
    fabric.secret = absl::StrFormat("%016x%016x", fabric::RandomBits(), fabric::RandomBits());
    ServerProcessOptions server{.fabric = fabric,
                                .server = {.region_bytes = options.region_bytes,
                                           .host = options.server_host,
                                           .sockets = options.kind == fabric::Kind::kTcp},
                                .log_file = options.log_file};
    server.fabric.rdma = options.server_rdma;
    NAM_ASSIGN_OR_RETURN(testbed->server_, StartServerProcess(server));
    NAM_ASSIGN_OR_RETURN(testbed->client_, fabric::Open(fabric));
    return testbed;
  }

  fabric::Fabric& client() override { return *client_; }
  ServerEnd& server() override { return *server_; }
  bool simulated() const override { return false; }
  std::unique_ptr<FabricBound> MakeBound(const Lanes& lanes) override {
    switch (kind_) {
      case fabric::Kind::kShm:
        return MakeMemoryBound(*client_, lanes);
      case fabric::Kind::kTcp:
        return MakeSocketBound(*client_, lanes, server_->address());
      default:
        return nullptr;
    }
  }

 private:
  explicit RealTestbed(fabric::Kind kind) : kind_(kind) {}

  const fabric::Kind kind_;
  std::unique_ptr<ServerEnd> server_;
  std::unique_ptr<fabric::Fabric> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Testbed>> Testbed::Open(const TestbedOptions& options) {
  return RealTestbed::Open(options);
}

}  // namespace nam::bench
