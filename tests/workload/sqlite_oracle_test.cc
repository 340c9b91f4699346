#include "workload/sqlite_oracle.h"

#include "gtest/gtest.h"

namespace nam {
namespace {

partitioner::TableSchema Schema() {
  return {.name = "t",
          .columns = {{"id", Type::Integer()},
                      {"unused", Type::Integer()},
                      {"name", Type::String(), true},
                      {"day", Type::Date()}}};
}

partitioner::ColumnBatch Batch() {
  partitioner::ColumnBatch batch(4);
  batch.column(0).numbers = {1, 2, 3};
  batch.column(1).numbers = {9, 9, 9};
  batch.column(2).strings = {"b", "", "it's"};
  batch.column(2).nulls = {0, 1, 0};
  batch.column(3).numbers = {0, 1, 2};
  batch.set_rows(3);
  return batch;
}

TEST(SqliteOracleTest, AnswersFromTheRowsItWasGiven) {
  auto oracle = SqliteOracle::Open().value();
  ASSERT_TRUE(oracle->CreateTable(Schema(), {"SELECT name, sum(id) FROM t GROUP BY name", "day"}, "id").ok());
  ASSERT_TRUE(oracle->Append("t", Batch()).ok());
  ASSERT_TRUE(oracle->Commit().ok());
  const auto rows = oracle->Run("SELECT name, id, day FROM t ORDER BY id").value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0][0].text, "b");
  EXPECT_TRUE(rows[1][0].null);
  EXPECT_EQ(rows[2][0].text, "it's");
  EXPECT_EQ(static_cast<int>(rows[2][1].number), 3);
  EXPECT_EQ(rows[1][2].text, "1970-01-02");
}

TEST(SqliteOracleTest, HoldsOnlyMentionedColumns) {
  auto oracle = SqliteOracle::Open().value();
  ASSERT_TRUE(oracle->CreateTable(Schema(), {"SELECT id, unused_too FROM t"}, "").ok());
  EXPECT_TRUE(oracle->Run("SELECT id FROM t").ok());
  EXPECT_FALSE(oracle->Run("SELECT unused FROM t").ok());
}

TEST(SqliteOracleTest, CancelledWhileItRuns) {
  std::atomic<bool> cancelled = true;
  auto oracle = SqliteOracle::Open(&cancelled).value();
  const auto rows = oracle->Run(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM "
      "n");
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
}

TEST(SameRowsTest, InAnyOrderButExactly) {
  const auto row = [](int n, const char* s) {
    return std::vector<Value>{Value::Integer(n), Value::String(s)};
  };
  EXPECT_TRUE(SameRows({row(1, "a"), row(2, "b")}, {row(2, "b"), row(1, "a")}));
  EXPECT_FALSE(SameRows({row(1, "a"), row(1, "a")}, {row(1, "a"), row(2, "a")}));
  EXPECT_FALSE(SameRows({row(1, "a")}, {row(1, "a"), row(1, "a")}));
  EXPECT_FALSE(SameRows({{Value::Null()}}, {{Value::String("")}}));
  EXPECT_TRUE(SameRows({}, {}));
}

TEST(SqliteOracleTest, DecimalsAreRealNumbersAndLikeMindsCase) {
  const partitioner::TableSchema schema = {
      .name = "t", .columns = {{"price", Type::Decimal(2)}, {"name", Type::String()}}};
  partitioner::ColumnBatch batch(2);
  batch.column(0).numbers = {150, -25};
  batch.column(1).strings = {"abc", "ABC"};
  batch.set_rows(2);
  auto oracle = SqliteOracle::Open().value();
  ASSERT_TRUE(oracle->CreateTable(schema, {"price name"}, "").ok());
  ASSERT_TRUE(oracle->Append("t", batch).ok());
  ASSERT_TRUE(oracle->CreateIndex("t", "price").ok());
  ASSERT_TRUE(oracle->CreateIndex("t", "unused").ok());
  ASSERT_TRUE(oracle->Commit().ok());
  EXPECT_EQ(oracle->Run("SELECT sum(price) FROM t").value()[0][0].ToString(), "1.25");
  EXPECT_EQ(oracle->Run("SELECT name FROM t WHERE name LIKE 'a%'").value().size(), 1u);
}

TEST(SameRowsToTest, NumbersToSoManyDigitsAndTextsExactly) {
  const auto row = [](const char* text, const char* number) {
    return std::vector<Value>{Value::String(text), Value::String(number)};
  };
  EXPECT_TRUE(SameRowsTo(9, {row("a", "1.00"), row("b", "2")}, {row("b", "2.0000000001"), row("a", "1")}));
  EXPECT_FALSE(SameRowsTo(9, {row("a", "1")}, {row("a", "1.0000001")}));
  EXPECT_FALSE(SameRowsTo(9, {row("a", "1")}, {row("A", "1")}));
  EXPECT_FALSE(SameRowsTo(9, {row("a", "1")}, {row("a", "1"), row("a", "1")}));
  EXPECT_FALSE(SameRowsTo(9, {{Value::Null()}}, {{Value::Integer(0)}}));
  // A quotient of six decimals, and the same with more of them.
  EXPECT_TRUE(SameRowsTo(13, {row("a", "15.686750")}, {row("a", "15.6867497")}));
  EXPECT_FALSE(SameRowsTo(13, {row("a", "15.686750")}, {row("a", "15.6867477")}));
  EXPECT_FALSE(SameRowsTo(13, {row("a", "15.68")}, {row("a", "15.684")}));
}

}  // namespace
}  // namespace nam
