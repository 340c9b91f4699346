#include "ssb/schema.h"

#include <set>

#include "gtest/gtest.h"

namespace nam::ssb {
namespace {

TEST(SchemaTest, FiveTablesWithTheSpecifiedColumns) {
  ASSERT_EQ(Tables().size(), 5u);
  const size_t columns[] = {8, 7, 9, 17, 17};
  std::set<std::string> names;
  for (Table table : kAllTables) {
    const partitioner::TableSchema& schema = Tables()[table].schema;
    EXPECT_EQ(schema.name, TableName(table));
    EXPECT_EQ(schema.columns.size(), columns[table]) << schema.name;
    for (const auto& column : schema.columns) {
      EXPECT_TRUE(names.insert(column.name).second) << column.name;
      EXPECT_FALSE(column.nullable);
      EXPECT_TRUE(column.type == Type::Integer() || column.type.length > 0) << column.name;
    }
  }
}

TEST(SchemaTest, Partitioning) {
  const auto lineorder = Schema(Table::kLineorder, 4);
  ASSERT_EQ(lineorder.partitioning.size(), 3u);
  EXPECT_EQ(lineorder.partitioning[0].column, "lo_custkey");
  EXPECT_EQ(lineorder.partitioning[1].column, "lo_suppkey");
  EXPECT_EQ(lineorder.partitioning[2].column, "lo_partkey");
  EXPECT_EQ(lineorder.partitioning[2].parts, 4u);
  EXPECT_EQ(lineorder.sort_column, "lo_orderdate");
  EXPECT_TRUE(Schema(Table::kDate).partitioning.empty());
  EXPECT_EQ(Schema(Table::kPart).partitioning[0].parts, 8u);
  EXPECT_EQ(Schema(kCustomer, 2).partitioning[0].column, "c_custkey");
  EXPECT_EQ(Schema(kSupplier, 2).partitioning[0].parts, 2u);
}

}  // namespace
}  // namespace nam::ssb
