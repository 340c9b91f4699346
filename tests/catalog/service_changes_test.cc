#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "catalog/client.h"
#include "tests/catalog/service_fixture.h"

/// Views, schemas, changes of names and columns, and backups that pause all of them.
namespace nam::catalog {
namespace {

using absl::StatusCode;

class ServiceChangesTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    memory_ = Join(proto::ROLE_MEMORY);
    client_ = Join(proto::ROLE_CLIENT);
  }
  proto::Table Load(const std::string& name, const std::vector<std::string>& columns = {"a", "b"}) {
    proto::CommitLoadRequest request;
    request.mutable_table()->set_name(name);
    request.mutable_table()->set_allocation(*Begin(client_, name));
    request.mutable_table()->set_rows(5);
    for (const std::string& column : columns) request.mutable_table()->add_columns()->set_name(column);
    request.mutable_table()->add_partitions()->add_head(uint64_t{memory_} << 48 | 4'096);
    EXPECT_TRUE(service_->CommitLoad(request).ok());
    return Get(name)->table();
  }
  absl::Status View(const std::string& name, const std::vector<proto::Table>& sources,
                    const std::vector<std::string>& names, bool replace = false) {
    proto::ChangeCatalogRequest request;
    proto::CreateEntry& create = *request.mutable_create();
    create.set_replace(replace);
    create.mutable_entry()->set_name(name);
    create.mutable_entry()->add_columns()->set_name("a");
    create.mutable_entry()->mutable_view()->set_query("SELECT …");
    for (const std::string& column : names) create.mutable_entry()->mutable_view()->add_names(column);
    for (const proto::Table& table : sources) {
      create.mutable_entry()->mutable_view()->add_sources(table.name());
      proto::ViewSource& source = *create.add_sources();
      source.set_name(table.name());
      source.set_creation(table.creation());
      for (const proto::Column& column : table.columns()) source.add_columns(column.name());
    }
    return service_->ChangeCatalog(request).status();
  }
  absl::Status Schema(const std::string& name) {
    proto::ChangeCatalogRequest request;
    request.mutable_create()->mutable_entry()->set_name(name + ".");
    request.mutable_create()->mutable_entry()->set_schema(true);
    return service_->ChangeCatalog(request).status();
  }
  absl::Status Rename(const proto::Table& table, const std::string& to) {
    proto::ChangeCatalogRequest request;
    request.mutable_rename()->set_from(table.name());
    request.mutable_rename()->set_to(to);
    request.mutable_rename()->set_creation(table.creation());
    return service_->ChangeCatalog(request).status();
  }
  absl::Status Alter(const proto::Table& table) {
    proto::ChangeCatalogRequest request;
    *request.mutable_alter()->mutable_table() = table;
    request.mutable_alter()->set_expected_version(table.version());
    return service_->ChangeCatalog(request).status();
  }
  absl::Status DropAll(const std::string& name) {
    proto::DropTableRequest request;
    request.set_name(name);
    request.set_cascade(true);
    return service_->DropTable(request).status();
  }
  absl::StatusOr<proto::QuietReply> Quiet(uint32_t member, bool end = false) {
    proto::QuietRequest request;
    request.set_member(member);
    request.set_end(end);
    return service_->Quiet(request);
  }

  absl::StatusOr<std::vector<uint32_t>> EndClients(uint32_t member) {
    proto::QuietRequest request;
    request.set_member(member);
    request.set_ends_clients(true);
    request.set_proof(proofs_[member]);
    const auto reply = service_->Quiet(request);
    if (!reply.ok()) return reply.status();
    return std::vector<uint32_t>(reply->ended().begin(), reply->ended().end());
  }

  uint32_t memory_ = 0, client_ = 0;
};

/// A renamed table keeps its memory, in the catalog that goes on and in one that starts on the store.
TEST_F(ServiceChangesTest, ARenamedTableKeepsItsMemory) {
  const proto::Table table = Load("t");
  const uint64_t append = *BeginExtend(client_, "t");
  EXPECT_EQ(Rename(table, "nam.t").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Rename(table, "s.t").code(), StatusCode::kNotFound) << "there is no such schema";
  ASSERT_TRUE(Rename(table, "u").ok());
  EXPECT_EQ(Get("t").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Renew(memory_, {table.allocation()})->empty()) << "nothing is released";
  EXPECT_TRUE(Append(append, Get("u")->table(), memory_).ok()) << "what was under way goes on";
  Restart();
  EXPECT_EQ(Get("u")->table().creation(), table.creation());
  EXPECT_TRUE(Renew(memory_, {table.allocation()})->empty());
  EXPECT_EQ(Rename(table, "v").code(), StatusCode::kNotFound);
}

TEST_F(ServiceChangesTest, ChangesAreMadeToWhatWasSeen) {
  proto::Table table = Load("t");
  proto::Table other = table;
  other.mutable_columns(0)->set_name("x");
  ASSERT_TRUE(Alter(other).ok());
  EXPECT_EQ(Alter(other).code(), StatusCode::kAborted) << "it has another version by now";
  table = Get("t")->table();
  proto::Table longer = table;
  longer.add_columns()->set_name("c");
  EXPECT_EQ(Alter(longer).code(), StatusCode::kInvalidArgument);
  proto::Table moved = table;
  moved.mutable_partitions(0)->set_head(0, uint64_t{memory_} << 48 | 8'192);
  EXPECT_EQ(Alter(moved).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(View("v", {other}, {"x"}).code(), StatusCode::kOk);
  EXPECT_EQ(View("w", {Load("z"), longer}, {}).code(), StatusCode::kAborted) << "bound to other columns";
}

TEST_F(ServiceChangesTest, WhatAViewReadsStays) {
  const proto::Table table = Load("t");
  ASSERT_TRUE(View("v", {table}, {"a", "c"}).ok());
  const proto::Table view = Get("v")->table();
  ASSERT_TRUE(View("w", {view}, {"a"}).ok());
  for (const std::string name : {"t", "v"})
    EXPECT_EQ(Drop(name).code(), StatusCode::kFailedPrecondition) << name;
  EXPECT_EQ(Rename(table, "u").code(), StatusCode::kFailedPrecondition);
  proto::Table dropped = table, captured = table, unused = table;
  dropped.mutable_columns(0)->set_hidden(true);
  EXPECT_EQ(Alter(dropped).code(), StatusCode::kFailedPrecondition) << "the view names it";
  captured.mutable_columns(1)->set_name("c");
  EXPECT_EQ(Alter(captured).code(), StatusCode::kFailedPrecondition) << "the view's c may be this one then";
  unused.mutable_columns(1)->set_hidden(true);
  EXPECT_TRUE(Alter(unused).ok());
  EXPECT_EQ(View("v", {Get("w")->table()}, {}, /*replace=*/true).code(), StatusCode::kFailedPrecondition)
      << "each would read the other";
  EXPECT_EQ(Begin(client_, "v", /*replace=*/true).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(BeginExtend(client_, "v").status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(DropAll("t").ok());
  for (const std::string name : {"t", "v", "w"}) EXPECT_EQ(Get(name).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*Renew(memory_, {table.allocation()}), std::vector<uint64_t>{table.allocation()});
}

TEST_F(ServiceChangesTest, SchemasGoWithAllThatIsInThem) {
  EXPECT_EQ(Begin(client_, "s.t").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(Schema("s").ok());
  EXPECT_EQ(Schema("s").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Schema("nam").code(), StatusCode::kPermissionDenied);
  const uint64_t late = *Begin(client_, "s.late");
  const proto::Table table = Load("s.t");
  Load("st");
  ASSERT_TRUE(View("v", {table}, {"a"}).ok());
  EXPECT_EQ(Drop("s.").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(DropAll("s.").ok());
  for (const std::string name : {"s.", "s.t", "v"})
    EXPECT_EQ(Get(name).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Get("st").ok());
  EXPECT_EQ(Commit(late, "s.late").status().code(), StatusCode::kNotFound) << "its schema has gone";
}

TEST_F(ServiceChangesTest, ABackupHoldsChangesUp) {
  const proto::Table table = Load("t");
  const uint64_t load = *Begin(client_, "u");
  const uint32_t backup = Join(proto::ROLE_CLIENT);
  EXPECT_EQ(Quiet(backup)->loads_size(), 1);
  EXPECT_EQ(Quiet(client_).status().code(), StatusCode::kFailedPrecondition) << "one at a time";
  EXPECT_EQ(Begin(client_, "x").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(BeginExtend(client_, "t").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Drop("t").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Rename(table, "z").code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Begin(client_, "nam.work." + std::to_string(client_)).ok()) << "queries go on";
  const auto beside = Begin(client_, "u");
  EXPECT_TRUE(beside.ok()) << "its load goes on, with further allocations";
  EXPECT_EQ(Begin(Join(proto::ROLE_CLIENT), "u").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Abort(*beside).ok());
  EXPECT_TRUE(Commit(load, "u", {memory_}).ok()) << "what was under way ends";
  EXPECT_EQ(Quiet(backup)->loads_size(), 0);
  EXPECT_TRUE(Quiet(backup, /*end=*/true).ok());
  EXPECT_EQ(Quiet(backup, /*end=*/true).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Drop("t").ok());
}

/// A member that stops the cluster is its last client, until it says that the cluster goes on, or is gone.
TEST_F(ServiceChangesTest, ClientsEndBeforeTheClusterDoes) {
  const uint32_t other = Join(proto::ROLE_CLIENT), compute = Join(proto::ROLE_COMPUTE);
  const uint32_t last = Join(proto::ROLE_CLIENT), late = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Quiet(other).ok()) << "a backup ends with its client";
  const std::string proof = std::exchange(proofs_[last], "another");
  EXPECT_EQ(EndClients(last).status().code(), StatusCode::kNotFound) << "any process may call";
  EXPECT_TRUE(Renew(client_).ok());
  proofs_[last] = proof;
  EXPECT_THAT(*EndClients(last), testing::ElementsAre(client_, other, late));
  for (const uint32_t ended : {client_, other, late})
    EXPECT_EQ(Renew(ended).status().code(), StatusCode::kNotFound) << ended;
  for (const uint32_t stays : {memory_, compute, last}) EXPECT_TRUE(Renew(stays).ok()) << stays;
  const absl::Status refused = TryJoin(proto::ROLE_CLIENT).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(IsClosedToClients(refused));
  EXPECT_EQ(Begin(compute, "t").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Begin(last, "nam.work." + std::to_string(last)).ok()) << "it reads what it saves";
  EXPECT_TRUE(TryJoin(proto::ROLE_COMPUTE).ok()) << "servers are restarted";
  EXPECT_THAT(*EndClients(last), testing::IsEmpty());
  EXPECT_TRUE(Quiet(last, /*end=*/true).ok());
  EXPECT_TRUE(Renew(Join(proto::ROLE_CLIENT)).ok());

  ASSERT_TRUE(EndClients(last).ok());
  EXPECT_FALSE(TryJoin(proto::ROLE_CLIENT).ok());
  for (int ms = 0; ms < kLeaseMs + 1'000; ms += 500) {
    clock_.AdvanceMs(500);
    for (const uint32_t member : {memory_, compute}) ASSERT_TRUE(Renew(member).ok());
  }
  EXPECT_TRUE(TryJoin(proto::ROLE_CLIENT).ok()) << "it is gone, and the cluster is not";
}

TEST_F(ServiceChangesTest, SavedRecordsCountOnlyWhileNobodyElseCanChangeThem) {
  const uint32_t last = Join(proto::ROLE_CLIENT);
  const auto mark = [&](uint64_t number, uint32_t closed_by) {
    proto::ChangeCatalogRequest request;
    request.mutable_saved()->set_number(number);
    request.mutable_saved()->set_closed_by(closed_by);
    return service_->ChangeCatalog(request).status();
  };
  EXPECT_TRUE(absl::IsAborted(mark(7, last))) << "clients are not kept out";
  ASSERT_TRUE(Quiet(last).ok());
  EXPECT_TRUE(absl::IsAborted(mark(7, last))) << "a backup keeps no client out";
  ASSERT_TRUE(EndClients(last).ok());
  EXPECT_TRUE(absl::IsAborted(mark(7, client_))) << "not for this one";
  EXPECT_TRUE(mark(7, last).ok());
  EXPECT_EQ(service_->GetCluster({})->saved_records(), 7u);
  EXPECT_TRUE(Quiet(last, /*end=*/true).ok());
  EXPECT_TRUE(absl::IsAborted(mark(8, last))) << "not any more";
  EXPECT_TRUE(mark(0, 0).ok());
  EXPECT_EQ(service_->GetCluster({})->saved_records(), 0u);
}

TEST_F(ServiceChangesTest, ABackupEndsWithItsLease) {
  const uint32_t backup = Join(proto::ROLE_CLIENT);
  ASSERT_TRUE(Quiet(backup).ok());
  for (int ms = 0; ms < kLeaseMs + 1'000; ms += 500) {
    clock_.AdvanceMs(500);
    for (const uint32_t member : {memory_, client_}) ASSERT_TRUE(Renew(member).ok());
  }
  EXPECT_TRUE(Begin(client_, "x").ok());
  EXPECT_FALSE(Quiet(backup, /*end=*/true).ok());
}

}  // namespace
}  // namespace nam::catalog
