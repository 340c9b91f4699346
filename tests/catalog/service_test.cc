#include "catalog/service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "catalog/store.h"
#include "tests/catalog/temp_folder.h"

namespace nam::catalog {
namespace {

class FakeClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_; }
  void SleepUntil(Deadline deadline) override { now_ns_ = deadline.ns; }
  void AdvanceMs(int64_t ms) { now_ns_ += ms * 1'000'000; }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

// Fails on demand in place of a full disk.
class FailingStore final : public Store {
 public:
  FailingStore(std::unique_ptr<Store> store, const bool& full) : store_(std::move(store)), full_(full) {}
  absl::StatusOr<StoredState> Load() override { return store_->Load(); }
  absl::Status Apply(const Mutation& mutation) override {
    return full_ ? absl::ResourceExhaustedError("full") : store_->Apply(mutation);
  }

 private:
  const std::unique_ptr<Store> store_;
  const bool& full_;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { Restart(); }

  void Restart(const std::string& timestamps = kDefaultTimestamps) {
    service_.reset();
    auto store = OpenEmbeddedStore(folder_.File("catalog.db"), {"test", "shm"});
    ASSERT_TRUE(store.ok()) << store.status();
    auto service = Service::Open(std::make_unique<FailingStore>(*std::move(store), disk_full_), clock_, 3'000,
                                 timestamps);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }

  absl::StatusOr<uint32_t> TryJoin(proto::Role role) {
    proto::JoinRequest request;
    request.mutable_member()->set_role(role);
    request.mutable_member()->set_control_address("127.0.0.1:7");
    request.mutable_member()->set_fabric_address("127.0.0.1:8");
    auto reply = service_->Join(request);
    if (!reply.ok()) return reply.status();
    EXPECT_EQ(reply->lease_ms(), 3'000u);
    return reply->id();
  }
  uint32_t Join(proto::Role role) {
    const auto id = TryJoin(role);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  absl::StatusOr<std::vector<uint64_t>> Renew(uint32_t id, std::vector<uint64_t> held = {},
                                              uint64_t used = 0) {
    proto::RenewRequest request;
    request.set_id(id);
    request.set_used_bytes(used);
    for (const uint64_t allocation : held) request.add_held(allocation);
    auto reply = service_->Renew(request);
    if (!reply.ok()) return reply.status();
    return std::vector<uint64_t>(reply->release().begin(), reply->release().end());
  }
  absl::StatusOr<uint64_t> Begin(uint32_t member, const std::string& table, bool replace = false) {
    proto::BeginLoadRequest request;
    request.set_member(member);
    request.set_table(table);
    request.set_replace(replace);
    auto reply = service_->BeginLoad(request);
    if (!reply.ok()) return reply.status();
    return reply->allocation();
  }
  absl::StatusOr<uint64_t> Commit(uint64_t allocation, const std::string& name,
                                  std::vector<uint32_t> servers = {}) {
    proto::CommitLoadRequest request;
    request.mutable_table()->set_name(name);
    request.mutable_table()->set_allocation(allocation);
    for (const uint32_t server : servers) {
      proto::ServerUsage& usage = *request.mutable_table()->add_usage();
      usage.set_server(server);
      usage.set_blocks(1);
    }
    request.mutable_table()->add_partitions()->set_rows(5);
    auto reply = service_->CommitLoad(request);
    if (!reply.ok()) return reply.status();
    return reply->version();
  }
  /// A record table with one extent in its part `rows`.
  uint64_t CreateRecords(uint32_t client, uint32_t server, const std::string& timestamps = "") {
    proto::CommitLoadRequest request;
    proto::Table& table = *request.mutable_table();
    table.set_name("stock");
    table.set_allocation(*Begin(client, "stock"));
    table.mutable_record()->set_row_bytes(64);
    table.mutable_record()->set_key_bytes(8);
    table.mutable_record()->set_versions(1);
    table.mutable_record()->set_extent_bytes(8'192);
    table.mutable_record()->set_timestamps(timestamps);
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name("rows");
    AddExtent(server, table.allocation(), *part.mutable_extents());
    EXPECT_TRUE(service_->CommitLoad(request).ok());
    return table.allocation();
  }
  template <typename Extents>
  static void AddExtent(uint32_t server, uint64_t allocation, Extents& extents) {
    proto::RecordExtent& extent = *extents.Add();
    extent.set_server(server);
    extent.set_allocation(allocation);
    extent.set_offset(4'096);
  }
  absl::StatusOr<uint64_t> BeginExtend(uint32_t member, const std::string& table = "stock") {
    proto::BeginExtendRequest request;
    request.set_member(member);
    request.set_table(table);
    const auto reply = service_->BeginExtend(request);
    if (!reply.ok()) return reply.status();
    return reply->allocation();
  }
  absl::Status CommitExtend(uint64_t allocation, uint32_t expected, uint32_t server,
                            const std::string& part = "rows") {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.set_part(part);
    request.set_expected_extents(expected);
    AddExtent(server, allocation, *request.mutable_extents());
    return service_->CommitExtend(request).status();
  }
  absl::Status AddIndex(uint64_t allocation, uint32_t server, const std::string& name) {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.mutable_new_part()->set_name(name);
    request.mutable_new_part()->set_kind(proto::ORDERED_INDEX);
    AddExtent(server, allocation, *request.mutable_extents());
    return service_->CommitExtend(request).status();
  }
  static proto::ChangePartRequest Change(const std::string& index, uint64_t allocation) {
    proto::ChangePartRequest request;
    request.set_table("stock");
    request.set_part(index);
    request.set_allocation(allocation);
    return request;
  }
  absl::Status Abort(uint64_t allocation) {
    proto::AbortLoadRequest request;
    request.set_allocation(allocation);
    return service_->AbortLoad(request).status();
  }
  absl::Status Drop(const std::string& name) {
    proto::DropTableRequest request;
    request.set_name(name);
    return service_->DropTable(request).status();
  }
  absl::StatusOr<proto::GetTableReply> Get(const std::string& name, uint64_t known = 0) {
    proto::GetTableRequest request;
    request.set_name(name);
    request.set_known_version(known);
    return service_->GetTable(request);
  }
  proto::Cluster Cluster() { return *service_->GetCluster({}); }
  const proto::Member* Find(const proto::Cluster& cluster, uint32_t id) {
    for (const proto::Member& member : cluster.members()) {
      if (member.id() == id) return &member;
    }
    return nullptr;
  }

  const TempFolder folder_;
  FakeClock clock_;
  bool disk_full_ = false;
  std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, MemberIdsAreNeverUsedAgain) {
  const uint32_t first = Join(proto::ROLE_MEMORY);
  proto::LeaveRequest leave;
  leave.set_id(first);
  ASSERT_TRUE(service_->Leave(leave).ok());
  EXPECT_EQ(Cluster().members_size(), 0);
  const uint32_t second = Join(proto::ROLE_CLIENT);
  EXPECT_GT(second, first);
  Restart();
  EXPECT_GT(Join(proto::ROLE_COMPUTE), second);
}

TEST_F(ServiceTest, ALeaseIsKeptByRenewingAndEndsWithoutIt) {
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

TEST_F(ServiceTest, ACatalogThatStoodStillExpelsNobody) {
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

TEST_F(ServiceTest, ARestartExpelsNobody) {
  const uint32_t id = Join(proto::ROLE_MEMORY);
  clock_.AdvanceMs(2'999);
  Restart();
  clock_.AdvanceMs(2'999);
  EXPECT_TRUE(Renew(id).ok());
  Restart();
  clock_.AdvanceMs(3'000);
  EXPECT_EQ(Renew(id).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, ADeadMemoryServerStaysListedWhileATableLiesThere) {
  const uint32_t holder = Join(proto::ROLE_MEMORY);
  const uint32_t idle = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Commit(*Begin(client, "date"), "date", {holder}).ok());
  clock_.AdvanceMs(3'000);
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

TEST_F(ServiceTest, ServersAreFoundByPointersToo) {
  const uint32_t holder = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  proto::CommitLoadRequest request;
  request.mutable_table()->set_name("date");
  request.mutable_table()->set_allocation(*Begin(client, "date"));
  request.mutable_table()->add_columns()->mutable_encoding()->mutable_dictionary()->add_segments(
      (uint64_t{holder} << 48) | 4'096);
  ASSERT_TRUE(service_->CommitLoad(request).ok());
  clock_.AdvanceMs(3'000);
  ASSERT_NE(Find(Cluster(), holder), nullptr);
}

TEST_F(ServiceTest, ALoadBecomesATableAndItsMemoryStays) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  EXPECT_TRUE(Renew(memory, {allocation})->empty());
  EXPECT_EQ(Get("date").status().code(), absl::StatusCode::kNotFound);
  const auto version = Commit(allocation, "date", {memory});
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_TRUE(Renew(memory, {allocation})->empty());
  const auto table = Get("date");
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE(table->unchanged());
  EXPECT_EQ(table->table().version(), *version);
  EXPECT_EQ(table->table().partitions_size(), 1);
  EXPECT_TRUE(Get("date", *version)->unchanged());
  EXPECT_FALSE(Get("date", *version - 1)->unchanged());
  EXPECT_EQ(service_->ListTables({})->tables(0).partitions_size(), 0);
  // Asked again because the answer was lost: the same answer.
  EXPECT_EQ(*Commit(allocation, "date", {memory}), *version);
  ASSERT_TRUE(Drop("date").ok());
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_EQ(Drop("date").code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, AllocationIdsAreNeverUsedAgain) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t first = *Begin(client, "date");
  ASSERT_TRUE(Abort(first).ok());
  Restart();
  EXPECT_GT(*Begin(client, "date"), first);
}

TEST_F(ServiceTest, AnAbortedLoadIsOver) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  ASSERT_TRUE(Abort(allocation).ok());
  EXPECT_TRUE(Abort(allocation).ok());  // once more does no harm
  EXPECT_EQ(Commit(allocation, "date").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_EQ(Abort(allocation + 1).code(), absl::StatusCode::kNotFound);
  const uint64_t committed = *Begin(client, "date");
  ASSERT_TRUE(Commit(committed, "date").ok());
  EXPECT_EQ(Abort(committed).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServiceTest, TheEndOfALeaseAbortsItsLoads) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  clock_.AdvanceMs(2'000);
  EXPECT_TRUE(Renew(memory, {allocation})->empty());
  clock_.AdvanceMs(1'000);
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_EQ(Commit(allocation, "date").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Begin(client, "date").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get("date").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, LeavingAbortsLoads) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  proto::LeaveRequest leave;
  leave.set_id(client);
  ASSERT_TRUE(service_->Leave(leave).ok());
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
}

TEST_F(ServiceTest, ReplacingSwapsAtOnceAndRetiresTheOldMemory) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t old_allocation = *Begin(client, "date");
  ASSERT_TRUE(Commit(old_allocation, "date", {memory}).ok());
  EXPECT_EQ(Begin(client, "date").status().code(), absl::StatusCode::kAlreadyExists);
  const uint64_t allocation = *Begin(client, "date", true);
  EXPECT_TRUE(Renew(memory, {old_allocation, allocation})->empty());
  EXPECT_EQ(Get("date")->table().allocation(), old_allocation);
  ASSERT_TRUE(Commit(allocation, "date", {memory}).ok());
  EXPECT_EQ(Get("date")->table().allocation(), allocation);
  EXPECT_EQ(*Renew(memory, {old_allocation, allocation}), std::vector<uint64_t>{old_allocation});
  Restart();
  EXPECT_EQ(Get("date")->table().allocation(), allocation);
  EXPECT_EQ(*Renew(memory, {old_allocation, allocation}), std::vector<uint64_t>{old_allocation});
}

TEST_F(ServiceTest, OfTwoLoadsOfOneNameOneWins) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t first = *Begin(client, "date");
  const uint64_t second = *Begin(client, "date");
  EXPECT_TRUE(Commit(second, "date").ok());
  EXPECT_EQ(Commit(first, "date").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Get("date")->table().allocation(), second);
}

TEST_F(ServiceTest, StaleAndForeignCommitsAreRefused) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  EXPECT_EQ(Commit(allocation, "part").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Commit(allocation + 1, "date").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Commit(allocation, "date", {memory + 100}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Commit(allocation, "date", {client}).status().code(), absl::StatusCode::kFailedPrecondition);
  clock_.AdvanceMs(2'000);
  ASSERT_TRUE(Renew(client).ok());
  clock_.AdvanceMs(2'000);  // the memory server died during the load
  EXPECT_EQ(Commit(allocation, "date", {memory}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Commit(allocation, "date").ok());
}

TEST_F(ServiceTest, LoadsSurviveARestart) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  Restart();
  EXPECT_TRUE(Commit(allocation, "date").ok());
}

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
  EXPECT_EQ(Service::Open(*std::move(store), clock_, 3'000, "dice").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ServiceTest, ARecordTableIsExtendedByWhoeverKnowsItsSize) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), other = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t first = CreateRecords(client, memory);
  const uint64_t second = *BeginExtend(client), third = *BeginExtend(client);
  EXPECT_TRUE(Renew(memory, {first, second, third})->empty());
  Restart();
  ASSERT_TRUE(CommitExtend(second, 1, other).ok());
  EXPECT_TRUE(CommitExtend(second, 1, other).ok()) << "asked again because the answer was lost";
  const absl::Status late = CommitExtend(third, 1, memory);
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(late.message()).find("2 extents"), std::string::npos) << late;
  EXPECT_TRUE(Abort(third).ok());
  EXPECT_EQ(Abort(second).code(), absl::StatusCode::kFailedPrecondition);
  Restart();
  const proto::Table table = Get("stock")->table();
  ASSERT_EQ(table.record().parts(0).extents_size(), 2);
  EXPECT_EQ(table.record().parts(0).extents(1).allocation(), second);
  ASSERT_EQ(table.usage_size(), 2);
  EXPECT_EQ(table.usage(1).server(), other);
  EXPECT_EQ(table.usage(1).bytes(), 8'192u);
  EXPECT_EQ(service_->ListTables({})->tables(0).record().parts(0).extents_size(), 0);
  EXPECT_EQ(*Renew(memory, {first, second, third}), std::vector<uint64_t>{third});
  ASSERT_TRUE(Drop("stock").ok());
  EXPECT_EQ(*Renew(memory, {first, second}), (std::vector<uint64_t>{first, second}));
}

TEST_F(ServiceTest, AnIndexComesAndGoes) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const uint64_t table = CreateRecords(client, memory);
  const uint64_t index = *BeginExtend(client), twice = *BeginExtend(client);
  ASSERT_TRUE(AddIndex(index, memory, "by_name").ok());
  EXPECT_EQ(AddIndex(twice, memory, "by_name").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AddIndex(twice, memory, "stock").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AddIndex(twice, memory, "rows").code(), absl::StatusCode::kAlreadyExists);
  proto::ChangePartRequest change = Change("by_name", index);
  change.set_usable_from(7);
  ASSERT_TRUE(service_->ChangePart(change).ok());
  Restart();
  EXPECT_EQ(Get("stock")->table().record().parts(1).usable_from(), 7u);
  EXPECT_EQ(Get("stock")->table().usage(0).blocks(), 2u);
  change.set_leaving(true);
  ASSERT_TRUE(service_->ChangePart(change).ok());
  EXPECT_TRUE(Get("stock")->table().record().parts(1).leaving());
  EXPECT_TRUE(Renew(memory, {table, index})->empty());
  proto::ChangePartRequest other = Change("by_name", twice);
  other.set_remove(true);
  EXPECT_EQ(service_->ChangePart(other).status().code(), absl::StatusCode::kNotFound)
      << "another of its name";
  change.set_remove(true);
  ASSERT_TRUE(service_->ChangePart(change).ok());
  EXPECT_EQ(service_->ChangePart(change).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get("stock")->table().record().parts_size(), 1);
  EXPECT_EQ(*Renew(memory, {table, index}), std::vector<uint64_t>{index});
}

TEST_F(ServiceTest, ATemporaryTableIsItsOwners) {
  const uint32_t client = Join(proto::ROLE_CLIENT), other = Join(proto::ROLE_CLIENT);
  proto::CommitLoadRequest request;
  request.mutable_table()->set_name("copy");
  request.mutable_table()->set_allocation(*Begin(client, "copy"));
  request.mutable_table()->set_owner(client);
  ASSERT_TRUE(service_->CommitLoad(request).ok());
  EXPECT_EQ(service_->ListTables({})->tables_size(), 0);
  Restart();
  EXPECT_TRUE(Get("copy").ok());
  clock_.AdvanceMs(2'000);
  ASSERT_TRUE(Renew(other).ok());
  clock_.AdvanceMs(2'000);  // its owner died
  ASSERT_TRUE(Renew(other).ok());
  EXPECT_EQ(Get("copy").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, AnExtensionEndsWithItsMemberAndWithItsTable) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  CreateRecords(client, memory);
  const uint64_t dropped = *BeginExtend(client);
  ASSERT_TRUE(Drop("stock").ok());
  EXPECT_EQ(CommitExtend(dropped, 1, memory).code(), absl::StatusCode::kFailedPrecondition);
  CreateRecords(client, memory);
  EXPECT_EQ(CommitExtend(dropped, 1, memory).code(), absl::StatusCode::kFailedPrecondition) << "another";
  const uint64_t left = *BeginExtend(client);
  EXPECT_EQ(CommitExtend(left, 1, memory, "index").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CommitExtend(left, 1, client).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Commit(left, "stock").status().code(), absl::StatusCode::kInvalidArgument) << "no load";
  proto::LeaveRequest leave;
  leave.set_id(client);
  ASSERT_TRUE(service_->Leave(leave).ok());
  EXPECT_EQ(*Renew(memory, {dropped, left}), (std::vector<uint64_t>{dropped, left}));
  EXPECT_EQ(CommitExtend(left, 1, memory).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BeginExtend(client).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, OnlyRecordTablesAreExtended) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Commit(*Begin(client, "date"), "date").ok());
  EXPECT_EQ(BeginExtend(client, "date").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginExtend(client, "part").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceTest, ADeadServerStaysListedForAnExtentThatWasAdded) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), late = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  CreateRecords(client, memory);
  ASSERT_TRUE(CommitExtend(*BeginExtend(client), 1, late).ok());
  clock_.AdvanceMs(3'000);
  EXPECT_NE(Find(Cluster(), late), nullptr);
}

TEST_F(ServiceTest, OnlyADurableEndOfAMembershipIsTold) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const auto over = [&](uint32_t member) {
    proto::RenewRequest request;
    request.set_id(memory);
    request.add_key_holders(member);
    return service_->Renew(request)->over_size() == 1;
  };
  EXPECT_FALSE(over(client));
  EXPECT_FALSE(over(0));
  EXPECT_FALSE(over(client + 1)) << "not yet";
  clock_.AdvanceMs(2'000);
  EXPECT_FALSE(over(client));
  disk_full_ = true;
  clock_.AdvanceMs(2'000);
  EXPECT_FALSE(over(client)) << "a restart would give it a new lease";
  disk_full_ = false;
  EXPECT_TRUE(over(client));
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
  // The end of a lease gives them back.
  proto::LeaveRequest leave;
  leave.set_id(first);
  ASSERT_TRUE(service_->Leave(leave).ok());
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
  EXPECT_EQ(service_->Join(no_address).status().code(), absl::StatusCode::kInvalidArgument);
  no_address.mutable_member()->set_role(proto::ROLE_CLIENT);
  no_address.mutable_member()->set_host(std::string(100'000, 'h'));
  EXPECT_EQ(service_->Join(no_address).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServiceTest, AFullDiskChangesNothingAndRenewalsGoOn) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  const uint64_t version = Cluster().version();
  disk_full_ = true;
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
  disk_full_ = false;
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_TRUE(TryJoin(proto::ROLE_CLIENT).ok());
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
