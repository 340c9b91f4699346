#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/teller.h"

namespace nam::txn {
namespace {

/// More than there are vacancies that one of them looks at: whoever has lost all of these looks again.
TEST(ClientSlotTest, ManyThatOpenAtOnceAllGetOne) {
  constexpr int kClients = 150;
  RecordCluster cluster({.kind = fabric::Kind::kSim});
  cluster.AddTable("accounts", {});
  std::vector<std::unique_ptr<RecordCluster::Member>> members;
  for (int i = 0; i < kClients; ++i)
    members.push_back(std::make_unique<RecordCluster::Member>(cluster, cluster.client(), uint32_t(i + 1)));
  std::vector<std::unique_ptr<Session>> sessions(kClients);
  std::atomic<int> opened{0};
  RunThreads(cluster, kClients, [&](int self) {
    auto session = OpenRsiSession(*members[self], {});
    ASSERT_TRUE(session.ok()) << session.status();
    sessions[self] = *std::move(session);
    ASSERT_TRUE(sessions[self]->Begin().ok());
    ++opened;
  });
  EXPECT_EQ(opened, kClients);
  for (const auto& session : sessions) session->Abort();
}

}  // namespace
}  // namespace nam::txn
