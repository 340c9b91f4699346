#include <gtest/gtest.h>

#include <string>

#include "tests/catalog/service_fixture.h"

/// Foreign keys in the catalog: a parent knows its children while there are any.
namespace nam::catalog {
namespace {

class ServiceReferencesTest : public ServiceTest {
 protected:
  void Join() {
    memory_ = ServiceTest::Join(proto::ROLE_MEMORY);
    client_ = ServiceTest::Join(proto::ROLE_CLIENT);
  }
  proto::Table TableOf(const std::string& name) {
    proto::Table table;
    table.set_name(name);
    table.set_allocation(*Begin(client_, name));
    table.add_columns()->set_name("a");
    table.add_columns()->set_name("b");
    table.mutable_record()->set_row_bytes(64);
    table.mutable_record()->set_key_bytes(8);
    table.mutable_record()->set_versions(1);
    table.mutable_record()->set_extent_bytes(8'192);
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name("rows");
    AddExtent(memory_, table.allocation(), *part.mutable_extents());
    return table;
  }
  /// From column b to column a.
  static void AddKey(proto::Table& child, const std::string& name, const std::string& parent,
                     uint64_t allocation, const std::string& parent_index = "") {
    proto::ForeignKey& key = *child.mutable_record()->add_foreign_keys();
    key.set_name(name);
    key.add_columns(1);
    key.set_parent(parent);
    key.set_parent_allocation(allocation);
    key.add_parent_columns(0);
    key.set_parent_index(parent_index);
    key.set_index(name);
  }
  absl::Status Create(const proto::Table& table) {
    proto::CommitLoadRequest request;
    *request.mutable_table() = table;
    return service_->CommitLoad(request).status();
  }
  absl::Status Leave(const std::string& name) {
    proto::DropTableRequest request;
    request.set_name(name);
    request.set_leaving(true);
    return service_->DropTable(request).status();
  }
  std::string ReferencesTo(const std::string& parent) {
    std::string shown;
    const proto::Table table = Get(parent)->table();
    for (const proto::ReferencingKey& reference : table.record().referenced_by()) {
      shown += reference.child() + "." + reference.key().name() + " ";
      EXPECT_EQ(reference.key().parent_allocation(), table.allocation());
    }
    return shown;
  }

  uint32_t memory_ = 0, client_ = 0;
};

TEST_F(ServiceReferencesTest, AParentKnowsItsChildren) {
  Join();
  const proto::Table parent = TableOf("p");
  ASSERT_TRUE(Create(parent).ok());
  const uint64_t before = Get("p")->table().version();
  proto::Table child = TableOf("c");
  AddKey(child, "one", "p", parent.allocation());
  AddKey(child, "two", "p", parent.allocation());
  AddKey(child, "self", "c", 0);
  ASSERT_TRUE(Create(child).ok());
  EXPECT_EQ(ReferencesTo("p"), "c.one c.two ");
  EXPECT_EQ(ReferencesTo("c"), "c.self ");
  EXPECT_GT(Get("p")->table().version(), before) << "who has it cached hears of it";
  EXPECT_EQ(Cluster().version(), Get("p")->table().version());
  Restart();
  EXPECT_EQ(ReferencesTo("p"), "c.one c.two ");
  const absl::Status refused = Drop("p");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("constraint `one` on table `c`"), absl::string_view::npos) << refused;
  EXPECT_EQ(Begin(client_, "p", /*replace=*/true).status(), absl::OkStatus());
  ASSERT_TRUE(Drop("c").ok());
  EXPECT_EQ(ReferencesTo("p"), "");
  EXPECT_TRUE(Drop("p").ok());
}

/// A replacement of the parent would have none of the rows.
TEST_F(ServiceReferencesTest, AParentIsNotReplaced) {
  Join();
  const proto::Table parent = TableOf("p");
  ASSERT_TRUE(Create(parent).ok());
  proto::Table child = TableOf("c");
  AddKey(child, "key", "p", parent.allocation());
  ASSERT_TRUE(Create(child).ok());
  proto::Table other = TableOf("q");
  other.set_name("p");
  other.set_allocation(*Begin(client_, "p", /*replace=*/true));
  other.mutable_record()->mutable_parts(0)->mutable_extents(0)->set_allocation(other.allocation());
  EXPECT_EQ(Create(other).code(), absl::StatusCode::kFailedPrecondition);
  other.set_name("c");
  other.set_allocation(*Begin(client_, "c", /*replace=*/true));
  other.mutable_record()->mutable_parts(0)->mutable_extents(0)->set_allocation(other.allocation());
  ASSERT_TRUE(Create(other).ok());
  EXPECT_EQ(ReferencesTo("p"), "") << "the child was replaced";
}

/// The parent that the child's creator checked must exist when the child is created.
TEST_F(ServiceReferencesTest, AParentThatWasDroppedMeanwhile) {
  Join();
  const proto::Table parent = TableOf("p");
  ASSERT_TRUE(Create(parent).ok());
  proto::Table child = TableOf("c");
  AddKey(child, "key", "p", parent.allocation() + 1'000);
  EXPECT_EQ(Create(child).code(), absl::StatusCode::kAborted);
  child.mutable_record()->clear_foreign_keys();
  AddKey(child, "key", "p", parent.allocation(), "by_a");
  EXPECT_EQ(Create(child).code(), absl::StatusCode::kAborted) << "its index";
  child.mutable_record()->clear_foreign_keys();
  AddKey(child, "key", "p", parent.allocation());
  child.mutable_record()->mutable_foreign_keys(0)->set_columns(0, 2);
  EXPECT_EQ(Create(child).code(), absl::StatusCode::kInvalidArgument);
  child.mutable_record()->mutable_foreign_keys(0)->set_columns(0, 1);
  EXPECT_TRUE(Create(child).ok());
}

TEST_F(ServiceReferencesTest, AChildLeavesBeforeItGoes) {
  Join();
  const proto::Table parent = TableOf("p");
  ASSERT_TRUE(Create(parent).ok());
  proto::Table child = TableOf("c");
  AddKey(child, "key", "p", parent.allocation());
  AddKey(child, "self", "c", 0);
  ASSERT_TRUE(Create(child).ok());
  for (int asked = 0; asked < 2; ++asked) {
    ASSERT_TRUE(Leave("c").ok());
    EXPECT_EQ(ReferencesTo("p"), "");
    EXPECT_EQ(ReferencesTo("c"), "");
    const proto::Table left = Get("c")->table();
    for (const proto::ForeignKey& key : left.record().foreign_keys()) EXPECT_TRUE(key.leaving());
  }
  EXPECT_TRUE(Drop("c").ok());
}

/// Indexes that foreign keys use stay: the child's, and the parent's.
TEST_F(ServiceReferencesTest, AnIndexOfAForeignKeyStays) {
  Join();
  proto::Table parent = TableOf("stock");
  proto::RecordPart& unique = *parent.mutable_record()->add_parts();
  unique.set_name("by_a");
  unique.set_kind(proto::ORDERED_INDEX);
  unique.set_unique(true);
  AddExtent(memory_, parent.allocation(), *unique.mutable_extents());
  ASSERT_TRUE(Create(parent).ok());
  proto::Table child = TableOf("c");
  AddKey(child, "key", "stock", parent.allocation(), "by_a");
  proto::RecordPart& index = *child.mutable_record()->add_parts();
  index.set_name("key");
  index.set_kind(proto::ORDERED_INDEX);
  AddExtent(memory_, child.allocation(), *index.mutable_extents());
  ASSERT_TRUE(Create(child).ok());
  proto::ChangePartRequest change = Change("by_a", parent.allocation());
  change.set_leaving(true);
  const absl::Status refused = service_->ChangePart(change).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), "cannot drop index by_a because constraint key on table c requires it");
  proto::ChangePartRequest own = Change("key", child.allocation());
  own.set_table("c");
  own.set_leaving(true);
  EXPECT_EQ(service_->ChangePart(own).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Leave("c").ok());
  EXPECT_TRUE(service_->ChangePart(change).ok());
}

}  // namespace
}  // namespace nam::catalog
