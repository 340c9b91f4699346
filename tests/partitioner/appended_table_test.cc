#include "partitioner/appended_table.h"

#include <gtest/gtest.h>

#include "catalog/chain_groups.h"
#include "types/sql_error.h"

namespace nam::partitioner {
namespace {

/// A table of one integer column and two partitions.
proto::Table TableOf(uint64_t allocation, uint64_t rows, int64_t min, int64_t max, uint64_t distinct) {
  proto::Table table;
  table.set_name("t");
  table.set_allocation(allocation);
  table.set_rows(rows);
  table.set_pointer_group(32);
  proto::PartitionKey& by = *table.add_partitioning();
  by.set_column("a");
  by.set_parts(2);
  proto::Column& column = *table.add_columns();
  column.set_name("a");
  column.mutable_encoding()->set_width(4);
  column.mutable_encoding()->set_base(min);
  column.set_min(min);
  column.set_max(max);
  column.set_distinct(distinct);
  column.set_unique(rows == distinct);
  for (int p = 0; p < 2; ++p) table.add_partitions()->set_rows(rows / 2);
  proto::ServerUsage& usage = *table.add_usage();
  usage.set_server(1);
  usage.set_bytes(100);
  return table;
}

TEST(AppendedTable, KeepsWhatIsThereAndAddsAGroup) {
  const proto::Table first = TableOf(7, 10, 100, 120, 10);
  const proto::Table both = *AppendedTable(first, TableOf(8, 4, -5, 110, 4));
  EXPECT_EQ(both.rows(), 14u);
  EXPECT_EQ(both.allocation(), 8u);
  EXPECT_EQ(both.partitions_size(), 4);
  ASSERT_EQ(catalog::GroupCount(both), 2u);
  EXPECT_EQ(catalog::GroupAllocation(both, 0), 7u);
  EXPECT_EQ(catalog::GroupAllocation(both, 1), 8u);
  EXPECT_EQ(catalog::GroupColumnOf(both, 0, 0).encoding().base(), 100);
  EXPECT_EQ(catalog::GroupColumnOf(both, 0, 0).min(), 100) << "codes of a group are within its own bounds";
  EXPECT_EQ(catalog::GroupColumnOf(both, 1, 0).encoding().base(), -5);
  EXPECT_EQ(both.columns(0).min(), -5);
  EXPECT_EQ(both.columns(0).max(), 120);
  EXPECT_FALSE(both.columns(0).unique()) << "their ranges overlap";
  EXPECT_EQ(both.usage(0).bytes(), 200u);
  const proto::Table three = *AppendedTable(both, TableOf(9, 2, 500, 501, 2));
  EXPECT_EQ(catalog::GroupCount(three), 3u);
  EXPECT_EQ(three.columns(0).distinct(), 16u);
}

TEST(AppendedTable, ValuesOfRangesThatLieApartStayUnique) {
  const proto::Table both = *AppendedTable(TableOf(7, 10, 1, 10, 10), TableOf(8, 4, 11, 20, 4));
  EXPECT_TRUE(both.columns(0).unique());
  EXPECT_FALSE(AppendedTable(both, TableOf(9, 4, 30, 40, 3))->columns(0).unique());
}

TEST(AppendedTable, AnEmptyTableIsReplaced) {
  proto::Table group = TableOf(8, 4, -5, 10, 4), empty = TableOf(7, 0, 0, 0, 0);
  empty.set_creation(5);
  const proto::Table both = *AppendedTable(empty, group);
  group.set_creation(5);
  EXPECT_EQ(both.SerializeAsString(), group.SerializeAsString());
}

TEST(AppendedTable, OtherColumnsAreRefused) {
  proto::Table other = TableOf(8, 4, 1, 2, 2);
  other.mutable_columns(0)->set_nullable(true);
  EXPECT_EQ(AppendedTable(TableOf(7, 1, 1, 1, 1), other).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(AppendedTable, GroupsAreBounded) {
  proto::Table table = TableOf(1, 2, 1, 2, 2);
  uint64_t allocation = 2;
  for (; catalog::GroupCount(table) < kGroupsMax; ++allocation)
    table = *AppendedTable(table, TableOf(allocation, 2, 1, 2, 2));
  const absl::Status full = AppendedTable(table, TableOf(allocation, 2, 1, 2, 2)).status();
  ASSERT_TRUE(SqlErrorOf(full).has_value());
  EXPECT_EQ(SqlErrorOf(full)->sqlstate, "54000");
  EXPECT_EQ(SqlErrorOf(full)->hint,
            "VACUUM t makes one group of them; SET nam.compaction = on merges them in the "
            "background");
}

TEST(AppendedTable, DescriptionsAreBounded) {
  proto::Table table = TableOf(1, 2, 1, 2, 2), group = TableOf(2, 2, 1, 2, 2);
  for (proto::Table* const one : {&table, &group}) {
    one->mutable_partitioning(0)->set_parts(1 << 16);
    one->clear_partitions();
    for (int p = 0; p < 1 << 16; ++p) {
      proto::Chain& chain = *one->add_partitions();
      for (int i = 0; i < 8; ++i) chain.add_head(UINT64_MAX);
    }
  }
  const absl::Status full = AppendedTable(table, group).status();
  ASSERT_TRUE(SqlErrorOf(full).has_value());
  EXPECT_EQ(SqlErrorOf(full)->sqlstate, "54000");
  EXPECT_EQ(SqlErrorOf(full)->message,
            "the description of table \"t\" has no room for 2 groups of 65536 partitions");
}

TEST(AppendedTable, RoomForGroupsIsLimitedByTheirNumberAndTheirChains) {
  proto::Table table = TableOf(1, 2, 1, 2, 2);
  EXPECT_TRUE(HasRoomFor(table, kGroupsMax - 1));
  EXPECT_FALSE(HasRoomFor(table, kGroupsMax));
  EXPECT_TRUE(HasRoomFor(TableOf(1, 0, 0, 0, 0), kGroupsMax)) << "it has no group yet";
  table.mutable_partitioning(0)->set_parts(1 << 14);
  EXPECT_TRUE(HasRoomFor(table, 4));
  EXPECT_FALSE(HasRoomFor(table, 8));
  table.mutable_columns(0)->set_default_expression(std::string(kDescriptionBytesMax / 2, 'x'));
  EXPECT_FALSE(HasRoomFor(table, 1)) << "of what is described already";
}

/// A column without values in a group has the bounds 0 and 0 there.
TEST(AppendedTable, BoundsAreThoseOfTheGroupsWhateverIsCutBack) {
  proto::Table no_values = TableOf(8, 4, 0, 0, 0);
  no_values.mutable_columns(0)->set_nulls(4);
  const proto::Table two = *AppendedTable(TableOf(7, 10, 100, 120, 10), no_values);
  proto::Table three = *AppendedTable(two, TableOf(9, 4, 110, 150, 4));
  ASSERT_TRUE(catalog::CutBackTo(8, three));
  EXPECT_EQ(three.columns(0).min(), two.columns(0).min());
  EXPECT_EQ(three.columns(0).max(), two.columns(0).max());
}

TEST(AppendedTable, ItMayBeCutBackToBeforeItsFirstRows) {
  proto::Table empty = TableOf(7, 0, 0, 0, 0);
  empty.set_creation(7);
  proto::Table table = *AppendedTable(empty, TableOf(8, 4, -5, 10, 4));
  ASSERT_TRUE(catalog::CutBackTo(7, table));
  EXPECT_EQ(table.allocation(), 7u);
  EXPECT_EQ(table.rows(), 0u);
  EXPECT_EQ(table.partitions_size(), 2);
  EXPECT_EQ(table.partitions(0).blocks(), 0u);
  EXPECT_EQ(table.columns(0).max(), 0);
}

TEST(AppendedTable, OtherPartitionsAreRefused) {
  proto::Table other = TableOf(8, 4, 1, 2, 2);
  other.mutable_partitioning(0)->set_parts(4);
  EXPECT_FALSE(AppendedTable(TableOf(7, 1, 1, 1, 1), other).ok());
  other = TableOf(8, 4, 1, 2, 2);
  other.set_sort_column("a");
  EXPECT_FALSE(AppendedTable(TableOf(7, 1, 1, 1, 1), other).ok());
}

TEST(AppendedTable, ItMayBeCutBackToAnEarlierVersion) {
  const proto::Table first = TableOf(7, 10, 100, 120, 10);
  const proto::Table two = *AppendedTable(first, TableOf(8, 4, -5, 110, 4));
  proto::Table table = *AppendedTable(two, TableOf(9, 6, 1000, 2000, 6));
  ASSERT_TRUE(catalog::CutBackTo(8, table));
  EXPECT_EQ(table.rows(), 14u);
  EXPECT_EQ(table.partitions_size(), 4);
  EXPECT_EQ(catalog::GroupCount(table), 2u);
  EXPECT_EQ(table.allocation(), 8u);
  EXPECT_EQ(table.columns(0).min(), two.columns(0).min()) << "plans compare bounds";
  EXPECT_EQ(table.columns(0).max(), two.columns(0).max());
  ASSERT_TRUE(catalog::CutBackTo(7, table));
  EXPECT_EQ(table.columns(0).min(), 100);
  EXPECT_EQ(table.rows(), 10u);
  EXPECT_EQ(catalog::GroupAllocation(table, 0), 7u);
  EXPECT_FALSE(catalog::CutBackTo(8, table));
}

}  // namespace
}  // namespace nam::partitioner
