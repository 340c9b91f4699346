#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "catalog/chain_groups.h"
#include "tests/catalog/service_fixture.h"

namespace nam::catalog {
namespace {

using ServiceLoadsTest = ServiceTest;

TEST_F(ServiceLoadsTest, ALoadBecomesATableAndItsMemoryStays) {
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
  // Repeated because the answer was lost: the same answer.
  EXPECT_EQ(*Commit(allocation, "date", {memory}), *version);
  ASSERT_TRUE(Drop("date").ok());
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
  EXPECT_EQ(Drop("date").code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceLoadsTest, AllocationIdsAreNeverUsedAgain) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t first = *Begin(client, "date");
  ASSERT_TRUE(Abort(first).ok());
  Restart();
  EXPECT_GT(*Begin(client, "date"), first);
}

TEST_F(ServiceLoadsTest, AnAbortedLoadIsOver) {
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

TEST_F(ServiceLoadsTest, TheEndOfALeaseAbortsItsLoads) {
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

TEST_F(ServiceLoadsTest, LeavingAbortsLoads) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  proto::LeaveRequest leave;
  leave.set_id(client);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(*Renew(memory, {allocation}), std::vector<uint64_t>{allocation});
}

TEST_F(ServiceLoadsTest, AnAppendIsOneGroupMore) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  const uint64_t base = *Begin(client, "t");
  proto::CommitLoadRequest load;
  load.mutable_table()->set_name("t");
  load.mutable_table()->set_allocation(base);
  load.mutable_table()->set_rows(5);
  load.mutable_table()->add_partitions()->set_rows(5);
  ASSERT_TRUE(service_->CommitLoad(load).ok());
  const proto::Table first = Get("t")->table();
  const uint64_t a = *BeginExtend(client, "t"), b = *BeginExtend(client, "t"), c = *BeginExtend(client, "t");
  const auto version = Append(a, first, memory);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*Append(a, first, memory), *version) << "asked again because the answer was lost";
  EXPECT_EQ(Append(b, first, memory).status().code(), absl::StatusCode::kAborted) << "it would lose group a";
  const proto::Table second = Get("t")->table();
  EXPECT_EQ(second.version(), *version);
  EXPECT_EQ(second.groups_size(), 2);
  ASSERT_TRUE(Append(b, second, memory).ok());
  ASSERT_TRUE(Abort(c).ok());
  Restart();
  EXPECT_EQ(Get("t")->table().groups_size(), 3);
  EXPECT_EQ(*Renew(memory, {base, a, b, c}), std::vector<uint64_t>{c});
  ASSERT_TRUE(Drop("t").ok());
  EXPECT_EQ(Renew(memory, {base, a, b})->size(), 3u);
}

/// What several processes have written becomes a table's at once, or nothing of it does.
TEST_F(ServiceLoadsTest, AnAppendMayLieInSeveralAllocations) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT),
                 other = Join(proto::ROLE_CLIENT);
  proto::CommitLoadRequest load;
  proto::Table& loaded = *load.mutable_table();
  loaded.set_name("t");
  const uint64_t base = *Begin(client, "t"), beside = *Begin(client, "t");
  const auto add = [&](proto::Table& table, std::vector<uint64_t> groups) {
    for (const uint64_t group : groups) {
      table.add_groups()->set_allocation(group);
      table.add_partitions()->set_rows(5);
      table.mutable_partitions()->rbegin()->add_head(uint64_t{memory} << 48 | 4'096);
      table.set_rows(table.rows() + 5);
    }
    table.set_allocation(groups.back());
  };
  add(loaded, {*Begin(other, "t"), base});
  EXPECT_EQ(service_->CommitLoad(load).status().code(), absl::StatusCode::kInvalidArgument)
      << "another member's";
  loaded.clear_groups();
  loaded.clear_partitions();
  add(loaded, {0, base});
  EXPECT_EQ(service_->CommitLoad(load).status().code(), absl::StatusCode::kFailedPrecondition) << "no load";
  loaded.clear_groups();
  loaded.clear_partitions();
  loaded.add_retired()->add_allocations(*Begin(other, "u"));
  EXPECT_EQ(service_->CommitLoad(load).status().code(), absl::StatusCode::kInvalidArgument)
      << "it would end another member's load";
  loaded.clear_retired();
  add(loaded, {beside, beside, base});
  ASSERT_TRUE(service_->CommitLoad(load).ok());
  EXPECT_FALSE(Abort(beside).ok()) << "it is the table's";
  const proto::Table first = Get("t")->table();
  EXPECT_EQ(GroupId(first, 0) + 1, GroupId(first, 1));
  const uint64_t a = *BeginExtend(client, "t"), b = *BeginExtend(client, "t"), c = *BeginExtend(client, "t"),
                 foreign = *BeginExtend(other, "t");
  ASSERT_TRUE(Abort(c).ok());
  const auto append = [&](std::vector<uint64_t> groups) {
    proto::CommitExtendRequest request;
    request.set_allocation(groups.back());
    request.set_expected_version(first.version());
    *request.mutable_appended() = first;
    add(*request.mutable_appended(), groups);
    return service_->CommitExtend(request).status().code();
  };
  EXPECT_EQ(append({c, a}), absl::StatusCode::kFailedPrecondition) << "it is over";
  EXPECT_EQ(append({foreign, a}), absl::StatusCode::kInvalidArgument) << "another member's";
  EXPECT_EQ(append({a, b, a}), absl::StatusCode::kInvalidArgument) << "groups of one are neighbours";
  EXPECT_EQ(Get("t")->table().groups_size(), 3);
  EXPECT_EQ(append({a, a, b}), absl::StatusCode::kOk);
  EXPECT_EQ(append({a, a, b}), absl::StatusCode::kOk) << "asked again because the answer was lost";
  Restart();
  EXPECT_EQ(Get("t")->table().groups_size(), 6);
  EXPECT_EQ(*Renew(memory, {base, beside, a, b, c}), std::vector<uint64_t>{c});
  ASSERT_TRUE(Drop("t").ok());
  EXPECT_EQ(Renew(memory, {base, beside, a, b})->size(), 4u);
}

TEST_F(ServiceLoadsTest, AnAppendChangesNothingElse) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  proto::CommitLoadRequest load;
  load.mutable_table()->set_name("t");
  load.mutable_table()->set_allocation(*Begin(client, "t"));
  load.mutable_table()->set_rows(5);
  load.mutable_table()->add_partitions()->set_rows(5);
  load.mutable_table()->add_columns()->set_name("a");
  ASSERT_TRUE(service_->CommitLoad(load).ok());
  const proto::Table whole = Get("t")->table();
  const uint64_t allocation = *BeginExtend(client, "t");
  const auto refused = [&](const std::function<void(proto::Table&)>& change) {
    proto::Table table = whole;
    change(table);
    return Append(allocation, table, memory).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](proto::Table& t) { t.set_name("other"); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.clear_columns(); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.clear_partitions(); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.set_creation(77); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.add_groups()->set_allocation(77); }));
  EXPECT_TRUE(refused([](proto::Table& t) { t.mutable_record()->set_versions(1); }));
  ASSERT_TRUE(Append(allocation, whole, memory).ok());
  const uint64_t late = *BeginExtend(client, "t");
  ASSERT_TRUE(Drop("t").ok());
  EXPECT_EQ(Append(late, whole, memory).status().code(), absl::StatusCode::kFailedPrecondition);
  const uint64_t again = *Begin(client, "t");
  load.mutable_table()->set_allocation(again);
  ASSERT_TRUE(service_->CommitLoad(load).ok());
  EXPECT_EQ(Append(late, Get("t")->table(), memory).status().code(), absl::StatusCode::kFailedPrecondition)
      << "another table of its name";
}

TEST_F(ServiceLoadsTest, ReplacingSwapsAtOnceAndRetiresTheOldMemory) {
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

TEST_F(ServiceLoadsTest, OfTwoLoadsOfOneNameOneWins) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t first = *Begin(client, "date");
  const uint64_t second = *Begin(client, "date");
  EXPECT_TRUE(Commit(second, "date").ok());
  EXPECT_EQ(Commit(first, "date").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Get("date")->table().allocation(), second);
}

TEST_F(ServiceLoadsTest, StaleAndForeignCommitsAreRefused) {
  const uint32_t memory = Join(proto::ROLE_MEMORY);
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  EXPECT_EQ(Commit(allocation, "part").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Commit(allocation + 1, "date").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Commit(allocation, "date", {memory + 100}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Commit(allocation, "date", {client}).status().code(), absl::StatusCode::kFailedPrecondition);
  for (int64_t passed_ms = 0; passed_ms < kBurialMs; passed_ms += 2'000) {
    clock_.AdvanceMs(2'000);  // the memory server dies during the load
    ASSERT_TRUE(Renew(client).ok());
  }
  EXPECT_EQ(Commit(allocation, "date", {memory}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Commit(allocation, "date").ok());
}

TEST_F(ServiceLoadsTest, LoadsSurviveARestart) {
  const uint32_t client = Join(proto::ROLE_CLIENT);
  const uint64_t allocation = *Begin(client, "date");
  Restart();
  EXPECT_TRUE(Commit(allocation, "date").ok());
}

TEST_F(ServiceLoadsTest, ARecordTableIsExtendedByWhoeverKnowsItsSize) {
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

TEST_F(ServiceLoadsTest, AnIndexComesAndGoes) {
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

TEST_F(ServiceLoadsTest, AnExtensionEndsWithItsMemberAndWithItsTable) {
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
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(*Renew(memory, {dropped, left}), (std::vector<uint64_t>{dropped, left}));
  EXPECT_EQ(CommitExtend(left, 1, memory).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BeginExtend(client).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceLoadsTest, ColumnarTablesGetNoExtents) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Commit(*Begin(client, "date"), "date").ok());
  const auto allocation = BeginExtend(client, "date");
  ASSERT_TRUE(allocation.ok());
  EXPECT_EQ(CommitExtend(*allocation, 0, memory).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginExtend(client, "part").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServiceLoadsTest, AnExtensionThatIsAskedForAgainIsAnsweredAlike) {
  const uint32_t memory = Join(proto::ROLE_MEMORY), client = Join(proto::ROLE_CLIENT);
  CreateRecords(client, memory);
  proto::CommitExtendRequest request;
  request.set_allocation(*BeginExtend(client));
  request.set_part("rows");
  request.set_expected_extents(1);
  AddExtent(memory, request.allocation(), *request.mutable_extents());
  const auto first = service_->CommitExtend(request);
  ASSERT_TRUE(first.ok()) << first.status();
  Join(proto::ROLE_CLIENT);  // the store goes on
  const auto again = service_->CommitExtend(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->version(), first->version());
  EXPECT_GT(MarkOf(*again).version(), first->version());
}

}  // namespace
}  // namespace nam::catalog
