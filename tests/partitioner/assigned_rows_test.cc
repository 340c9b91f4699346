#include "partitioner/assigned_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/assigned_value.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

void AddColumn(const std::string& name, const Type& type, bool nullable, proto::Table& table) {
  proto::Column& column = *table.add_columns();
  column.set_name(name);
  *column.mutable_type() = ToProto(type);
  column.set_nullable(nullable);
}

Type Bounded(Type type, uint8_t precision) {
  type.precision = precision;
  return type;
}

Type Char(uint32_t length) {
  Type type = Type::String();
  type.length = length;
  type.blank_padded = true;
  return type;
}

/// A smallint that is not null, a numeric(4,1), a char(3), and a bigint whose default is 9.
proto::Table SomeTable() {
  proto::Table table;
  table.set_name("t");
  AddColumn("a", Bounded(Type::Integer(), 2), false, table);
  AddColumn("b", Bounded(Type::Decimal(1), 4), true, table);
  AddColumn("c", Char(3), true, table);
  AddColumn("d", Bounded(Type::Integer(), 8), false, table);
  return table;
}

const std::vector<GivenColumn>& Given() {
  static const std::vector<GivenColumn> given = {{1, {}}, {0, {}}, {2, {}}, {-1, Value::Integer(9)}};
  return given;
}

/// Rows of columns b, a, c as the engine has them.
struct Rows {
  std::vector<__int128> b;
  std::vector<int64_t> a;
  std::vector<std::string_view> c;
  std::vector<uint8_t> b_nulls, a_nulls, c_nulls;

  std::vector<ValueColumn> Columns() const {
    std::vector<ValueColumn> columns(3);
    columns[0].type = Type::Decimal(1);
    columns[0].physical = Physical::kInt128;
    columns[0].wide = b.data();
    columns[1].type = Type::Integer();
    columns[1].narrow = a.data();
    columns[2].type = Type::String();
    columns[2].physical = Physical::kText;
    columns[2].text = c.data();
    if (!b_nulls.empty()) columns[0].nulls = b_nulls.data();
    if (!a_nulls.empty()) columns[1].nulls = a_nulls.data();
    if (!c_nulls.empty()) columns[2].nulls = c_nulls.data();
    return columns;
  }
};

std::string StateOf(const absl::Status& status) {
  return status.ok() ? "" : SqlErrorOf(status).value_or(SqlError{.sqlstate = "none"}).sqlstate;
}

TEST(AssignedRows, ColumnsAreCopiedAndNullsAreMarked) {
  const proto::Table table = SomeTable();
  const AssignedRows assigned(table, Given());
  Rows rows{.b = {15, 7, -9'999}, .a = {1, -32'768, 32'767}, .c = {"abc", "é  ", ""}};
  ColumnBatch batch(4);
  ASSERT_TRUE(assigned.Add(rows.Columns(), nullptr, 3, batch).ok());
  EXPECT_EQ(batch.rows(), 3u);
  EXPECT_EQ(batch.column(0).numbers, (std::vector<int64_t>{1, -32'768, 32'767}));
  EXPECT_EQ(batch.column(1).numbers, (std::vector<int64_t>{15, 7, -9'999}));
  EXPECT_EQ(batch.column(2).strings, (std::vector<std::string_view>{"abc", "é", ""}));
  EXPECT_EQ(batch.column(3).numbers, (std::vector<int64_t>{9, 9, 9}));
  for (size_t c = 0; c < 4; ++c) EXPECT_TRUE(batch.column(c).nulls.empty()) << c;
  // What lies where a row is NULL is of no type.
  rows.b[1] = __int128{1} << 100;
  rows.b_nulls = {0, 1, 0};
  rows.c_nulls = {0, 0, 1};
  const uint32_t positions[] = {2, 1};
  ASSERT_TRUE(assigned.Add(rows.Columns(), positions, 2, batch).ok());
  EXPECT_EQ(batch.column(0).numbers, (std::vector<int64_t>{1, -32'768, 32'767, 32'767, -32'768}));
  EXPECT_EQ(batch.column(1).numbers, (std::vector<int64_t>{15, 7, -9'999, -9'999, 0}));
  EXPECT_EQ(batch.column(1).nulls, (std::vector<uint8_t>{0, 0, 0, 0, 1}));
  EXPECT_EQ(batch.column(2).nulls, (std::vector<uint8_t>{0, 0, 0, 1, 0}));
  rows.b_nulls.clear();
  rows.b[1] = 8;
  ASSERT_TRUE(assigned.Add(rows.Columns(), nullptr, 1, batch).ok());
  EXPECT_EQ(batch.column(1).nulls, (std::vector<uint8_t>{0, 0, 0, 0, 1, 0}));
}

TEST(AssignedRows, TheFirstRowWithAnErrorIsTold) {
  const proto::Table table = SomeTable();
  const AssignedRows assigned(table, Given());
  const Rows fine{.b = {1, 2, 3, 4}, .a = {1, 2, 3, 4}, .c = {"a", "b", "c", "d"}};
  const auto state_of = [&](const Rows& rows) {
    ColumnBatch batch(4);
    return StateOf(assigned.Add(rows.Columns(), nullptr, 4, batch));
  };
  EXPECT_EQ(state_of(fine), "");
  Rows rows = fine;
  rows.a[2] = 32'768;
  EXPECT_EQ(state_of(rows), "22003");
  rows.c[1] = "four";
  EXPECT_EQ(state_of(rows), "22001") << "an earlier row's";
  rows.a_nulls = {0, 1, 0, 0};
  EXPECT_EQ(state_of(rows), "23502") << "an earlier column's";
  rows.b[0] = 10'000;
  EXPECT_EQ(state_of(rows), "22003") << "an earlier row's again";
  rows.b_nulls = {1, 0, 0, 0};
  EXPECT_EQ(state_of(rows), "23502");
}

TEST(AssignedRows, ADefaultThatAColumnDoesNotTakeFailsTheFirstRow) {
  const proto::Table table = SomeTable();
  std::vector<GivenColumn> given = Given();
  given[3].absent = Value::Null(Type::Integer());
  const AssignedRows assigned(table, given);
  ColumnBatch batch(4);
  const Rows rows{.b = {1}, .a = {1}, .c = {"a"}};
  EXPECT_TRUE(assigned.Add(rows.Columns(), nullptr, 0, batch).ok()) << "there is no row";
  EXPECT_EQ(StateOf(assigned.Add(rows.Columns(), nullptr, 1, batch)), "23502");
}

/// One row at a time, as values, is the same.
TEST(AssignedRows, ValuesBecomeWhatColumnsBecome) {
  const proto::Table table = SomeTable();
  const AssignedRows assigned(table, Given());
  const Rows rows{
      .b = {5, 0}, .a = {7, 8}, .c = {"ab ", ""}, .b_nulls = {0, 1}, .a_nulls = {}, .c_nulls = {0, 1}};
  ColumnBatch by_columns(4), by_rows(4);
  ASSERT_TRUE(assigned.Add(rows.Columns(), nullptr, 2, by_columns).ok());
  const std::vector<ValueColumn> columns = rows.Columns();
  for (size_t row = 0; row < 2; ++row) {
    std::vector<Value> values;
    for (const ValueColumn& column : columns) values.push_back(column.Boxed(row));
    ASSERT_TRUE(assigned.Add(values, by_rows).ok());
  }
  EXPECT_EQ(by_rows.rows(), by_columns.rows());
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(by_rows.column(c).numbers, by_columns.column(c).numbers) << c;
    EXPECT_EQ(by_rows.column(c).strings, by_columns.column(c).strings) << c;
    EXPECT_EQ(by_rows.column(c).nulls, by_columns.column(c).nulls) << c;
  }
}

}  // namespace
}  // namespace nam::partitioner
