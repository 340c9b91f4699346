#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/header.h"
#include "catalog/missing_servers.h"
#include "catalog/server_ids.h"
#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Memory servers with data directories.
class ServiceStorageTest : public ServiceTest {
 protected:
  /// `storage` 0: the directory is new. Each has an address of its own, as processes have.
  absl::StatusOr<proto::JoinReply> Start(uint32_t storage = 0, std::vector<uint64_t> files = {},
                                         std::vector<uint64_t> damaged = {}) {
    proto::JoinRequest request;
    proto::Member& member = *request.mutable_member();
    member.set_role(proto::ROLE_MEMORY);
    member.set_host("a");
    member.set_control_address("127.0.0.1:" + std::to_string(++port_));
    member.set_fabric_address("127.0.0.1:8");
    member.set_data_directory("/data");
    member.set_storage(storage);
    for (const uint64_t allocation : files) member.add_files(allocation);
    for (const uint64_t allocation : damaged) {
      proto::LostAllocation& lost = *member.add_lost();
      lost.set_allocation(allocation);
      lost.set_why("a bit has flipped");
    }
    return NotedJoin(request);
  }
  absl::Status Leave(uint32_t id) {
    proto::LeaveRequest request;
    request.set_id(id);
    return ProvenLeave(request).status();
  }
  /// As a memory server does three times in a lease.
  absl::Status RenewRegularly(uint32_t id) {
    proto::RenewRequest request;
    request.set_id(id);
    proto::CatalogHeader header;
    header.set_held_is_all(true);
    SetHeader(request, header);
    return ProvenRenew(request).status();
  }
  /// Joins with the storage id as a process at that address on that directory.
  absl::Status StartAt(const std::string& address, const std::string& directory, uint32_t storage,
                       const std::string& host = "a") {
    proto::JoinRequest request;
    proto::Member& member = *request.mutable_member();
    member.set_role(proto::ROLE_MEMORY);
    member.set_host(host);
    member.set_control_address(address);
    member.set_fabric_address("127.0.0.1:8");
    member.set_data_directory(directory);
    member.set_storage(storage);
    return NotedJoin(request).status();
  }
  /// A table on the storage id.
  uint64_t Load(const std::string& name, uint32_t storage) {
    const uint64_t allocation = *Begin(client_, name);
    EXPECT_TRUE(Commit(allocation, name, {storage}).ok());
    return allocation;
  }
  std::vector<MissingServer> MissingOf(const std::string& table) {
    return MissingServersOf(Get(table)->table(), Cluster());
  }

  uint16_t port_ = 1'000;
  uint32_t client_ = Join(proto::ROLE_CLIENT);
};

/// A store that was put back from a copy has given the directory's number to a member.
TEST_F(ServiceStorageTest, NoNumberIsAMembersAndAStorages) {
  const proto::JoinReply first = *Start();
  const uint32_t compute = Join(proto::ROLE_COMPUTE);
  for (const uint32_t taken : {compute, first.id(), client_}) {
    const absl::Status refused = Start(taken).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << taken << ": " << refused;
    EXPECT_NE(refused.message().find("storage id " + std::to_string(taken) + " is the id of"),
              std::string::npos)
        << refused;
  }
  ASSERT_TRUE(Leave(compute).ok());
  const auto started = Start(compute);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(FindServer(Cluster(), compute)->id(), started->id());
  ASSERT_TRUE(Leave(first.id()).ok());
  EXPECT_TRUE(Start(first.storage()).ok()) << "its own";
}

TEST_F(ServiceStorageTest, AStorageIdIsNoMembersId) {
  const proto::JoinReply one = *Start(), other = *Start();
  const uint32_t plain = Join(proto::ROLE_MEMORY);
  EXPECT_EQ(one.storage(), one.id() + 1);
  EXPECT_EQ(other.id(), one.storage() + 1);
  EXPECT_GT(plain, other.storage());
  EXPECT_EQ(StorageOf(*Find(Cluster(), plain)), plain);
  EXPECT_EQ(StorageOf(*Find(Cluster(), one.id())), one.storage());
}

TEST_F(ServiceStorageTest, AnotherMemberAdoptsItWithItsTables) {
  const proto::JoinReply first = *Start();
  const uint64_t allocation = Load("t", first.storage());
  EXPECT_THAT(MissingOf("t"), IsEmpty());
  ASSERT_TRUE(Leave(first.id()).ok());
  const std::vector<MissingServer> missing = MissingOf("t");
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(missing[0].buried());
  EXPECT_EQ(missing[0].directory(), "/data");
  EXPECT_EQ(missing[0].server, first.storage());
  Restart();
  client_ = Join(proto::ROLE_CLIENT);
  const proto::JoinReply second = *Start(first.storage(), {allocation});
  EXPECT_GT(second.id(), first.storage());
  EXPECT_EQ(second.storage(), first.storage());
  EXPECT_THAT(second.missing(), IsEmpty());
  EXPECT_THAT(MissingOf("t"), IsEmpty());
  EXPECT_EQ(FindServer(Cluster(), first.storage())->id(), second.id());
  // The former member is no longer listed; its id stays over.
  EXPECT_EQ(Find(Cluster(), first.id()), nullptr);
  EXPECT_TRUE(absl::IsNotFound(Renew(first.id()).status()));
  EXPECT_THAT(*Renew(second.id(), {allocation, 4'000}), ElementsAre(4'000));
}

TEST_F(ServiceStorageTest, RecordTablesStayLostWithTheFormerMember) {
  const proto::JoinReply first = *Start();
  CreateRecords(client_, first.id());
  ASSERT_TRUE(Leave(first.id()).ok());
  ASSERT_TRUE(Start(first.storage()).ok());
  const std::vector<MissingServer> missing = MissingOf("stock");
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(missing[0].buried());
  EXPECT_EQ(missing[0].member.id(), first.id());
  EXPECT_EQ(missing[0].directory(), "");
}

TEST_F(ServiceStorageTest, AMemberThatIsHeardOfKeepsItsStorage) {
  const proto::JoinReply first = *Start();
  const absl::Status refused = Start(first.storage()).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("two copies of a data directory"));
  // After half a lease of silence the directory's lock decides.
  clock_.AdvanceMs(kLeaseMs / 2);
  const auto second = Start(first.storage());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(absl::IsNotFound(Renew(first.id()).status()));
  EXPECT_EQ(FindServer(Cluster(), first.storage())->id(), second->id());
}

TEST_F(ServiceStorageTest, ACopyIsRefusedForGoodOnceTheOtherIsHeardOf) {
  const proto::JoinReply first = *Start();
  const auto refused_for_good = [&](const absl::Status& status) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("two copies of a data directory"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("`/data`"));
    return absl::IsFailedPrecondition(status);
  };
  // The first process may have ended, and its last renewal may still be on its way.
  EXPECT_FALSE(refused_for_good(StartAt("127.0.0.1:1", "/copy", first.storage())));
  ASSERT_TRUE(RenewRegularly(first.id()).ok());
  EXPECT_TRUE(refused_for_good(StartAt("127.0.0.1:1", "/copy", first.storage()))) << "another place";
  EXPECT_FALSE(refused_for_good(StartAt("127.0.0.1:2", "/copy", first.storage(), "b")))
      << "on another host any path may be the same directory";
  for (const bool alive : {false, true}) {
    EXPECT_FALSE(refused_for_good(StartAt("127.0.0.1:2", "/copy", first.storage(), "b")));
    ASSERT_TRUE(RenewRegularly(first.id()).ok());
    ASSERT_TRUE(Renew(first.id()).ok()) << "a question, which may have been under way, too";
    EXPECT_EQ(refused_for_good(StartAt("127.0.0.1:2", "/copy", first.storage(), "b")), alive);
  }
  EXPECT_FALSE(refused_for_good(StartAt("127.0.0.1:3", "/data", first.storage()))) << "each process anew";
  // Data that was moved after the host's end, while the catalog has not heard of the former server.
  Stop();
  ServiceTest::Start();
  clock_.AdvanceMs(kLeaseMs / 2);
  EXPECT_FALSE(absl::IsFailedPrecondition(StartAt("127.0.0.1:4", "/moved", first.storage())));
  clock_.AdvanceMs(kLeaseMs / 2);
  EXPECT_TRUE(StartAt("127.0.0.1:4", "/moved", first.storage()).ok());
}

TEST_F(ServiceStorageTest, ATableWithoutItsFileIsNamedAndNoOther) {
  const proto::JoinReply first = *Start();
  const uint64_t whole = Load("whole", first.storage());
  Load("gone", first.storage());
  const uint64_t damaged = Load("damaged", first.storage());
  ASSERT_TRUE(Leave(first.id()).ok());
  proto::JoinReply second = *Start(first.storage(), {whole}, {damaged});
  EXPECT_THAT(second.missing(), ElementsAre("damaged", "gone"));
  EXPECT_THAT(MissingOf("whole"), IsEmpty());
  ASSERT_EQ(MissingOf("gone").size(), 1u);
  EXPECT_TRUE(MissingOf("gone")[0].buried());
  EXPECT_THAT(MissingOf("gone")[0].lost, HasSubstr("`/data` has no file of allocation"));
  EXPECT_EQ(MissingOf("damaged")[0].lost, "a bit has flipped");
  Restart();
  EXPECT_EQ(MissingOf("damaged")[0].lost, "a bit has flipped");
  // The damaged file is kept as long as the table is there.
  EXPECT_THAT(*Renew(second.id(), {whole, damaged}), IsEmpty());
  ASSERT_TRUE(Drop("damaged").ok());
  EXPECT_THAT(*Renew(second.id(), {whole, damaged}), ElementsAre(damaged));
}

TEST_F(ServiceStorageTest, AnOlderDirectoryLosesNothingForGood) {
  const proto::JoinReply first = *Start();
  const uint64_t old_one = Load("old", first.storage()), newer = Load("newer", first.storage());
  ASSERT_TRUE(Leave(first.id()).ok());
  const proto::JoinReply older = *Start(first.storage(), {old_one});
  EXPECT_THAT(older.missing(), ElementsAre("newer"));
  ASSERT_TRUE(Leave(older.id()).ok());
  ASSERT_TRUE(Start(first.storage(), {old_one, newer}).ok());
  EXPECT_THAT(MissingOf("newer"), IsEmpty());
}

TEST_F(ServiceStorageTest, AFileThatTheCatalogDoesNotKnowGoesOnlyByItsWord) {
  const proto::JoinReply first = *Start();
  const uint64_t aborted = *Begin(client_, "t");
  ASSERT_TRUE(Leave(first.id()).ok());
  const proto::JoinReply second = *Start(first.storage(), {aborted});
  EXPECT_THAT(*Renew(second.id(), {aborted}), IsEmpty());  // the load is under way
  ASSERT_TRUE(Abort(aborted).ok());
  EXPECT_THAT(*Renew(second.id(), {aborted}), ElementsAre(aborted));
}

TEST_F(ServiceStorageTest, ALoadWhoseMemoryWentIsNotCommitted) {
  const proto::JoinReply first = *Start();
  const uint64_t unsealed = *Begin(client_, "unsealed"), sealed = *Begin(client_, "sealed");
  ASSERT_TRUE(Leave(first.id()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Commit(sealed, "sealed", {first.storage()}).status()));
  ASSERT_TRUE(Start(first.storage(), {sealed}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Commit(unsealed, "unsealed", {first.storage()}).status()));
  EXPECT_TRUE(Commit(sealed, "sealed", {first.storage()}).ok());
}

TEST_F(ServiceStorageTest, ADirectoryThatKnowsMoreThanTheStoreIsRefused) {
  const proto::JoinReply first = *Start();
  ASSERT_TRUE(Leave(first.id()).ok());
  for (const auto& [storage, file] : {std::pair{first.storage(), uint64_t{1'000}}, {5'000u, uint64_t{1}}}) {
    const absl::Status refused = Start(storage, {file}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("older than the data directory `/data`"));
  }
  EXPECT_TRUE(Start(first.storage()).ok());  // others are served
}

TEST_F(ServiceStorageTest, OnlyDirectoriesHaveStorageIds) {
  proto::JoinRequest request;
  request.mutable_member()->set_role(proto::ROLE_CLIENT);
  request.mutable_member()->set_storage(1);
  EXPECT_TRUE(absl::IsInvalidArgument(NotedJoin(request).status()));
}

TEST_F(ServiceStorageTest, ALoadIsProvenOnlyByItsOwner) {
  proto::JoinRequest join;
  join.mutable_member()->set_role(proto::ROLE_CLIENT);
  const proto::JoinReply owner = *NotedJoin(join), other = *NotedJoin(join);
  const proto::JoinReply server = *Start();
  const uint64_t load = *Begin(owner.id(), "t");
  const auto proven = [&](const proto::JoinReply& who, uint64_t allocation) {
    proto::RenewRequest request;
    request.set_id(server.id());
    proto::MemberClaim& claim = *request.add_claims();
    claim.set_member(who.id());
    claim.set_proof(who.proof());
    claim.set_load(allocation);
    return ProvenRenew(request)->proven_size() == 1;
  };
  EXPECT_TRUE(proven(owner, load));
  EXPECT_TRUE(proven(owner, 0));
  EXPECT_FALSE(proven(other, load));
  EXPECT_FALSE(proven(owner, load + 1));
  ASSERT_TRUE(Commit(load, "t").ok());
  EXPECT_FALSE(proven(owner, load));
}

}  // namespace
}  // namespace nam::catalog
