#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

/// Memory servers whose leases end. Two of them, two tables, and blocks of each table on both.
class SuspectsTest : public ServiceTest {
 protected:
  SuspectsTest() : stopped_(JoinMemory("10.0.0.2:4710")), healthy_(JoinMemory("10.0.0.3:4710")) {
    const uint32_t client = Join(proto::ROLE_CLIENT);
    held_ = *Begin(client, "date");
    EXPECT_TRUE(Commit(held_, "date", {stopped_, healthy_}).ok());
    EXPECT_TRUE(Commit(*Begin(client, "part"), "part", {healthy_, stopped_}).ok());
    service_->TakeEvents();
  }

  uint32_t JoinMemory(const std::string& address) {
    proto::JoinRequest request;
    request.mutable_member()->set_role(proto::ROLE_MEMORY);
    request.mutable_member()->set_host("a");
    request.mutable_member()->set_pid(77);
    request.mutable_member()->set_control_address(address);
    request.mutable_member()->set_fabric_address("fabric");
    const auto reply = NotedJoin(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->id() : 0;
  }
  /// The healthy one renews every second meanwhile.
  void PassMs(int64_t ms) {
    for (; ms > 0; ms -= 1'000) {
      clock_.AdvanceMs(std::min<int64_t>(ms, 1'000));
      EXPECT_TRUE(Renew(healthy_).ok());
    }
  }
  bool Alive(uint32_t id) {
    const proto::Cluster cluster = Cluster();
    const proto::Member* const member = Find(cluster, id);
    return member != nullptr && member->alive();
  }
  bool Suspected(uint32_t id) {
    const proto::Cluster cluster = Cluster();
    const proto::Member* const member = Find(cluster, id);
    return member != nullptr && member->suspect();
  }
  bool OverFor(uint32_t asks, uint32_t member) {
    proto::RenewRequest request;
    request.set_id(asks);
    request.add_watched_members(member);
    const auto reply = ProvenRenew(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() && reply->over_size() == 1;
  }
  absl::Status BuryByHand(uint32_t id) {
    proto::BuryRequest request;
    request.set_id(id);
    return service_->Bury(request).status();
  }
  /// All events since the last time, one after the other.
  std::string Events() {
    std::string text;
    for (const MemberEvent& event : service_->TakeEvents()) text += event.text + "\n";
    return text;
  }

  const uint32_t stopped_, healthy_;
  uint64_t held_ = 0;
};

TEST_F(SuspectsTest, OneThatComesBackHasItsDataItsIdAndItsPlace) {
  PassMs(kLeaseMs + 50'000);
  EXPECT_TRUE(Alive(stopped_));
  EXPECT_TRUE(Suspected(stopped_));
  EXPECT_FALSE(Suspected(healthy_));
  EXPECT_EQ(Find(Cluster(), stopped_)->silent_ms(), 53'000u);
  EXPECT_EQ(Cluster().bury_after_ms(), kDefaultBuryAfterMs);
  EXPECT_FALSE(OverFor(healthy_, stopped_));
  const auto release = Renew(stopped_, {held_});
  ASSERT_TRUE(release.ok()) << release.status();
  EXPECT_EQ(release->size(), 0u) << "it keeps what is a table's";
  EXPECT_FALSE(Suspected(stopped_));
  PassMs(2'000);
  EXPECT_TRUE(Renew(stopped_).ok());
  const std::string events = Events();
  EXPECT_NE(events.find("memory server 1 (10.0.0.2:4710, host a, pid 77) is suspect"), std::string::npos)
      << events;
  EXPECT_NE(events.find("memory server 1 (10.0.0.2:4710, host a, pid 77) is back"), std::string::npos)
      << events;
  EXPECT_EQ(events.find("buried"), std::string::npos) << events;
}

TEST_F(SuspectsTest, WhatALoadWroteToASuspectMayBeCommitted) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t load = *Begin(client, "supplier");
  clock_.AdvanceMs(2'500);
  ASSERT_TRUE(Renew(client).ok());
  clock_.AdvanceMs(500);
  ASSERT_TRUE(Suspected(stopped_));
  EXPECT_TRUE(Commit(load, "supplier", {stopped_}).ok());
}

TEST_F(SuspectsTest, OneThatStaysAwayIsBuriedAndWhatIsLostIsSaid) {
  PassMs(kLeaseMs);
  ASSERT_TRUE(Suspected(stopped_));
  PassMs(kDefaultBuryAfterMs - 1'000);
  EXPECT_TRUE(Alive(stopped_));
  PassMs(1'000);
  EXPECT_FALSE(Alive(stopped_));
  EXPECT_TRUE(OverFor(healthy_, stopped_));
  EXPECT_EQ(Renew(stopped_).status().code(), absl::StatusCode::kNotFound);
  const std::string events = Events();
  EXPECT_NE(events.find("is buried: it has not renewed its lease for 63.0 s; "
                        "lost: date (1 block, 0.0 MiB), part (1 block, 0.0 MiB)"),
            std::string::npos)
      << events;
}

TEST_F(SuspectsTest, OneWhoseProcessHasEndedIsBuriedAtOnce) {
  EXPECT_EQ(service_->OverdueMemoryServers().size(), 0u);
  PassMs(1'500);
  const auto overdue = service_->OverdueMemoryServers();
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_EQ(overdue[0].id, stopped_);
  EXPECT_EQ(overdue[0].control_address, "10.0.0.2:4710");
  service_->ProcessEnded(overdue[0]);
  EXPECT_FALSE(Alive(stopped_));
  EXPECT_EQ(service_->OverdueMemoryServers().size(), 0u);
  EXPECT_NE(Events().find("its process has ended; lost: date"), std::string::npos);
  Restart();
  EXPECT_FALSE(Alive(stopped_)) << "a burial is durable";
}

TEST_F(SuspectsTest, OneThatWasHeardOfMeanwhileIsNotBuried) {
  PassMs(2'000);
  const auto overdue = service_->OverdueMemoryServers();
  ASSERT_EQ(overdue.size(), 1u);
  ASSERT_TRUE(Renew(stopped_).ok());
  service_->ProcessEnded(overdue[0]);
  EXPECT_TRUE(Alive(stopped_));
}

TEST_F(SuspectsTest, AnotherOnesAddressEndsASuspectAndNobodyElse) {
  const uint32_t twin = JoinMemory("10.0.0.2:4710");
  EXPECT_TRUE(Alive(stopped_)) << "it has just been heard of";
  PassMs(1'500);
  ASSERT_TRUE(Renew(twin).ok());
  const uint32_t heir = JoinMemory("10.0.0.2:4710");
  EXPECT_FALSE(Alive(stopped_));
  for (const uint32_t id : {twin, heir, healthy_}) EXPECT_TRUE(Alive(id)) << id;
}

TEST_F(SuspectsTest, AnOperatorBuriesASuspectAndNobodyElse) {
  EXPECT_EQ(BuryByHand(stopped_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BuryByHand(99).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(BuryByHand(Join(proto::ROLE_CLIENT)).code(), absl::StatusCode::kNotFound);
  PassMs(kLeaseMs);
  EXPECT_EQ(BuryByHand(healthy_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(BuryByHand(stopped_).ok());
  EXPECT_FALSE(Alive(stopped_));
  EXPECT_TRUE(BuryByHand(stopped_).ok()) << "asked again";
  EXPECT_NE(Events().find("an operator's word; lost: date"), std::string::npos);
}

TEST_F(SuspectsTest, ComputeServersAndClientsAreExpelledAtOnce) {
  const uint32_t compute = Join(proto::ROLE_COMPUTE), client = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Begin(client, "supplier").ok());
  PassMs(kLeaseMs);
  EXPECT_FALSE(Alive(compute));
  EXPECT_TRUE(OverFor(healthy_, client));
  const std::string events = Events();
  EXPECT_NE(events.find("1 of its loads are given up"), std::string::npos) << events;
}

TEST_F(SuspectsTest, JoinsAndLeavesAreToldOnce) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  proto::LeaveRequest leave;
  leave.set_id(client);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  const std::vector<MemberEvent> events = service_->TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NE(events[0].text.find("joined"), std::string::npos) << events[0].text;
  EXPECT_NE(events[1].text.find("is gone: it left"), std::string::npos) << events[1].text;
  EXPECT_TRUE(service_->TakeEvents().empty());
}

TEST(BuryAfterTest, ABoundIsKept) {
  const TempFolder folder;
  FakeClock clock;
  auto store = OpenEmbeddedStore(folder.File("catalog.db"), {"test", "shm"});
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(Service::Open(*std::move(store), clock, {.bury_after_ms = 4'000'000'000}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nam::catalog
