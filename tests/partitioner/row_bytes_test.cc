#include "partitioner/row_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "types/sql_error.h"
#include "types/text_bytes.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

constexpr uint64_t kWithoutTexts = 16 + 8 + 8;

void AddNullable(const std::string& name, const Type& type, proto::Table& table) {
  proto::Column& column = *table.add_columns();
  column.set_name(name);
  *column.mutable_type() = ToProto(type);
  column.set_nullable(true);
}

/// A bigint, a text that was dropped, a text and a bytea.
proto::Table TableWithTexts() {
  proto::Table table;
  table.set_name("t");
  AddNullable("id", Type::Integer(), table);
  AddNullable("gone", Type::String(), table);
  table.mutable_columns(1)->set_hidden(true);
  AddNullable("a", Type::String(), table);
  AddNullable("b", Type::Bytes(), table);
  return table;
}

class TextBatch {
 public:
  void Add(size_t a, size_t b) {
    rows_.column(0).Push(Form::kNumber, 1, "");
    rows_.column(1).PushNull(Form::kText, rows_.rows());
    rows_.column(2).Push(Form::kText, 0, rows_.Keep(std::string(a, 'a')));
    if (b > 0) rows_.column(3).Push(Form::kText, 0, rows_.Keep(std::string(b, 'b')));
    if (b == 0) rows_.column(3).PushNull(Form::kText, rows_.rows());
    rows_.set_rows(rows_.rows() + 1);
  }
  const ColumnBatch& rows() const { return rows_; }

 private:
  ColumnBatch rows_{4};
};

TEST(RowBytesTest, TextsOfColumnarTablesAreBoundedEach) {
  const RowBytes bytes(TableWithTexts());
  TextBatch batch;
  batch.Add(kTextBytesMax, kTextBytesMax);
  EXPECT_TRUE(bytes.Check(batch.rows(), 0, 1).ok());
  batch.Add(9, kTextBytesMax + 1);
  const auto error = SqlErrorOf(bytes.Check(batch.rows(), 0, 2));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, "54000");
  EXPECT_EQ(error->message, "text is too long for table \"t\": size 16777217, maximum size 16777216");
  EXPECT_NE(error->hint.find("column \"b\""), std::string::npos) << error->hint;
}

TEST(RowBytesTest, OfRecordTablesAreBoundedTogetherWithTexts) {
  constexpr size_t kMost = kRowBytesMax - kWithoutTexts;
  proto::Table table = TableWithTexts();
  table.mutable_record();
  const RowBytes bytes(table);
  TextBatch batch;
  batch.Add(kMost, 0);
  batch.Add(0, kMost);
  batch.Add(kMost - 9, 9);
  EXPECT_TRUE(bytes.Check(batch.rows(), 0, 3).ok());
  batch.Add(kMost - 9, 10);
  EXPECT_TRUE(bytes.Check(batch.rows(), 0, 3).ok()) << "only rows that are asked for";
  const auto error = SqlErrorOf(bytes.Check(batch.rows(), 2, 2));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, "54000");
  EXPECT_EQ(error->message, "row is too big for table \"t\": size 65001, maximum size 65000");
  EXPECT_NE(error->hint.find("column \"a\" has 64959 bytes"), std::string::npos) << error->hint;
}

TEST(RowBytesTest, OfRecordTablesAreKnownFromTheirColumns) {
  proto::Table table = TableWithTexts();
  EXPECT_EQ(RowBytes(table).most(), kWithoutTexts) << "texts of columnar tables have any length";
  table.mutable_record();
  table.mutable_columns(2)->mutable_type()->set_precision(1'000);
  table.mutable_columns(3)->mutable_type()->set_precision(502);
  EXPECT_EQ(RowBytes(table).most(), kWithoutTexts + 1'000 + 500);
}

}  // namespace
}  // namespace nam::partitioner
