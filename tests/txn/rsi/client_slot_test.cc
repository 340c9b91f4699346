#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/teller.h"

namespace nam::txn {
namespace {

/// There are more clients than vacancies that one of them looks at: a client that has lost all of these looks
/// again.
TEST(ClientSlotTest, ManyThatOpenAtOnceAllGetOne) {
  constexpr int kClients = 150;
  RecordCluster cluster({.kind = fabric::Kind::kSim});
  cluster.AddTable("accounts", {});
  std::vector<std::unique_ptr<RecordCluster::Member>> members;
  for (int i = 0; i < kClients; ++i)
    members.push_back(std::make_unique<RecordCluster::Member>(cluster, cluster.client(), uint32_t(i + 1)));
  std::vector<std::unique_ptr<Session>> sessions(kClients);
  std::atomic<int> opened{0};
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.push_back(cluster.client().StartThread("opens", [&, i] {
      auto session = OpenRsiSession(*members[i], {});
      ASSERT_TRUE(session.ok()) << session.status();
      sessions[i] = *std::move(session);
      ASSERT_TRUE(sessions[i]->Begin().ok());
      ++opened;
    }));
  }
  threads.clear();
  EXPECT_EQ(opened, kClients);
  for (const auto& session : sessions) session->Abort();
}

}  // namespace
}  // namespace nam::txn
