#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catalog/service_fixture.h"

/// The end of loads into empty record tables: the table gets the storage that its load has filled.
namespace nam::catalog {
namespace {

class ServiceFillsTest : public ServiceTest {
 protected:
  ServiceFillsTest() {
    memory_ = Join(proto::ROLE_MEMORY);
    loader_ = Join(proto::ROLE_CLIENT);
    other_ = Join(proto::ROLE_CLIENT);
    stock_ = Create(other_, "stock", "by_a");
    hidden_ = absl::StrCat("nam.load.", loader_, ".1");
    filled_ = Create(loader_, hidden_, hidden_ + ".by_a");
    others_hidden_ = absl::StrCat("nam.load.", other_, ".1");
    others_ = Create(other_, others_hidden_, others_hidden_ + ".by_a");
  }
  /// A table with an index that is usable; returns its allocation.
  uint64_t Create(uint32_t client, const std::string& name, const std::string& index) {
    proto::CommitLoadRequest request;
    proto::Table& table = *request.mutable_table();
    table.set_name(name);
    table.set_allocation(*Begin(client, name));
    table.add_columns()->set_name("a");
    table.mutable_record()->set_row_bytes(64);
    table.mutable_record()->set_key_bytes(8);
    table.mutable_record()->set_versions(1);
    table.mutable_record()->set_extent_bytes(8'192);
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name("rows");
    AddExtent(memory_, table.allocation(), *part.mutable_extents());
    EXPECT_EQ(service_->CommitLoad(request).status(), absl::OkStatus());
    const auto extension = BeginExtend(client, name);
    EXPECT_EQ(AddIndex(*extension, memory_, index), absl::OkStatus());
    proto::ChangePartRequest usable = Change(index, *extension);
    usable.set_table(name);
    usable.set_usable_from(3);
    EXPECT_EQ(service_->ChangePart(usable).status(), absl::OkStatus());
    return table.allocation();
  }
  proto::FillTable Step(uint32_t member) {
    proto::FillTable fill;
    fill.set_table("stock");
    fill.set_allocation(stock_);
    fill.set_member(member);
    fill.set_load(member == other_ ? others_hidden_ : hidden_);
    return fill;
  }
  absl::StatusCode Apply(const proto::FillTable& fill) {
    proto::ChangeCatalogRequest request;
    *request.mutable_fill()->add_steps() = fill;
    return service_->ChangeCatalog(request).status().code();
  }
  absl::StatusCode Close(uint32_t member, bool close = true) {
    proto::FillTable fill = Step(member);
    fill.set_close(close);
    return Apply(fill);
  }
  absl::StatusCode Fill(uint32_t member) {
    proto::FillTable fill = Step(member);
    fill.set_fill(true);
    fill.set_loaded_at(7);
    return Apply(fill);
  }
  uint64_t ClosedBy() { return Get("stock")->table().record().closed_by(); }

  uint32_t memory_ = 0, loader_ = 0, other_ = 0;
  uint64_t stock_ = 0, filled_ = 0, others_ = 0;
  std::string hidden_, others_hidden_;
};

TEST_F(ServiceFillsTest, ATableGetsTheStorageThatWasFilled) {
  const uint64_t version = Cluster().version();
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  EXPECT_EQ(ClosedBy(), filled_);
  EXPECT_GT(Cluster().version(), version) << "who binds a statement hears of it";
  Restart();
  EXPECT_EQ(ClosedBy(), filled_);
  ASSERT_EQ(Fill(loader_), absl::StatusCode::kOk);
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    const proto::Table table = Get("stock")->table();
    EXPECT_NE(table.allocation(), stock_) << "clients take it for another table";
    EXPECT_NE(table.allocation(), filled_);
    EXPECT_EQ(table.record().loaded_at(), 7u);
    EXPECT_EQ(table.record().closed_by(), 0u);
    ASSERT_EQ(table.record().parts_size(), 2);
    EXPECT_EQ(table.record().parts(0).extents(0).allocation(), filled_);
    EXPECT_EQ(table.record().parts(1).name(), "by_a");
    EXPECT_FALSE(Get(hidden_).ok());
    const auto released = Renew(memory_, {stock_, filled_});
    ASSERT_TRUE(released.ok()) << released.status();
    EXPECT_EQ(*released, std::vector<uint64_t>{stock_}) << "of both tables' memory one is over";
  }
  const uint64_t filled = Get("stock")->table().version();
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kOk) << "its answer was lost";
  EXPECT_EQ(Get("stock")->table().version(), filled);
  EXPECT_EQ(Close(loader_, false), absl::StatusCode::kAborted) << "it is another table by now";
  EXPECT_TRUE(Drop("stock").ok());
}

TEST_F(ServiceFillsTest, OneLoadClosesATable) {
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kAborted) << "others may write it";
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  EXPECT_EQ(Close(other_), absl::StatusCode::kAborted);
  EXPECT_EQ(Close(other_, false), absl::StatusCode::kAborted);
  EXPECT_EQ(Fill(other_), absl::StatusCode::kAborted);
  EXPECT_EQ(ClosedBy(), filled_);
  ASSERT_EQ(Close(loader_, false), absl::StatusCode::kOk);
  EXPECT_EQ(ClosedBy(), 0u);
  ASSERT_EQ(Close(other_), absl::StatusCode::kOk);
  proto::FillTable foreign = Step(other_);
  foreign.set_load(hidden_);
  foreign.set_fill(true);
  foreign.set_loaded_at(7);
  EXPECT_EQ(Apply(foreign), absl::StatusCode::kInvalidArgument) << "the storage is another's";
  EXPECT_EQ(ClosedBy(), others_);
}

TEST_F(ServiceFillsTest, LoadsOfOneMemberAreTold) {
  proto::FillTable second = Step(loader_);
  second.set_load(absl::StrCat("nam.load.", loader_, ".2"));
  Create(loader_, second.load(), second.load() + ".by_a");
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  for (const bool close : {true, false}) {
    second.set_close(close);
    EXPECT_EQ(Apply(second), absl::StatusCode::kAborted) << "the first one has closed it";
  }
  EXPECT_EQ(ClosedBy(), filled_);
  second.set_fill(true);
  second.set_loaded_at(7);
  EXPECT_EQ(Apply(second), absl::StatusCode::kAborted);
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kOk);
}

TEST_F(ServiceFillsTest, SeveralTablesAreFilledAtOnceOrNone) {
  const std::string hidden = absl::StrCat("nam.load.", loader_, ".2");
  proto::FillTable shop = Step(loader_);
  shop.set_table("shop");
  shop.set_allocation(Create(other_, "shop", "shop_by_a"));
  shop.set_load(hidden);
  Create(loader_, hidden, hidden + ".shop_by_a");
  proto::ChangeCatalogRequest both;
  for (const proto::FillTable& one : {Step(loader_), shop}) *both.mutable_fill()->add_steps() = one;
  const auto apply = [&] { return service_->ChangeCatalog(both).status().code(); };
  for (proto::FillTable& step : *both.mutable_fill()->mutable_steps()) step.set_close(true);
  ASSERT_EQ(apply(), absl::StatusCode::kOk);
  for (proto::FillTable& step : *both.mutable_fill()->mutable_steps()) {
    step.set_fill(true);
    step.set_loaded_at(7);
  }
  both.mutable_fill()->mutable_steps(1)->set_load(hidden_);
  EXPECT_EQ(apply(), absl::StatusCode::kAborted) << "not the second table's";
  EXPECT_EQ(Get("stock")->table().allocation(), stock_);
  both.mutable_fill()->mutable_steps(1)->set_load(hidden);
  EXPECT_EQ(apply(), absl::StatusCode::kOk);
  EXPECT_EQ(Get("stock")->table().record().loaded_at(), 7u);
  EXPECT_EQ(Get("shop")->table().record().loaded_at(), 7u);
  EXPECT_FALSE(Get(hidden).ok() || Get(hidden_).ok());
  EXPECT_EQ(apply(), absl::StatusCode::kOk) << "its answer was lost";
}

TEST_F(ServiceFillsTest, ALoadEndsWithItsMember) {
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  clock_.AdvanceMs(kLeaseMs - 1);
  ASSERT_TRUE(Renew(memory_).ok() && Renew(other_).ok());
  EXPECT_EQ(ClosedBy(), filled_);
  clock_.AdvanceMs(1);
  ASSERT_TRUE(Renew(other_).ok());
  EXPECT_EQ(ClosedBy(), 0u);
  EXPECT_FALSE(Get(hidden_).ok());
  EXPECT_EQ(*Renew(memory_, {stock_, filled_}), std::vector<uint64_t>{filled_});
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kNotFound);
  EXPECT_EQ(Close(other_), absl::StatusCode::kOk);
  proto::LeaveRequest leave;
  leave.set_id(other_);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_EQ(ClosedBy(), 0u);
}

TEST_F(ServiceFillsTest, AnIndexThatIsBeingFilledLeavesWithItsBuilder) {
  const auto dead = BeginExtend(loader_), living = BeginExtend(other_),
             hidden = BeginExtend(loader_, hidden_);
  ASSERT_TRUE(dead.ok() && living.ok() && hidden.ok());
  ASSERT_EQ(AddIndex(*dead, memory_, "by_b"), absl::OkStatus());
  ASSERT_EQ(AddIndex(*living, memory_, "by_c"), absl::OkStatus());
  ASSERT_EQ(AddIndex(*hidden, memory_, hidden_ + ".by_b"), absl::OkStatus());
  const auto part = [&](int i) { return Get("stock")->table().record().parts(i); };
  EXPECT_EQ(part(2).builder(), loader_);
  proto::LeaveRequest leave;
  leave.set_id(loader_);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    EXPECT_FALSE(part(1).leaving()) << "it is complete";
    EXPECT_TRUE(part(2).leaving());
    EXPECT_EQ(part(2).builder(), 0u);
    EXPECT_FALSE(part(3).leaving());
    EXPECT_EQ(part(3).builder(), other_);
    EXPECT_FALSE(Get(hidden_).ok());
    EXPECT_TRUE(Renew(memory_, {*dead})->empty()) << "commits under way may write to it";
  }
  proto::ChangePartRequest late = Change("by_b", *dead);
  late.set_usable_from(9);
  EXPECT_EQ(service_->ChangePart(late).status().code(), absl::StatusCode::kAborted) << "a stalled builder";
  proto::ChangePartRequest usable = Change("by_c", *living);
  usable.set_usable_from(9);
  EXPECT_EQ(service_->ChangePart(usable).status(), absl::OkStatus());
  EXPECT_EQ(part(3).builder(), 0u);
  leave.set_id(other_);
  ASSERT_TRUE(ProvenLeave(leave).ok());
  EXPECT_FALSE(part(3).leaving());
  late.set_remove(true);
  EXPECT_EQ(service_->ChangePart(late).status(), absl::OkStatus()) << "any member may";
}

TEST_F(ServiceFillsTest, ATableThatWasAlteredGetsNothing) {
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  const auto extension = BeginExtend(other_);
  ASSERT_TRUE(extension.ok());
  ASSERT_EQ(AddIndex(*extension, memory_, "more"), absl::OkStatus());
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kAborted) << "it has an index more";
  proto::ChangePartRequest remove = Change("more", *extension);
  remove.set_remove(true);
  ASSERT_TRUE(service_->ChangePart(remove).ok());
  proto::ChangeCatalogRequest alter;
  *alter.mutable_alter()->mutable_table() = Get("stock")->table();
  alter.mutable_alter()->set_expected_version(Get("stock")->table().version());
  alter.mutable_alter()->mutable_table()->mutable_columns(0)->set_name("b");
  ASSERT_TRUE(service_->ChangeCatalog(alter).ok());
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kAborted) << "its column has another name";
  EXPECT_EQ(ClosedBy(), filled_);
}

TEST_F(ServiceFillsTest, ABackupMeetsNoEndOfALoad) {
  proto::QuietRequest quiet;
  quiet.set_member(other_);
  ASSERT_EQ(Close(loader_), absl::StatusCode::kOk);
  ASSERT_TRUE(service_->Quiet(quiet).ok());
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Close(loader_, false), absl::StatusCode::kOk) << "the load is given up";
  EXPECT_EQ(Close(loader_), absl::StatusCode::kFailedPrecondition);
  quiet.set_end(true);
  ASSERT_TRUE(service_->Quiet(quiet).ok());
  EXPECT_EQ(Close(loader_), absl::StatusCode::kOk);
  EXPECT_EQ(Fill(loader_), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace nam::catalog
