#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tpcw/checkout.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"
#include "txn/check/history_checker.h"
#include "txn/rsi/session.h"

namespace nam::tpcw {
namespace {

/// Checkouts by one-sided verbs in virtual time, each client in its own process, while connections break.
class CheckoutLost : public ::testing::TestWithParam<txn::TimestampKind> {
 protected:
  static constexpr uint32_t kClients = 3;
  struct Process {
    Process(txn::RecordCluster& cluster, uint32_t id)
        : under(cluster.OpenFabric("client")),
          fabric(*under, txn::MortalFabric::kNever),
          tables(cluster, fabric, id) {}
    std::unique_ptr<fabric::Fabric> under;
    txn::MortalFabric fabric;
    txn::RecordCluster::Member tables;
  };

  CheckoutLost() : cluster_({.kind = fabric::Kind::kSim, .seed = 5, .timestamps = GetParam()}) {
    options_.products = 20;
    options_.product_bytes = 256;
    options_.zipf_theta = 0.9;
    for (const TableSchema& table : CheckoutTables(options_)) {
      cluster_.AddTable(table.name, {.row_bytes = static_cast<uint32_t>(table.row_bytes),
                                     .key_bytes = static_cast<uint32_t>(table.key_bytes),
                                     .versions = 2});
    }
    for (uint32_t i = 0; i <= kClients; ++i) {
      processes_.push_back(std::make_unique<Process>(cluster_, i + 1));
      fabrics_.push_back(&processes_.back()->fabric);
    }
    fabrics_.pop_back();
    const auto loaded = LoadProducts(options_, *Open(kClients), nullptr);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    loaded_until_ = loaded.value_or(0);
  }
  std::unique_ptr<txn::Session> Open(uint32_t process) {
    auto session = OpenRsiSession(processes_[process]->tables, {.sees_own_commits = false});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  SessionFactory Sessions() {
    return [this](uint32_t client) {
      return OpenRsiSession(processes_[client]->tables, {.sees_own_commits = false});
    };
  }

  txn::RecordCluster cluster_;
  CheckoutOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;  // the last one's client loads and checks
  std::vector<fabric::Fabric*> fabrics_;
  uint64_t loaded_until_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Timestamps, CheckoutLost,
                         ::testing::Values(txn::TimestampKind::kLeased, txn::TimestampKind::kBitVector),
                         [](const auto& info) {
                           return info.param == txn::TimestampKind::kLeased ? "leased" : "bitvector";
                         });

TEST_P(CheckoutLost, GoesOnWithANewSession) {
  CheckoutDriver driver(fabrics_, options_,
                        {.clients = kClients, .run_us = 0, .transactions = 1'500, .record_history = true},
                        Sessions());
  // Rarely enough that a session can find its first free blocks.
  for (uint32_t i = 0; i < kClients; ++i) {
    processes_[i]->fabric.BreakAfter(500 + 10 * i, 3'000 + 500 * i, 100 * (i % 2));
  }
  const auto rates = driver.Run(nullptr);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->committed, 1'500u);
  EXPECT_GT(rates->aborts[static_cast<size_t>(txn::AbortReason::kConnectionLost)], 5u);
  for (const txn::CheckReport& report :
       {CheckTimestamps(driver.histories(), {.loaded_until = loaded_until_}),
        CheckDependencies(driver.histories(), {.loaded_until = loaded_until_})}) {
    EXPECT_TRUE(report.ok()) << report.ToString();
  }
  // The checking client loses connections, too.
  processes_[kClients]->fabric.BreakAfter(100, 2'000);
  const auto found = CheckInvariants(options_, driver.orders(), 1'000, *Open(kClients));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->ok()) << found->ToString();
  EXPECT_GE(found->orders, 1'500u);
  EXPECT_GT(processes_[kClients]->fabric.breaks(), 0);
}

TEST_P(CheckoutLost, EndsWhenAMemoryServerIsGone) {
  CheckoutDriver driver(fabrics_, options_, {.clients = kClients, .run_us = 0, .interval_us = 10'000},
                        Sessions());
  bool killed = false;
  const int64_t from_ns = cluster_.world().NowNs();
  const auto rates = driver.Run([&](const CheckoutRates&) {
    if (!killed) cluster_.world().KillHost("memory-1");  // with the timestamps: all need it
    killed = true;
  });
  EXPECT_FALSE(rates.ok());
  EXPECT_TRUE(killed);
  EXPECT_LT(cluster_.world().NowNs() - from_ns, 200'000'000'000);
}

}  // namespace
}  // namespace nam::tpcw
