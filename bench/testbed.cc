#include "bench/testbed.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/sim/world.h"
#include "fabric/threads.h"

namespace nam::bench {
namespace {

class RealTestbed final : public Testbed {
 public:
  static absl::StatusOr<std::unique_ptr<Testbed>> Open(const TestbedOptions& options) {
    std::unique_ptr<RealTestbed> testbed(new RealTestbed);
    fabric::FabricOptions& client = testbed->client_options_;
    client = {.kind = options.kind, .rdma = options.rdma, .encrypt = options.encrypt};
    // Both ends are on this host; an explicit device may have an address other than the server's.
    if (options.rdma.empty()) client.host = options.server_host;
    client.secret = absl::StrFormat("%016x%016x", fabric::RandomBits(), fabric::RandomBits());
    ServerProcessOptions server{.fabric = client,
                                .server = {.region_bytes = options.region_bytes, .host = options.server_host},
                                .log_file = options.log_file};
    server.fabric.rdma = options.server_rdma;
    // Before any thread: the child ends with the thread that started it.
    NAM_ASSIGN_OR_RETURN(testbed->server_, StartServerProcess(server));
    NAM_ASSIGN_OR_RETURN(testbed->client_, testbed->OpenClient());
    return testbed;
  }

  fabric::Fabric& client() override { return *client_; }
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenClient() override {
    return fabric::Open(client_options_);
  }
  ServerEnd& server() override { return *server_; }
  std::optional<FabricBound> BoundOf(const Lanes& lanes) override {
    if (client_->kind() == fabric::Kind::kShm) return MemoryBound(*client_, lanes);
    if (client_->kind() == fabric::Kind::kTcp) return SocketBound(*client_, lanes);
    return std::nullopt;
  }

 private:
  RealTestbed() = default;

  fabric::FabricOptions client_options_;
  std::unique_ptr<ServerEnd> server_;
  std::unique_ptr<fabric::Fabric> client_;
};

/// This thread drives the world: its waits take virtual time.
class SimulatedTestbed final : public Testbed {
 public:
  static absl::StatusOr<std::unique_ptr<Testbed>> Open(const TestbedOptions& options) {
    NAM_ASSIGN_OR_RETURN(const fabric::sim::NicModel model, fabric::sim::NicModel::Parse(options.generation));
    std::unique_ptr<SimulatedTestbed> testbed(new SimulatedTestbed(model));
    NAM_ASSIGN_OR_RETURN(testbed->server_fabric_, testbed->world_.OpenFabric("server", {.secret = kSecret}));
    NAM_ASSIGN_OR_RETURN(testbed->server_,
                         BenchServer::Start(*testbed->server_fabric_,
                                            {.region_bytes = options.region_bytes, .host = "server"}));
    NAM_ASSIGN_OR_RETURN(testbed->client_, testbed->OpenClient());
    return testbed;
  }
  ~SimulatedTestbed() override {
    client_.reset();
    server_.reset();
    server_fabric_.reset();
  }

  fabric::Fabric& client() override { return *client_; }
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenClient() override {
    return world_.OpenFabric(absl::StrCat("client-", ++clients_), {.secret = kSecret});
  }
  ServerEnd& server() override { return *server_; }
  std::optional<FabricBound> BoundOf(const Lanes&) override {
    return LineRateBound(1e6 * static_cast<double>(model_.port_bytes_per_us) * model_.ports,
                         1e6 * static_cast<double>(model_.messages_per_us));
  }

 private:
  static constexpr char kSecret[] = "simulated";

  explicit SimulatedTestbed(const fabric::sim::NicModel& model)
      : model_(model), world_({.nic = model, .replay = "nam bench --fabric=sim"}) {}

  const fabric::sim::NicModel model_;
  fabric::sim::World world_;
  int clients_ = 0;
  std::unique_ptr<fabric::Fabric> server_fabric_;
  std::unique_ptr<ServerEnd> server_;
  std::unique_ptr<fabric::Fabric> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Testbed>> Testbed::Open(const TestbedOptions& options) {
  return options.kind == fabric::Kind::kSim ? SimulatedTestbed::Open(options) : RealTestbed::Open(options);
}

}  // namespace nam::bench
