#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fabric/member.h"
#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

using ServiceMembersTest = ServiceTest;

TEST_F(ServiceMembersTest, MemberIdsAreNeverUsedAgain) {
  const uint32_t first = Join(proto::ROLE_MEMORY);
  proto::LeaveRequest leave;
  leave.set_id(first);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(Cluster().members_size(), 0);
  const uint32_t second = Join(proto::ROLE_CLIENT);
  EXPECT_GT(second, first);
  Restart();
  EXPECT_GT(Join(proto::ROLE_COMPUTE), second);
}

TEST_F(ServiceMembersTest, ALeaseIsKeptByRenewingAndEndsWithoutIt) {
  const uint32_t id = Join(proto::ROLE_COMPUTE);
  for (int i = 0; i < 5; ++i) {
    clock_.AdvanceMs(2'900);
    ASSERT_TRUE(Renew(id, {}, 77).ok());
  }
  EXPECT_EQ(Find(Cluster(), id)->used_bytes(), 77u);
  EXPECT_TRUE(Find(Cluster(), id)->alive());
  const uint64_t version = Cluster().version();
  clock_.AdvanceMs(3'000);
  EXPECT_EQ(Renew(id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Cluster().members_size(), 0);
  EXPECT_GT(Cluster().version(), version);
}

/// Sessions plan anew when the version changes.
TEST_F(ServiceMembersTest, TheVersionIsOfTablesAndServersAlone) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  uint64_t version = Cluster().version();
  const auto changes = [&] { return std::exchange(version, Cluster().version()) != version; };
  const uint32_t client = Join(proto::ROLE_CLIENT);
  EXPECT_FALSE(changes());
  const uint64_t allocation = *Begin(client, "date");
  EXPECT_FALSE(changes());
  EXPECT_TRUE(Commit(allocation, "date").ok());
  EXPECT_TRUE(changes());
  const uint32_t compute = Join(proto::ROLE_COMPUTE);
  EXPECT_TRUE(changes());
  clock_.AdvanceMs(2'000);
  EXPECT_TRUE(Renew(memory).ok());
  EXPECT_TRUE(Renew(compute).ok());
  EXPECT_FALSE(changes());
  clock_.AdvanceMs(2'000);
  EXPECT_EQ(Renew(client).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(changes()) << "a client's lease is over";
  EXPECT_TRUE(Renew(memory).ok());
  clock_.AdvanceMs(2'000);
  EXPECT_EQ(Renew(compute).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(changes());
  EXPECT_TRUE(Drop("date").ok());
  EXPECT_TRUE(changes());
  Restart();
  EXPECT_TRUE(changes()) << "not all that came in between is known";
}

TEST_F(ServiceMembersTest, ACatalogThatStoodStillExpelsNobody) {
  const uint32_t lives = Join(proto::ROLE_MEMORY), dies = Join(proto::ROLE_COMPUTE);
  const auto pulses = [&](int count) {
    for (int i = 0; i < count; ++i) {
      clock_.AdvanceMs(300);
      service_->Pulse();
    }
  };
  service_->Pulse();
  pulses(5);
  clock_.AdvanceMs(60'000);
  EXPECT_TRUE(Renew(lives).ok()) << "heard before the pulse";
  pulses(4);
  clock_.AdvanceMs(60'000);
  pulses(1);
  EXPECT_TRUE(Renew(lives).ok()) << "heard after it";
  EXPECT_NE(Find(Cluster(), dies), nullptr) << "1.5 and 1.2 s of its lease are over";
  pulses(1);
  EXPECT_EQ(Find(Cluster(), dies), nullptr);
  EXPECT_TRUE(Renew(lives).ok());
}

TEST_F(ServiceMembersTest, ARestartExpelsNobody) {
  const uint32_t id = Join(proto::ROLE_MEMORY);
  clock_.AdvanceMs(2'999);
  Restart();
  clock_.AdvanceMs(2'999);
  EXPECT_TRUE(Renew(id).ok());
  Restart();
  clock_.AdvanceMs(kBurialMs);
  EXPECT_EQ(Renew(id).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceMembersTest, AMemberIsProvenByWhatItGotWhenItJoined) {
  proto::JoinRequest join;
  join.mutable_member()->set_role(proto::ROLE_CLIENT);
  join.mutable_member()->set_proof("of its own choice");
  const proto::JoinReply one = *NotedJoin(join), other = *NotedJoin(join);
  const uint32_t server = Join(proto::ROLE_MEMORY);
  EXPECT_EQ(one.proof().size(), 16u);
  EXPECT_NE(one.proof(), other.proof());
  const auto proven = [&](uint32_t member, const std::string& proof) {
    proto::RenewRequest request;
    request.set_id(server);
    proto::MemberClaim& claim = *request.add_claims();
    claim.set_member(member);
    claim.set_proof(proof);
    const auto reply = ProvenRenew(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply->proven_size() == 1 && reply->proven(0) == member;
  };
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_TRUE(proven(one.id(), one.proof()));
    EXPECT_TRUE(proven(other.id(), other.proof()));
    EXPECT_FALSE(proven(one.id(), other.proof()));
    EXPECT_FALSE(proven(one.id(), ""));
    EXPECT_FALSE(proven(4'000'000, one.proof()));
    EXPECT_FALSE(proven(0, ""));
    const proto::Cluster cluster = Cluster();
    ASSERT_EQ(cluster.members_size(), 3);
    for (const proto::Member& member : cluster.members()) EXPECT_EQ(member.proof(), "");
    Restart();
  }
  clock_.AdvanceMs(2'000);
  ASSERT_TRUE(Renew(one.id()).ok());
  ASSERT_TRUE(Renew(server).ok());
  clock_.AdvanceMs(1'500);
  EXPECT_TRUE(proven(one.id(), one.proof()));
  EXPECT_FALSE(proven(other.id(), other.proof())) << "its lease is over";
}

TEST_F(ServiceMembersTest, ADeadMemoryServerStaysListedWhileATableLiesThere) {
  const uint32_t holder = Join(proto::ROLE_MEMORY);
  const uint32_t idle = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Commit(*Begin(client, "date"), "date", {holder}).ok());
  clock_.AdvanceMs(kBurialMs);
  for (int i = 0; i < 2; ++i) {
    const proto::Cluster cluster = Cluster();
    ASSERT_NE(Find(cluster, holder), nullptr);
    EXPECT_FALSE(Find(cluster, holder)->alive());
    EXPECT_EQ(Find(cluster, idle), nullptr);
    EXPECT_EQ(Find(cluster, client), nullptr);
    EXPECT_EQ(Renew(holder).status().code(), absl::StatusCode::kNotFound);
    Restart();  // and it is still dead afterwards
  }
  ASSERT_TRUE(Drop("date").ok());
  EXPECT_EQ(Cluster().members_size(), 0);
}

TEST_F(ServiceMembersTest, ServersAreFoundByPointersToo) {
  const uint32_t holder = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  proto::CommitLoadRequest request;
  request.mutable_table()->set_name("date");
  request.mutable_table()->set_allocation(*Begin(client, "date"));
  request.mutable_table()->add_columns()->mutable_encoding()->mutable_dictionary()->add_segments(
      (uint64_t{holder} << 48) | 4'096);
  ASSERT_TRUE(service_->CommitLoad(request).ok());
  clock_.AdvanceMs(kBurialMs);
  ASSERT_NE(Find(Cluster(), holder), nullptr);
}

TEST_F(ServiceMembersTest, ADeadServerStaysListedForAnExtentThatWasAdded) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), late = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  CreateRecords(client, memory);
  ASSERT_TRUE(CommitExtend(*BeginExtend(client), 1, late).ok());
  clock_.AdvanceMs(kBurialMs);
  EXPECT_NE(Find(Cluster(), late), nullptr);
}

TEST_F(ServiceMembersTest, OnlyADurableEndOfAMembershipIsTold) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const auto over = [&](uint32_t member) {
    proto::RenewRequest request;
    request.set_id(memory);
    request.add_watched_members(member);
    return ProvenRenew(request)->over_size() == 1;
  };
  EXPECT_FALSE(over(client));
  EXPECT_FALSE(over(0));
  EXPECT_FALSE(over(client + 1)) << "not yet";
  clock_.AdvanceMs(2'000);
  EXPECT_FALSE(over(client));
  disk_.full = true;
  clock_.AdvanceMs(2'000);
  EXPECT_FALSE(over(client)) << "a restart would give it a new lease";
  disk_.full = false;
  EXPECT_TRUE(over(client));
}

// Ids are no secret. A process that leaves in a memory server's name would bury it, and one that renews in
// its name would keep it alive.
TEST_F(ServiceMembersTest, OnlyAMemberItselfRenewsItsLeaseAndLeaves) {
  proto::JoinRequest join;
  join.mutable_member()->set_role(proto::ROLE_MEMORY);
  join.mutable_member()->set_control_address("a:1");
  join.mutable_member()->set_fabric_address("a:2");
  const proto::JoinReply server = *NotedJoin(join);
  join.mutable_member()->set_role(proto::ROLE_CLIENT);
  const proto::JoinReply client = *NotedJoin(join);
  clock_.AdvanceMs(kLeaseMs - 1);
  for (const std::string& proof : {std::string(), client.proof(), server.proof() + "1"}) {
    proto::LeaveRequest leave;
    leave.set_id(server.id());
    leave.set_proof(proof);
    EXPECT_TRUE(absl::IsNotFound(service_->Leave(leave).status()));
    proto::RenewRequest renew;
    renew.set_id(server.id());
    renew.set_proof(proof);
    EXPECT_TRUE(absl::IsNotFound(service_->Renew(renew).status()));
  }
  clock_.AdvanceMs(1);
  const proto::Cluster cluster = Cluster();
  ASSERT_EQ(cluster.members_size(), 1);
  EXPECT_TRUE(cluster.members(0).alive());
  EXPECT_TRUE(cluster.members(0).suspect()) << "it has not renewed its lease itself";
  EXPECT_TRUE(Renew(server.id()).ok());
  Restart();
  EXPECT_TRUE(Renew(server.id()).ok()) << "a restarted catalog knows the proof";
}

// The key proves the member to this server and would allow impersonating it there.
TEST_F(ServiceMembersTest, AMembersKeyIsToldToTheMemoryServerThatItIsFor) {
  proto::JoinRequest join;
  join.mutable_member()->set_role(proto::ROLE_MEMORY);
  join.mutable_member()->set_control_address("a:1");
  join.mutable_member()->set_fabric_address("a:2");
  const proto::JoinReply server = *NotedJoin(join);
  join.mutable_member()->set_role(proto::ROLE_CLIENT);
  const proto::JoinReply client = *NotedJoin(join), left = *NotedJoin(join);
  proto::LeaveRequest leave;
  leave.set_id(left.id());
  ASSERT_TRUE(ProvenLeave(leave).ok());
  const auto keys = [&](const proto::JoinReply& asker, const std::string& proof) {
    proto::RenewRequest request;
    request.set_id(asker.id());
    request.set_proof(proof);
    for (const uint32_t member : {client.id(), left.id(), 4'000'000u}) request.add_connecting(member);
    const auto reply = service_->Renew(request);
    EXPECT_EQ(reply.status().code(),
              proof == asker.proof() ? absl::StatusCode::kOk : absl::StatusCode::kNotFound);
    return reply.ok() ? reply->keys() : proto::RenewReply().keys();
  };
  const auto told = keys(server, server.proof());
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].member(), client.id());
  const fabric::MemberKey key =
      fabric::DeriveMemberKey(client.proof(), MemoryServerId(static_cast<uint16_t>(server.id())));
  EXPECT_EQ(told[0].key(), std::string(key.begin(), key.end()));
  EXPECT_TRUE(keys(server, "").empty()) << "the server's id is no secret";
  EXPECT_TRUE(keys(server, client.proof()).empty());
  EXPECT_TRUE(keys(client, client.proof()).empty()) << "no memory server";
  disk_.full = true;
  clock_.AdvanceMs(kLeaseMs);
  EXPECT_TRUE(keys(server, server.proof()).empty())
      << "the lease is over, though that is not written down yet";
}

// The server would drop its data, while a restarted catalog would consider it alive.
TEST_F(ServiceMembersTest, AMemoryServerIsToldOnlyADurableEnd) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  clock_.AdvanceMs(kBurialMs);
  disk_.full = true;
  EXPECT_EQ(Renew(memory).status().code(), absl::StatusCode::kUnavailable);
  disk_.full = false;
  EXPECT_EQ(Renew(memory).status().code(), absl::StatusCode::kNotFound);
}

TEST(ServiceIdsTest, MemoryServersNeedAnIdOf16Bits) {
  const TempFolder folder;
  FakeClock clock;
  auto store = OpenEmbeddedStore(folder.File("catalog.db"), {"test", "shm"});
  ASSERT_TRUE(store.ok());
  Mutation mutation;
  mutation.version = (*store)->Load()->version + 1;
  mutation.next_member = 65'535;
  ASSERT_TRUE((*store)->Apply(mutation).ok());
  auto service = Service::Open(*std::move(store), clock);
  ASSERT_TRUE(service.ok());
  proto::JoinRequest request;
  request.mutable_member()->set_role(proto::ROLE_MEMORY);
  request.mutable_member()->set_control_address("a:1");
  request.mutable_member()->set_fabric_address("a:2");
  EXPECT_EQ((*service)->Join(request)->id(), 65'535u);
  EXPECT_EQ((*service)->Join(request).status().code(), absl::StatusCode::kResourceExhausted);
  request.mutable_member()->set_role(proto::ROLE_CLIENT);
  EXPECT_EQ((*service)->Join(request)->id(), 65'536u);
}

}  // namespace
}  // namespace nam::catalog
