#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/two_phase/cluster.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "tests/txn/accounts.h"

namespace nam::bench::two_phase {

/// The transport, and its fabric.
struct Setting {
  TransportOptions::Kind transport;
  fabric::Kind fabric;
};
inline std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return std::string(info.param.transport == TransportOptions::Kind::kSend ? "Send_" : "Socket_") +
         std::string(fabric::KindName(info.param.fabric));
}

/// Three participants and a coordinator, each on a host of its own.
class TwoPhaseCluster {
 public:
  explicit TwoPhaseCluster(const Setting& setting, Cluster::Options options = {}, int coordinators = 1) {
    kind_ = setting.fabric;
    if (kind_ == fabric::Kind::kSim)
      world_ = std::make_unique<fabric::sim::World>(fabric::sim::WorldOptions{});
    client_ = OpenFabric();
    options.transport.kind = setting.transport;
    options.transport.host = "127.0.0.1";
    transport_ = options.transport;
    for (int i = 0; i < 3; ++i) options.participants.push_back(NewFabric());
    for (int i = 0; i < coordinators; ++i) options.coordinators.push_back(NewFabric());
    if (options.tables.empty())
      options.tables.push_back({"accounts", sizeof(txn::Account), sizeof(uint64_t), 2});
    auto cluster = Cluster::Start(options);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  Cluster& cluster() { return *cluster_; }
  fabric::Fabric& client() { return *client_; }
  const TransportOptions& transport() const { return transport_; }
  Deadline Soon() { return client_->clock().After(60'000'000); }

 private:
  std::unique_ptr<fabric::Fabric> OpenFabric() {
    fabric::FabricOptions options{.kind = kind_, .secret = "secret"};
    if (kind_ != fabric::Kind::kSim) return *fabric::Open(options);
    return *world_->OpenFabric("host" + std::to_string(++hosts_), options);
  }
  fabric::Fabric* NewFabric() {
    servers_.push_back(OpenFabric());
    return servers_.back().get();
  }

  fabric::Kind kind_;
  int hosts_ = 0;
  std::unique_ptr<fabric::sim::World> world_;
  std::vector<std::unique_ptr<fabric::Fabric>> servers_;
  std::unique_ptr<fabric::Fabric> client_;
  TransportOptions transport_;
  std::unique_ptr<Cluster> cluster_;
};

/// A session of a new client.
struct Teller : txn::AccountSession {
  explicit Teller(TwoPhaseCluster& cluster, const SessionOptions& options = {})
      : txn::AccountSession(cluster.cluster().OpenSession(cluster.client(), options)) {}
};

}  // namespace nam::bench::two_phase
