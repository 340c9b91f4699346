#include "partitioner/record_row.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "partitioner/assigned_value.h"
#include "tests/sql/arbitrary_record.h"

namespace nam::partitioner {
namespace {

using sql::ArbitraryRecordTable;
using sql::ArbitraryRow;
using sql::RecordTable;

std::span<const std::byte> Bytes(const std::string& row) {
  return std::as_bytes(std::span(row));
}

int CompareNullsLast(const Value& a, const Value& b) {
  if (a.null || b.null) return static_cast<int>(a.null) - static_cast<int>(b.null);
  return Compare(a, b);
}

/// How the tuples of these columns are ordered.
int CompareBy(const std::vector<uint32_t>& columns, const std::vector<Value>& a,
              const std::vector<Value>& b) {
  for (const uint32_t c : columns) {
    if (const int order = CompareNullsLast(a[c], b[c]); order != 0) return order < 0 ? -1 : 1;
  }
  return 0;
}

int Sign(int n) {
  return n < 0 ? -1 : n > 0;
}

RC_GTEST_PROP(RecordRowProperty, DecodeGivesWhatWasEncoded, ()) {
  const proto::Table table = ArbitraryRecordTable();
  const RecordLayout layout(table);
  const std::vector<Value> row = ArbitraryRow(table);
  const std::string bytes = layout.Encode(row);
  RC_ASSERT(bytes.size() == layout.row_bytes());
  const std::vector<Value> back = layout.Decode(Bytes(bytes));
  RC_ASSERT(back.size() == row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    RC_ASSERT(back[i].type.kind == row[i].type.kind);
    RC_ASSERT(back[i].null == row[i].null);
    if (!row[i].null) RC_ASSERT(Compare(back[i], row[i]) == 0);
  }
  RC_ASSERT(layout.Encode(back) == bytes);
}

RC_GTEST_PROP(RecordRowProperty, KeysAreOrderedAsTheirValues, ()) {
  const proto::Table table = ArbitraryRecordTable();
  const RecordLayout layout(table);
  const std::vector<Value> a = ArbitraryRow(table), b = ArbitraryRow(table);
  const std::string x = layout.Encode(a), y = layout.Encode(b);
  RC_ASSERT(Sign(x.substr(0, layout.key_bytes()).compare(y.substr(0, layout.key_bytes()))) ==
            CompareBy(KeyColumnsOf(table), a, b));
}

RC_GTEST_PROP(RecordRowProperty, IndexKeysAreOrderedAsTheirValues, ()) {
  const proto::Table table = ArbitraryRecordTable();
  const RecordLayout layout(table);
  const std::vector<Value> a = ArbitraryRow(table), b = ArbitraryRow(table);
  const auto columns = *rc::gen::container<std::vector<uint32_t>>(
      *rc::gen::inRange(1, 4), rc::gen::inRange<uint32_t>(0, static_cast<uint32_t>(table.columns_size())));
  const std::string x = layout.IndexKey(Bytes(layout.Encode(a)), columns);
  const std::string y = layout.IndexKey(Bytes(layout.Encode(b)), columns);
  RC_ASSERT(Sign(x.compare(y)) == CompareBy(columns, a, b));
}

TEST(RecordRowTest, Sizes) {
  const RecordLayout layout(RecordTable(
      "create table x (a smallint, b int, c bigint, d decimal(18, 2), e decimal(19, 2), f date, g timestamp, "
      "h char(3), i varchar(7), j boolean, primary key (h, b)) with (storage = record)"));
  EXPECT_EQ(layout.key_bytes(), 4u * 3 + 4);
  EXPECT_EQ(layout.row_bytes(), 16u + 1 + 2 + 8 + 8 + 16 + 4 + 8 + 4 * 7 + 1);
}

TEST(RecordRowTest, Bytes) {
  const RecordLayout layout(
      RecordTable("create table x (v smallint, id int primary key, t varchar(1)) with (storage = record)"));
  using namespace std::string_literals;
  EXPECT_EQ(layout.Encode(std::vector{Value::Integer(-1), Value::Integer(1), Value::String("ab")}),
            "\x80\x00\x00\x01\x00\x7f\xff"
            "ab\x00\x00"s);
  EXPECT_EQ(layout.Encode(std::vector{Value::Null(), Value::Integer(-1), Value::Null()}),
            "\x7f\xff\xff\xff\x03\x00\x00\x00\x00\x00\x00"s);
}

TEST(RecordRowTest, ATableOfAsManyBytesAsCharactersKeepsItsRows) {
  proto::Table table =
      RecordTable("create table x (id int primary key, t varchar(3)) with (storage = record)");
  EXPECT_EQ(RecordLayout(table).row_bytes(), 4u + 1 + 12);
  table.mutable_columns(1)->mutable_type()->clear_precision();
  EXPECT_EQ(RecordLayout(table).row_bytes(), 4u + 1 + 3);
  EXPECT_EQ(Assign(table, 1, Value::String("é  "), -1)->text, "é ");
  EXPECT_FALSE(Assign(table, 1, Value::String("éé"), -1).ok());
}

TEST(RecordRowTest, DamagedWordsAreNoNumbers) {
  const RecordLayout layout(RecordTable(
      "create table x (id int primary key, x numeric, y numeric not null) with (storage = record)"));
  const Value number = Value::OfNumeric({-125, 2});
  std::string row = layout.Encode(std::vector{Value::Integer(1), Value::Null(number.type), number});
  EXPECT_TRUE(layout.HasNumbers(Bytes(row)));
  row[layout.field(2).offset] = '\xff';
  EXPECT_FALSE(layout.HasNumbers(Bytes(row)));
}

TEST(RecordRowTest, Successor) {
  EXPECT_EQ(SuccessorOfPrefix("ab"), "ac");
  EXPECT_EQ(SuccessorOfPrefix("a\xff\xff"), "b");
  EXPECT_EQ(SuccessorOfPrefix("\xff\xff"), "");
  EXPECT_EQ(SuccessorOfPrefix("\x7f"), "\x80");
}

}  // namespace
}  // namespace nam::partitioner
