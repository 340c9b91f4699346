#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sql/bound_query.h"
#include "tests/sql/fake_tables.h"
#include "types/wire.h"

namespace nam::sql {

/// A record table, by its CREATE TABLE.
inline proto::Table RecordTable(const std::string& text) {
  FakeTables tables;
  absl::StatusOr<Statement> statement = Bind(text, tables);
  if (!statement.ok()) ADD_FAILURE() << text << "\n" << statement.status();
  return std::get<CreateTableStatement>(*std::move(statement)).table;
}

/// Two to seven columns c0, c1, … of any types, one to three of them the key.
inline proto::Table ArbitraryRecordTable() {
  const int columns = *rc::gen::inRange(2, 8);
  std::string text = "create table x (";
  for (int i = 0; i < columns; ++i) {
    const std::string type = *rc::gen::element<std::string>(
        "smallint", "int", "bigint", "decimal(4,1)", "decimal(38,3)", "date", "timestamp", "timestamptz",
        "time", "char(2)", "varchar(4)", "boolean", "numeric");
    absl::StrAppend(&text, "c", i, " ", type, *rc::gen::element<std::string>("", " not null"), ", ");
  }
  const auto key = *rc::gen::unique<std::vector<int>>(*rc::gen::inRange(1, std::min(4, columns)),
                                                      rc::gen::inRange(0, columns));
  text += "primary key (";
  for (size_t i = 0; i < key.size(); ++i) absl::StrAppend(&text, i > 0 ? ", c" : "c", key[i]);
  return RecordTable(text + ")) with (storage = record)");
}

/// A value that the column accepts; often a small one, so that two are equal now and then, and the extremes.
inline Value ArbitraryValue(const proto::Column& column) {
  Type type = ColumnTypeOf(column.type());
  type.length = 0;
  if (column.nullable() && *rc::gen::inRange(0, 4) == 0) return Value::Null(type);
  const int small = *rc::gen::inRange(-3, 4);
  const int pick = *rc::gen::inRange(0, 8);
  switch (type.kind) {
    case TypeKind::kBool:
      return Value::Bool(small > 0);
    case TypeKind::kString: {
      const auto text =
          *rc::gen::container<std::string>(*rc::gen::inRange(0, static_cast<int>(column.type().length()) + 1),
                                           rc::gen::elementOf(std::string("ab\x01\xc3")));
      return Value::String(text);
    }
    case TypeKind::kDate:
      return Value::Date(pick == 0 ? -719162 : pick == 1 ? 2932896 : small);
    case TypeKind::kTime:
      return Value::Time(pick == 0 ? 0 : pick == 1 ? kMicrosecondsPerDay : small + 3);
    case TypeKind::kTimestampTz:
      return Value::TimestampTz(pick == 0 ? -62135596800000000 : pick == 1 ? 253402300799999999 : small);
    case TypeKind::kTimestamp:
      return Value::Timestamp(pick == 0 ? -62135596800000000 : pick == 1 ? 253402300799999999 : small);
    case TypeKind::kNumeric:  // 0.1, 0.10 and 0.100 are one
      return Value::OfNumeric({small * PowerOfTen(pick % 3), static_cast<uint8_t>(pick % 3 + pick / 6)});
    default:
      break;
  }
  const __int128 most = type.kind == TypeKind::kInteger
                            ? (__int128{1} << (8 * column.type().precision() - 1)) - 1
                            : PowerOfTen(static_cast<int>(column.type().precision())) - 1;
  const __int128 least = type.kind == TypeKind::kInteger ? -most - 1 : -most;
  return {type, false, pick == 0 ? most : pick == 1 ? least : small, {}};
}

inline std::vector<Value> ArbitraryRow(const proto::Table& table) {
  std::vector<Value> row;
  for (const proto::Column& column : table.columns()) row.push_back(ArbitraryValue(column));
  return row;
}

}  // namespace nam::sql
