#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "txn/two_phase/cluster.h"

namespace nam::txn::two_phase {

struct Account {
  uint64_t key = 0;
  int64_t balance = 0;
  char padding[48] = {};
};
static_assert(sizeof(Account) == 64);

template <typename T>
std::span<const std::byte> Bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Which transport, over which fabric.
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
    if (options.tables.empty()) options.tables.push_back({"accounts", sizeof(Account), sizeof(uint64_t), 2});
    auto cluster = Cluster::Start(options);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  Cluster& cluster() { return *cluster_; }
  fabric::Fabric& client() { return *client_; }
  const TransportOptions& transport() const { return transport_; }
  Deadline Soon() { return client_->clock().After(10'000'000); }

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

/// A session that knows the table of accounts.
struct Teller {
  explicit Teller(TwoPhaseCluster& cluster, const SessionOptions& options = {}) {
    auto opened = cluster.cluster().OpenSession(cluster.client(), options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    session = *std::move(opened);
    accounts = *session->OpenTable("accounts");
  }

  absl::StatusOr<std::optional<Account>> Read(uint64_t key) {
    Account account;
    Lookup lookup{accounts, Bytes(key), std::as_writable_bytes(std::span(&account, 1))};
    const absl::Status status = session->Read({&lookup, 1});
    if (!status.ok()) return status;
    if (!lookup.found) return std::nullopt;
    return account;
  }
  absl::Status Insert(uint64_t key, int64_t balance) {
    return session->Insert(accounts, Bytes(Account{key, balance}));
  }
  absl::Status Update(uint64_t key, int64_t balance) {
    return session->Update(accounts, Bytes(Account{key, balance}));
  }
  absl::Status Delete(uint64_t key) { return session->Delete(accounts, Bytes(key)); }
  /// In a transaction of its own.
  std::optional<int64_t> BalanceOf(uint64_t key) {
    EXPECT_TRUE(session->Begin().ok());
    const auto account = Read(key);
    EXPECT_TRUE(account.ok()) << account.status();
    session->Abort();
    if (!account.ok() || !account->has_value()) return std::nullopt;
    return (*account)->balance;
  }
  void Create(uint64_t key, int64_t balance) {
    ASSERT_TRUE(session->Begin().ok());
    ASSERT_TRUE(Insert(key, balance).ok());
    Commits();
  }
  void Set(uint64_t key, int64_t balance) {
    ASSERT_TRUE(session->Begin().ok());
    ASSERT_TRUE((*Read(key)).has_value());
    ASSERT_TRUE(Update(key, balance).ok());
    Commits();
  }
  void Commits() {
    const auto committed = session->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }

  std::unique_ptr<Session> session;
  TableHandle accounts;
};

}  // namespace nam::txn::two_phase
