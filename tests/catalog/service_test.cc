#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "catalog/fabric_constants.h"
#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

TEST_F(ServiceTest, TimestampsAreThoseOfTheTransactionState) {
  EXPECT_EQ(service_->GetCluster({})->timestamps(), "leased");
  Restart("bitvector");
  EXPECT_EQ(service_->GetCluster({})->timestamps(), "bitvector");
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  CreateRecords(Join(proto::ROLE_CLIENT), memory, "bitvector");
  Restart("leased");
  EXPECT_EQ(service_->GetCluster({})->timestamps(), "bitvector") << "those that it was made with";
  auto store = OpenEmbeddedStore(kStoreInMemory, {"test", "shm"});
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(Service::Open(*std::move(store), clock_, {.timestamps = "dice"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ServiceTest, ConstantsOfItsFabricAreKeptAcrossARestart) {
  const auto calibrate = [&](const std::string& fabric, double read_byte_ps) {
    proto::CalibrateRequest request;
    FabricConstants constants;
    constants.read_byte_ps = read_byte_ps;
    *request.mutable_constants() = ToProto(fabric, constants);
    return service_->Calibrate(request).status();
  };
  const auto read_byte_ps = [&] {
    return FromProto(service_->GetCluster({})->constants()).value_or(FabricConstants()).read_byte_ps;
  };
  EXPECT_FALSE(service_->GetCluster({})->has_constants());
  const uint64_t version = service_->GetCluster({})->version();
  ASSERT_EQ(calibrate("shm", 321), absl::OkStatus());
  EXPECT_EQ(read_byte_ps(), 321);
  EXPECT_GT(service_->GetCluster({})->version(), version) << "plans depend on them";
  ASSERT_EQ(calibrate("shm", 123), absl::OkStatus());
  EXPECT_EQ(read_byte_ps(), 123);
  EXPECT_EQ(calibrate("tcp", 99).code(), absl::StatusCode::kFailedPrecondition);
  for (const double bad : {0.0, -5.0, 1e300, std::nan("")})
    EXPECT_EQ(calibrate("shm", bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  EXPECT_EQ(service_->Calibrate({}).status().code(), absl::StatusCode::kFailedPrecondition);
  disk_.full = true;
  EXPECT_FALSE(calibrate("shm", 77).ok());
  disk_.full = false;
  EXPECT_EQ(read_byte_ps(), 123) << "what is not durable is not told";
  Restart();
  EXPECT_EQ(read_byte_ps(), 123);
}

TEST_F(ServiceTest, MulticastGroupsAreUniqueAndUsedAgain) {
  const uint32_t first = Join(proto::ROLE_CLIENT), second = Join(proto::ROLE_CLIENT);
  const auto allocate = [&](uint32_t member, uint32_t count) {
    proto::AllocateGroupsRequest request;
    request.set_member(member);
    request.set_count(count);
    const auto reply = service_->AllocateGroups(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? std::vector<uint32_t>(reply->groups().begin(), reply->groups().end())
                      : std::vector<uint32_t>();
  };
  const auto release = [&](uint32_t member, uint32_t group) {
    proto::ReleaseGroupsRequest request;
    request.set_member(member);
    request.add_groups(group);
    return service_->ReleaseGroups(request).status();
  };
  EXPECT_EQ(allocate(first, 2), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(allocate(second, 1), (std::vector<uint32_t>{3}));
  EXPECT_EQ(release(second, 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(release(first, 1).ok());
  EXPECT_TRUE(release(first, 1).ok());  // the answer was lost
  EXPECT_EQ(allocate(second, 2), (std::vector<uint32_t>{1, 4}));
  Restart();
  EXPECT_EQ(allocate(first, 1), (std::vector<uint32_t>{5}));
  // The end of the lease frees them.
  proto::LeaveRequest leave;
  leave.set_id(first);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(allocate(second, 2), (std::vector<uint32_t>{2, 5}));
  clock_.AdvanceMs(3'001);
  EXPECT_EQ(allocate(Join(proto::ROLE_CLIENT), 1), (std::vector<uint32_t>{1}));

  proto::AllocateGroupsRequest request;
  request.set_count(1);
  request.set_member(second);
  EXPECT_EQ(service_->AllocateGroups(request).status().code(), absl::StatusCode::kNotFound);
  request.set_member(Join(proto::ROLE_CLIENT));
  for (const uint32_t count : {0u, 1'025u}) {
    request.set_count(count);
    EXPECT_EQ(service_->AllocateGroups(request).status().code(), absl::StatusCode::kInvalidArgument);
  }
  request.set_count(1'024);
  int calls = 0;
  while (service_->AllocateGroups(request).ok()) ++calls;
  EXPECT_EQ(calls, 63);  // 65,535 in all
}

/// Only one of two loads that replace the same table succeeds.
TEST_F(ServiceTest, ALoadMayReplaceOneTableAlone) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t empty = *Begin(client, "t");
  ASSERT_TRUE(Commit(empty, "t").ok());
  const uint64_t first = *Begin(client, "t", true), second = *Begin(client, "t", true);
  ASSERT_TRUE(Commit(first, "t", {}, empty).ok());
  EXPECT_TRUE(Commit(first, "t", {}, empty).ok()) << "asked again because the answer was lost";
  EXPECT_EQ(Commit(second, "t", {}, empty).status().code(), absl::StatusCode::kAborted);
  const uint64_t third = *Begin(client, "gone", true);
  EXPECT_EQ(Commit(third, "gone", {}, empty).status().code(), absl::StatusCode::kAborted);
}

TEST_F(ServiceTest, BadInputIsRefused) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  EXPECT_EQ(Begin(client, "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Begin(client, std::string(1'000, 'a')).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Begin(client, std::string("a\0b", 3)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Begin(0, "a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TryJoin(proto::ROLE_UNKNOWN).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TryJoin(static_cast<proto::Role>(99)).status().code(), absl::StatusCode::kInvalidArgument);
  proto::JoinRequest no_address;
  no_address.mutable_member()->set_role(proto::ROLE_MEMORY);
  EXPECT_EQ(NotedJoin(no_address).status().code(), absl::StatusCode::kInvalidArgument);
  no_address.mutable_member()->set_role(proto::ROLE_CLIENT);
  no_address.mutable_member()->set_host(std::string(100'000, 'h'));
  EXPECT_EQ(NotedJoin(no_address).status().code(), absl::StatusCode::kInvalidArgument);
}

// Or no DROP could relieve it.
TEST_F(ServiceTest, ACatalogStartsOnAFullDiskWithItsReserve) {
  Join(proto::ROLE_MEMORY);
  disk_ = {.full = true, .has_reserve = true};
  Restart();
  EXPECT_TRUE(TryJoin(proto::ROLE_MEMORY).ok());
  EXPECT_TRUE(TryJoin(proto::ROLE_CLIENT).ok());
  EXPECT_EQ(TryJoin(proto::ROLE_COMPUTE).status().code(), absl::StatusCode::kResourceExhausted);
  disk_ = {};
}

TEST_F(ServiceTest, TruncateNeedsNoRoomOnAFullDisk) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const uint64_t full = *Begin(client, "full"), other = *Begin(client, "other");
  ASSERT_TRUE(Commit(full, "full", {memory}).ok());
  ASSERT_TRUE(Commit(other, "other", {memory}).ok());
  const auto begin_to_empty = [&](const std::string& table) {
    proto::BeginLoadRequest request;
    request.set_member(client);
    request.set_table(table);
    request.set_replace(true);
    request.set_empties(true);
    return service_->BeginLoad(request);
  };
  const uint64_t rows = *Begin(client, "other", /*replace=*/true);
  disk_ = {.full = true, .has_reserve = true};
  const auto emptying = begin_to_empty("full");
  ASSERT_TRUE(emptying.ok()) << emptying.status();
  EXPECT_TRUE(Commit(emptying->allocation(), "full", {}, full).ok());
  EXPECT_EQ(*Renew(memory, {full, other}), std::vector<uint64_t>{full});
  EXPECT_EQ(Begin(client, "full", /*replace=*/true).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(begin_to_empty("new").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Commit(rows, "other", {memory}, other).status().code(), absl::StatusCode::kResourceExhausted);
  disk_ = {};
}

TEST_F(ServiceTest, AFullDiskChangesNothingAndRenewalsGoOn) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  const uint64_t version = Cluster().version();
  disk_.full = true;
  EXPECT_EQ(Commit(allocation, "date").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(TryJoin(proto::ROLE_CLIENT).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Get("date").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Cluster().version(), version);
  clock_.AdvanceMs(2'000);
  EXPECT_TRUE(Renew(memory).ok());
  clock_.AdvanceMs(1'500);  // the client's lease ends, though that cannot be written down
  EXPECT_TRUE(Renew(memory).ok());
  EXPECT_EQ(Find(Cluster(), client), nullptr);
  EXPECT_EQ(Renew(client).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Commit(allocation, "date").status().code(), absl::StatusCode::kFailedPrecondition);
  disk_.full = false;
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_TRUE(TryJoin(proto::ROLE_CLIENT).ok());
}

// Checks hold for any client, including those that skip the binder.
class SystemTablesTest : public ServiceTest {
 protected:
  static constexpr char kState[] = "nam.transactions";

  absl::Status CommitState(uint64_t allocation, uint32_t server, proto::RecordPartKind kind) {
    proto::CommitLoadRequest request;
    proto::Table& table = *request.mutable_table();
    table.set_name(kState);
    table.set_allocation(allocation);
    table.mutable_record()->set_row_bytes(8);
    table.mutable_record()->set_key_bytes(8);
    table.mutable_record()->set_versions(1);
    table.mutable_record()->set_extent_bytes(8'192);
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name("rows");
    part.set_kind(kind);
    AddExtent(server, allocation, *part.mutable_extents());
    for (const uint32_t holder : logs_on_) {
      if (table.record().parts_size() == 1) {
        proto::RecordPart& logs = *table.mutable_record()->add_parts();
        logs.set_name("logs");
        logs.set_kind(proto::TRANSACTION_LOGS);
      }
      AddExtent(holder, allocation, *table.mutable_record()->mutable_parts(1)->mutable_extents());
    }
    return service_->CommitLoad(request).status();
  }
  absl::Status Extend(uint32_t client, uint32_t server, const std::string& part, uint32_t known) {
    const auto allocation = BeginExtend(client, kState);
    if (!allocation.ok()) return allocation.status();
    proto::CommitExtendRequest request;
    request.set_allocation(*allocation);
    request.set_part(part);
    request.set_expected_extents(known);
    AddExtent(server, *allocation, *request.mutable_extents());
    return service_->CommitExtend(request).status();
  }

  std::vector<uint32_t> logs_on_;
};

TEST_F(SystemTablesTest, OfTheTransactionStateOnlyLogsGrow) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  logs_on_ = {memory};
  ASSERT_TRUE(CommitState(*Begin(client, kState), memory, proto::TRANSACTION_STATE).ok());
  EXPECT_TRUE(Extend(client, memory, "logs", 1).ok());
  EXPECT_EQ(Extend(client, memory, "logs", 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Extend(client, memory, "rows", 1).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(SystemTablesTest, OnlyTheSystemMakesThem) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const uint32_t other = Join(proto::ROLE_CLIENT);
  const std::string others = std::to_string(other);
  for (const std::string& name : {std::string("nam.x"), std::string("NAM.Transactions"), "nam.work." + others,
                                  "nam.copy." + others + ".1.0"}) {
    EXPECT_EQ(Begin(client, name).status().code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_EQ(Begin(client, kState, /*replace=*/true).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Begin(other, "nam.work." + others).ok());
  EXPECT_TRUE(Begin(other, "nam.copy." + others + ".1.0").ok());

  const uint64_t allocation = *Begin(client, kState);
  EXPECT_EQ(Commit(allocation, kState).status().code(), absl::StatusCode::kInvalidArgument) << "analytical";
  EXPECT_EQ(CommitState(allocation, memory, proto::RECORDS).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CommitState(allocation, memory, proto::TRANSACTION_STATE).ok());
  EXPECT_EQ(Extend(client, memory, "rows", 1).code(), absl::StatusCode::kPermissionDenied);
  proto::ChangePartRequest change = Change("rows", allocation);
  change.set_table(kState);
  change.set_remove(true);
  EXPECT_EQ(service_->ChangePart(change).status().code(), absl::StatusCode::kPermissionDenied);
  CreateRecords(client, memory);
  EXPECT_EQ(AddIndex(*BeginExtend(client), memory, "nam.index").code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(SystemTablesTest, TheTransactionStateGoesOnlyWithItsServerAndTakesTheRecordTablesAlong) {
  const uint32_t holder = Join(proto::ROLE_MEMORY), second = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  logs_on_ = {second, holder};  // logs keep nothing: they may be gone, or be all that is left
  ASSERT_TRUE(CommitState(*Begin(client, kState), holder, proto::TRANSACTION_STATE).ok());
  CreateRecords(client, second);
  ASSERT_TRUE(Commit(*Begin(client, "date"), "date", {second}).ok());
  EXPECT_EQ(Drop(kState).code(), absl::StatusCode::kFailedPrecondition);
  clock_.AdvanceMs(kBurialMs - 1);
  ASSERT_TRUE(Renew(second).ok());
  EXPECT_EQ(Drop(kState).code(), absl::StatusCode::kFailedPrecondition) << "a suspect may come back";
  clock_.AdvanceMs(1);
  EXPECT_TRUE(Get("stock").ok());
  EXPECT_TRUE(Drop(kState).ok());
  EXPECT_EQ(Get("stock").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get(kState).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Get("date").ok());

  service_.reset();
  auto store = OpenEmbeddedStore(folder_.File("catalog.db"), {"test", "shm"});
  const auto state = (*store)->Load();
  ASSERT_EQ(state->members.size(), 1u) << "the buried server has nothing left to be kept for";
  EXPECT_EQ(state->members[0].id(), second);
}

}  // namespace
}  // namespace nam::catalog
